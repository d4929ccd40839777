//! Checks the third family with an old VMM: QEMU 7.2 of Debian 12, which has no vfio-user.

use super::{
    REBIND, are_bound, boot_pair, comes_back, exchange, exchange_in_vlan, exchange_jumbo_frames,
    link_follows_policy, reboot,
};
use crate::guest::{COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::world::{LinuxTestbed, settle_all};
use anyhow::Result;
use daemon::control::status::LinkState;
use rustix::process::{Signal, kill_process};

const CONFIG: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\n";
const VFS: [&str; 2] = ["pf0vf0", "pf0vf1"];
/// Number of queue pairs of the guest with packed rings. QEMU 7.2 adds each memory region once for every pair.
const PAIRS: u32 = 4;

/// Checks two guests under QEMU 7.2, with split and with packed rings, by the bodies that check guests under a current QEMU:
/// traffic, jumbo frames, tags, driver unbound and bound, link by policy, and a reboot. Both continue after an upgrade of the host
/// and after the host's SIGKILL.
pub(crate) fn qemu_7_2_is_enough(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let served = HostWithKeeper::start(CONFIG)?;
    let bookworm = world.assets().clone().with_bookworm_qemu()?;
    let sockets = VFS.map(|vf| served.socket(vf));
    let mut guests = boot_pair(["nora", "omar"], sockets, PAIRS, &bookworm, 20)?;
    settle_all(guests.iter())?;
    are_bound(guests.each_ref(), PAIRS)?;
    exchange(guests.each_ref())?;
    for exchange_frames in [exchange_jumbo_frames, exchange_in_vlan] {
        exchange_frames(guests.each_ref())?;
        settle_all(guests.iter())?;
    }
    guests.iter().try_for_each(|guest| comes_back(guest, REBIND))?;
    let [nora, omar] = &guests;
    for (vf, pair) in VFS.iter().zip([[nora, omar], [omar, nora]]) {
        link_follows_policy(pair, |state| set_link(&served, vf, state))?;
    }
    outlive_the_host(&served, [nora, omar])?;
    reboot(&mut guests)?;
    exchange(guests.each_ref())?;
    guests.into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND))?;
    Ok(LinuxCheckOutcome::Passed)
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
