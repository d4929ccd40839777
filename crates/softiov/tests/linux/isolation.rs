//! Checks that VMMs that misbehave or die have no effect on other guests. The protocol's own tests cover hostile bytes
//! on the socket.

use crate::guest::{BOOT, COMMAND};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE, BOB, CAROL, CAROL_OUTSIDE, CAROL_VLAN, LinuxTestbed, VISITOR};
use anyhow::{Result, bail, ensure};
use linux_guest::GuestError;

/// TCP port of a second iperf3 server, for a flow that is cut off.
const DOOMED_PORT: u16 = 5202;

/// Checks that a VF serves one client: a second client is refused, and the first is not disturbed.
pub(crate) fn second_client_is_turned_away(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let before = world.vf(ALICE)?.function.peer;
    let intruder = world.builder("intruder", ALICE).spawn(world.assets());
    match intruder.and_then(|intruder| intruder.wait_ready(BOOT)) {
        Err(GuestError::Ended { .. }) => {}
        Err(other) => return Err(other.into()),
        Ok(()) => bail!("a second guest has booted on {ALICE}"),
    }
    let after = world.vf(ALICE)?.function.peer;
    ensure!(before.is_some() && before == after, "the client of {ALICE} was {before:?} and is {after:?}");
    alice.ping(&bob.address(), 1400, 10)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, after SIGKILL of one VMM under traffic, a flow between two other guests completes, and that the VF is
/// reset for the next VMM.
pub(crate) fn killed_vmm_is_not_noticed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let carol = world.take_carol()?;
    let (alice, bob) = (world.alice()?, world.bob()?);
    bob.check(&format!("iperf3 -s -D -p {DOOMED_PORT}"))?;
    let sent = world.vf(CAROL)?.tx.packets;
    let doomed = carol.start_iperf(&bob.address(), &format!("-p {DOOMED_PORT} -t 600"))?;
    world.wait_vf(CAROL, "send", |vf| vf.tx.packets > sent + 1000)?;
    let sent = world.vf(ALICE)?.tx.packets;
    let flow = alice.start_iperf(&bob.address(), "-t 6")?;
    world.wait_vf(ALICE, "send", |vf| vf.tx.packets > sent + 1000)?;

    carol.linux.kill9();
    drop(doomed);
    let sent = world.vf(ALICE)?.tx.packets;
    let flow = alice.finish_iperf(&flow)?;
    let went_on = world.vf(ALICE)?.tx.packets - sent;
    ensure!(went_on > 100, "alice sent {went_on} more frames after carol's VMM was killed: {flow:?}");
    for vf in [CAROL, CAROL_VLAN, CAROL_OUTSIDE] {
        world.wait_vf(vf, "have no client", |vf| vf.peer.is_none())?;
    }
    bob.ping(&alice.address(), 8000, 10)?;
    bob.check("killall -9 iperf3; true")?;

    // A new carol.
    world.settle()?;
    let carol = world.carol()?;
    carol.ping(&world.alice()?.address(), 8000, 10)?;
    carol.iperf(&world.bob()?.address(), "-n 8M")?;
    carol.iperf(&world.bob()?.address(), "-n 8M -R")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest without `share=on` boots, binds its VF and has a link. The host reports the cause and the remedy
/// once in the log, and in the VF's status while the problem lasts. Other VFs are not disturbed.
pub(crate) fn unshared_memory_is_told(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob, _] = world.everyone()?;
    let builder = world.builder("recluse", VISITOR).shared_memory(false);
    let recluse = world.boot_visitor(builder, world.assets())?;
    recluse.settle()?;
    let status = world.wait_vf(VISITOR, "have a hint", |vf| vf.hint.is_some())?;
    let hint = status.function.hint.unwrap_or_default();
    ensure!(hint.contains("share=on"), "the hint {hint:?} does not name share=on");
    recluse.cannot_reach("eth0", &alice.address())?;
    for vf in [ALICE, BOB, CAROL] {
        let other = world.vf(vf)?;
        ensure!(other.hint.is_none() && other.link, "the other VF {vf} is affected: {other:?}");
    }
    alice.ping(&bob.address(), 8000, 10)?;
    alice.iperf(&bob.address(), "-n 8M")?;
    recluse.linux.shutdown(COMMAND)?;
    world.wait_vf(VISITOR, "be free, without a hint", |vf| vf.peer.is_none() && vf.hint.is_none())?;
    Ok(LinuxCheckOutcome::Passed)
}
