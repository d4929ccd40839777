//! Puts frames into receive queues: several plain frames of a burst, straight from the sender's buffers, or one frame
//! in private memory. The card parses a frame that is not plain, or does not fit into one buffer ([`FrameReceiver`]).

use crate::card::{BurstCard, FrameRunProperties, PlainReceiver, RxFormat};
use crate::frames::BurstMemory;
use crate::packets::FrameReceiver;
use core::ops::Range;
use offload::plain::{PlainFrame, PlainFrameKind};
use pcie::burst::{BURST, FrameCopyBatch, FramePlaces, HeadCompleter, LONGEST};
use pcie::low::low_dword;
use pcie::{AnnouncedAccess, Bus, HintedMemory};
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

/// Memory that has the frames of a run.
#[derive(Debug)]
pub(crate) enum BurstOrigin<'a> {
    /// Buffers of the function that sends the frames.
    Function(HintedMemory<'a>),
    /// Bytes of a batch from a trunk.
    Trunk(&'a [u8]),
}

/// Delivers a run of frames to a port. Returns how many frames the port got, and the number of their bytes.
#[inline(always)]
pub(crate) fn deliver_run<C: BurstCard>(
    card: &mut C,
    origin: &mut BurstOrigin<'_>,
    frames: &mut BurstMemory,
    (port, run): (PortIndex, Range<usize>),
    terms: FrameRunProperties,
) -> (usize, u64) {
    let spreads = card.spreads(port);
    if spreads {
        spread(card, frames, port, run.clone());
    }
    let (first, mut at, mut all) = (run.start, run.start, 0);
    while at < run.end {
        let queue = if spreads { frames.spread[at].0 } else { 0 };
        let end = if spreads { end_of_queue(frames, at, run.end) } else { run.end };
        let Some(receiver) = card.receiver(port, queue, terms) else { break };
        let filled = receiver.fill(origin, frames, at..end);
        if filled == 0 {
            break;
        }
        let bytes: u64 = frames.padded[at..at + filled].iter().map(|length| u64::from(*length)).sum();
        card.received(port, queue, filled, bytes);
        (at, all) = (at + filled, all + bytes);
    }
    if spreads {
        frames.spread[first..run.end].fill((0, None));
    }
    (at - first, all)
}

/// Stores the receive queue and hash of each frame of a run that goes to `port`.
fn spread<C: BurstCard>(card: &mut C, frames: &mut BurstMemory, port: PortIndex, run: Range<usize>) {
    let BurstMemory { heads, lengths, spread, .. } = frames;
    for at in run {
        let plain = heads[at].first_chunk().and_then(|head| PlainFrame::of(head, lengths[at] as usize));
        spread[at] = plain.map_or((0, None), |plain| card.spread(port, &plain));
    }
}

/// Returns the end of the frames that go to the same receive queue as the frame at an index.
fn end_of_queue(frames: &BurstMemory, at: usize, end: usize) -> usize {
    let queue = frames.spread[at].0;
    at + frames.spread[at..end].iter().take_while(|(other, _)| *other == queue).count()
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
        origin: &mut BurstOrigin<'_>,
        frames: &mut BurstMemory,
        run: Range<usize>,
    ) -> usize {
        let ready = self.ready();
        let Self { posted, ring, longest, function, bus, format, .. } = self;
        let run = run.start..run.end.min(run.start + ready).min(BURST);
        let lengths = &frames.padded[run.clone()];
        let fits = if longest >= LONGEST {
            lengths.len()
        } else {
            lengths.iter().take_while(|length| **length as usize <= longest).count()
        };
        let run = run.start..run.start + fits;
        posted.addresses(&ring, &mut frames.targets[run.clone()]);
        let to = HintedMemory { function, hint: &mut posted.buffers };
        match origin {
            BurstOrigin::Function(HintedMemory { function, hint }) => {
                let from = HintedMemory { function: *function, hint };
                let carry = |carried: FrameCopyBatch<'_>, complete: Option<&mut HeadCompleter<'_>>| {
                    bus.carry(from, to, carried, complete)
                };
                let moved = frames.with_insertions(run.clone(), carry).min(fits);
                let run = run.start..run.start + moved;
                let found = frames.glances[run.clone()].iter().zip(&frames.sums[run.clone()]);
                let known = found.zip(&frames.padded[run.clone()]).zip(&frames.spread[run]);
                let words = known.map(|(((glance, sum), length), (_, hash))| {
                    format.words(glance.finish(*sum), *hash, *length)
                });
                posted.fill_run(&ring, moved, words);
                moved
            }
            BurstOrigin::Trunk(bytes) => {
                let (sources, lengths) = (&frames.sources[run.clone()], &frames.padded[run.clone()]);
                let targets = &frames.targets[run.clone()];
                let moved = bus.copy_in(bytes, to, FramePlaces { sources, lengths, targets }).min(fits);
                let run = run.start..run.start + moved;
                let known = frames.kinds[run.clone()].iter().zip(lengths).zip(&frames.spread[run]);
                let words = known.map(|((kind, length), (_, hash))| format.words(*kind, *hash, *length));
                posted.fill_run(&ring, moved, words);
                moved
            }
        }
    }
}
