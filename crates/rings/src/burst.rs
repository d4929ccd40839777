//! Sends a burst of plain frames from a transmit queue: reads descriptors, gathers the first bytes of frames, decides
//! on the frames' receivers, and delivers consecutive frames with equal verdicts (runs) together. A frame that a burst
//! cannot decide on is sent alone, in its turn. Every other packet ends a burst.

use crate::card::{BurstCard, FrameRunProperties, TxFormat};
use crate::cross::cross_run;
use crate::deliver::{AHEAD, BurstOrigin, deliver_run};
use crate::finished::charge_sum;
use crate::frames::{BurstMemory, SHORTEST};
use core::ops::Range;
use pcie::burst::{BURST, LONGEST};
use pcie::low::low_dword;
use pcie::{AnnouncedAccess, Bus, Function, HintedMemory, MemoryHint};
use plane::frame::{AddressPair, Frame, HEADROOM};
use plane::{BurstFrameVerdict, FrameForwarder, PortBurstSettings, PortIndex, TransmitQueueId};

/// Transmit queue whose frames a burst sends, with the memory of its frames.
struct BurstSource {
    sender: TransmitQueueId,
    /// Function that owns the buffers of the burst's frames.
    function: Function,
    /// Hint to the memory of the frames' buffers.
    hint: MemoryHint,
}

/// Sends the plain frames that come next in a queue while they are due: at most a burst, and at most `budget`. Returns
/// how many have left. If none has, the next packet is not plain, or is a frame that cannot be read: the card then
/// takes it as a packet of its own ([`crate::PacketTransmitter`]).
#[inline(never)]
pub(crate) fn send_burst<C: BurstCard, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    frames: &mut BurstMemory,
    budget: usize,
    lane: &mut L,
) -> usize {
    // What should have an outer tag is the family's.
    if lane.tag_types().1.is_some() {
        return 0;
    }
    // A shorter frame is padded, and might be too long then.
    let terms = lane.burst_terms().filter(|terms| terms.longest >= SHORTEST && card.judges());
    let longest = terms.map_or(0, |terms| terms.longest.min(low_dword(LONGEST as u64)));
    let (count, alone) = frames.take::<C::TxFormat>(card.next(sender, budget.min(BURST)), longest);
    if count == 0 {
        return 0;
    }
    let (function, hint, _) = card.source(sender);
    let mut source = BurstSource { sender, function, hint: *hint };
    // The first frame that has to be sent alone ends what can be judged, and so does the first that is not due. A frame that turns
    // out to be sent alone pays no more than is assumed here.
    let together = frames.pad(count.min(alone.trailing_zeros() as usize));
    let together = terms.map_or(0, |terms| lane.admits(together, terms));
    let mut judged = terms
        .filter(|_| together > 0)
        .map_or(BurstVerdicts::NONE, |terms| judge(card, &mut source, frames, together, terms, lane));
    let mut at = 0;
    while at < count && lane.has_credit() && lane.is_due() {
        let judged_run = judged.run(at).map(|(end, start)| (end, frames.verdicts[start]));
        let run = judged_run.and_then(|(end, verdict)| Some((at..end, verdict.port()?, verdict)));
        let (Some((run, port, verdict)), Some(terms)) = (run, terms) else {
            if !send_first(card, sender, frames, at..count, lane) {
                break;
            }
            at += 1;
            continue;
        };
        let told = FrameRunProperties {
            tag: terms.tag.filter(|_| verdict.strips()),
            inexact: verdict.is_inexact(),
            from_uplink: false,
        };
        let fits = fitting(&frames.padded[run.clone()], lane.longest_taken(port, terms));
        let from = HintedMemory { function: source.function, hint: &mut source.hint };
        let (to, (sent, bytes)) = pass_run(card, from, frames, (port, at..at + fits), told);
        lane.count_run(to, &frames.padded[at..at + sent], bytes, terms);
        at += sent;
        if sent < run.len() {
            // A frame is too long for the port, no buffer is ready, or one is not in memory: alone, each frame finds out what that
            // means for it.
            judged = BurstVerdicts::NONE;
        }
    }
    *card.source(sender).1 = source.hint;
    card.pass(sender, at);
    at
}

/// Delivers a run of frames to a port, or puts it into the trunk to the part of the card that has the port. Returns the port if it has
/// received the frames, how many have left, and the number of their bytes.
#[inline(always)]
fn pass_run<C: BurstCard>(
    card: &mut C,
    from: HintedMemory<'_>,
    frames: &mut BurstMemory,
    (port, run): (PortIndex, Range<usize>),
    told: FrameRunProperties,
) -> (Option<PortIndex>, (usize, u64)) {
    if card.is_away(port) {
        return (None, cross_run(card, from, frames, (port, run), told));
    }
    let origin = &mut BurstOrigin::Function(from);
    (Some(port), deliver_run(card, origin, frames, (port, run), told))
}

/// Verdicts on the frames of a burst: which frames have verdicts of their own, and which are sent alone.
struct BurstVerdicts {
    count: usize,
    /// Frames whose addresses differ from those of the frame before, a bit each. The verdict of such a frame applies to
    /// the frames behind it too.
    starts: u32,
    /// Frames that have to be sent alone, a bit each.
    alone: u32,
}

impl BurstVerdicts {
    const NONE: Self = Self { count: 0, starts: 0, alone: 0 };

    /// Returns the end of the run of frames that begins at `at`, and the frame whose verdict the run has. Returns
    /// `None` if the frame has to be sent alone.
    fn run(&self, at: usize) -> Option<(usize, usize)> {
        if at >= self.count || self.alone >> at & 1 != 0 {
            return None;
        }
        let later = u32::MAX.checked_shl(low_dword(at as u64) + 1).unwrap_or(0);
        let end = ((self.starts | self.alone) & later).trailing_zeros() as usize;
        let start = (self.starts & !later).checked_ilog2()? as usize;
        Some((end.min(self.count), start))
    }
}

impl BurstMemory {
    /// Takes addresses and lengths from the first descriptors that are plain; returns their number, and a bit for each frame that has
    /// to be sent alone, because it is longer than `longest`.
    #[inline(always)]
    fn take<F: TxFormat>(&mut self, descriptors: &[[u8; 16]], longest: u32) -> (usize, u32) {
        let Self { sources, lengths, summed, .. } = self;
        *summed = 0;
        let (mut count, mut alone, least) = (0, 0, *F::LENGTHS.start());
        let longest = longest.max(least);
        let slots = sources.iter_mut().zip(lengths);
        for (raw, (source, slot)) in descriptors.iter().zip(slots) {
            let [address, second] =
                [0, 8].map(|at| u64::from_le_bytes(core::array::from_fn(|n| raw[at + n])));
            let length = match F::plain(second) {
                Some(length) => length,
                None => {
                    core::hint::cold_path();
                    let Some(length) = F::summed(second) else { break };
                    *summed |= 1 << count;
                    length
                }
            };
            (*source, *slot) = (address, length);
            if length.wrapping_sub(least) > longest.wrapping_sub(least) {
                core::hint::cold_path();
                if !F::LENGTHS.contains(&length) {
                    break;
                }
                alone |= 1 << count;
            }
            count += 1;
        }
        (count, alone)
    }

    /// Finds the lengths of the first `count` frames after padding.
    #[inline(always)]
    fn pad(&mut self, count: usize) -> &[u32] {
        let Self { lengths, padded, .. } = self;
        for (padded, length) in padded.iter_mut().zip(&lengths[..count]) {
            *padded = (*length).max(SHORTEST);
        }
        &padded[..count]
    }
}

/// Gathers the first bytes of the burst's first frames, and decides on the frames' receivers.
#[inline(never)]
fn judge<C: BurstCard, L: FrameForwarder>(
    card: &mut C,
    source: &mut BurstSource,
    frames: &mut BurstMemory,
    count: usize,
    terms: PortBurstSettings,
    lane: &mut L,
) -> BurstVerdicts {
    let space = HintedMemory { function: source.function, hint: &mut source.hint };
    let BurstMemory { heads, sources, lengths, verdicts, glances, .. } = frames;
    let (_, _, bus) = card.source(source.sender);
    let count = bus.gather(space, &sources[..count], &lengths[..count], heads).min(BURST);
    // The first frame starts a run, whatever its addresses are.
    let (mut starts, mut ends) = (0, AddressPair { low: !AddressPair::of(&heads[0]).low, high: 0 });
    for at in 0..count {
        let now = AddressPair::of(&heads[at]);
        if (now.low ^ ends.low) | u64::from(now.high ^ ends.high) != 0 {
            core::hint::cold_path();
            (ends, starts) = (now, starts | 1 << at);
            verdicts[at] = lane.judge(now, terms);
        }
    }
    let mut alone = 0;
    if starts == 1 && verdicts[0] == BurstFrameVerdict::ALONE {
        return BurstVerdicts::NONE;
    }
    for at in 0..count {
        if !glances[at].look(&heads[at], lengths[at]) {
            core::hint::cold_path();
            alone |= 1 << at;
        }
    }
    if frames.summed != 0 {
        alone |= ask(card, source.sender, frames, (count, frames.summed & !alone));
    }
    BurstVerdicts { count, starts, alone }
}

/// Stores the checksums that the card is to insert into the frames with a bit in `summed`. Returns a bit for each of
/// the first `count` frames whose request does not fit the frame.
#[inline(never)]
fn ask<C: BurstCard>(
    card: &mut C,
    sender: TransmitQueueId,
    frames: &mut BurstMemory,
    (count, mut summed): (usize, u32),
) -> u32 {
    let mut alone = 0;
    while summed != 0 {
        let at = summed.trailing_zeros() as usize;
        if at >= count {
            break;
        }
        match card.insertion(sender, at).filter(|asked| asked.udp == frames.glances[at].is_udp()) {
            Some(asked) => frames.insertions[at] = asked,
            None => alone |= 1 << at,
        }
        summed &= summed - 1;
    }
    alone
}

/// Returns the number of frames before the first that is longer than `longest`. Mostly no frame is longer, and a loop
/// without an early exit finds that for several frames at once.
#[inline(always)]
fn fitting(lengths: &[u32], longest: usize) -> usize {
    let longest = low_dword(longest.min(LONGEST) as u64);
    if lengths.iter().fold(true, |all, length| all & (*length <= longest)) {
        return lengths.len();
    }
    lengths.iter().take_while(|length| **length <= longest).count()
}

/// Sends the first frame of a range alone. Returns `false` if the frame has not left.
#[inline(always)]
fn send_first<C: BurstCard, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    frames: &mut BurstMemory,
    range: Range<usize>,
    lane: &mut L,
) -> bool {
    if frames.summed >> range.start & 1 == 0 {
        send_alone::<_, _, false>(card, sender, frames, range, lane)
    } else {
        core::hint::cold_path();
        send_alone::<_, _, true>(card, sender, frames, range, lane)
    }
}

/// Copies the first frame of a range to private memory and sends it. Inserts the requested checksums if the frame is
/// `SUMMED`. Returns `false` if the frame cannot be read, or does not fit its checksum request. Most frames request no
/// checksum, and have a copy of this function without a trusted checksum.
#[inline(never)]
fn send_alone<C: BurstCard, L: FrameForwarder, const SUMMED: bool>(
    card: &mut C,
    sender: TransmitQueueId,
    frames: &mut BurstMemory,
    range: Range<usize>,
    lane: &mut L,
) -> bool {
    let BurstMemory { sources, lengths, staging, .. } = frames;
    let (at, length) = (range.start, lengths[range.start] as usize);
    let (function, _, bus) = card.source(sender);
    if let Some(ahead) = range.clone().nth(AHEAD) {
        bus.prefetch(function, (sources[ahead], lengths[ahead] as usize), AnnouncedAccess::Read);
    }
    let Some(place) = staging.get_mut(HEADROOM..HEADROOM + length) else { return false };
    if bus.dma_read(function, sources[at], place).is_err() {
        return false;
    }
    let inserted = if SUMMED { card.insert(sender, at, place) } else { Ok(None) };
    if SUMMED {
        charge_sum(&inserted, length, lane);
    }
    let Ok(sealed) = inserted else { return false };
    let padded = length.max(SHORTEST as usize);
    if length < padded {
        staging[HEADROOM + length..HEADROOM + padded].fill(0);
    }
    if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + padded]) {
        frame.look_behind(lane.tag_types().0, None);
        frame.set_seal(sealed);
        frame.take_tag();
        frame.tag = lane.tag(None).or(frame.tag);
        if let Some(reason) = lane.send(card, &mut frame).refused {
            card.refused(sender, reason);
        }
    }
    true
}
