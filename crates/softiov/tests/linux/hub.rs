//! Checks two ports of a host whose stream uplinks are connected by a QEMU hub (`-netdev stream`), whose framing the
//! uplinks use. Embedded guests exchange pings through the hub.

use crate::guest::eventually;
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig};
use linux_guest::BootFiles;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);
const PINGS: u16 = 50;
/// Minimum number of answered pings. A QEMU that gets no processor time for a while loses frames, since a stream does
/// not wait.
const ANSWERED: usize = 25;

/// Checks that frames pass from port to port through QEMU, and that links follow the connection.
pub(crate) fn ports_meet_in_qemus_hub(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let folder = TempDir::new()?;
    let paths = ["a.sock", "b.sock"].map(|name| folder.path().join(name));
    let mut qemu = hub(world.assets(), [&paths[0], &paths[1]])?;
    let port = |path: &Path| format!("[[port]]\nuplink.stream.connect = {path:?}\n");
    let served = HostWithKeeper::start(&(port(&paths[0]) + &port(&paths[1])))?;
    let outcome = met(&served);
    qemu.kill()?;
    qemu.wait()?;
    outcome?;
    eventually(|| {
        let list = served.softiov("port list")?;
        ensure!(!list.contains("state UP"), "QEMU has ended, but a link is up: {list}");
        Ok(())
    })?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Starts a QEMU without a machine, whose hub joins two streams.
fn hub(assets: &BootFiles, paths: [&Path; 2]) -> Result<Child> {
    let mut qemu = assets.qemu().command();
    qemu.args(["-machine", "none", "-nodefaults", "-nographic", "-monitor", "none", "-serial", "none"]);
    for (n, path) in paths.iter().enumerate() {
        let path = path.display();
        qemu.arg("-netdev").arg(format!("stream,id=s{n},server=on,addr.type=unix,addr.path={path}"));
        qemu.arg("-netdev").arg(format!("hubport,id=p{n},hubid=0,netdev=s{n}"));
    }
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start QEMU")
}

/// Attaches an embedded guest to each port, and checks that the guests answer each other's pings.
fn met(served: &HostWithKeeper) -> Result<()> {
    let guest = |port: u8| -> Result<EmbeddedGuest> {
        let (name, ip) = (format!("pf{port}vf0"), Ipv4Addr::new(10, 0, 0, 1 + port));
        let guest = EmbeddedGuest::start(EmbeddedGuestConfig { socket: served.socket(&name), name, ip })?;
        ensure!(guest.wait_link(PATIENCE), "the link of {} is down after {PATIENCE:?}", guest.name());
        Ok(guest)
    };
    let (one, other) = (guest(0)?, guest(1)?);
    for (from, to) in [(&one, &other), (&other, &one)] {
        let pings = from.ping(to.ip(), PINGS)?;
        ensure!(pings.received() >= ANSWERED, "only {} of {PINGS} pings were answered", pings.received());
    }
    Ok(())
}
