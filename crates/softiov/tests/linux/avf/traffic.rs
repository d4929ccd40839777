//! Checks frames between two stock iavf drivers: every size and protocol, with the default offloads and without. `vlan`
//! tests VLANs.

use super::{AvfInterface, linked, no_checksum_errors};
use crate::guest::{COMMAND, eventually};
use crate::report::LinuxCheckOutcome;
use crate::traffic::frame_size;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};

/// Offloads, in ethtool's words, that a stock driver must enable by default.
const OFFLOADS: [&str; 9] = [
    "rx-checksumming: on",
    "tx-checksum-ipv4: on",
    "tx-checksum-ipv6: on",
    "tx-tcp-segmentation: on",
    "tx-tcp6-segmentation: on",
    "rx-vlan-offload: on",
    "tx-vlan-offload: on",
    "receive-hashing: on",
    "large-receive-offload: off [fixed]",
];
const MEGABYTES: u64 = 8;
/// TCP port of the file transfer.
const PORT: u16 = 5001;

/// Checks that a file arrives unchanged each way. First the sender's card segments and inserts checksums and the
/// receiver's kernel verifies; then the sender's kernel inserts checksums and the receiver's card verifies.
pub(crate) fn files_come_whole(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for (from, to) in [(alice, bob), (bob, alice)] {
        let features = from.check("ethtool -k IF")?;
        let missing = OFFLOADS.iter().find(|offload| !features.contains(**offload));
        ensure!(missing.is_none(), "{}: {missing:?} is not in\n{features}", from.guest.name());
        for (sends, receives) in [("tx on tso on", "rx off gro off"), ("tx off tso off", "rx on gro on")] {
            from.check(&format!("ethtool -K IF {sends}"))?;
            to.check(&format!("ethtool -K IF {receives}"))?;
            let before = world.vf(from.vf)?.tx;
            send(from, to).with_context(|| format!("{sends}, {receives}"))?;
            let size = frame_size(before, world.vf(from.vf)?.tx);
            ensure!((1000..=1514).contains(&size), "{} sent frames of {size} bytes", from.guest.name());
        }
        from.check("ethtool -K IF tx on tso on")?;
        no_checksum_errors(to.guest)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Sends a file of random bytes over TCP, and checks that it arrives unchanged.
fn send(from: &AvfInterface<'_>, to: &AvfInterface<'_>) -> Result<()> {
    let sent =
        from.check(&format!("head -c {} /dev/urandom > /run/file && md5sum < /run/file", MEGABYTES << 20))?;
    let server = from.guest.linux.spawn_background(&format!("nc -l -p {PORT} < /run/file"))?;
    // The reader of a pipe that is never written ends only with the connection.
    let script = format!(
        "[ -e /run/quiet ] || mkfifo /run/quiet; nc {} {PORT} 0<>/run/quiet > /run/came && md5sum < /run/came",
        from.address()
    );
    let came = eventually(|| to.check(&script))?;
    ensure!(
        came == sent,
        "{} sent the file {sent}, but {} received {came}",
        from.guest.name(),
        to.guest.name()
    );
    from.guest.linux.wait(&server, COMMAND)?;
    to.check("rm /run/came").map(drop)
}

/// Checks that UDP arrives without losses at a fixed rate, and that IPv6 works: its neighbour discovery uses multicast,
/// and it has its own kind of segmentation.
pub(crate) fn udp_and_ipv6_arrive(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for (from, to) in [(alice, bob), (bob, alice)] {
        let flow = from.guest.iperf(&to.address(), "-u -b 10M -l 1400 -n 1M")?;
        // A busy machine may still cause some losses.
        ensure!(flow.received > flow.sent / 2, "{} to {}: {flow:?}", from.guest.name(), to.guest.name());
        from.guest.reach(&to.address_v6())?;
        for size in [56, 1400, 8000] {
            from.guest.ping(&to.address_v6(), size, 10)?;
        }
        from.iperf(&to.address_v6(), 16)?;
        no_checksum_errors(to.guest)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, with an MTU of 9000, frames pass whole, over several receive buffers.
pub(crate) fn jumbo_frames_pass_whole(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for end in [alice, bob] {
        // While the interface is up, the driver of 6.1 deadlocks (docs/conformance.md).
        end.check("ip link set IF down && ip link set IF mtu 9000 && ip link set IF up")?;
        end.wait_carrier(true)?;
    }
    for (from, to) in [(alice, bob), (bob, alice)] {
        from.reach(to)?;
        let fragments = from.guest.fragments_made()?;
        from.ping(to, 8000, 20)?;
        let made = from.guest.fragments_made()? - fragments;
        ensure!(made == 0, "{}: {made} fragments were made of frames that fit", from.guest.name());
        let before = world.vf(to.vf)?.rx;
        from.iperf(&to.address(), 24)?;
        let size = frame_size(before, world.vf(to.vf)?.rx);
        ensure!(size > 4096, "{} got frames of {size} bytes", to.guest.name());
        no_checksum_errors(to.guest)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}
