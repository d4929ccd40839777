//! `softiov qemu-args`: prints what QEMU, libvirt or Cloud Hypervisor needs to attach a VF, or a whole port, to a
//! guest.

use crate::target::TargetHost;
use anyhow::Context;
use daemon::control::client::{ControlClientError, ask};
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `softiov qemu-args`.
#[derive(Debug, clap::Args)]
pub(crate) struct QemuArgsOptions {
    /// VF, such as pf0vf0; or a port with pf = "guest", such as pf1.
    vf: String,
    /// Memory of the guest, in QEMU's form: a number with M, G or T, or of MiB without a unit.
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = memory_size)]
    memory: String,
    /// Form of the output: arguments for a shell that starts QEMU, the same arguments as a JSON array of strings,
    /// additions to a libvirt domain's XML, or arguments for a shell that starts Cloud Hypervisor.
    #[arg(long, value_enum, default_value = "shell")]
    format: VmmFormat,
    #[command(flatten)]
    target: TargetHost,
}

/// Output format of the arguments: the VMM and its syntax.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum VmmFormat {
    Shell,
    Json,
    Libvirt,
    CloudHypervisor,
}

/// Prints the arguments that attach a VF to a VMM.
pub(crate) fn run(args: &QemuArgsOptions) -> anyhow::Result<ExitCode> {
    let socket = find_socket(args)?;
    let text = match args.format {
        VmmFormat::Shell => shell(&socket, &args.memory),
        VmmFormat::Json => serde_json::to_string_pretty(&words(&socket, &args.memory))? + "\n",
        VmmFormat::Libvirt => libvirt(&socket),
        VmmFormat::CloudHypervisor => cloud_hypervisor(&socket, &args.memory),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the path of the VF's socket: the one that the running host reports, or the one that the configuration names.
fn find_socket(args: &QemuArgsOptions) -> anyhow::Result<PathBuf> {
    let config = args.target.load()?;
    let pf = config.ports.iter().find(|port| port.name == args.vf).and_then(|port| port.pf_socket.clone());
    if let Some(socket) = pf {
        return Ok(socket);
    }
    match ask(&config.control_socket(), ControlRequest::VfShow { vf: args.vf.clone() }) {
        Ok(ControlAnswer::Vf(vf)) => Ok(vf.function.socket),
        Ok(ControlAnswer::Port(port)) => match port.pf {
            Some(pf) => Ok(pf.socket),
            None => anyhow::bail!(
                "{name} is a port whose VFs go to guests: name a VF, such as {name}vf0, or \
                 give the port to a guest with pf = \"guest\"",
                name = port.name
            ),
        },
        Ok(_) => Err(ControlClientError::OtherAnswer.into()),
        Err(ControlClientError::Unreachable { .. }) => {
            crate::output::print_error("softiov: no host is running yet; start one with `softiov serve`");
            let mut vfs = config.ports.iter().flat_map(|port| &port.vfs);
            let vf = vfs.find(|vf| vf.name == args.vf);
            Ok(vf
                .with_context(|| format!("no VF is called {:?} in the configuration", args.vf))?
                .socket
                .clone())
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks a memory size as QEMU takes it: digits, and at most one unit after them.
fn memory_size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']);
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    match number {
        Some(_) if text.len() - digits.len() <= 1 => Ok(text.to_owned()),
        _ => Err("not a size such as 512M or 2G".to_owned()),
    }
}

/// Returns QEMU's arguments for a VF and for guest memory that QEMU shares with the card, one per word.
fn words(socket: &Path, memory: &str) -> [String; 8] {
    [
        "-object",
        &format!("memory-backend-memfd,id=mem0,size={memory},share=on"),
        "-machine",
        "q35,memory-backend=mem0",
        "-m",
        memory,
        "-device",
        &device(socket, ""),
    ]
    .map(str::to_owned)
}

/// Returns the value of QEMU's option `-device` for a VF, as JSON. `address` is the device's bus and slot in the guest,
/// or empty.
fn device(socket: &Path, address: &str) -> String {
    let path = serde_json::Value::from(socket.to_string_lossy());
    format!("{{\"driver\":\"vfio-user-pci\",{address}\"socket\":{{\"path\":{path},\"type\":\"unix\"}}}}")
}

/// Returns QEMU's arguments for a VF as shell text, quoted, on several lines.
fn shell(socket: &Path, memory: &str) -> String {
    let [object, backend, machine, q35, m, size, device, json] = words(socket, memory);
    format!("{object} {backend} \\\n{machine} {q35} {m} {size} \\\n{device} {}\n", quoted(&json))
}

/// Returns Cloud Hypervisor's arguments for a VF as shell text, quoted, on several lines.
fn cloud_hypervisor(socket: &Path, memory: &str) -> String {
    let device = format!("socket={}", socket.display());
    format!("--memory size={memory},shared=on \\\n--user-device {}\n", quoted(&device))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Number of the guest's PCI bus for the VF: libvirt leaves a root port free that it does not know to be used.
const BUS: u8 = 9;

/// Returns the elements that attach a VF to a libvirt domain, as XML in the order of libvirt's schema.
fn libvirt(socket: &Path) -> String {
    let device = device(socket, &format!("\"bus\":\"pci.{BUS}\",\"addr\":\"0x0\","));
    let device = device.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;");
    format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <devices>
    <controller type='pci' index='{BUS}' model='pcie-root-port'/>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-device'/>
    <qemu:arg value='{device}'/>
  </qemu:commandline>
</domain>
"
    )
}

#[cfg(test)]
mod tests {
    use super::{cloud_hypervisor, libvirt, shell, words};
    use std::path::Path;

    #[test]
    fn qemu_socket_argument_has_the_form_of_qemu_10() {
        let text = shell(Path::new("/run/softiov/pf0vf3/vf.sock"), "2G");
        assert_eq!(
            text,
            "-object memory-backend-memfd,id=mem0,size=2G,share=on \\\n\
             -machine q35,memory-backend=mem0 -m 2G \\\n\
             -device '{\"driver\":\"vfio-user-pci\",\
             \"socket\":{\"path\":\"/run/softiov/pf0vf3/vf.sock\",\"type\":\"unix\"}}'\n"
        );
    }

    #[test]
    fn json_words_of_qemu_arguments_are_unquoted_shell_words() {
        let path = Path::new("/run/softiov/pf0vf3/vf.sock");
        let unquoted = shell(path, "2G").replace(['\'', '\\'], "");
        assert!(words(path, "2G").iter().eq(unquoted.split_whitespace()));
    }

    #[test]
    fn cloud_hypervisor_arguments_share_memory() {
        let text = cloud_hypervisor(Path::new("/run/s.sock"), "1G");
        assert_eq!(text, "--memory size=1G,shared=on \\\n--user-device 'socket=/run/s.sock'\n");
    }

    #[test]
    fn socket_path_cannot_end_its_quotes_in_qemu_arguments() {
        let path = Path::new("/tmp/a'b\"<c&.sock");
        let text = shell(path, "1G");
        assert!(text.contains(r#"/tmp/a'\''b\"<c&.sock"#), "{text}");
        let text = libvirt(path);
        assert!(text.contains(r#"/tmp/a&apos;b\"&lt;c&amp;.sock"#), "{text}");
    }
}
