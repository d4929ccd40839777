//! Checks the third family with an old VMM: QEMU 7.2 of Debian 12, which has no vfio-user.

use super::{accepts, exchange_at, mac, set_up};
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::world::{LinuxTestbed, PACKED, SPLIT};
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, LinuxGuest};
use rustix::process::{Signal, kill_process};

const CONFIG: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\n";
/// IPv4 addresses of the guest under QEMU 7.2, and of the guest under the QEMU of the other checks.
const ADDRESSES: [&str; 2] = ["10.84.3.1", "10.84.3.2"];
/// Bit of the feature `VIRTIO_NET_F_GUEST_TSO4` (virtio 1.2, 5.1.3).
const GUEST_TSO4: usize = 7;

/// Checks that virtio_net under QEMU 7.2 binds, exchanges pings and TCP with a guest under a current QEMU, and continues
/// after an upgrade of the host, after the host's SIGKILL, and after a reboot.
pub(crate) fn qemu_reconnects(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let served = HostWithKeeper::start(CONFIG)?;
    let bookworm = world.assets().clone().with_bookworm_qemu()?;
    let mut nora = boot(&served, &bookworm, 0)?;
    let omar = boot(&served, world.assets(), 1)?;
    for (guest, address) in [&nora, &omar].into_iter().zip(ADDRESSES) {
        guest.linux.wait_ready(BOOT)?;
        let interface = set_up(guest, 0, address)?;
        ensure!(accepts(guest, &interface, GUEST_TSO4)?, "{} receives no large packets", guest.name());
        guest.check("iperf3 -s -D")?;
    }
    exchange(&nora, &omar)?;
    let host = served.host(None)?;
    eventually(|| served.softiov("upgrade"))?;
    let host = served.host(Some(host))?;
    exchange(&nora, &omar)?;
    kill_process(host, Signal::KILL)?;
    served.host(Some(host))?;
    exchange(&nora, &omar)?;
    nora.linux.reboot()?;
    nora.linux.wait_ready(BOOT)?;
    set_up(&nora, 0, ADDRESSES[0])?;
    nora.check("iperf3 -s -D")?;
    exchange(&nora, &omar)?;
    [nora, omar].into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND))?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Starts the guest on a VF.
fn boot(served: &HostWithKeeper, assets: &BootFiles, vf: u8) -> Result<ScenarioGuest> {
    let (name, place) = if vf == 0 { ("nora", SPLIT) } else { ("omar", PACKED) };
    let socket = served.socket(&format!("pf0vf{vf}"));
    let builder = LinuxGuest::builder(name).vhost_socket(socket, 1, &[mac(0x20 + vf)]);
    ScenarioGuest::spawn(builder, assets, place, 20 + vf)
}

/// Checks pings and TCP of both guests, both ways.
fn exchange(nora: &ScenarioGuest, omar: &ScenarioGuest) -> Result<()> {
    exchange_at([(nora, ADDRESSES[0]), (omar, ADDRESSES[1])], 16)
}
