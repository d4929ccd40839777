//! The receive ring: 2 KB buffers that stay with their slots, frames copied out to the caller, slots posted
//! again in batches.
//!
//! What the card writes back is checked before it is used: the card may be at the far end of a socket.
//!
//! Left out: header split, zero copy.

use super::{MAX_BATCH, VfError};
use crate::hal::{DmaHal, DmaRegion};
use i82576::bits::{dctl, srrctl};
use i82576::descriptor::SIZE;
use i82576::descriptor::rx::{Posted, WriteBack, rss_type, status};
use i82576::register::{rx, vf};

/// Bytes of a slot's buffer.
const BUFFER: usize = 2048;
/// One buffer a descriptor, 2 KB, drop when no descriptor is left: 0x8200_0002, as igbvf.
const SRRCTL: u32 = srrctl::DROP_EN | 1 << srrctl::DESCTYPE_SHIFT | (BUFFER / 1024) as u32;
/// Enabled, thresholds 16, 8 and 1, as igbvf.
const RXDCTL: u32 = dctl::ENABLE | 1 << dctl::WTHRESH_SHIFT | 8 << 8 | 16;

/// What the card says of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Not looked at.
    #[default]
    Unknown,
    /// Right.
    Good,
    /// Wrong.
    Bad,
}

/// The receive-side-scaling hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RssHash {
    /// What was hashed, see [`rss_type`].
    pub kind: u8,
    /// The hash.
    pub value: u32,
}

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Bytes, without FCS and stripped tag.
    pub length: usize,
    /// The IPv4 header's checksum.
    pub ip_checksum: Checksum,
    /// The TCP or UDP checksum.
    pub l4_checksum: Checksum,
    /// The stripped tag: priority, DEI, id.
    pub vlan: Option<u16>,
    /// The hash, if there is one.
    pub rss: Option<RssHash>,
}

/// Why a frame that was there could not be had. It is gone, and its buffers go back to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RxError {
    /// The caller's buffer is too short.
    #[error("a frame of {0} bytes does not fit the buffer")]
    TooLong(usize),
    /// The card wrote back what it should not.
    #[error("the card wrote back a malformed descriptor")]
    Malformed,
}

/// What the driver counts of reception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxCounters {
    /// Frames handed to the caller.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Buffers that they and the lost ones filled.
    pub buffers: u64,
    /// Frames with a wrong checksum, among them.
    pub bad_checksums: u64,
    /// Frames lost to [`RxError`].
    pub errors: u64,
    /// Doorbells rung.
    pub doorbells: u64,
}

#[derive(Debug)]
pub(super) struct RxRing {
    descriptors: DmaRegion,
    buffers: DmaRegion,
    count: u16,
    /// Slots posted at a time, for one doorbell.
    batch: u16,
    /// The slot that the card fills next, as far as the driver has looked.
    next: u16,
    /// The slot that is posted next: RDT.
    post: u16,
    running: bool,
    counters: RxCounters,
}

/// Whether a ring can have so many descriptors.
pub(super) fn check_size(count: u16) -> Result<(), VfError> {
    if count.is_multiple_of(8) && (64..=4096).contains(&count) {
        Ok(())
    } else {
        Err(VfError::RingSize(count))
    }
}

impl RxRing {
    pub(super) fn new<H: DmaHal>(hal: &mut H, count: u16, batch: u16) -> Result<Self, VfError> {
        check_size(count)?;
        Ok(Self {
            descriptors: hal.dma_alloc(usize::from(count) * SIZE, 128)?,
            buffers: hal.dma_alloc(usize::from(count) * BUFFER, BUFFER)?,
            count,
            batch,
            next: 0,
            post: 0,
            running: false,
            counters: RxCounters::default(),
        })
    }

    pub(super) fn counters(&self) -> RxCounters {
        self.counters
    }

    pub(super) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        self.disable(hal);
        (self.next, self.post) = (0, 0);
        for block in [vf::RX_BLOCK, vf::RX_BLOCK + vf::QUEUE_STRIDE] {
            // A reset leaves these to the next owner.
            hal.write(block + rx::SRRCTL, 0);
            hal.write(block + rx::RXDCTL, 0);
        }
        hal.write(vf::PSRTYPE, 0);
        let block = vf::RX_BLOCK;
        hal.write(block + rx::RDLEN, u32::from(self.count) * SIZE as u32);
        hal.write(block + rx::RDBAL, self.descriptors.iova as u32);
        hal.write(block + rx::RDBAH, (self.descriptors.iova >> 32) as u32);
        hal.write(block + rx::SRRCTL, SRRCTL);
        hal.write(block + rx::RXDCTL, RXDCTL);
        hal.write(block + rx::RDH, 0);
        hal.write(block + rx::RDT, 0);
        self.running = true;
        self.refill(hal);
    }

    pub(super) fn disable<H: DmaHal>(&mut self, hal: &mut H) {
        hal.write(vf::RX_BLOCK + rx::RXDCTL, 0);
        self.running = false;
    }

    fn distance(&self, from: u16, to: u16) -> u16 {
        if to >= from { to - from } else { to + self.count - from }
    }

    fn after(&self, slot: u16, steps: u16) -> u16 {
        let sum = slot + steps;
        if sum >= self.count { sum - self.count } else { sum }
    }

    /// Slots that are the card's or hold frames.
    fn posted(&self) -> u16 {
        self.distance(self.next, self.post)
    }

    /// Posts every free slot but one, a doorbell per batch.
    pub(super) fn refill<H: DmaHal>(&mut self, hal: &mut H) {
        while self.running && self.posted() < self.count - 1 {
            self.post_batch(hal);
        }
    }

    fn post_batch<H: DmaHal>(&mut self, hal: &mut H) {
        let free = self.count - 1 - self.posted();
        let slots = free.min(self.batch).min(self.count - self.post);
        let mut raw = [0; MAX_BATCH as usize * SIZE];
        for (slot, bytes) in (self.post..self.post + slots).zip(raw.chunks_exact_mut(SIZE)) {
            bytes.copy_from_slice(&Posted { packet: self.buffer(slot), header: 0 }.emit());
        }
        let at = self.descriptors.iova + u64::from(self.post) * SIZE as u64;
        hal.dma_write(at, &raw[..usize::from(slots) * SIZE]);
        self.post = self.after(self.post, slots);
        self.counters.doorbells += 1;
        hal.write(vf::RX_BLOCK + rx::RDT, u32::from(self.post));
    }

    fn buffer(&self, slot: u16) -> u64 {
        self.buffers.iova + u64::from(slot) * BUFFER as u64
    }

    fn write_back<H: DmaHal>(&self, hal: &H, slot: u16) -> Option<WriteBack> {
        let mut raw = [0; SIZE];
        hal.dma_read(self.descriptors.iova + u64::from(slot) * SIZE as u64, &mut raw);
        WriteBack::parse(&raw)
    }

    /// The next whole frame, copied to the front of `into`; `None` if there is none.
    pub(super) fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Result<Option<Received>, RxError> {
        let Some((slots, last)) = self.find_end(hal) else { return Ok(None) };
        let taken = self.copy(hal, slots, into);
        self.next = self.after(self.next, slots);
        self.counters.buffers += u64::from(slots);
        if self.count - 1 - self.posted() >= self.batch {
            self.post_batch(hal);
        }
        match taken {
            Ok(length) => Ok(Some(self.describe(length, &last))),
            Err(error) => {
                self.counters.errors += 1;
                Err(error)
            }
        }
    }

    /// How many slots the next frame fills, and what its last one says.
    fn find_end<H: DmaHal>(&self, hal: &H) -> Option<(u16, WriteBack)> {
        for slots in 1..=self.posted() {
            let back = self.write_back(hal, self.after(self.next, slots - 1))?;
            if back.end_of_packet() {
                return Some((slots, back));
            }
        }
        None
    }

    fn copy<H: DmaHal>(&self, hal: &H, slots: u16, into: &mut [u8]) -> Result<usize, RxError> {
        let mut length = 0;
        for step in 0..slots {
            let slot = self.after(self.next, step);
            let back = self.write_back(hal, slot).ok_or(RxError::Malformed)?;
            let bytes = usize::from(back.length);
            if bytes > BUFFER {
                return Err(RxError::Malformed);
            }
            if let Some(piece) = into.get_mut(length..length + bytes) {
                hal.dma_read(self.buffer(slot), piece);
            }
            length += bytes;
        }
        if length <= into.len() { Ok(length) } else { Err(RxError::TooLong(length)) }
    }

    fn describe(&mut self, length: usize, last: &WriteBack) -> Received {
        let ip_checksum = checksum(last.status, status::IPCS, status::IPE);
        let l4_checksum = checksum(last.status, status::L4CS | status::UDPCS, status::L4E);
        self.counters.frames += 1;
        self.counters.bytes += length as u64;
        let bad = ip_checksum == Checksum::Bad || l4_checksum == Checksum::Bad;
        self.counters.bad_checksums += u64::from(bad);
        let hashed = last.rss_type != rss_type::NONE;
        Received {
            length,
            ip_checksum,
            l4_checksum,
            vlan: (last.status & status::VP != 0).then_some(last.vlan_tag),
            rss: hashed.then_some(RssHash { kind: last.rss_type, value: last.hash }),
        }
    }
}

fn checksum(bits: u32, looked_at: u32, wrong: u32) -> Checksum {
    match (bits & looked_at != 0, bits & wrong != 0) {
        (false, _) => Checksum::Unknown,
        (true, false) => Checksum::Good,
        (true, true) => Checksum::Bad,
    }
}

impl super::Vf {
    /// The next received frame, copied to the front of `into`; `None` if there is none.
    ///
    /// # Errors
    /// [`RxError`]: that frame is lost, the next call goes on with the next one.
    pub fn receive<H: DmaHal>(&mut self, hal: &mut H, into: &mut [u8]) -> Result<Option<Received>, RxError> {
        if self.running { self.rx.receive(hal, into) } else { Ok(None) }
    }
}
