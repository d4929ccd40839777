//! Puts frames into receive queues: several plain frames of a burst, straight from the sender's buffers, or one frame
//! in private memory. The card parses a frame that is not plain, or does not fit into one buffer ([`FrameReceiver`]).

use crate::card::{BurstCard, FrameRunProperties, PlainReceiver, RxFormat};
use crate::frames::BurstMemory;
use crate::packets::FrameReceiver;
use core::ops::Range;
use offload::plain::{PlainFrame, PlainFrameKind};
use pcie::burst::{BURST, FrameCopyBatch, HEAD, HeadCompleter, LONGEST};
use pcie::low::low_dword;
use pcie::{AnnouncedAccess, Bus, Function, HintedMemory, MemoryHint};
use plane::frame::Frame;
use plane::{DeliveryError, DeliveryFlags, PortIndex};

/// Prefetch distance in frames: the buffer of a frame is prefetched while the frame this much earlier is copied.
pub(crate) const AHEAD: usize = 4;

/// Puts a frame into a receive queue of a port. Returns the number of bytes put there, check sequence excluded.
/// `findings` are the results of parsing the frame for an earlier port that gets it too.
///
/// # Errors
/// [`DeliveryError`]: the port's owner sees nothing of the frame.
#[inline(always)]
pub fn deliver<C: FrameReceiver>(
    card: &mut C,
    port: PortIndex,
    frame: &mut Frame<'_>,
    about: DeliveryFlags,
    findings: &mut Option<C::Contents>,
) -> Result<usize, DeliveryError> {
    if card.judges()
        && let Some(bytes) = deliver_plain(card, port, frame, about)
    {
        return Ok(bytes);
    }
    deliver_closely(card, port, frame, about, findings)
}

#[inline(never)]
fn deliver_closely<C: FrameReceiver>(
    card: &mut C,
    port: PortIndex,
    frame: &mut Frame<'_>,
    about: DeliveryFlags,
    findings: &mut Option<C::Contents>,
) -> Result<usize, DeliveryError> {
    let contents = match findings {
        Some(contents) => *contents,
        None => *findings.insert(card.look(frame, about)),
    };
    card.put(port, frame, about, contents)
}

/// Puts a plain frame into one buffer of the one port that gets it. Returns the number of bytes there, check sequence
/// excluded. Returns `None`, without any change, if the frame is for several ports, not plain, or does not fit.
#[inline(always)]
fn deliver_plain<C: BurstCard>(
    card: &mut C,
    port: PortIndex,
    frame: &mut Frame<'_>,
    about: DeliveryFlags,
) -> Option<usize> {
    if !about.alone || frame.ends().is_to_group() {
        return None;
    }
    let (seal, tag, trailer) = (frame.seal(), frame.tag, frame.trailer());
    let bytes = frame.untagged();
    let plain = PlainFrame::of(bytes.first_chunk()?, bytes.len())?;
    let (queue, hash) = card.spread(port, &plain);
    let tag = tag.filter(|_| about.strips);
    let terms = FrameRunProperties { tag, inexact: about.inexact, from_uplink: about.from_uplink };
    let mut receiver = card.receiver(port, queue, terms)?;
    // Sums are not taken of a frame that has no buffer here.
    if receiver.ready() == 0 {
        return None;
    }
    let found = plain.find(bytes, seal);
    let bytes = frame.delivered(!about.strips);
    let length = bytes.len();
    receiver.put(bytes, found, hash)?;
    card.received(port, queue, 1, length as u64);
    Some(length - trailer)
}

impl<B: Bus, S: RxFormat> PlainReceiver<'_, B, S> {
    /// Returns the number of receive descriptors of a queue that can be filled at once.
    #[inline(always)]
    pub(crate) fn ready(&mut self) -> usize {
        if self.room == 0 {
            return 0;
        }
        self.posted.prepare(&self.ring, self.function, self.bus).unwrap_or(0).min(self.room)
    }

    /// Puts one frame into the next receive buffer, which the driver has posted.
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], found: PlainFrameKind, hash: Option<u32>) -> Option<()> {
        if bytes.len() > self.longest {
            return None;
        }
        let Self { posted, ring, function, bus, format, .. } = self;
        if posted.ready() > AHEAD {
            bus.prefetch(*function, (posted.word(ring, AHEAD, 0), bytes.len()), AnnouncedAccess::Write);
        }
        bus.dma_write(*function, posted.word(ring, 0, 0), bytes).ok()?;
        posted.fill(ring, format.words(found, hash, low_dword(bytes.len() as u64)));
        Some(())
    }

    /// Puts the first frames of a run into receive buffers that the driver has posted. Returns the number of frames.
    /// Inserts the checksums that frames request.
    #[inline(never)]
    pub(crate) fn fill(
        mut self,
        (from, hint): (Function, &mut MemoryHint),
        frames: &mut BurstMemory,
        run: Range<usize>,
    ) -> usize {
        let ready = self.ready();
        let Self { posted, ring, longest, function, bus, format, .. } = self;
        let BurstMemory {
            heads, sources, padded, glances, summed, insertions, targets, sums, spread, ..
        } = frames;
        let run = run.start..run.end.min(run.start + ready).min(BURST);
        let lengths = &padded[run.clone()];
        let fits = if longest >= LONGEST {
            lengths.len()
        } else {
            lengths.iter().take_while(|length| **length as usize <= longest).count()
        };
        let run = run.start..run.start + fits;
        let (targets, sums) = (&mut targets[..fits], &mut sums[..fits]);
        posted.addresses(&ring, targets);
        let to = HintedMemory { function, hint: &mut posted.buffers };
        let (heads, sources) = (&mut heads[run.clone()], &sources[run.clone()]);
        let (lengths, glances) = (&padded[run.clone()], &mut glances[run.clone()]);
        let (summed, insertions) = (*summed >> run.start, &insertions[run.clone()]);
        let mut insert = |at: usize, head: &mut [u8; HEAD], rest: u64| {
            if summed >> at & 1 != 0 {
                glances[at].insert(head, rest, insertions[at]);
            }
        };
        let complete: Option<&mut HeadCompleter<'_>> = if summed == 0 { None } else { Some(&mut insert) };
        let carried = FrameCopyBatch { heads, sources, lengths, targets, sums };
        let moved = bus.carry(HintedMemory { function: from, hint }, to, carried, complete).min(fits);
        let run = run.start..run.start + moved;
        let found = glances.iter().zip(&sums[..moved]);
        let known = found.zip(&lengths[..moved]).zip(&spread[run]);
        let words = known
            .map(|(((glance, sum), length), (_, hash))| format.words(glance.finish(*sum), *hash, *length));
        match ring.size() {
            32 => posted.fill_with::<4, _>(moved, words),
            _ => posted.fill_with::<2, _>(moved, words),
        }
        moved
    }
}
