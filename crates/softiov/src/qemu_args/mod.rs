//! `softiov qemu-args`: prints what QEMU, libvirt or Cloud Hypervisor needs to attach a VF, or a whole port, to a
//! guest, or several VFs as one PCI device with SR-IOV.

mod sriov;
mod text;
mod vfio_user;
mod vhost_user;

use crate::qemu_version::QemuVersion;
use crate::target::HostSelectionOptions;
use anyhow::Context;
use daemon::config::HostConfig;
use daemon::config::file::{CardFamily, SocketRole};
use daemon::control::client::{ControlClientError, ask, ports};
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::control::status::VfStatus;
use sriov::SriovPf;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use text::RootPort;
use vhost_user::VhostUserDevice;

/// Arguments of `softiov qemu-args`.
#[derive(Debug, clap::Args)]
pub(crate) struct QemuArgsOptions {
    /// VF, such as pf0vf0; or a port with pf = "guest", such as pf1.
    vf: String,
    /// Make the VF the PF of a PCI device with SR-IOV, and these the VFs of that device, in this order. The guest enables
    /// them by sriov_numvfs in sysfs. All need family = "virtio", and QEMU 10.1.
    #[arg(long, value_name = "VF,...", value_delimiter = ',')]
    sriov_vfs: Vec<String>,
    /// Memory of the guest, in QEMU's form: a number with M, G or T, or of MiB without a unit.
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = memory_size)]
    memory: String,
    /// Number of queue pairs of a VF with family = "virtio", 1 to 16, usually the number of the guest's processors. Default:
    /// 1. Other VFs have the number of their card.
    #[arg(long, value_name = "PAIRS", value_parser = queue_pairs)]
    queues: Option<u16>,
    /// Version of the QEMU that gets the arguments, such as 7.2. A VF with family = "virtio" needs another option before 9.2;
    /// other VFs need 10.1. Default: the newest. libvirt knows its QEMU.
    #[arg(long, value_name = "X.Y")]
    qemu_version: Option<QemuVersion>,
    /// Number of the PCIe root port for the device, of several such devices in one guest: 0 for the first, up to 31. Only
    /// devices with SR-IOV, and in a libvirt domain those without family = "virtio", have a root port. Default: 0.
    #[arg(long, value_name = "NUMBER")]
    root_port: Option<RootPort>,
    /// Form of the output: arguments for a shell that starts QEMU, the same arguments as a JSON array of strings,
    /// additions to a libvirt domain's XML, or arguments for a shell that starts Cloud Hypervisor.
    #[arg(long, value_enum, default_value = "shell")]
    format: VmmArgumentFormat,
    #[command(flatten)]
    target: HostSelectionOptions,
}

/// Maximum number of queue pairs of a virtio VF.
const MAX_PAIRS: u16 = 16;

/// Output format of the arguments: the VMM and its syntax.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum VmmArgumentFormat {
    Shell,
    Json,
    Libvirt,
    CloudHypervisor,
}

/// Function that a VMM attaches: its socket with the protocol that the socket speaks.
enum VmmFunctionSocket {
    VfioUser(PathBuf),
    VhostUser(VhostUserDevice),
    /// Several virtio functions, as one PCI device.
    SriovPf(SriovPf),
}

impl VmmFunctionSocket {
    /// Returns QEMU's arguments that attach the function, and share the guest's memory with the card. Each element is
    /// one argument.
    fn words(&self, memory: &str, version: QemuVersion) -> Vec<String> {
        match self {
            Self::VfioUser(socket) => vfio_user::words(socket, memory),
            Self::VhostUser(device) => device.words(memory, version),
            Self::SriovPf(pf) => pf.words(memory, version),
        }
    }

    /// Returns, as quoted shell text on several lines, QEMU's arguments that attach the function.
    fn shell(&self, memory: &str, version: QemuVersion) -> String {
        match self {
            Self::VfioUser(socket) => vfio_user::shell(socket, memory),
            Self::VhostUser(device) => device.shell(memory, version),
            Self::SriovPf(pf) => pf.shell(memory, version),
        }
    }

    /// Returns the elements that attach the function to a libvirt domain, as XML.
    fn libvirt(&self, version: QemuVersion, port: RootPort) -> String {
        match self {
            Self::VfioUser(socket) => vfio_user::libvirt(socket, port),
            Self::VhostUser(device) => device.libvirt(),
            Self::SriovPf(pf) => pf.libvirt(version),
        }
    }

    /// Returns, as quoted shell text on several lines, Cloud Hypervisor's arguments that attach the function.
    ///
    /// # Errors
    ///
    /// Cloud Hypervisor has no device for the function.
    fn cloud_hypervisor(&self, memory: &str) -> anyhow::Result<String> {
        match self {
            Self::VfioUser(socket) => Ok(vfio_user::cloud_hypervisor(socket, memory)),
            Self::VhostUser(device) => Ok(device.cloud_hypervisor(memory)),
            Self::SriovPf(_) => anyhow::bail!(
                "Cloud Hypervisor has no devices with SR-IOV: leave --sriov-vfs out, or use another --format"
            ),
        }
    }

    /// Returns the function called `name` as a virtio device, which can be a part of a PCI device with SR-IOV.
    ///
    /// # Errors
    ///
    /// The function is no virtio VF.
    fn virtio(self, name: &str) -> anyhow::Result<VhostUserDevice> {
        match self {
            Self::VhostUser(device) => Ok(device),
            Self::VfioUser(_) | Self::SriovPf(_) => anyhow::bail!(
                "{name} is no virtio VF, and QEMU makes a device with SR-IOV of virtio VFs alone: give its port \
                 family = \"virtio\", or leave --sriov-vfs out"
            ),
        }
    }

    /// Returns true if the arguments in a format have a root port for the function.
    fn has_root_port(&self, format: VmmArgumentFormat) -> bool {
        match self {
            Self::VfioUser(_) => matches!(format, VmmArgumentFormat::Libvirt),
            Self::VhostUser(_) => false,
            Self::SriovPf(_) => true,
        }
    }

    /// Returns the first QEMU version with the device, and the option or device that earlier ones lack.
    fn needed(&self) -> Option<(QemuVersion, &'static str)> {
        match self {
            Self::VfioUser(_) => Some((QemuVersion::VFIO_USER, "vfio-user")),
            Self::VhostUser(_) => None,
            Self::SriovPf(_) => Some((QemuVersion::SRIOV_PF, "the option sriov-pf of virtio-net-pci")),
        }
    }
}

/// Prints the arguments that attach a VF to a VMM.
pub(crate) fn run(args: &QemuArgsOptions) -> anyhow::Result<ExitCode> {
    let function = find(args)?;
    let version = args.qemu_version.unwrap_or(QemuVersion::VFIO_USER);
    if let Some((first, missing)) = function.needed()
        && version < first
    {
        anyhow::bail!(
            "QEMU {version} has no {missing}, which {} needs: install QEMU {first} or newer",
            args.vf
        );
    }
    if args.root_port.is_some() && !function.has_root_port(args.format) {
        anyhow::bail!(
            "--root-port has no effect: {} gets no root port in this --format; leave --root-port out",
            args.vf
        );
    }
    let text = match args.format {
        VmmArgumentFormat::Shell => function.shell(&args.memory, version),
        VmmArgumentFormat::Json => {
            serde_json::to_string_pretty(&function.words(&args.memory, version))? + "\n"
        }
        VmmArgumentFormat::Libvirt => function.libvirt(version, args.root_port.unwrap_or_default()),
        VmmArgumentFormat::CloudHypervisor => function.cloud_hypervisor(&args.memory)?,
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the function to attach, with its VFs if it is to be an SR-IOV PF. Their sockets and addresses are those that the
/// running host reports, or the configuration's if no host runs.
fn find(args: &QemuArgsOptions) -> anyhow::Result<VmmFunctionSocket> {
    let config = args.target.load()?;
    let mut host_runs = true;
    let mut find = |name: &str| {
        let found = if host_runs { reported(&config, name, args.queues)? } else { None };
        if found.is_none() && host_runs {
            host_runs = false;
            crate::output::print_error("softiov: no host is running yet; start one with `softiov serve`");
        }
        found.map_or_else(|| configured(&config, name, args.queues), Ok)
    };
    let function = find(&args.vf)?;
    if args.sriov_vfs.is_empty() {
        return Ok(function);
    }
    let vfs = args.sriov_vfs.iter().map(|name| find(name)?.virtio(name));
    let vfs = vfs.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(VmmFunctionSocket::SriovPf(SriovPf::new(
        function.virtio(&args.vf)?,
        vfs,
        args.root_port.unwrap_or_default(),
    )?))
}

/// Returns the function of a name as the running host reports it, or `None` if no host runs.
fn reported(
    config: &HostConfig,
    name: &str,
    pairs: Option<u16>,
) -> anyhow::Result<Option<VmmFunctionSocket>> {
    let pf = config.ports.iter().find(|port| port.name == name).and_then(|port| port.pf_socket.clone());
    if let Some(socket) = pf {
        return Ok(Some(VmmFunctionSocket::VfioUser(socket)));
    }
    let control = config.control_socket();
    match ask(&control, ControlRequest::VfShow { vf: name.to_owned() }) {
        Ok(ControlAnswer::Vf(vf)) => {
            let VfStatus { name, mac, family, function, .. } = *vf;
            let family = family.map_or_else(|| family_of(&control, &name), Ok)?;
            attached(family, (name, mac), (function.socket, function.socket_mode), pairs).map(Some)
        }
        Ok(ControlAnswer::Port(port)) => match port.pf {
            Some(pf) => Ok(Some(VmmFunctionSocket::VfioUser(pf.socket))),
            None => anyhow::bail!(
                "{name} is a port whose VFs go to guests: name a VF, such as {name}vf0, or \
                 give the port to a guest with pf = \"guest\"",
                name = port.name
            ),
        },
        Ok(_) => Err(ControlClientError::OtherAnswer.into()),
        Err(ControlClientError::Unreachable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the VF that the configuration names.
fn configured(config: &HostConfig, name: &str, pairs: Option<u16>) -> anyhow::Result<VmmFunctionSocket> {
    let mut vfs = config.ports.iter().flat_map(|port| &port.vfs);
    let vf = vfs
        .find(|vf| vf.name == name)
        .with_context(|| format!("no VF is called {name:?} in the configuration"))?;
    let socket = (vf.socket.clone(), vf.socket_mode);
    attached(vf.family, (vf.name.clone(), vf.mac.to_string()), socket, pairs)
}

/// Returns the card family of a VF's port, for a host of an earlier version, where a VF has the family of its port.
fn family_of(control: &Path, vf: &str) -> anyhow::Result<CardFamily> {
    let ports = ports(control)?;
    let port = ports.iter().find(|port| port.vfs.iter().any(|other| other.name == vf));
    Ok(port.with_context(|| format!("the VF {vf} has just been removed"))?.family)
}

/// Returns the function to attach. Refuses a number of queue pairs for a VF whose card decides it.
fn attached(
    family: CardFamily,
    (name, mac): (String, String),
    (socket, role): (PathBuf, SocketRole),
    pairs: Option<u16>,
) -> anyhow::Result<VmmFunctionSocket> {
    Ok(match (family, pairs) {
        (CardFamily::Virtio, pairs) => {
            let pairs = pairs.unwrap_or(1).into();
            VmmFunctionSocket::VhostUser(VhostUserDevice { name, mac, socket, role, pairs })
        }
        (CardFamily::I82576 | CardFamily::Avf, None) => VmmFunctionSocket::VfioUser(socket),
        (CardFamily::I82576 | CardFamily::Avf, Some(pairs)) => anyhow::bail!(
            "--queues {pairs} is for VFs with family = \"virtio\"; {name} has family = \"{}\", whose card has a fixed number: leave \
             --queues out",
            family.name()
        ),
    })
}

/// Parses a number of queue pairs.
fn queue_pairs(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_PAIRS).contains(number));
    number.ok_or_else(|| format!("write a number from 1 to {MAX_PAIRS}"))
}

/// Checks a memory size as QEMU takes it: digits, and at most one unit after them.
fn memory_size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']);
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    match number {
        // QEMU takes a number without a unit for bytes at a memory backend, and for MiB elsewhere.
        Some(_) if text == digits => Ok(format!("{text}M")),
        Some(_) if text.len() - digits.len() == 1 => Ok(text.to_owned()),
        _ => Err("not a size such as 512M or 2G".to_owned()),
    }
}
