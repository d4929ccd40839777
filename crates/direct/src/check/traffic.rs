//! Checks frames between VFs of the port, which the card's switch has to deliver, and the card's counters. Filters
//! and offloads are checked elsewhere.

use super::frames::frame;
use super::{
    CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, differs, passes, unexpected,
};
use driver::vf::{AccumulatedStatistics, TxOffload};
use i82576::MacAddress;
use i82576::ids::FCS;

/// Lengths of frames in bytes, from the shortest on the wire to the longest ordinary frame.
const LENGTHS: [usize; 7] = [60, 61, 64, 128, 576, 1513, 1514];
/// Length of the longest frame that a VF of the checks requests, in bytes.
const JUMBO: usize = 9_000;
/// Lengths of long frames in bytes, some of which fill buffers of 2 KB to the last byte, or nearly.
const LONG_LENGTHS: [usize; 6] = [1_515, 2_047, 2_048, 2_049, 4_096, JUMBO];
const ORDINARY: usize = 1_514;
/// Number of frames in the check of bursts, which fill the rings four times.
const BURST: u32 = 1_024;
/// Number of frames that the check of bursts sends per doorbell.
const BATCH: usize = 32;

pub(super) fn unicast<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    each_length(a, b, &LENGTHS)?;
    each_length(b, a, &LENGTHS)?;
    passes(format!("frames of {} lengths arrived in both directions", LENGTHS.len()))
}

fn each_length<B: CheckedVfBus>(
    from: &mut CheckedVf<B>,
    to: &mut CheckedVf<B>,
    lengths: &[usize],
) -> Result<(), CardCheckError> {
    for (serial, length) in (0..).zip(lengths) {
        let sent = from.send(to.vf.mac(), serial, *length)?;
        to.expect(&sent)?;
    }
    if from.receives_before(to)? { unexpected("the sender receives its own frames") } else { Ok(()) }
}

pub(super) fn broadcast<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    world.pair()?;
    let [sender, others @ ..] = world.stations.as_mut_slice() else { return unexpected("the run has no VF") };
    let sent = sender.send(MacAddress::BROADCAST, 0, 200)?;
    for other in others.iter_mut() {
        other.expect(&sent)?;
    }
    let Some(other) = others.first_mut() else { return unexpected("the run has no second VF") };
    if sender.receives_before(other)? { differs("the sender receives its own broadcast") } else { passes("") }
}

pub(super) fn burst<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    let (to, from) = (b.vf.mac(), a.vf.mac());
    let frames = (0..BURST).map(|serial| frame(to, from, serial, 60 + serial as usize * 37 % 1_455));
    let frames: Vec<Vec<u8>> = frames.collect();
    for batch in frames.chunks(BATCH) {
        for frame in batch {
            // The driver decides when to ring the doorbell.
            let sent = a.vf.transmit(&mut a.hal, frame, &TxOffload::default());
            sent.map_err(|error| CardCheckError::Unexpected(error.to_string()))?;
        }
        a.vf.flush(&mut a.hal);
        for frame in batch {
            b.expect(frame)?;
        }
    }
    a.vf.clean(&mut a.hal);
    let pending = a.vf.tx_pending();
    if pending == 0 {
        passes("")
    } else {
        unexpected(format!("the card has not returned {pending} transmit descriptors"))
    }
}

pub(super) fn jumbo<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    a.vf.set_max_frame(&mut a.hal, JUMBO)?;
    a.send(b.vf.mac(), 0, JUMBO)?;
    let unasked = b.receives_before(a)?;
    b.vf.set_max_frame(&mut b.hal, JUMBO)?;
    let outcome = each_length(a, b, &LONG_LENGTHS).and_then(|()| each_length(b, a, &LONG_LENGTHS));
    for station in [a, b] {
        station.vf.set_max_frame(&mut station.hal, ORDINARY)?;
    }
    outcome?;
    if unasked {
        differs("a long frame arrived at a VF that had not requested that length")
    } else {
        passes("")
    }
}

/// Sends `count` frames from the first VF to the second. Returns the counters of both VFs before and after the
/// exchange.
fn counted<B: CheckedVfBus>(
    world: &mut CardCheckContext<B>,
    length: usize,
    count: u32,
) -> Result<[(AccumulatedStatistics, AccumulatedStatistics); 2], CardCheckError> {
    let (a, b) = world.pair()?;
    let before = [a.vf.statistics(&mut a.hal), b.vf.statistics(&mut b.hal)];
    for serial in 0..count {
        let sent = a.send(b.vf.mac(), serial, length)?;
        b.expect(&sent)?;
    }
    let after = [a.vf.statistics(&mut a.hal), b.vf.statistics(&mut b.hal)];
    Ok([(before[0], after[0]), (before[1], after[1])])
}

/// Checks the card's counters of both VFs after an exchange of frames. Others may send to the receiver meanwhile, so it
/// must count at least the frames sent.
pub(super) fn statistics<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    const LENGTH: usize = 300;
    const COUNT: u32 = 50;
    let [(a, a_after), (b, b_after)] = counted(world, LENGTH, COUNT)?;
    let octets = u64::from(COUNT) * (LENGTH + FCS) as u64;
    let sent = (a_after.tx_packets - a.tx_packets, a_after.tx_octets - a.tx_octets);
    let got = (b_after.rx_packets - b.rx_packets, b_after.rx_octets - b.rx_octets);
    let saw = format!(
        "the card counted {} sent frames ({} bytes) and {} received frames ({} bytes)",
        sent.0, sent.1, got.0, got.1
    );
    let right = sent == (COUNT.into(), octets) && got.0 >= u64::from(COUNT) && got.1 >= octets;
    if right { passes(saw) } else { unexpected(saw) }
}

pub(super) fn loopback_statistics<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    const COUNT: u32 = 10;
    let [(a, a_after), (b, b_after)] = counted(world, 100, COUNT)?;
    let sent = a_after.tx_loopback_packets - a.tx_loopback_packets;
    let got = b_after.rx_loopback_packets - b.rx_loopback_packets;
    let saw = format!("the card counted {sent} of {COUNT} sent loopback frames, and {got} received");
    if sent == u64::from(COUNT) && got >= sent { passes(saw) } else { differs(saw) }
}
