//! Checks the third family with QEMU as the server of the sockets: the host connects (`socket_mode = "client"`), also after
//! it was replaced or killed, and after a guest was started again.

use super::{mac, set_up, wait_link};
use crate::avf::no_checksum_errors;
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::world::{LinuxTestbed, PACKED, SPLIT};
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, LinuxGuest};
use rustix::process::{Signal, kill_process};

const CONFIG: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\nsocket_mode = \"client\"\n";
/// IPv4 addresses of both guests.
const ADDRESSES: [&str; 2] = ["10.84.2.1", "10.84.2.2"];

/// Checks that the host connects to two listening QEMUs, and connects again after an upgrade, after SIGKILL, and after one
/// of the guests was started again.
pub(crate) fn host_connects_again(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let served = HostWithKeeper::start(CONFIG)?;
    let waits = served.softiov("vf show pf0vf0")?;
    ensure!(waits.contains("waits for the VMM"), "the VF does not show that it waits: {waits}");
    let [lea, max] = [0, 1].map(|vf| boot(&served, world.assets(), vf));
    let (lea, mut max) = (lea?, max?);
    for guest in [&lea, &max] {
        guest.linux.wait_ready(BOOT)?;
    }
    let interface = set_up(&lea, 0, ADDRESSES[0])?;
    set_up(&max, 0, ADDRESSES[1])?;
    exchange(&lea, &interface)?;
    for _ in 0..2 {
        let host = served.host(None)?;
        eventually(|| served.softiov("upgrade"))?;
        served.host(Some(host))?;
        exchange(&lea, &interface)?;
        let host = served.host(None)?;
        kill_process(host, Signal::KILL)?;
        served.host(Some(host))?;
        eventually(|| served.softiov("vf list").map(drop))?;
        exchange(&lea, &interface)?;
    }
    max.linux.shutdown(COMMAND)?;
    max = boot(&served, world.assets(), 1)?;
    max.linux.wait_ready(BOOT)?;
    set_up(&max, 0, ADDRESSES[1])?;
    exchange(&lea, &interface)?;
    served.softiov("vf set pf0vf0 --state disable")?;
    eventually(|| {
        let carrier = lea.check(&format!("cat /sys/class/net/{interface}/carrier"))?;
        ensure!(carrier.trim() == "0", "the disabled VF's guest has a link");
        Ok(())
    })?;
    served.softiov("vf set pf0vf0 --state auto")?;
    exchange(&lea, &interface)?;
    [&lea, &max].into_iter().try_for_each(no_checksum_errors)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Starts the guest on a VF, whose QEMU listens on the VF's socket.
fn boot(served: &HostWithKeeper, assets: &BootFiles, vf: u8) -> Result<ScenarioGuest> {
    let (name, place) = if vf == 0 { ("lea", SPLIT) } else { ("max", PACKED) };
    let socket = served.socket(&format!("pf0vf{vf}"));
    let builder = LinuxGuest::builder(name).listening_vhost_socket(socket, 1, &[mac(0x10 + vf)]);
    ScenarioGuest::spawn(builder, assets, place, 10 + vf)
}

/// Waits for the first guest's link, and pings the second guest.
fn exchange(lea: &ScenarioGuest, interface: &str) -> Result<()> {
    wait_link(lea, interface)?;
    lea.reach(ADDRESSES[1])?;
    lea.ping(ADDRESSES[1], 1400, 10)
}
