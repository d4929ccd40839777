//! Checks a port of 64 VFs: with guests on several VFs at once, and with a guest on the last VF. `tests/cli/fleet.rs`
//! has smaller guests on every VF.

use super::policy::reset_by;
use super::recovery::exchange;
use super::{AvfInterface, linked, no_complaints};
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE_AVF, LAST_AVF, LinuxTestbed, MIDDLE_AVF, PORT_VLAN};
use anyhow::{Context, Result, ensure};
use daemon::control::status::VfStatus;
use daemon::settings::VfSettings;
use linux_guest::LinuxGuest;

/// VFs of Alice's port, besides her own, that get a guest: those at the ends, and those around numbers 8 (VFs of a port
/// of the first family) and 32 (half a 64-bit word).
const FLEET: [&str; 7] = ["pf3vf1", "pf3vf7", "pf3vf8", MIDDLE_AVF, "pf3vf32", "pf3vf62", LAST_AVF];
/// Memory of the smallest guest that boots, MiB.
const MEMORY_MIB: u32 = 160;
/// Last byte of the IPv4 address of the first guest on the VFs of [`FLEET`]; the others follow.
const FIRST: u8 = 11;
/// Ethernet address of the last VF of Alice's AVF port ([`LAST_AVF`]).
const LAST_MAC: &str = "02:82:57:60:03:63";

/// Checks that seven guests boot at once on the port of Alice's VF, and that every guest can ping every other, and Bob
/// beyond the wire.
pub(crate) fn eight_guests_exchange_frames(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let spawn = |(n, vf): (usize, &'static str)| {
        let builder = LinuxGuest::builder(format!("guest {n}")).memory_mib(MEMORY_MIB);
        ScenarioGuest::spawn(builder.vf_socket(world.socket(vf)), world.assets(), vf, FIRST + n as u8)
    };
    let guests = FLEET.into_iter().enumerate().map(spawn).collect::<Result<Vec<_>>>()?;
    guests.iter().try_for_each(|guest| guest.linux.wait_ready(BOOT))?;
    let ends = guests
        .iter()
        .zip(FLEET)
        .zip(FIRST..)
        .map(|((guest, vf), number)| AvfInterface::set_up(guest, vf, number));
    let ends = ends.collect::<Result<Vec<_>>>()?;
    let everybody: Vec<&AvfInterface<'_>> = ends.iter().chain([alice, bob]).collect();
    let addresses: Vec<String> = everybody.iter().map(|end| end.address()).collect();
    // An unanswered ping is repeated: all guests ping at once, on few processors.
    let script = format!(
        "for address in {}; do n=0; until ping -q -c 2 -W 2 $address > /dev/null; do
         n=$((n + 1)); [ $n -lt 20 ] || {{ echo $address; exit 1; }}; done; done",
        addresses.join(" ")
    );
    let asking = everybody.iter().map(|end| end.guest.linux.spawn_background(&script));
    let asking = asking.collect::<Result<Vec<_>, _>>()?;
    for (end, asking) in everybody.iter().zip(&asking) {
        let output = end.guest.linux.wait(asking, COMMAND)?;
        let silent = (!output.success())
            .then(|| format!("{} does not answer {}", output.stdout.trim(), end.guest.name()));
        silent.map_or(Ok(()), |silent| Err(anyhow::anyhow!(silent)))?;
    }
    drop(asking);
    drop(ends);
    guests
        .into_iter()
        .try_for_each(|guest| guest.linux.shutdown(COMMAND))
        .context("cannot turn the guests off")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks guests on the last VF of the port and on one in the middle. Each VF is bound, has its link, and exchanges
/// frames with the first VF. The last VF follows the port VLAN, its counters match the host's, and VFs without a guest
/// do not change.
pub(crate) fn last_of_64_vfs_is_like_the_first(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    world.change(LAST_AVF, VfSettings { mac: Some(LAST_MAC.into()), ..VfSettings::default() })?;
    let idle = without_guest(world)?;
    let [last_before, middle_before] = [bytes(world, LAST_AVF)?, bytes(world, MIDDLE_AVF)?];
    let builder = world.builder("last", LAST_AVF).vf_socket(world.socket(MIDDLE_AVF)).memory_mib(MEMORY_MIB);
    let guest = ScenarioGuest::spawn(builder, world.assets(), LAST_AVF, 63)?;
    guest.linux.wait_ready(BOOT)?;
    guest.check("iperf3 -s -D")?;

    let last = &AvfInterface::set_up(&guest, LAST_AVF, 63)?;
    last.is_bound(world)?;
    ensure!(world.vf(LAST_AVF)?.mac == LAST_MAC, "{LAST_AVF} does not have the configured address");
    exchange(alice, last)?;
    last.reach(bob).context("bob must be reachable beyond the wire")?;
    counts_as_the_host(world, last, last_before)?;
    no_complaints(&guest)?;

    alice.join_vlan(PORT_VLAN)?;
    let vlan = VfSettings { vlan: Some(PORT_VLAN.into()), ..VfSettings::default() };
    reset_by(world, LAST_AVF, vlan)?;
    last.wait_carrier(true)?;
    last.check(&format!("ip addr add {}/24 dev IF", last.vlan_address(PORT_VLAN)))?;
    last.guest.reach(&alice.vlan_address(PORT_VLAN))?;
    last.iperf(&alice.vlan_address(PORT_VLAN), 8)?;
    alice.iperf(&last.vlan_address(PORT_VLAN), 8)?;
    last.guest
        .cannot_reach(&last.name, &alice.address())
        .context("untagged frames must not leave a port VLAN")?;
    // From here on the other VF has the untagged network.
    last.check(&format!("ip addr del {}/24 dev IF", last.address()))?;

    let middle = &AvfInterface::set_up_at(&guest, 1, MIDDLE_AVF, 31)?;
    middle.is_bound(world)?;
    exchange(alice, middle)?;
    counts_as_the_host(world, middle, middle_before)?;

    ensure!(without_guest(world)? == idle, "VFs without a guest have changed");
    guest.linux.shutdown(COMMAND)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the status of the VFs on Alice's port that have no guest in any check.
fn without_guest(world: &LinuxTestbed) -> Result<Vec<VfStatus>> {
    let names = (0..64).map(|vf| format!("pf3vf{vf}"));
    let has_guest = |name: &str| name == ALICE_AVF || FLEET.contains(&name);
    names.filter(|name| !has_guest(name)).map(|name| world.vf(&name)).collect()
}

/// Returns the bytes that the host has counted for a VF, received and sent.
fn bytes(world: &LinuxTestbed, vf: &str) -> Result<[u64; 2]> {
    let vf = world.vf(vf)?;
    Ok([vf.rx.bytes, vf.tx.bytes])
}

/// Checks that the guest's driver counts the same bytes as the host, once no more frames arrive. `before` are the
/// host's counts before this guest. iperf3 may end before the last of its eight megabytes has arrived.
fn counts_as_the_host(world: &LinuxTestbed, end: &AvfInterface<'_>, before: [u64; 2]) -> Result<()> {
    eventually(|| {
        let seen = end.guest.statistics_of(&end.name, &["rx_bytes", "tx_bytes"])?;
        let now = bytes(world, end.vf)?;
        let counted = [now[0] - before[0], now[1] - before[1]];
        ensure!(counted.iter().all(|bytes| *bytes > 1 << 20), "{}: the host has {counted:?} bytes", end.vf);
        ensure!(seen == counted, "{}: the guest has {seen:?} bytes and the host {counted:?}", end.vf);
        Ok(())
    })
}
