//! Ring of frames to send: a frame is copied into the slots' buffers and described. The descriptors of a batch are
//! written together, with one doorbell, and slots are reclaimed when the card has reported them as done.
//!
//! The card is to report in the middle of each batch and on its last frame, so that all published slots are
//! reclaimed.
//!
//! | module | contents |
//! |---|---|
//! | `burst` | bursts of frames, most of which fill one slot each and request no offload |
//!
//! Head write-back and zero copy are not supported.

pub(crate) mod burst;
#[cfg(test)]
mod tests;

use super::{ALIGNMENT, BUFFER, after, batch_of, distance};
use crate::hal::{DmaAllocation, DmaHal, OutOfDmaMemory};
use crate::offload::{HEADERS, HeaderLengths, TxOffload, tag_bytes};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Bytes of a transmit descriptor of an 82576 or an AVF.
const SIZE: usize = 16;
/// Shortest accepted frame in bytes: an Ethernet header.
const SHORTEST: usize = 14;
/// Longest frame in bytes before segmentation: the longest IP packet, Ethernet header and tag.
const MAX_SEGMENTED: usize = 0xffff + 18;

/// Format of a family's transmit descriptors, each of which names one piece of a frame.
pub(crate) trait TxPartDescriptor: Copy {
    /// Bit of the descriptor's second word that requests a report.
    const REPORT: u64;

    /// Returns the words of the descriptor of a piece, without a report. The piece may be the `last` of its frame.
    fn words_of(self, address: u64, length: u16, last: bool) -> [u64; 2];

    /// Returns the words of the descriptor of a whole frame without offloads, without a report.
    fn plain_words(address: u64, length: u16) -> [u64; 2];

    /// Returns true if the card has reported a descriptor as done.
    fn is_done(raw: &[u8; SIZE]) -> bool;
}

/// Reason why the driver refuses a frame to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    /// The transmit ring is full: try again after the transmit interrupt.
    #[error("the transmit ring is full")]
    Full,
    /// The frame is shorter than an Ethernet header, or longer than the limit.
    #[error("transmit frame length {0} is out of range: below an Ethernet header, or above the limit")]
    Length(usize),
    /// The frame's headers do not fit the offload (TCP or UDP over IP, all in the first piece).
    #[error("the frame's headers do not fit the requested offload, which needs TCP or UDP over IP")]
    Headers,
    /// The driver refused the frame, because the VF is stopped.
    #[error("the VF is stopped: start it before sending frames")]
    Stopped,
}

/// The driver's counters of a transmit ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxCounters {
    /// Number of frames queued, counted before segmentation.
    pub frames: u64,
    /// Number of bytes of the queued transmit frames.
    pub bytes: u64,
    /// Number of doorbells rung for queued frames.
    pub doorbells: u64,
    /// Number of frames refused because the ring was full.
    pub full: u64,
}

#[derive(Debug)]
pub(crate) struct TxRing<P> {
    descriptors: DmaAllocation,
    buffers: DmaAllocation,
    count: u32,
    /// Maximum number of frames queued per doorbell. The driver requests a write-back report for every half as many
    /// frames.
    batch: u32,
    /// Register offset of the transmit ring's tail.
    doorbell: u32,
    /// Ring slot that the driver fills next.
    next: u32,
    /// Oldest ring slot that the driver has not reclaimed.
    clean: u32,
    /// Value of the tail register that the driver wrote last.
    published: u32,
    /// Descriptors from the tail up to `next`, which are not written to the ring yet.
    staged: Vec<[u8; SIZE]>,
    /// Ring slots whose write-back was requested, in order.
    reports: VecDeque<u32>,
    /// Number of frames queued since the last one that requested a write-back.
    unreported: u32,
    /// Number of frames queued since the last doorbell.
    waiting: u32,
    running: bool,
    counters: TxCounters,
    piece: PhantomData<P>,
}

/// Pieces of memory that together are one frame, some perhaps empty.
type TxFrameParts<'a> = [&'a [u8]; 3];

impl<P: TxPartDescriptor> TxRing<P> {
    /// Creates a ring of `count` slots with its tail in register `doorbell`.
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
            batch: batch_of(batch, count),
            doorbell,
            next: 0,
            clean: 0,
            published: 0,
            staged: Vec::with_capacity(usize::from(count)),
            reports: VecDeque::with_capacity(usize::from(count)),
            unreported: 0,
            waiting: 0,
            running: false,
            counters: TxCounters::default(),
            piece: PhantomData,
        })
    }

    /// Returns the location of the ring: the device address of its first descriptor, and the number of descriptors.
    pub(crate) fn place(&self) -> (u64, u16) {
        (self.descriptors.iova, self.count as u16)
    }

    pub(crate) fn counters(&self) -> TxCounters {
        self.counters
    }

    /// Starts transmission with an empty ring, and writes the tail. The card's head must be 0.
    pub(crate) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        (self.next, self.clean, self.published, self.unreported, self.waiting) = (0, 0, 0, 0, 0);
        self.staged.clear();
        self.reports.clear();
        self.running = true;
        // The driver may have sent frames before it noticed a reset. The card then holds a tail of the old ring.
        hal.write(self.doorbell, 0);
    }

    /// Stops transmission: the driver refuses frames from now on.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// Returns the number of free slots in the ring; one stays empty so that full and empty differ.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        (self.count - 1 - distance(self.clean, self.next, self.count)) as usize
    }

    /// Returns the number of the ring's slots that are not reclaimed.
    pub(crate) fn pending(&self) -> usize {
        distance(self.clean, self.next, self.count) as usize
    }

    /// Checks a frame of two pieces, of at most `longest` bytes without a tag, and its offload. Returns the headers
    /// if the offload needs them.
    #[inline(always)]
    pub(crate) fn check(
        &self,
        frame: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<Option<HeaderLengths>, TxError> {
        let length = frame[0].len() + frame[1].len();
        let limit = match offload.tso {
            Some(_) => MAX_SEGMENTED,
            None => longest.saturating_add(tag_bytes(frame[0])),
        };
        if !self.running {
            return Err(TxError::Stopped);
        }
        if length < SHORTEST || length > limit {
            return Err(TxError::Length(length));
        }
        if !offload.needs_headers() {
            return Ok(None);
        }
        let first = frame[0];
        let headers = HeaderLengths::parse(&first[..first.len().min(HEADERS)]).ok_or(TxError::Headers)?;
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

    /// Adds a descriptor to the staged ones; a context is added before its frame's descriptors.
    #[inline(always)]
    pub(crate) fn put(&mut self, raw: [u8; SIZE]) {
        self.staged.push(raw);
        self.next = after(self.next, 1, self.count);
    }

    /// Queues a frame of two pieces, the second perhaps empty, for which there is room. Rings the doorbell once per
    /// batch.
    #[inline(always)]
    pub(crate) fn take<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: [&[u8]; 2],
        headers: Option<HeaderLengths>,
        offload: &TxOffload,
        piece: P,
    ) {
        let length = frame[0].len() + frame[1].len();
        match headers {
            None => self.put_data(hal, [&[], frame[0], frame[1]], piece, length),
            Some(headers) => {
                let mut head = [0; HEADERS];
                let pieces = prepared(&mut head, frame, headers, offload, length);
                self.put_data(hal, pieces, piece, length);
            }
        }
        self.count_frames(hal, 1, length);
    }

    /// Counts queued frames and their bytes. Requests a write-back report and rings the doorbell when enough frames are
    /// queued.
    #[inline(always)]
    fn count_frames<H: DmaHal>(&mut self, hal: &mut H, frames: u32, bytes: usize) {
        self.counters.frames += u64::from(frames);
        self.counters.bytes += bytes as u64;
        self.unreported += frames;
        if self.unreported >= self.batch.div_ceil(2) {
            self.request_report();
        }
        self.waiting += frames;
        if self.waiting >= self.batch {
            self.flush(hal);
        }
    }

    /// Copies a frame's pieces into the buffers of as many slots as they need, and stages the descriptors.
    #[inline(never)]
    fn put_data<H: DmaHal>(&mut self, hal: &mut H, pieces: TxFrameParts<'_>, description: P, total: usize) {
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
            self.put(raw(description.words_of(address, length as u16, left == 0)));
        }
    }

    #[inline(always)]
    fn buffer(&self, slot: u32) -> u64 {
        self.buffers.iova + u64::from(slot) * BUFFER as u64
    }

    fn descriptor(&self, slot: u32) -> u64 {
        self.descriptors.iova + u64::from(slot) * SIZE as u64
    }

    /// Requests a report from the card for the last staged descriptor.
    fn request_report(&mut self) {
        if let Some(last) = self.staged.last_mut() {
            *last = (u128::from_le_bytes(*last) | u128::from(P::REPORT) << 64).to_le_bytes();
            self.reports.push_back(after(self.next, self.count - 1, self.count));
        }
        self.unreported = 0;
    }

    /// Writes the staged descriptors and rings the doorbell, if any descriptors are staged.
    pub(crate) fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.waiting = 0;
        if self.staged.is_empty() {
            return;
        }
        if self.unreported > 0 {
            self.request_report();
        }
        let to_end = self.staged.len().min((self.count - self.published) as usize);
        let (first, wrapped) = self.staged.split_at(to_end);
        hal.dma_write(self.descriptor(self.published), first.as_flattened());
        if !wrapped.is_empty() {
            hal.dma_write(self.descriptor(0), wrapped.as_flattened());
        }
        self.staged.clear();
        self.published = self.next;
        self.counters.doorbells += 1;
        hal.write(self.doorbell, self.next);
    }

    /// Reclaims the slots that the card has reported as done. Returns the number of reclaimed slots.
    pub(crate) fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        let before = self.clean;
        while let Some(slot) = self.reports.front().copied() {
            // An unpublished slot still holds the card's report of its last frame.
            if distance(self.clean, slot, self.count) >= distance(self.clean, self.published, self.count) {
                break;
            }
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

/// Returns a transmit descriptor's two words as bytes.
#[inline(always)]
fn raw([first, second]: [u64; 2]) -> [u8; SIZE] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// Copies a frame's headers to `head` and prepares them for the card's offload. Returns the frame's pieces with those
/// headers.
fn prepared<'a>(
    head: &'a mut [u8; HEADERS],
    frame: [&'a [u8]; 2],
    headers: HeaderLengths,
    offload: &TxOffload,
    length: usize,
) -> TxFrameParts<'a> {
    let (first, rest) = frame[0].split_at(headers.total());
    let head = &mut head[..first.len()];
    head.copy_from_slice(first);
    headers.prepare(head, length, offload);
    [head, rest, frame[1]]
}
