//! Host in a process of its own, as a user starts it, with two guests that have a VF on each of its four ports. eth0
//! is on the port with an uplink (if available), eth1 on the next; checks set up the VFs of the other families.

use crate::guest::{BOOT, ScenarioGuest, eventually};
use crate::served::HostWithKeeper;
use crate::stream::IperfStream;
use crate::virtio;
use crate::wire::WireNamespace;
use anyhow::{Context, Result, ensure};
use linux_guest::{BootFiles, GuestBuilder, LinuxGuest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::ExitStatus;
use std::thread::sleep;
use std::time::Duration;

/// Number of the uplink's tap, above the numbers of taps of the other checks' host.
const TAP: u8 = 3;
/// Id of the group whose VMMs may connect to the VF [`OPEN`].
pub(super) const VMM: u32 = 65_533;
/// Name of a VF to which VMMs of another group may connect. A VF that only the host's user may use follows.
pub(super) const OPEN: &str = "pf1vf2";
pub(super) const SHUT: &str = "pf1vf3";
/// VLAN number from which the guests' IPv4 addresses on eth1 are derived. eth1 is on a port without an uplink.
const INNER: u8 = 200;

/// Host with keeper process, and the two guests Erin and Frank. The guests are dropped first.
#[derive(Debug)]
pub(crate) struct HostRestartTestbed {
    pub(super) erin: ScenarioGuest,
    pub(super) frank: ScenarioGuest,
    served: HostWithKeeper,
    /// Process ids of the guests' QEMUs.
    machines: [u32; 2],
}

impl HostRestartTestbed {
    /// Starts the host, boots both guests, and waits until they reach each other.
    pub(super) fn start(assets: &BootFiles, wire: Option<&WireNamespace>) -> Result<Self> {
        let uplink = wire.map_or(String::new(), |wire| format!("uplink.tap = {:?}\n", wire.tap(TAP)));
        let served = HostWithKeeper::start(&format!(
            "[[port]]\n{uplink}[[port]]\n\
             [[port.vf]]\nindex = 2\naccess = {{ group = {VMM}, mode = \"0660\" }}\n\
             [[port]]\nfamily = \"avf\"\nvfs = 2\n\
             [[port]]\nfamily = \"virtio\"\nvfs = 2\n"
        ))?;
        wire.map_or(Ok(()), |wire| wire.plug(TAP))?;
        let [erin, frank] = [("erin", 0), ("frank", 1)].map(|(name, vf)| boot(&served, assets, name, vf));
        let (erin, frank) = (erin?, frank?);
        for guest in [&erin, &frank] {
            guest.linux.wait_ready(BOOT)?;
            guest.settle()?;
            let address = guest.vlan_address(INNER);
            guest.check(&format!("ip addr add {address}/24 dev eth1 && ip link set eth1 up"))?;
        }
        erin.reach(&frank.vlan_address(INNER))?;
        let machines = [erin.linux.pid(), frank.linux.pid()];
        Ok(Self { erin, frank, served, machines })
    }

    /// Returns both guests of the host.
    pub(super) fn guests(&self) -> [&ScenarioGuest; 2] {
        [&self.erin, &self.frank]
    }

    /// Returns a guest's IPv4 address on eth1.
    pub(super) fn inner(guest: &ScenarioGuest) -> String {
        guest.vlan_address(INNER)
    }

    /// Starts a TCP stream in each direction between the guests, and one from beyond the uplink, if there is one.
    /// Returns the streams once bytes arrive.
    pub(super) fn traffic(&self, wire: Option<&WireNamespace>) -> Result<Vec<IperfStream<'_>>> {
        let (erin, frank) = (&self.erin, &self.frank);
        let mut streams =
            vec![IperfStream::open(erin, &frank.address())?, IperfStream::open(frank, &erin.address())?];
        if let Some(wire) = wire {
            erin.reach(&wire.address())?;
            streams.push(IperfStream::open(erin, &wire.address())?);
        }
        streams.iter_mut().try_for_each(IperfStream::moves)?;
        Ok(streams)
    }

    /// Returns the builder of a guest on a VF of this host.
    pub(super) fn builder(&self, name: &str, vf: &str) -> GuestBuilder {
        LinuxGuest::builder(name).vf_socket(self.served.socket(vf))
    }

    /// Runs a command of `softiov` on this host, and returns its output.
    pub(super) fn softiov(&self, words: &str) -> Result<String> {
        self.served.softiov(words)
    }

    /// Returns the settings of a VF, and the origin of each, as JSON.
    pub(super) fn policy(&self, vf: &str) -> Result<[Value; 2]> {
        let text = self.softiov(&format!("vf show {vf} --json"))?;
        let mut status: Value = serde_json::from_str(&text)?;
        Ok([status["settings"].take(), status["origins"].take()])
    }

    /// Waits until a host process serves, and returns its process id.
    pub(super) fn host(&self) -> Result<Pid> {
        let host = self.served.host(None)?;
        eventually(|| self.softiov("vf list"))?;
        Ok(host)
    }

    /// Kills the serving host process after a pause, and waits until another one serves.
    pub(super) fn kill_host(&self, after: Duration) -> Result<()> {
        // Before the pause, because a request is a disturbance.
        let host = self.host()?;
        sleep(after);
        kill_process(host, Signal::KILL)?;
        self.served.host(Some(host))?;
        eventually(|| self.softiov("vf list").map(drop))
    }

    /// Ends the host by SIGTERM to its keeper process, and returns the keeper's exit status.
    pub(super) fn end_host(&mut self) -> Result<ExitStatus> {
        kill_process(Pid::from_child(&self.served.keeper), Signal::TERM)?;
        eventually(|| self.served.keeper.try_wait()?.context("the host does not end"))
    }

    /// Checks that no virtual machine has ended.
    pub(super) fn all_machines_run(&mut self) -> Result<()> {
        for (guest, machine) in [&mut self.erin, &mut self.frank].into_iter().zip(self.machines) {
            let lives = guest.linux.is_running() && guest.linux.pid() == machine;
            ensure!(lives, "{}'s QEMU has ended: {}", guest.name(), guest.linux.console_tail());
            guest.check("true")?;
        }
        Ok(())
    }

    /// Returns the state of host, guests and wire as text, for error messages.
    pub(super) fn state(&self, wire: Option<&WireNamespace>) -> String {
        const SCRIPT: &str = "ip -s link; ip neigh; grep eth /proc/interrupts; netstat -tn; tail -n 3 /run/stream-*; dmesg | tail -n 25";
        let guests = self.guests().map(|guest| match guest.check(SCRIPT) {
            Ok(text) => format!("{}:\n{text}", guest.name()),
            Err(error) => format!("no state of {}: {error}", guest.name()),
        });
        let vfs = self.softiov("vf list").unwrap_or_else(|error| error.to_string());
        let drops: String =
            (0..4).flat_map(|port| [0, 1].map(|vf| self.drops(&format!("pf{port}vf{vf}")))).collect();
        let port = self.softiov("port show pf0 --json").unwrap_or_else(|error| error.to_string());
        let wire = wire.map_or(String::new(), |wire| format!("the wire:\n{}", wire.state()));
        let guests = guests.concat();
        format!(
            "the host's log ends with\n{}its VFs are\n{vfs}\n{drops}pf0:\n{port}\n{wire}{guests}",
            self.log()
        )
    }

    /// Returns a line with the frames that the card has dropped for a VF or from it.
    fn drops(&self, vf: &str) -> String {
        let shown = self.softiov(&format!("vf show {vf}")).unwrap_or_else(|error| error.to_string());
        let line = shown.lines().find(|line| line.contains("drops:")).unwrap_or(&shown);
        format!("{vf} {}\n", line.trim())
    }

    fn log(&self) -> String {
        let log = self.served.log();
        let skip = log.lines().count().saturating_sub(30);
        log.lines().skip(skip).map(|line| format!("{line}\n")).collect()
    }
}

fn boot(served: &HostWithKeeper, assets: &BootFiles, name: &str, vf: u8) -> Result<ScenarioGuest> {
    let eth0 = if vf == 0 { "pf0vf0" } else { "pf0vf1" };
    let builder = LinuxGuest::builder(name).vf_socket(served.socket(eth0));
    let builder = builder.vf_socket(served.socket(&format!("pf1vf{vf}")));
    let builder = builder.vf_socket(served.socket(&format!("pf2vf{vf}")));
    // Frank has packed rings, whose position QEMU forgets when the host dies.
    let properties = [("packed", (vf == 1).into()), virtio::mac(vf)];
    let builder = builder.vhost_socket(served.socket(&format!("pf3vf{vf}")), 1, &properties);
    ScenarioGuest::spawn(builder, assets, eth0, 6 + vf)
}
