//! A ring of frames to send: copy a frame into the slots' buffers, describe it, ring the doorbell for a batch, and take slots
//! back when the card has reported them done.
//!
//! A report is asked for in the middle of each batch and on its last frame: what has been published can always be taken
//! back.
//!
//! Left out: head write-back, zero copy.

use super::{AHEAD, ALIGNMENT, BUFFER, LONG, after, distance};
use crate::hal::{Access, DmaHal, DmaRegion, OutOfDmaMemory};
use crate::offload::{HEADERS, Headers, TxOffload};
use alloc::collections::VecDeque;
use core::marker::PhantomData;

/// Bytes of a descriptor, in either family.
const SIZE: usize = 16;
/// Longest frame before segmentation: what an IP length says, and headers.
const MAX_SEGMENTED: usize = 0xffff + 18;

/// A family's descriptor of a piece of a frame.
pub(crate) trait Piece: Copy {
    /// What asks for a report, in the second word.
    const REPORT: u64;

    /// The descriptor of a piece, in words, without a report. It is `last` of its frame.
    fn words_of(self, address: u64, length: u16, last: bool) -> [u64; 2];

    /// Whether the card has reported a descriptor done.
    fn is_done(raw: &[u8; SIZE]) -> bool;
}

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    /// The ring is full: try again after the transmit interrupt.
    #[error("the transmit ring is full")]
    Full,
    /// Shorter than an Ethernet header, or longer than may be sent.
    #[error("a frame of {0} bytes cannot be sent")]
    Length(usize),
    /// The headers are not what the offload needs (TCP or UDP over IP, all in the first piece).
    #[error("the frame's headers do not allow the offload")]
    Headers,
    /// The function is stopped.
    #[error("the function is stopped")]
    Stopped,
}

/// What the driver counts of transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxCounters {
    /// Frames given to the card, counted before segmentation.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Frames refused because the ring was full.
    pub full: u64,
}

#[derive(Debug)]
pub(crate) struct TxRing<P> {
    descriptors: DmaRegion,
    buffers: DmaRegion,
    count: u32,
    /// Frames between two doorbells, at most. Half as many are between two status reports.
    batch: u32,
    /// The register with the tail.
    doorbell: u32,
    /// The slot that is written next.
    next: u32,
    /// The oldest slot that is not taken back.
    clean: u32,
    /// What the tail says.
    published: u32,
    /// Slots that will report, in order.
    reports: VecDeque<u32>,
    /// The slot of the last piece and its words, while it may still be asked to report.
    last: Option<(u32, [u64; 2])>,
    unreported: u32,
    /// Frames since the last doorbell.
    waiting: u32,
    running: bool,
    counters: TxCounters,
    piece: PhantomData<P>,
}

/// Up to three pieces of memory that make up a frame.
type Pieces<'a> = [&'a [u8]; 3];

impl<P: Piece> TxRing<P> {
    /// `count` slots, of which `doorbell` is told.
    pub(crate) fn new<H: DmaHal>(
        hal: &mut H,
        count: u16,
        batch: u16,
        doorbell: u32,
    ) -> Result<Self, OutOfDmaMemory> {
        Ok(Self {
            descriptors: hal.dma_alloc(usize::from(count) * SIZE, ALIGNMENT)?,
            buffers: hal.dma_alloc(usize::from(count) * BUFFER, BUFFER)?,
            count: count.into(),
            batch: batch.into(),
            doorbell,
            next: 0,
            clean: 0,
            published: 0,
            reports: VecDeque::with_capacity(usize::from(count)),
            last: None,
            unreported: 0,
            waiting: 0,
            running: false,
            counters: TxCounters::default(),
            piece: PhantomData,
        })
    }

    /// Where the card finds the first descriptor, and how many there are.
    pub(crate) fn place(&self) -> (u64, u16) {
        (self.descriptors.iova, self.count as u16)
    }

    pub(crate) fn counters(&self) -> TxCounters {
        self.counters
    }

    /// Takes frames from now on; there are none yet. The card must think so too.
    pub(crate) fn start(&mut self) {
        (self.next, self.clean, self.published, self.unreported, self.waiting) = (0, 0, 0, 0, 0);
        self.reports.clear();
        self.last = None;
        self.running = true;
    }

    /// Takes no frame any more.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// Slots that can be written; one stays empty so that full and empty differ.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        (self.count - 1 - distance(self.clean, self.next, self.count)) as usize
    }

    /// Slots that the card has not given back.
    pub(crate) fn pending(&self) -> usize {
        distance(self.clean, self.next, self.count) as usize
    }

    /// Whether a frame of two pieces can be sent with that offload, if there is room; its headers, if they matter.
    #[inline(always)]
    pub(crate) fn check(
        &self,
        frame: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<Option<Headers>, TxError> {
        let length = frame[0].len() + frame[1].len();
        let limit = if offload.tso.is_some() { MAX_SEGMENTED } else { longest };
        if !self.running {
            return Err(TxError::Stopped);
        }
        if length < 14 || length > limit {
            return Err(TxError::Length(length));
        }
        if !offload.needs_headers() {
            return Ok(None);
        }
        let first = frame[0];
        let headers = Headers::parse(&first[..first.len().min(HEADERS)]).ok_or(TxError::Headers)?;
        let cut = offload.tso.is_none_or(|mss| mss > 0 && headers.is_tcp());
        if cut { Ok(Some(headers)) } else { Err(TxError::Headers) }
    }

    /// Checks that the ring has room for a frame of `length` bytes and its context descriptors.
    #[inline(always)]
    pub(crate) fn make_room<H: DmaHal>(
        &mut self,
        hal: &mut H,
        length: usize,
        contexts: usize,
    ) -> Result<(), TxError> {
        let slots = length.div_ceil(BUFFER) + contexts;
        if self.free() >= slots {
            return Ok(());
        }
        self.flush(hal);
        self.clean(hal);
        if self.free() >= slots {
            return Ok(());
        }
        self.counters.full += 1;
        Err(TxError::Full)
    }

    /// Writes a descriptor: a context comes before its frame.
    #[inline(always)]
    pub(crate) fn put<H: DmaHal>(&mut self, hal: &mut H, raw: &[u8; SIZE]) {
        hal.dma_write(self.descriptor(self.next), raw);
        self.next = after(self.next, 1, self.count);
    }

    /// Takes a frame of two pieces, the second perhaps empty, for which there is room. The card hears of it with the batch.
    #[inline(always)]
    pub(crate) fn take<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: [&[u8]; 2],
        headers: Option<Headers>,
        offload: &TxOffload,
        piece: P,
    ) {
        let length = frame[0].len() + frame[1].len();
        match headers {
            None if frame[1].is_empty() && length <= BUFFER => self.put_whole(hal, frame[0], piece),
            None => self.put_data(hal, [&[], frame[0], frame[1]], piece, length),
            Some(headers) => {
                let mut head = [0; HEADERS];
                let pieces = prepared(&mut head, frame, headers, offload, length);
                self.put_data(hal, pieces, piece, length);
            }
        }
        self.count_frame(hal, length);
    }

    #[inline(always)]
    fn count_frame<H: DmaHal>(&mut self, hal: &mut H, length: usize) {
        self.counters.frames += 1;
        self.counters.bytes += length as u64;
        self.unreported += 1;
        if self.unreported >= self.batch.div_ceil(2) {
            self.ask_report(hal);
        }
        self.waiting += 1;
        if self.waiting >= self.batch {
            self.flush(hal);
        }
    }

    /// Puts a frame into one slot, as nearly every frame is.
    #[inline(always)]
    fn put_whole<H: DmaHal>(&mut self, hal: &mut H, frame: &[u8], piece: P) {
        let address = self.buffer(self.next);
        if frame.len() >= LONG && self.free() > AHEAD as usize {
            let ahead = self.buffer(after(self.next, AHEAD, self.count));
            hal.prefetch(ahead, frame.len(), Access::Write);
        }
        hal.dma_write(address, frame);
        self.describe(hal, piece.words_of(address, frame.len() as u16, true));
    }

    /// Spreads the pieces over as many slots as they need.
    #[inline(never)]
    fn put_data<H: DmaHal>(&mut self, hal: &mut H, pieces: Pieces<'_>, description: P, total: usize) {
        let mut pieces = pieces.into_iter();
        let mut piece: &[u8] = &[];
        let mut left = total;
        while left > 0 {
            let address = self.buffer(self.next);
            let length = left.min(BUFFER);
            let mut filled = 0;
            while filled < length {
                if piece.is_empty() {
                    let Some(more) = pieces.next() else { break };
                    piece = more;
                    continue;
                }
                let (now, later) = piece.split_at(piece.len().min(length - filled));
                hal.dma_write(address + filled as u64, now);
                (filled, piece) = (filled + now.len(), later);
            }
            left -= length;
            self.describe(hal, description.words_of(address, length as u16, left == 0));
        }
    }

    /// Where the buffer of a slot is.
    fn buffer(&self, slot: u32) -> u64 {
        self.buffers.iova + u64::from(slot) * BUFFER as u64
    }

    /// Writes the descriptor of a piece of a frame.
    #[inline(always)]
    fn describe<H: DmaHal>(&mut self, hal: &mut H, words: [u64; 2]) {
        self.last = Some((self.next, words));
        self.put(hal, &raw(words));
    }

    fn descriptor(&self, slot: u32) -> u64 {
        self.descriptors.iova + u64::from(slot) * SIZE as u64
    }

    /// Has the last slot written report, unless it does already.
    fn ask_report<H: DmaHal>(&mut self, hal: &mut H) {
        if let Some((slot, [address, rest])) = self.last.take() {
            hal.dma_write(self.descriptor(slot), &raw([address, rest | P::REPORT]));
            self.reports.push_back(slot);
        }
        self.unreported = 0;
    }

    /// Rings the doorbell, if there is anything to tell.
    pub(crate) fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.waiting = 0;
        if self.published == self.next {
            return;
        }
        self.ask_report(hal);
        self.published = self.next;
        self.counters.doorbells += 1;
        hal.write(self.doorbell, self.next);
    }

    /// Takes back what the card has reported; answers how many slots that were.
    pub(crate) fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        let before = self.clean;
        while let Some(slot) = self.reports.front().copied() {
            let mut raw = [0; SIZE];
            hal.dma_read(self.descriptor(slot), &mut raw);
            if !P::is_done(&raw) {
                break;
            }
            self.reports.pop_front();
            self.clean = after(slot, 1, self.count);
        }
        distance(before, self.clean, self.count) as usize
    }
}

/// Two words as the card reads them.
#[inline(always)]
fn raw([first, second]: [u64; 2]) -> [u8; SIZE] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// The frame with its headers, which the card is to complete, replaced by seeded ones in `head`.
fn prepared<'a>(
    head: &'a mut [u8; HEADERS],
    frame: [&'a [u8]; 2],
    headers: Headers,
    offload: &TxOffload,
    length: usize,
) -> Pieces<'a> {
    let (first, rest) = frame[0].split_at(headers.total());
    let head = &mut head[..first.len()];
    head.copy_from_slice(first);
    headers.prepare(head, length, offload);
    [head, rest, frame[1]]
}
