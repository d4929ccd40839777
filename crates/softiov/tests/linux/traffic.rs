//! Checks frames between two guests: every size and protocol, with the offloads that the driver enables by default.

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::{Context, Error, Result, ensure};
use daemon::control::status::TrafficCounts;

/// iperf3's option for the amount of a flow: enough to fill every ring many times, and a second or less on an emulated
/// CPU.
const AMOUNT: &str = "-n 24M";
const AMOUNT_BYTES: u64 = 24 << 20;

/// Offloads, in ethtool's words, that a stock driver must enable by default.
const OFFLOADS: [&str; 6] = [
    "rx-checksumming: on",
    "tx-checksum-ip-generic: on",
    "tx-tcp-segmentation: on",
    "tx-tcp6-segmentation: on",
    "rx-vlan-offload: on",
    "tx-vlan-offload: on",
];

/// Checks that small, nearly full and fragmented pings are answered, both ways.
pub(crate) fn pings_are_answered(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for (from, to) in both_ways(world)? {
        for size in [56, 1400, 8000] {
            from.ping(&to.address(), size, 30)?;
        }
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that TCP passes in each direction with segmentation and checksums by the card, and that no checksum is wrong.
pub(crate) fn tcp_is_offloaded(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for (from, to) in both_ways(world)? {
        let features = from.check("ethtool -k eth0")?;
        for offload in OFFLOADS {
            ensure!(features.contains(offload), "{}: {offload:?} is not in\n{features}", from.name());
        }
        let good = to.statistic("rx_csum_offload_good")?;
        let local = to.statistic("lbrx_packets")?;
        let sent = world.vf(from.vf)?.tx;
        let flow = from.iperf(&to.address(), AMOUNT)?;
        ensure!(flow.sent >= AMOUNT_BYTES && flow.received > 0, "{} to {}: {flow:?}", from.name(), to.name());

        let size = frame_size(sent, world.vf(from.vf)?.tx);
        ensure!((1000..=1514).contains(&size), "{} sent frames of {size} bytes", from.name());
        grows(to, "rx_csum_offload_good", good)?;
        // The driver reads the card's counters every two seconds.
        grows(to, "lbrx_packets", local)?;
        no_checksum_errors(to)?;
        no_checksum_errors(from)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that UDP arrives without losses at a fixed rate.
pub(crate) fn udp_arrives(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for (from, to) in both_ways(world)? {
        let flow = from.iperf(&to.address(), "-u -b 10M -l 1400 -n 1M")?;
        // A busy machine may still cause some losses.
        ensure!(flow.received > flow.sent / 2, "{} to {}: {flow:?}", from.name(), to.name());
        no_checksum_errors(to)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks IPv6: neighbour discovery uses multicast, and segmentation has a second IP version.
pub(crate) fn ipv6_works(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for (from, to) in both_ways(world)? {
        for size in [56, 1400, 8000] {
            from.ping(&to.address_v6(), size, 10)?;
        }
        let flow = from.iperf(&to.address_v6(), AMOUNT)?;
        ensure!(flow.sent >= AMOUNT_BYTES, "{} to {}: {flow:?}", from.name(), to.name());
        no_checksum_errors(to)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, with an MTU of 9000, the driver has the card split headers off and fill several buffers with a frame.
pub(crate) fn jumbo_frames_pass_whole(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for guest in [world.alice()?, world.bob()?] {
        guest.check("ip link set eth0 mtu 9000")?;
        guest.wait_carrier(true)?;
    }
    for (from, to) in both_ways(world)? {
        from.reach(&to.address())?;
        let fragments = from.fragments_made()?;
        from.ping(&to.address(), 8000, 20)?;
        let made = from.fragments_made()? - fragments;
        ensure!(made == 0, "{}: {made} fragments were made of frames that fit", from.name());
        let before = world.vf(to.vf)?.rx;
        let flow = from.iperf(&to.address(), AMOUNT)?;
        ensure!(flow.sent >= AMOUNT_BYTES, "{} to {}: {flow:?}", from.name(), to.name());
        // A receive buffer of igbvf has 2,048 bytes.
        let size = frame_size(before, world.vf(to.vf)?.rx);
        ensure!(size > 4096, "{} got frames of {size} bytes", to.name());
        no_checksum_errors(to)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that `ethtool -S` matches the host's counters, frame check sequences included, and counts the traffic as
/// local.
pub(crate) fn counters_are_the_hosts(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let names = ["rx_packets", "rx_bytes", "lbrx_packets", "lbrx_bytes"];
    bob.reach(&alice.address())?;
    // Bounds of the host's counters within and around the driver's reading: other frames may arrive at any time.
    let host = || Ok::<_, Error>(with_check_sequences(world.vf(bob.vf)?.rx));
    let (outer, first, inner) = (host()?, bob.statistics(&names)?, host()?);
    alice.ping(&bob.address(), 1000, 100)?;
    let least = minus(host()?, inner);
    let last = bob.statistics(&names)?;
    let most = minus(host()?, outer);
    let grown: Vec<u64> = last.iter().zip(first).map(|(last, first)| last - first).collect();
    let within = |seen: usize, counted: usize| (least[counted]..=most[counted]).contains(&grown[seen]);
    ensure!(within(0, 0) && within(1, 1), "{names:?} grew by {grown:?}, the host's by {least:?} to {most:?}");
    ensure!(
        (100..=grown[0]).contains(&grown[2]) && (104_600..=grown[1]).contains(&grown[3]),
        "100 frames of 1046 bytes were local, and {names:?} grew by {grown:?}"
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that checksums and segmentation are done by the card or by the kernel, as `ethtool -K` says. (igbvf cannot
/// toggle VLAN tags.)
pub(crate) fn offloads_are_toggled(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let settings = [("rx off tx off", false), ("rx on tx on tso off", true), ("tso on rx off", false)];
    for (features, checks) in settings.into_iter().chain([("rx on sg off", true), ("sg on tso on", true)]) {
        alice.check(&format!("ethtool -K eth0 {features}"))?;
        let good = alice.statistic("rx_csum_offload_good")?;
        for direction in ["", " -R"] {
            alice.iperf(&bob.address(), &format!("-n 4M{direction}")).context(features)?;
        }
        let checked = alice.statistic("rx_csum_offload_good")? > good;
        ensure!(checked == checks, "{features}: the card checks for the kernel: {checked}");
        no_checksum_errors(alice)?;
        no_checksum_errors(bob)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns packets and bytes as the card's registers count them, including 4 bytes of frame check sequence per packet.
fn with_check_sequences(traffic: TrafficCounts) -> [u64; 2] {
    [traffic.packets, traffic.bytes + 4 * traffic.packets]
}

fn minus(after: [u64; 2], before: [u64; 2]) -> [u64; 2] {
    [after[0] - before[0], after[1] - before[1]]
}

fn both_ways(world: &LinuxTestbed) -> Result<[(&ScenarioGuest, &ScenarioGuest); 2]> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    Ok([(alice, bob), (bob, alice)])
}

/// Returns the mean size in bytes of the frames between two readings of the counters.
pub(crate) fn frame_size(before: TrafficCounts, after: TrafficCounts) -> u64 {
    (after.bytes - before.bytes) / (after.packets - before.packets).max(1)
}

fn no_checksum_errors(guest: &ScenarioGuest) -> Result<()> {
    let errors = guest.statistic("rx_csum_offload_errors")?;
    ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", guest.name());
    Ok(())
}

/// Waits until a guest's counter of `ethtool -S` exceeds `before`.
fn grows(guest: &ScenarioGuest, statistic: &str, before: u64) -> Result<()> {
    eventually(|| {
        let now = guest.statistic(statistic)?;
        ensure!(now > before, "{}: {statistic} stays at {now}", guest.name());
        Ok(())
    })
}
