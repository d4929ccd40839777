//! Testbed of the checks: a live host, two guests for most checks, a third that misbehaves, and the network beyond the
//! uplinks. A guest boots when a check first requests it.

mod settings;

use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually, last_events};
use crate::recorder::DriverRecorder;
use crate::survival::HostRestartTestbed;
use crate::testpmd;
use crate::virtio;
use crate::wire::{MTU, WireNamespace};
use anyhow::{Context, Result, anyhow, bail};
use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::control::status::{FunctionStatus, LinkState, PortStatus, VfStatus};
use daemon::settings::{PortSettings, VfSettings};
use linux_guest::{BootFiles, DpdkSeries, GuestBuilder, KernelSeries, LinuxGuest};
use settings::{config, defaults, no_rules};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::thread::scope;
use tempfile::TempDir;

/// Name of the first VF of the guest Alice, on the first port. The name of Bob's first VF follows.
pub(crate) const ALICE: &str = "pf0vf0";
pub(crate) const BOB: &str = "pf0vf1";
/// Name of the guest Carol's first VF; the administrator has set its Ethernet address.
pub(crate) const CAROL: &str = "pf0vf2";
/// Name of Carol's second VF, on port VLAN 100.
pub(crate) const CAROL_VLAN: &str = "pf0vf3";
/// Name of Carol's third VF, on the other port, which shares a wire with the first if there is an uplink.
pub(crate) const CAROL_OUTSIDE: &str = "pf1vf0";
/// Name of a VF that is reserved for guests which boot for one check only. The name of the second such VF follows.
pub(crate) const VISITOR: &str = "pf0vf4";
pub(crate) const SECOND_VISITOR: &str = "pf0vf5";

/// Name of Alice's second VF, of the second family, with doorbells as messages. The name of Bob's second VF follows,
/// which has mapped doorbells, on a port that a wire connects to Alice's.
pub(crate) const ALICE_AVF: &str = "pf3vf0";
pub(crate) const BOB_AVF: &str = "pf4vf0";
/// Name of the VF on Bob's port of the second family, for a guest that boots for one check.
pub(crate) const VISITOR_AVF: &str = "pf4vf1";
/// Name of the last VF that Alice's port of the second family may have, for a guest that boots for one check. A VF in
/// the middle follows.
pub(crate) const LAST_AVF: &str = "pf3vf63";
pub(crate) const MIDDLE_AVF: &str = "pf3vf31";

/// Name of the PF that the guest Dave drives, on a port of its own that shares the wire.
pub(crate) const PF: &str = "pf2";

/// Beginning of the names of the VFs of the third family.
const VIRTIO_VFS: &str = "pf5vf";
/// Name of the VF of the third family for a guest with split rings. The name of the VF for a guest with packed rings
/// follows.
pub(crate) const SPLIT: &str = "pf5vf0";
pub(crate) const PACKED: &str = "pf5vf1";
/// Name of the VF of the third family for a client of one check. VFs for a guest with interfaces of fewer features follow.
pub(crate) const VISITOR_VIRTIO: &str = "pf5vf2";
pub(crate) const REDUCED: [&str; 6] = ["pf5vf3", "pf5vf4", "pf5vf5", "pf5vf6", "pf5vf7", "pf5vf8"];
/// Name of the VF of the third family for packed rings of testpmd in a guest.
pub(crate) const VISITOR_PACKED: &str = "pf5vf9";

/// Guests that run through all checks: name, number of processors, and functions from eth0 on. IP addresses of the
/// first guest end in 1, and those of the others in 2 and 3.
const STANDING: [(&str, u32, &[&str]); 3] = [
    ("alice", 1, &[ALICE, ALICE_AVF]),
    ("bob", 2, &[BOB, BOB_AVF]),
    ("carol", 1, &[CAROL, CAROL_VLAN, CAROL_OUTSIDE]),
];

/// Indexes of the host's ports with an uplink.
const PORTS: [u8; 3] = [0, 1, 2];
/// Ethernet address of Carol's first VF ([`CAROL`]), which the administrator has set.
pub(crate) const CAROL_MAC: &str = "02:82:57:60:00:02";
/// Value of the setting `mac` that leaves the choice of the address to the guest.
const NO_MAC: &str = "00:00:00:00:00:00";
/// Ethernet address of [`PF`], which the guest Dave drives.
pub(crate) const PF_MAC: &str = "02:82:57:60:02:00";
/// Broadcasts and multicasts per second at which Carol's third VF ([`CAROL_OUTSIDE`]) and the VFs of Alice's AVF port
/// are quarantined.
const STORM: u32 = 100;
/// Id of the port VLAN of Carol's second VF ([`CAROL_VLAN`]).
pub(crate) const PORT_VLAN: u8 = 100;

/// Hosts, guests and outside network of all checks. Guests are dropped before their host, and the host before the wire.
#[derive(Debug)]
pub(crate) struct LinuxTestbed {
    standing: [OnceCell<ScenarioGuest>; 3],
    dave: Option<ScenarioGuest>,
    dpdk: Option<ScenarioGuest>,
    /// Guests on [`SPLIT`] and [`PACKED`].
    pub(crate) virtio: Option<[ScenarioGuest; 2]>,
    /// Another host with two guests that have PFs.
    pub(crate) sriov: Option<virtio::sriov::SriovTestbed>,
    /// Another host with guests of its own, for checks that end the host.
    pub(crate) survival: Option<HostRestartTestbed>,
    assets: BootFiles,
    host: RunningHost,
    /// Network beyond the uplinks, or the reason for its absence.
    pub(crate) wire: Result<WireNamespace, String>,
    runtime_dir: TempDir,
    recorder: Option<DriverRecorder>,
}

impl LinuxTestbed {
    /// Starts the host of the checks, with the network beyond the host's uplinks if this machine allows it.
    pub(crate) fn start() -> Result<Self> {
        let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
        let runtime_dir = TempDir::new()?;
        let wire = WireNamespace::open().map_err(|error| format!("{error:#}"));
        let file = HostConfig::parse(&config(wire.as_ref().ok())).map_err(|error| anyhow!(error))?;
        let host = RunningHost::start(HostConfig::check(file, runtime_dir.path())?)?;
        if let Ok(wire) = &wire {
            PORTS.iter().try_for_each(|port| wire.plug(*port))?;
        }
        let standing = [(); 3].map(|()| OnceCell::new());
        Ok(Self {
            standing,
            dave: None,
            dpdk: None,
            virtio: None,
            sriov: None,
            survival: None,
            assets,
            host,
            wire,
            runtime_dir,
            recorder: DriverRecorder::from_environment()?,
        })
    }

    /// Restores MTU, policies and guests to the state in which each check begins, whatever the check before has left.
    pub(crate) fn settle(&self) -> Result<()> {
        if let Ok(wire) = &self.wire {
            wire.set_mtu(MTU)?;
        }
        self.change_port(no_rules())?;
        self.change(CAROL, defaults(CAROL_MAC))?;
        for vf in [ALICE, BOB, CAROL_OUTSIDE, VISITOR, ALICE_AVF, BOB_AVF, VISITOR_AVF, LAST_AVF] {
            self.change(vf, defaults(NO_MAC))?;
        }
        settle_all(self.standing.iter().filter_map(OnceCell::get))
    }

    /// Returns the first guest, Alice: eth0 is [`ALICE`], eth1 [`ALICE_AVF`]. Almost every check needs Bob too, so both
    /// boot at once.
    pub(crate) fn alice(&self) -> Result<&ScenarioGuest> {
        self.stand(&[0, 1])?;
        self.standing(0)
    }

    /// Returns Alice, the first guest, to reboot her.
    pub(crate) fn alice_mut(&mut self) -> Result<&mut ScenarioGuest> {
        self.alice()?;
        self.standing[0].get_mut().context("alice is not running")
    }

    /// Returns the second guest, Bob, with two processors: eth0 is [`BOB`], eth1 [`BOB_AVF`].
    pub(crate) fn bob(&self) -> Result<&ScenarioGuest> {
        self.stand(&[0, 1])?;
        self.standing(1)
    }

    /// Returns Bob, the second guest, to reboot him.
    pub(crate) fn bob_mut(&mut self) -> Result<&mut ScenarioGuest> {
        self.bob()?;
        self.standing[1].get_mut().context("bob is not running")
    }

    /// Returns the third guest, Carol: eth0 is [`CAROL`], eth1 [`CAROL_VLAN`], eth2 [`CAROL_OUTSIDE`].
    pub(crate) fn carol(&self) -> Result<&ScenarioGuest> {
        self.stand(&[2])?;
        self.standing(2)
    }

    /// Returns the guests Alice, Bob and Carol.
    pub(crate) fn everyone(&self) -> Result<[&ScenarioGuest; 3]> {
        self.stand(&[0, 1, 2])?;
        Ok([self.standing(0)?, self.standing(1)?, self.standing(2)?])
    }

    fn standing(&self, place: usize) -> Result<&ScenarioGuest> {
        self.standing[place].get().context("a guest is not running")
    }

    /// Boots the standing guests (Alice, Bob and Carol) at the indexes `wanted` that do not run yet, all at once, and
    /// restores their network state. The guests keep running for later checks.
    fn stand(&self, wanted: &[usize]) -> Result<()> {
        let spawn = |place: usize| -> Result<(usize, ScenarioGuest)> {
            let (name, cpus, vfs) = STANDING[place];
            let sockets = vfs.iter().map(|vf| self.socket(vf));
            let builder = sockets.fold(LinuxGuest::builder(name).cpus(cpus), GuestBuilder::vf_socket);
            Ok((place, ScenarioGuest::spawn(builder, &self.assets, vfs[0], place as u8 + 1)?))
        };
        let missing = wanted.iter().copied().filter(|place| self.standing[*place].get().is_none());
        let spawned = missing.map(spawn).collect::<Result<Vec<_>>>()?;
        spawned.iter().try_for_each(|(_, guest)| guest.linux.wait_ready(BOOT))?;
        settle_all(spawned.iter().map(|(_, guest)| guest))?;
        // The cells are empty.
        spawned.into_iter().for_each(|(place, guest)| drop(self.standing[place].set(guest)));
        Ok(())
    }

    /// Takes Carol, the third guest, out of the testbed, for a check that kills her. The next check boots a new one.
    pub(crate) fn take_carol(&mut self) -> Result<ScenarioGuest> {
        self.carol()?;
        self.standing[2].take().context("carol is not running")
    }

    /// Boots Dave, the guest that drives a port's PF, or restores his network state if he runs. Only checks that need
    /// Dave call this method, so that other checks do not wait for his boot.
    pub(crate) fn settle_dave(&mut self) -> Result<()> {
        if self.dave.is_none() {
            self.send_visitors_home()?;
            // Two processors, for two queues.
            self.dave = Some(boot_on_pf(self.builder("dave", PF).cpus(2), &self.assets)?);
        }
        self.dave()?.settle()
    }

    /// Returns Dave, the guest that drives a port's PF.
    pub(crate) fn dave(&self) -> Result<&ScenarioGuest> {
        self.dave.as_ref().context("dave is not running")
    }

    /// Boots another guest on the PF that Dave drove, after Dave has ended.
    pub(crate) fn boot_in_place_of_dave(
        &mut self,
        builder: GuestBuilder,
        assets: &BootFiles,
    ) -> Result<ScenarioGuest> {
        self.send_visitors_home()?;
        boot_on_pf(builder, assets)
    }

    /// Boots the guest in which testpmd drives four VFs and a PF ([`VISITOR`], [`VISITOR_AVF`], [`PF`], [`VISITOR_VIRTIO`] and
    /// [`VISITOR_PACKED`], in the order of their slots), unless it runs. The guest loads no drivers, so that it need not settle.
    pub(crate) fn prepare_dpdk(&mut self) -> Result<()> {
        if self.dpdk.is_none() {
            self.send_visitors_home()?;
            let sockets = [VISITOR, VISITOR_AVF, PF].map(|function| self.socket(function));
            let builder = LinuxGuest::builder("dpdk").cpus(2).memory_mib(384).coldplug(false);
            let builder = sockets.into_iter().fold(builder, GuestBuilder::vf_socket);
            let builder = builder.vhost_socket(self.socket(VISITOR_VIRTIO), 2, &[virtio::mac(5)]);
            let packed = [("packed", true.into()), virtio::mac(15)];
            let builder = builder.vhost_socket(self.socket(VISITOR_PACKED), 2, &packed);
            let guest =
                self.boot_visitor(builder, &self.assets.clone().with_dpdk(DpdkSeries::Bookworm2211)?)?;
            testpmd::prepare(&guest)?;
            self.dpdk = Some(guest);
        }
        Ok(())
    }

    /// Returns the guest in which testpmd drives functions.
    pub(crate) fn dpdk(&self) -> Result<&ScenarioGuest> {
        self.dpdk.as_ref().context("the guest for DPDK is not running")
    }

    /// Ends the guests of the testbed that hold the PF, or VFs reserved for guests of one check: Dave and the guest of
    /// testpmd.
    pub(crate) fn send_visitors_home(&mut self) -> Result<()> {
        let guests = [self.dave.take(), self.dpdk.take()];
        guests.into_iter().flatten().try_for_each(|guest| Ok(guest.linux.shutdown(COMMAND)?))
    }

    /// Returns the builder of a guest called `name` on the VF `vf` of the checks' host.
    pub(crate) fn builder(&self, name: &str, vf: &str) -> GuestBuilder {
        LinuxGuest::builder(name).vf_socket(self.socket(vf))
    }

    /// Returns the path of the vfio-user socket of a function.
    pub(crate) fn socket(&self, function: &str) -> PathBuf {
        let file = if function.contains("vf") { "vf.sock" } else { "pf.sock" };
        let socket = self.runtime_dir.path().join(function).join(file);
        match self.recorder.as_ref().filter(|_| !function.starts_with(VIRTIO_VFS)) {
            Some(recorder) => recorder.socket(function, socket),
            None => socket,
        }
    }

    /// Boots a guest on the VF for guests of one check ([`VISITOR`]), and waits until it can run scripts.
    pub(crate) fn boot_visitor(&self, builder: GuestBuilder, assets: &BootFiles) -> Result<ScenarioGuest> {
        let visitor = ScenarioGuest::spawn(builder, assets, VISITOR, 5)?;
        let (ready, control) = (visitor.linux.wait_ready(BOOT), self.host.control_socket());
        ready.map_err(|error| {
            anyhow!("{error}\n{}\n{}", last_events(control, VISITOR), last_events(control, VISITOR_AVF))
        })?;
        Ok(visitor)
    }

    /// Returns the folder of the host's sockets.
    pub(crate) fn runtime_dir(&self) -> &Path {
        self.runtime_dir.path()
    }

    /// Returns the boot files (kernel, initramfs, QEMU) of most guests.
    pub(crate) fn assets(&self) -> &BootFiles {
        &self.assets
    }

    /// Returns the status of the port whose PF the guest Dave drives.
    pub(crate) fn pf(&self) -> Result<FunctionStatus> {
        match ask(self.host.control_socket(), ControlRequest::PortList)? {
            ControlAnswer::Ports(ports) => ports
                .into_iter()
                .find_map(|port| port.pf)
                .context("the host has no port whose PF a guest drives"),
            _ => bail!("unexpected answer to the request for all ports"),
        }
    }

    /// Returns the status of the host's first port.
    pub(crate) fn port(&self) -> Result<PortStatus> {
        match ask(self.host.control_socket(), ControlRequest::PortShow { port: "pf0".into() })? {
            ControlAnswer::Port(port) => Ok(*port),
            _ => bail!("unexpected answer to the request for a port"),
        }
    }

    /// Returns the host's status of a VF.
    pub(crate) fn vf(&self, vf: &str) -> Result<VfStatus> {
        self.ask(ControlRequest::VfShow { vf: vf.to_owned() })
    }

    /// Changes settings of a VF and returns its status. The change is lost when the host ends.
    pub(crate) fn change(&self, vf: &str, change: VfSettings) -> Result<VfStatus> {
        self.ask(ControlRequest::VfSet { vf: vf.to_owned(), change: SettingsCommand::volatile(change) })
    }

    /// Resets a port of the scenario's host.
    pub(crate) fn reset_port(&self, port: &str) -> Result<()> {
        Ok(ask(self.host.control_socket(), ControlRequest::PortReset { port: port.to_owned() }).map(drop)?)
    }

    /// Changes settings of the first port, such as storm control and mirror rules, and returns its status.
    pub(crate) fn change_port(&self, change: PortSettings) -> Result<PortStatus> {
        match ask(
            self.host.control_socket(),
            ControlRequest::PortSet { port: "pf0".into(), change: SettingsCommand::volatile(change) },
        )? {
            ControlAnswer::Port(port) => Ok(*port),
            _ => bail!("unexpected answer to the change of a port"),
        }
    }

    /// Sets a VF's link state.
    pub(crate) fn set_link(&self, vf: &str, state: LinkState) -> Result<()> {
        self.change(vf, VfSettings::link(state)).map(drop)
    }

    /// Waits until the host's status of a VF meets a condition. `describe` names the condition in the error.
    pub(crate) fn wait_vf(
        &self,
        vf: &str,
        wanted: &str,
        is_so: impl Fn(&VfStatus) -> bool,
    ) -> Result<VfStatus> {
        eventually(|| {
            let status = self.vf(vf)?;
            if is_so(&status) { Ok(status) } else { bail!("{vf} should {wanted}, but is {status:?}") }
        })
    }

    fn ask(&self, request: ControlRequest) -> Result<VfStatus> {
        match ask(self.host.control_socket(), request)? {
            ControlAnswer::Vf(status) => Ok(*status),
            _ => bail!("unexpected answer to the request for a VF"),
        }
    }
}

/// Restores the network state of several guests at the same time, to save waiting time.
pub(crate) fn settle_all<'a>(guests: impl Iterator<Item = &'a ScenarioGuest>) -> Result<()> {
    scope(|threads| {
        let settling: Vec<_> = guests.map(|guest| threads.spawn(|| guest.settle())).collect();
        let settled = settling.into_iter().map(|settling| settling.join().map_err(|_| anyhow!("a panic"))?);
        settled.collect()
    })
}

fn boot_on_pf(builder: GuestBuilder, assets: &BootFiles) -> Result<ScenarioGuest> {
    let guest = ScenarioGuest::spawn(builder, assets, PF, 4)?;
    guest.linux.wait_ready(BOOT)?;
    Ok(guest)
}
