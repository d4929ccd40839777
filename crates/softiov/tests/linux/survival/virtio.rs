//! Checks the third family while its host's process is replaced or killed. An upgrade is not noticed. After a crash QEMU connects
//! again to the next process. Erin's split rings then continue at the used index in guest memory, and Frank's packed rings at
//! the position that the host has recorded.

use super::scene::HostRestartTestbed;
use super::{TIMES, losses, with_scene};
use crate::avf::no_checksum_errors;
use crate::guest::eventually;
use crate::report::LinuxCheckOutcome;
use crate::stream::{EVERY_MS, IperfStream, PingSeries};
use crate::virtio;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// IPv4 addresses of both guests on the port of the third family.
const ADDRESSES: [&str; 2] = ["10.84.1.1", "10.84.1.2"];

/// Checks `softiov upgrade` under a stream between VFs of the third family, several times: no link goes down, and the stream
/// continues.
pub(crate) fn hand_over_is_not_noticed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    outlive(world, 0, |scene, _| {
        // On a busy machine a successor may be too late; then the host resumes, and the upgrade is repeated.
        eventually(|| scene.softiov("upgrade")).map(drop)
    })
}

/// Checks SIGKILL of the host under a stream between VFs of the third family, several times: QEMU connects to the next process,
/// the link comes back, and the stream continues.
pub(crate) fn streams_outlive_crashes(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    outlive(world, TIMES, |scene, round| scene.kill_host(Duration::from_millis(300 + 37 * u64::from(round))))
}

/// Runs a TCP stream and pings between both guests while the host is replaced several times, and prints the interruptions. The
/// link goes down at most `most` times.
fn outlive(
    world: &mut LinuxTestbed,
    most: u32,
    replace: impl Fn(&HostRestartTestbed, u32) -> Result<()>,
) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, _| {
        let [erin, frank] = scene.guests();
        let interface = virtio::set_up(erin, 0, ADDRESSES[0])?;
        let franks = virtio::set_up(frank, 0, ADDRESSES[1])?;
        let packed =
            [(erin, &interface), (frank, &franks)].map(|(guest, name)| virtio::is_packed(guest, name));
        ensure!(matches!(packed, [Ok(false), Ok(true)]), "packed rings: {packed:?}");
        erin.reach(ADDRESSES[1])?;
        let mut stream = IperfStream::open(erin, ADDRESSES[1])?;
        // A crash finds many descriptors of Frank's packed ring in use.
        let mut datagrams =
            (most > 0).then(|| IperfStream::send_datagrams(frank, ADDRESSES[0])).transpose()?;
        let (before, mut missed) = (losses(erin, &interface)?, Vec::new());
        for round in 0..TIMES {
            let pings = PingSeries::start(erin, ADDRESSES[1])?;
            replace(scene, round)?;
            virtio::wait_link(erin, &interface)?;
            erin.reach(ADDRESSES[1])?;
            stream.moves().with_context(|| format!("round {round}"))?;
            datagrams.as_mut().map_or(Ok(()), IperfStream::moves)?;
            missed.push(pings.stop()?.missed * EVERY_MS);
        }
        let gap = stream.close()?;
        datagrams.map(IperfStream::close).transpose()?;
        let lost = losses(erin, &interface)? - before;
        print!("(no answer for {missed:?} ms, no byte for {gap:.1} s, {lost} links lost) ");
        ensure!(lost <= most, "the link went down {lost} times in {TIMES} rounds, and may {most} times");
        scene.guests().into_iter().try_for_each(no_checksum_errors)?;
        scene.all_machines_run()
    })
}
