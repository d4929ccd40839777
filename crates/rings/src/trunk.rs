//! Delivers the frames of a batch that another part of the card has put into a trunk. A run of plain frames goes into receive queues
//! as a burst does, every other frame alone. `cross` puts runs into the trunk.

use crate::card::FrameRunProperties;
use crate::deliver::{BurstOrigin, deliver_run};
use crate::frames::{BurstMemory, SHORTEST};
use crate::packets::FrameReceiver;
use crate::visit::lend;
use core::ops::Range;
use offload::plain::PlainFrameKind;
use pcie::burst::{BURST, HEAD};
use pcie::low::low_dword;
use plane::ledger::TrafficSum;
use plane::{ForwardingPlane, TrunkBatch, TrunkFrameHeader, TrunkFramePlaces, TrunkRun};

impl BurstMemory {
    /// Takes the places and kinds of a run's first frames from a batch. Returns the number of frames.
    fn take_run(&mut self, batch: &TrunkBatch, run: Range<usize>, with_heads: bool) -> usize {
        let TrunkFramePlaces { starts, lengths, kinds } =
            batch.places(run.start..run.end.min(run.start + BURST));
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
