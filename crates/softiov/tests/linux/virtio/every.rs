//! Checks a pair of guests with another VMM or kernel than the testbed's, on a host of their own, by the checks of the testbed's
//! guests.

use super::pairs::{PairDevices, are_bound, boot_pair, exchange_large_packets};
use super::{
    REBIND, comes_back, exchange, exchange_in_vlan, exchange_jumbo_frames, link_follows_policy, reboot,
};
use crate::guest::{COMMAND, ScenarioGuest, eventually};
use crate::served::HostWithKeeper;
use crate::world::settle_all;
use anyhow::Result;
use daemon::control::status::LinkState;
use linux_guest::BootFiles;
use rustix::process::{Signal, kill_process};

const CONFIG: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\n";
const VFS: [&str; 2] = ["pf0vf0", "pf0vf1"];

/// Boots two guests, with split and with packed rings, each from its own files. Checks traffic, large packets, jumbo frames, tags, driver unbound
/// and bound, link by policy, and a reboot. Both guests continue after an upgrade of the host and after the host's SIGKILL.
/// Addresses of the first guest end in `number`. Returns the releases of the guests' kernels.
pub(super) fn pass_all(
    names: [&str; 2],
    assets: [&BootFiles; 2],
    devices: PairDevices,
    number: u8,
) -> Result<[String; 2]> {
    let served = HostWithKeeper::start(CONFIG)?;
    let sockets = VFS.map(|vf| served.socket(vf));
    let mut guests = boot_pair(names, sockets, devices, assets, number)?;
    settle_all(guests.iter())?;
    are_bound(guests.each_ref(), devices)?;
    exchange_large_packets(guests.each_ref(), devices)?;
    exchange(guests.each_ref())?;
    for exchange_frames in [exchange_jumbo_frames, exchange_in_vlan] {
        exchange_frames(guests.each_ref())?;
        settle_all(guests.iter())?;
    }
    guests.iter().try_for_each(|guest| comes_back(guest, REBIND))?;
    let [one, other] = &guests;
    for (vf, pair) in VFS.iter().zip([[one, other], [other, one]]) {
        link_follows_policy(pair, |state| set_link(&served, vf, state))?;
    }
    outlive_the_host(&served, [one, other])?;
    reboot(&mut guests)?;
    exchange(guests.each_ref())?;
    let releases = guests.each_ref().map(|guest| guest.linux.kernel_release());
    guests.into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND))?;
    Ok(releases)
}

/// Checks that both guests exchange traffic after an upgrade of the host, and after the host's SIGKILL.
fn outlive_the_host(served: &HostWithKeeper, guests: [&ScenarioGuest; 2]) -> Result<()> {
    let host = served.host(None)?;
    eventually(|| served.softiov("upgrade"))?;
    let host = served.host(Some(host))?;
    exchange(guests)?;
    kill_process(host, Signal::KILL)?;
    served.host(Some(host))?;
    exchange(guests)
}

fn set_link(served: &HostWithKeeper, vf: &str, state: LinkState) -> Result<()> {
    let state = if state == LinkState::Disable { "disable" } else { "auto" };
    served.softiov(&format!("vf set {vf} --state {state}")).map(drop)
}
