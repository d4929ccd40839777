//! Checks the third family with QEMU as the server of the sockets: the host connects (`socket_mode = "client"`), also after
//! it was replaced or killed, and after a guest was started again.

use super::{exchange_at, mac, set_up, wait_link};
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::stream::IperfStream;
use crate::world::{LinuxTestbed, PACKED, SPLIT};
use anyhow::{Context, Result, ensure};
use linux_guest::{BootFiles, LinuxGuest};
use rustix::process::{Signal, kill_process};

const CONFIG: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\nsocket_mode = \"client\"\n";
/// IPv4 addresses of both guests.
const ADDRESSES: [&str; 2] = ["10.84.2.1", "10.84.2.2"];

/// Checks that the host connects to two listening QEMUs, and connects again after upgrades and SIGKILL, under one TCP
/// stream, and after one of the guests was started again.
pub(crate) fn host_connects_again(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let served = HostWithKeeper::start(CONFIG)?;
    let waits = served.softiov("vf show pf0vf0")?;
    ensure!(waits.contains("waits for the VMM"), "the VF does not show that it waits: {waits}");
    let [lea, max] = [0, 1].map(|vf| boot(&served, world.assets(), vf));
    let (lea, mut max) = (lea?, max?);
    let interface = start(&lea, ADDRESSES[0])?;
    start(&max, ADDRESSES[1])?;
    exchange([&lea, &max], &interface)?;
    let mut stream = IperfStream::open(&lea, ADDRESSES[1])?;
    for round in 0..2 {
        let host = served.host(None)?;
        eventually(|| served.softiov("upgrade"))?;
        served.host(Some(host))?;
        wait_link(&lea, &interface)?;
        stream.moves().with_context(|| format!("upgrade {round}"))?;
        let host = served.host(None)?;
        kill_process(host, Signal::KILL)?;
        served.host(Some(host))?;
        eventually(|| served.softiov("vf list").map(drop))?;
        wait_link(&lea, &interface)?;
        stream.moves().with_context(|| format!("SIGKILL {round}"))?;
    }
    print!("(no byte for {:.1} s) ", stream.close()?);
    exchange([&lea, &max], &interface)?;
    max.linux.shutdown(COMMAND)?;
    max = boot(&served, world.assets(), 1)?;
    start(&max, ADDRESSES[1])?;
    exchange([&lea, &max], &interface)?;
    served.softiov("vf set pf0vf0 --state disable")?;
    eventually(|| {
        let carrier = lea.check(&format!("cat /sys/class/net/{interface}/carrier"))?;
        ensure!(carrier.trim() == "0", "the disabled VF's guest has a link");
        Ok(())
    })?;
    served.softiov("vf set pf0vf0 --state auto")?;
    exchange([&lea, &max], &interface)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Starts the guest on a VF, whose QEMU listens on the VF's socket.
fn boot(served: &HostWithKeeper, assets: &BootFiles, vf: u8) -> Result<ScenarioGuest> {
    let (name, place) = if vf == 0 { ("lea", SPLIT) } else { ("max", PACKED) };
    let socket = served.socket(&format!("pf0vf{vf}"));
    let builder = LinuxGuest::builder(name).listening_vhost_socket(socket, 1, &[mac(0x10 + vf)]);
    ScenarioGuest::spawn(builder, assets, place, 10 + vf)
}

/// Waits until a guest has booted, sets up its interface with an address, and starts a server of iperf3. Returns the
/// interface's name.
fn start(guest: &ScenarioGuest, address: &str) -> Result<String> {
    guest.linux.wait_ready(BOOT)?;
    let interface = set_up(guest, 0, address)?;
    guest.check("iperf3 -s -D")?;
    Ok(interface)
}

/// Waits for the first guest's link, and exchanges pings and TCP between both guests.
fn exchange([lea, max]: [&ScenarioGuest; 2], interface: &str) -> Result<()> {
    wait_link(lea, interface)?;
    exchange_at([(lea, ADDRESSES[0]), (max, ADDRESSES[1])], 8)
}
