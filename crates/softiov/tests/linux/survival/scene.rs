//! A host in a process of its own, as a user starts it, with two guests that have a VF on each of its two ports: eth0 on
//! the one with an uplink, if there can be one, and eth1 on the other. Left out: what is done to the host.

use super::stream::Stream;
use crate::guest::{BOOT, Guest, eventually};
use crate::wire::Wire;
use anyhow::{Context, Result, bail, ensure};
use host::test_support::{hosts, kill_all};
use linux_guest::{Assets, GuestBuilder, LinuxGuest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// The uplink's, beyond those of the host that other checks have.
const TAP: u8 = 3;
/// The group that may connect to [`OPEN`].
pub(super) const VMM: u32 = 65_533;
/// A VF for VMMs of that group, and one for the host's user alone.
pub(super) const OPEN: &str = "pf1vf2";
pub(super) const SHUT: &str = "pf1vf3";
/// The network between the guests' eth1: no uplink, so nothing but the guests.
const INNER: u8 = 200;

/// The host and its guests. The guests end before it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) erin: Guest,
    pub(super) frank: Guest,
    /// `softiov serve`, which is the keeper; the process that serves is its child.
    keeper: Child,
    /// QEMU's processes.
    machines: [u32; 2],
    folder: TempDir,
}

impl Scene {
    /// Starts the host and boots both guests.
    pub(super) fn start(assets: &Assets, wire: Option<&Wire>) -> Result<Self> {
        let folder = TempDir::new()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        let uplink = wire.map_or(String::new(), |wire| format!("uplink.tap = {:?}\n", wire.tap(TAP)));
        let config = format!(
            "[[port]]\n{uplink}[[port]]\n\
             [[port.vf]]\nindex = 2\naccess = {{ group = {VMM}, mode = \"0660\" }}\n"
        );
        fs::write(folder.path().join("softiov.toml"), config)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_softiov"));
        command.arg("serve").arg("--config").arg(folder.path().join("softiov.toml"));
        let log = File::create(folder.path().join("log"))?;
        let child = in_folder(&mut command, &folder).stdout(Stdio::null()).stderr(log).spawn()?;
        // From here on it is killed whatever goes wrong.
        let keeper = Keeper(Some(child));
        wait_served(&folder)?;
        wire.map_or(Ok(()), |wire| wire.plug(TAP))?;
        let [erin, frank] = [("erin", 0), ("frank", 1)].map(|(name, vf)| boot(&folder, assets, name, vf));
        let (erin, frank) = (erin?, frank?);
        for guest in [&erin, &frank] {
            guest.linux.wait_ready(BOOT)?;
            guest.settle()?;
            let address = guest.vlan_address(INNER);
            guest.check(&format!("ip addr add {address}/24 dev eth1 && ip link set eth1 up"))?;
        }
        erin.reach(&frank.vlan_address(INNER))?;
        let machines = [erin.linux.pid(), frank.linux.pid()];
        Ok(Self { erin, frank, keeper: keeper.take()?, machines, folder })
    }

    /// Both guests.
    pub(super) fn guests(&self) -> [&Guest; 2] {
        [&self.erin, &self.frank]
    }

    /// A guest's address on eth1.
    pub(super) fn inner(guest: &Guest) -> String {
        guest.vlan_address(INNER)
    }

    /// Starts a connection in each direction between the guests, and one from beyond the uplink.
    pub(super) fn traffic(&self, wire: Option<&Wire>) -> Result<Vec<Stream<'_>>> {
        let (erin, frank) = (&self.erin, &self.frank);
        let mut streams = vec![Stream::open(erin, &frank.address())?, Stream::open(frank, &erin.address())?];
        if let Some(wire) = wire {
            erin.reach(&wire.address())?;
            streams.push(Stream::open(erin, &wire.address())?);
        }
        streams.iter_mut().try_for_each(Stream::moves)?;
        Ok(streams)
    }

    /// Describes a guest on a VF of this host.
    pub(super) fn builder(&self, name: &str, vf: &str) -> GuestBuilder {
        LinuxGuest::builder(name).vf_socket(socket(&self.folder, vf))
    }

    /// What a command of the binary prints.
    pub(super) fn softiov(&self, words: &str) -> Result<String> {
        softiov(&self.folder, words)
    }

    /// What a VF is told to be, and by whom.
    pub(super) fn policy(&self, vf: &str) -> Result<[Value; 2]> {
        let text = self.softiov(&format!("vf show {vf} --json"))?;
        let mut status: Value = serde_json::from_str(&text)?;
        Ok([status["settings"].take(), status["origins"].take()])
    }

    /// The process that serves, once it does.
    pub(super) fn host(&self) -> Result<Pid> {
        eventually(|| {
            let hosts = hosts(self.keeper.id());
            self.softiov("vf list")?;
            let [host] = hosts[..] else { bail!("the keeper's hosts are {hosts:?}") };
            Ok(host)
        })
    }

    /// Kills the process that serves after it was let alone for a while, and waits until another one does.
    pub(super) fn kill_host(&self, after: Duration) -> Result<()> {
        // To ask is to disturb, so this comes first.
        let host = self.host()?;
        sleep(after);
        kill_process(host, Signal::KILL)?;
        eventually(|| {
            ensure!(self.host()? != host, "the host lives");
            Ok(())
        })
    }

    /// Ends the host with SIGTERM.
    pub(super) fn end_host(&mut self) -> Result<ExitStatus> {
        kill_process(Pid::from_child(&self.keeper), Signal::TERM)?;
        eventually(|| self.keeper.try_wait()?.context("the host does not end"))
    }

    /// No virtual machine has ended.
    pub(super) fn everybody_lives(&mut self) -> Result<()> {
        for (guest, machine) in [&mut self.erin, &mut self.frank].into_iter().zip(self.machines) {
            let lives = guest.linux.is_running() && guest.linux.pid() == machine;
            ensure!(lives, "{}'s QEMU has ended: {}", guest.name(), guest.linux.console_tail());
            guest.check("true")?;
        }
        Ok(())
    }

    /// What host and guests know of themselves, for errors.
    pub(super) fn state(&self) -> String {
        const SCRIPT: &str = "ip -s link; ip neigh; grep eth /proc/interrupts; dmesg | tail -n 25";
        let guests = self.guests().map(|guest| match guest.check(SCRIPT) {
            Ok(text) => format!("{}:\n{text}", guest.name()),
            Err(error) => format!("{} does not say: {error}", guest.name()),
        });
        let vfs = self.softiov("vf list").unwrap_or_else(|error| error.to_string());
        format!("the host's log ends with\n{}its VFs are\n{vfs}\n{}", self.log(), guests.concat())
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let skip = log.lines().count().saturating_sub(30);
        log.lines().skip(skip).map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        kill_all(&mut self.keeper);
    }
}

/// A keeper that is killed with its host unless it is taken.
struct Keeper(Option<Child>);

impl Keeper {
    fn take(mut self) -> Result<Child> {
        self.0.take().context("the keeper is taken")
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            kill_all(child);
        }
    }
}

fn boot(folder: &TempDir, assets: &Assets, name: &str, vf: u8) -> Result<Guest> {
    let eth0 = if vf == 0 { "pf0vf0" } else { "pf0vf1" };
    let builder = LinuxGuest::builder(name).vf_socket(socket(folder, eth0));
    let builder = builder.vf_socket(socket(folder, &format!("pf1vf{vf}")));
    Guest::spawn(builder, assets, eth0, 6 + vf)
}

fn socket(folder: &TempDir, vf: &str) -> PathBuf {
    folder.path().join("sockets").join(vf).join("vf.sock")
}

/// The command with this host's folders.
fn in_folder<'a>(command: &'a mut Command, folder: &TempDir) -> &'a mut Command {
    let command = command.arg("--runtime-dir").arg(folder.path().join("sockets"));
    command.arg("--state-dir").arg(folder.path().join("state")).env_remove("RUST_LOG")
}

fn softiov(folder: &TempDir, words: &str) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softiov"));
    let output = in_folder(command.args(words.split(' ')), folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "softiov {words}: {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

fn wait_served(folder: &TempDir) -> Result<()> {
    eventually(|| softiov(folder, "vf list").map(drop))
}
