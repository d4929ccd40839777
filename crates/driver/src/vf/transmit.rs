//! The transmit ring: copy a frame into the slots' buffers, describe it, ring the doorbell for a batch, and
//! take slots back when the card has written DD.
//!
//! Every descriptor slot owns a buffer of 2 KB, so that nothing is allocated or mapped for a frame. RS is asked
//! for in the middle of each batch and on its last frame: what has been published can always be taken back.
//!
//! Left out: head write-back, zero copy.

use super::VfError;
use crate::hal::{DmaHal, DmaRegion};
use crate::offload::{HEADERS, Headers, TxOffload};
use alloc::collections::VecDeque;
use i82576::bits::dctl;
use i82576::descriptor::{DD, SIZE, tx as descriptor};
use i82576::register::{tx, vf};

/// Bytes of a slot's buffer.
const BUFFER: usize = 2048;
/// The hardware's descriptors are fetched in eights.
const PREFETCH: u32 = 8;
/// Longest frame before segmentation: what an IP length says, and headers.
const MAX_SEGMENTED: usize = 0xffff + 18;

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
pub(super) struct TxRing {
    descriptors: DmaRegion,
    buffers: DmaRegion,
    count: u16,
    /// Frames between two doorbells, at most. Half as many are between two status reports.
    batch: u16,
    /// The slot that is written next.
    next: u16,
    /// The oldest slot that is not taken back.
    clean: u16,
    /// What TDT says.
    published: u16,
    /// Slots that will report, in order.
    reports: VecDeque<u16>,
    /// The last slot written, if it may still be asked to report.
    last: Option<(u16, descriptor::Data)>,
    /// The context that the card holds.
    context: Option<descriptor::Context>,
    unreported: u16,
    /// Frames since the last doorbell.
    waiting: u16,
    running: bool,
    counters: TxCounters,
}

/// Up to three pieces of memory that make up a frame.
type Pieces<'a> = [&'a [u8]; 3];

impl TxRing {
    pub(super) fn new<H: DmaHal>(hal: &mut H, count: u16, batch: u16) -> Result<Self, VfError> {
        super::receive::check_size(count)?;
        Ok(Self {
            descriptors: hal.dma_alloc(usize::from(count) * SIZE, 128)?,
            buffers: hal.dma_alloc(usize::from(count) * BUFFER, BUFFER)?,
            count,
            batch,
            next: 0,
            clean: 0,
            published: 0,
            reports: VecDeque::with_capacity(usize::from(count)),
            last: None,
            context: None,
            unreported: 0,
            waiting: 0,
            running: false,
            counters: TxCounters::default(),
        })
    }

    pub(super) fn counters(&self) -> TxCounters {
        self.counters
    }

    pub(super) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        self.disable(hal);
        (self.next, self.clean, self.published, self.unreported, self.waiting) = (0, 0, 0, 0, 0);
        self.reports.clear();
        (self.last, self.context) = (None, None);
        let block = vf::TX_BLOCK;
        hal.write(block + tx::TDLEN, u32::from(self.count) * SIZE as u32);
        hal.write(block + tx::TDBAL, self.descriptors.iova as u32);
        hal.write(block + tx::TDBAH, (self.descriptors.iova >> 32) as u32);
        hal.write(block + tx::TDWBAL, 0);
        hal.write(block + tx::TDWBAH, 0);
        hal.write(block + tx::TXDCTL, dctl::ENABLE | PREFETCH);
        hal.write(block + tx::TDH, 0);
        hal.write(block + tx::TDT, 0);
        self.running = true;
    }

    pub(super) fn disable<H: DmaHal>(&mut self, hal: &mut H) {
        hal.write(vf::TX_BLOCK + tx::TXDCTL, 0);
        self.running = false;
    }

    /// Slots that can be written; one stays empty so that full and empty differ.
    fn free(&self) -> u16 {
        self.count - 1 - self.distance(self.clean, self.next)
    }

    fn distance(&self, from: u16, to: u16) -> u16 {
        if to >= from { to - from } else { to + self.count - from }
    }

    fn advance(&self, slot: u16) -> u16 {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }

    /// Takes a frame of two pieces, the second perhaps empty. The card hears of it with the batch.
    pub(super) fn transmit<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<(), TxError> {
        let length = frame[0].len() + frame[1].len();
        let limit = if offload.tso.is_some() { MAX_SEGMENTED } else { longest };
        if !self.running {
            return Err(TxError::Stopped);
        }
        if length < 14 || length > limit {
            return Err(TxError::Length(length));
        }
        let headers = self.headers(frame[0], offload)?;
        let context = context_of(headers, offload).filter(|c| self.context != Some(*c));
        self.make_room(hal, length.div_ceil(BUFFER) + 1)?;
        if let Some(context) = context {
            self.put(hal, &context.emit());
            self.context = Some(context);
        }
        let mut head = [0; HEADERS];
        let pieces = prepared(&mut head, frame, headers, offload, length);
        self.put_data(hal, pieces, data_of(headers, offload, length), length);
        self.count_frame(hal, length);
        Ok(())
    }

    fn headers(&self, first: &[u8], offload: &TxOffload) -> Result<Option<Headers>, TxError> {
        if !offload.needs_headers() {
            return Ok(None);
        }
        let headers = Headers::parse(&first[..first.len().min(HEADERS)]).ok_or(TxError::Headers)?;
        let cut = offload.tso.is_none_or(|mss| mss > 0 && headers.is_tcp());
        if cut { Ok(Some(headers)) } else { Err(TxError::Headers) }
    }

    fn make_room<H: DmaHal>(&mut self, hal: &mut H, slots: usize) -> Result<(), TxError> {
        if usize::from(self.free()) >= slots {
            return Ok(());
        }
        self.flush(hal);
        self.clean(hal);
        if usize::from(self.free()) >= slots {
            return Ok(());
        }
        self.counters.full += 1;
        Err(TxError::Full)
    }

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

    fn put<H: DmaHal>(&mut self, hal: &mut H, raw: &[u8; SIZE]) {
        hal.dma_write(self.descriptors.iova + u64::from(self.next) * SIZE as u64, raw);
        self.next = self.advance(self.next);
    }

    /// Spreads the pieces over as many slots as they need.
    fn put_data<H: DmaHal>(
        &mut self,
        hal: &mut H,
        pieces: Pieces<'_>,
        template: descriptor::Data,
        total: usize,
    ) {
        let mut pieces = pieces.into_iter();
        let mut piece: &[u8] = &[];
        let mut left = total;
        while left > 0 {
            let address = self.buffers.iova + u64::from(self.next) * BUFFER as u64;
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
            let data =
                descriptor::Data { address, length: length as u16, end_of_packet: left == 0, ..template };
            self.last = Some((self.next, data));
            self.put(hal, &data.emit());
        }
    }

    /// Has the last slot written report, unless it does already.
    fn ask_report<H: DmaHal>(&mut self, hal: &mut H) {
        if let Some((slot, data)) = self.last.take() {
            let data = descriptor::Data { report_status: true, ..data };
            hal.dma_write(self.descriptors.iova + u64::from(slot) * SIZE as u64, &data.emit());
            self.reports.push_back(slot);
        }
        self.unreported = 0;
    }

    /// Rings the doorbell, if there is anything to tell.
    pub(super) fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.waiting = 0;
        if self.published == self.next {
            return;
        }
        self.ask_report(hal);
        self.published = self.next;
        self.counters.doorbells += 1;
        hal.write(vf::TX_BLOCK + tx::TDT, u32::from(self.next));
    }

    /// Takes back what the card has reported; answers how many slots that were.
    pub(super) fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        let before = self.clean;
        while let Some(slot) = self.reports.front().copied() {
            let mut status = [0; 4];
            hal.dma_read(self.descriptors.iova + u64::from(slot) * SIZE as u64 + 12, &mut status);
            if u32::from_le_bytes(status) & DD == 0 {
                break;
            }
            self.reports.pop_front();
            self.clean = self.advance(slot);
        }
        usize::from(self.distance(before, self.clean))
    }

    /// Slots that the card has not given back.
    pub(super) fn pending(&self) -> usize {
        usize::from(self.distance(self.clean, self.next))
    }
}

fn context_of(headers: Option<Headers>, offload: &TxOffload) -> Option<descriptor::Context> {
    match (headers, offload.vlan) {
        (Some(headers), vlan_tag) => {
            let (mac, ip, l4) = headers.lengths();
            Some(descriptor::Context {
                mac_length: mac as u8,
                ip_length: ip as u16,
                l4_length: l4 as u8,
                vlan_tag: vlan_tag.unwrap_or(0),
                ipv4: headers.is_ipv4(),
                l4: if headers.is_tcp() { descriptor::L4::Tcp } else { descriptor::L4::Udp },
                mss: offload.tso.unwrap_or(0),
                index: 0,
            })
        }
        (None, Some(vlan_tag)) => {
            Some(descriptor::Context { mac_length: 14, vlan_tag, ..descriptor::Context::default() })
        }
        (None, None) => None,
    }
}

fn data_of(headers: Option<Headers>, offload: &TxOffload, length: usize) -> descriptor::Data {
    let segment = offload.tso.is_some();
    let payload = match headers {
        Some(headers) if segment => length - headers.total(),
        _ => length,
    };
    // IPv6 headers have none, and not every card looks before it inserts one.
    let ip_checksum = (offload.ip_checksum || segment) && headers.is_some_and(|headers| headers.is_ipv4());
    descriptor::Data {
        insert_vlan: offload.vlan.is_some(),
        segment,
        insert_ip_checksum: ip_checksum,
        insert_l4_checksum: offload.l4_checksum || segment,
        payload_length: payload as u32,
        ..descriptor::Data::default()
    }
}

/// The frame with its headers, if the card is to complete them, replaced by seeded ones in `head`.
fn prepared<'a>(
    head: &'a mut [u8; HEADERS],
    frame: [&'a [u8]; 2],
    headers: Option<Headers>,
    offload: &TxOffload,
    length: usize,
) -> Pieces<'a> {
    let Some(headers) = headers else { return [&[], frame[0], frame[1]] };
    let (first, rest) = frame[0].split_at(headers.total());
    let head = &mut head[..first.len()];
    head.copy_from_slice(first);
    headers.prepare(head, length, offload);
    [head, rest, frame[1]]
}

impl super::Vf {
    /// Queues a frame, without FCS. The card hears of it at the latest with [`Vf::flush`](super::Vf::flush).
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        self.transmit_gather(hal, frame, &[], offload)
    }

    /// As [`Vf::transmit`](super::Vf::transmit), of two pieces: all headers that an offload needs are in the
    /// first.
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit_gather<H: DmaHal>(
        &mut self,
        hal: &mut H,
        first: &[u8],
        second: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        self.tx.transmit(hal, [first, second], offload, self.wishes.max_frame)
    }

    /// Rings the transmit doorbell for what is queued.
    pub fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.tx.flush(hal);
    }

    /// Takes back what has left, without waiting for the interrupt; answers the descriptors freed.
    pub fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        self.tx.clean(hal)
    }

    /// Descriptors that the card has not given back.
    #[must_use]
    pub fn tx_pending(&self) -> usize {
        self.tx.pending()
    }
}
