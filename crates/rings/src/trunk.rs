//! Runs of plain frames that cross between two parts of a card in a trunk. The sender's part copies them from its guest's buffers
//! into a batch of the trunk, and the receiver's part copies them from there into its guest's buffers. Each run passes as a
//! burst does; every other frame crosses alone.

use crate::card::{BurstCard, FrameRunProperties};
use crate::deliver::{BurstOrigin, deliver_run};
use crate::frames::{BurstMemory, SHORTEST};
use crate::packets::FrameReceiver;
use crate::visit::lend;
use core::ops::Range;
use offload::plain::PlainFrameKind;
use pcie::burst::{BURST, HEAD};
use pcie::low::low_dword;
use pcie::{Bus, HintedMemory};
use plane::ledger::TrafficSum;
use plane::{DeliveryFlags, ForwardingPlane, PortIndex, TrunkBatch, TrunkFrameHeader, TrunkFramePlaces, TrunkRun};

/// Puts the first frames of a run into the trunk. Returns how many frames are there, and the number of their bytes.
#[inline(never)]
pub(crate) fn cross_run<C: BurstCard>(
    card: &mut C,
    from: HintedMemory<'_>,
    frames: &mut BurstMemory,
    (port, run): (PortIndex, Range<usize>),
    terms: FrameRunProperties,
) -> (usize, u64) {
    let FrameRunProperties { tag, inexact, from_uplink } = terms;
    let about = DeliveryFlags { from_uplink, alone: true, inexact, strips: tag.is_some() };
    let header = TrunkFrameHeader { port, about, tag, sealed: None, uncut: None };
    let (mut moved, mut bytes) = (0, 0);
    let Some((trunk, bus)) = card.trunk() else { return (0, 0) };
    let mut from = from;
    while moved < run.len() {
        let rest = run.start + moved..run.end;
        let first = frames.padded[rest.start] as usize;
        let Some(batch) = trunk.batch(port, first) else { break };
        let (count, sum) = frames.copy_out(&mut from, batch, (&header, rest), bus);
        if count == 0 {
            break;
        }
        (moved, bytes) = (moved + count, bytes + sum);
    }
    (moved, bytes)
}

impl BurstMemory {
    /// Copies the first frames of a run into a batch, with the checksums that they request. Returns how many frames are there, and
    /// the number of their bytes.
    fn copy_out<B: Bus>(
        &mut self,
        from: &mut HintedMemory<'_>,
        batch: &mut TrunkBatch,
        (header, run): (&TrunkFrameHeader, Range<usize>),
        bus: &mut B,
    ) -> (usize, u64) {
        let run = run.start..run.end.min(BURST);
        let fits = batch.find_places(&self.padded[run.clone()], &mut self.targets[run.clone()]);
        let run = run.start..run.start + fits;
        let from = HintedMemory { function: from.function, hint: &mut *from.hint };
        let moved = self.with_insertions(run.clone(), |carried, complete| {
            bus.carry_out(from, batch.bytes_mut(), carried, complete)
        });
        let run = run.start..run.start + moved.min(fits);
        let (starts, lengths) = (&self.targets[run.clone()], &self.padded[run.clone()]);
        if !lengths.is_empty() {
            let found = self.glances[run.clone()].iter().zip(&self.sums[run]);
            let kinds = found.map(|(glance, sum)| glance.finish(*sum).index() as u8);
            batch.add_run(header, (starts, lengths), kinds);
        }
        (lengths.len(), lengths.iter().map(|length| u64::from(*length)).sum())
    }

    /// Takes the places and kinds of a run's first frames from a batch. Returns the number of frames.
    fn take_run(&mut self, batch: &TrunkBatch, run: Range<usize>, with_heads: bool) -> usize {
        let TrunkFramePlaces { starts, lengths, kinds } = batch.places(run.start..run.end.min(run.start + BURST));
        let count = starts.len();
        self.sources[..count].copy_from_slice(starts);
        self.lengths[..count].copy_from_slice(lengths);
        self.padded[..count].copy_from_slice(lengths);
        for (kind, number) in self.kinds.iter_mut().zip(kinds) {
            *kind = PlainFrameKind::of(usize::from(*number));
        }
        if with_heads {
            for (head, number) in self.heads[..count].iter_mut().zip(run) {
                let frame = batch.frame_bytes(number).unwrap_or_default();
                let within = frame.len().min(HEAD);
                head[..within].copy_from_slice(&frame[..within]);
                head[within..].fill(0);
            }
        }
        count
    }
}

/// Delivers all frames of a batch from a trunk, in their order.
pub fn leave_trunk<C: FrameReceiver, const N: usize>(
    card: &mut C,
    plane: &mut ForwardingPlane<N>,
    batch: &mut TrunkBatch,
) {
    let mut places = lend(card);
    let mut at = 0;
    while let Some(run) = batch.run(at) {
        at += 1;
        let mut frames = run.frames();
        if run.plain && card.receives_runs() {
            frames.start += leave_together(card, &mut places.frames, plane, batch, &run);
        }
        for number in frames {
            if let Some(mut frame) = batch.frame(number) {
                plane.leave_trunk(&run.header, &mut frame, SHORTEST as usize, card);
            }
        }
    }
    *card.places() = Some(places);
}

/// Delivers the first frames of a plain run that have buffers. Returns the number of frames.
fn leave_together<C: FrameReceiver, const N: usize>(
    card: &mut C,
    frames: &mut BurstMemory,
    plane: &mut ForwardingPlane<N>,
    batch: &TrunkBatch,
    run: &TrunkRun,
) -> usize {
    let TrunkFrameHeader { port, about, tag, .. } = run.header;
    let terms = FrameRunProperties {
        tag: tag.filter(|_| about.strips),
        inexact: about.inexact,
        from_uplink: about.from_uplink,
    };
    let (all, spreads) = (run.frames(), card.spreads(port));
    let mut sum = TrafficSum::default();
    let mut left = all.clone();
    while !left.is_empty() {
        let count = frames.take_run(batch, left.clone(), spreads);
        let origin = &mut BurstOrigin::Trunk(batch.bytes());
        let (moved, bytes) = deliver_run(card, origin, frames, (port, 0..count), terms);
        sum.packets += moved as u64;
        sum.bytes += bytes;
        left.start += moved;
        if moved < count || count == 0 {
            break;
        }
    }
    plane.came_together(port, about.from_uplink, sum);
    low_dword(sum.packets) as usize
}
