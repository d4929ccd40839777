//! Puts runs of plain frames into a trunk to another part of the card: copies them from the sender's buffers into a batch. `trunk`
//! delivers the frames in the other part.

use crate::card::{BurstCard, FrameRunProperties};
use crate::frames::BurstMemory;
use core::ops::Range;
use pcie::burst::BURST;
use pcie::{Bus, HintedMemory};
use plane::{DeliveryFlags, PortIndex, TrunkBatch, TrunkFrameHeader};

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
            let kinds = found.map(|(glance, sum)| u8::try_from(glance.finish(*sum).index()).unwrap_or(0));
            batch.add_run(header, (starts, lengths), kinds);
        }
        (lengths.len(), lengths.iter().map(|length| u64::from(*length)).sum())
    }
}
