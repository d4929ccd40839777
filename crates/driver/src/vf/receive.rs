//! Receive queue of an 82576's VF: its registers and descriptors. The ring is in `ring`.

use super::VfError;
use crate::hal::DmaHal;
use crate::ring::BUFFER;
use crate::ring::receive::{self, RawRxDescriptor, RxCounters, RxDescriptorLayout, RxError};
use i82576::bits::{dctl, srrctl};
use i82576::descriptor::SIZE;
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, rss_type, status};
use i82576::register::{rx, vf};

/// Value of SRRCTL, as in igbvf (0x8200_0002): one buffer of 2 KB per descriptor, and no descriptor means a drop.
const SRRCTL: u32 = srrctl::DROP_EN | 1 << srrctl::DESCTYPE_SHIFT | (BUFFER / 1024) as u32;
/// Value of RXDCTL, as in igbvf: queue enabled; prefetch, host and write-back thresholds of 16, 8 and 1.
const RXDCTL: u32 = dctl::ENABLE | 1 << dctl::WTHRESH_SHIFT | 8 << 8 | 16;

/// Advanced receive descriptors with one buffer each (82576 datasheet 7.1.5).
#[derive(Debug, Clone, Copy)]
pub struct AdvancedRxLayout;

/// Received frame of an 82576's VF, in the buffers of its ring.
pub type VfRxFrame<'a, H> = receive::RxFrame<'a, H, AdvancedRxLayout>;

impl RxDescriptorLayout for AdvancedRxLayout {
    type Received = VfReceivedFrame;

    #[inline(always)]
    fn size(self) -> usize {
        SIZE
    }

    #[inline(always)]
    fn posted(self, buffer: u64) -> RawRxDescriptor {
        let mut raw = RawRxDescriptor::default();
        raw[..SIZE].copy_from_slice(&PostedRxDescriptor { packet: buffer, header: 0 }.emit());
        raw
    }

    #[inline(always)]
    fn filled(self, raw: &RawRxDescriptor) -> (usize, bool) {
        parse(raw).map_or((0, false), |back| (back.length.into(), back.end_of_packet()))
    }

    #[inline(always)]
    fn received(self, raw: &RawRxDescriptor, length: usize) -> VfReceivedFrame {
        parse(raw).map_or_else(VfReceivedFrame::default, |back| describe(length, &back))
    }

    #[inline(always)]
    fn has_bad_checksum(self, raw: &RawRxDescriptor) -> bool {
        let error = |back: &AdvancedRxWriteBack| back.status & (status::IPE | status::L4E) != 0;
        parse(raw).filter(error).is_some_and(|back| describe(0, &back).has_bad_checksum())
    }
}

#[inline(always)]
fn parse(raw: &RawRxDescriptor) -> Option<AdvancedRxWriteBack> {
    raw.first_chunk().and_then(AdvancedRxWriteBack::parse)
}

/// Result of the card's check of a received frame's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChecksumStatus {
    /// Result of a checksum check: the card did not check the checksum.
    #[default]
    Unknown,
    /// Result of a checksum check: the checksum is right.
    Good,
    /// Result of a checksum check: the checksum is wrong.
    Bad,
}

/// Receive-side-scaling hash of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RssHash {
    /// Fields of the frame that were hashed, see [`rss_type`].
    pub kind: u8,
    /// Value of the RSS hash.
    pub value: u32,
}

/// Received frame of an 82576's VF, as the card describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VfReceivedFrame {
    /// Length of the frame in bytes, without FCS and stripped tag.
    pub length: usize,
    /// Result of the card's check of the IPv4 header's checksum in the frame.
    pub ip_checksum: ChecksumStatus,
    /// Result of the card's check of the frame's TCP or UDP checksum.
    pub l4_checksum: ChecksumStatus,
    /// VLAN tag that the card stripped from the frame: priority, DEI, id.
    pub vlan: Option<u16>,
    /// RSS hash of the frame, if the card computed one.
    pub rss: Option<RssHash>,
}

impl VfReceivedFrame {
    /// Returns true if the card reports a wrong checksum of the frame.
    #[must_use]
    pub fn has_bad_checksum(&self) -> bool {
        self.ip_checksum == ChecksumStatus::Bad || self.l4_checksum == ChecksumStatus::Bad
    }
}

/// Checks that a ring may have `count` descriptors.
pub(super) fn check_size(count: u16) -> Result<(), VfError> {
    if count.is_multiple_of(8) && (64..=4096).contains(&count) {
        Ok(())
    } else {
        Err(VfError::RingSize(count))
    }
}

#[derive(Debug)]
pub(super) struct VfRxRing(receive::RxRing<AdvancedRxLayout>);

impl VfRxRing {
    pub(super) fn new<H: DmaHal>(hal: &mut H, count: u16, batch: u16) -> Result<Self, VfError> {
        check_size(count)?;
        Ok(Self(receive::RxRing::new(hal, AdvancedRxLayout, count, batch, vf::RX_BLOCK + rx::RDT)?))
    }

    pub(super) fn counters(&self) -> RxCounters {
        self.0.counters()
    }

    pub(super) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        self.disable(hal);
        for block in [vf::RX_BLOCK, vf::RX_BLOCK + vf::QUEUE_STRIDE] {
            // A reset keeps these for the next owner.
            hal.write(block + rx::SRRCTL, 0);
            hal.write(block + rx::RXDCTL, 0);
        }
        hal.write(vf::PSRTYPE, 0);
        let (block, (base, count)) = (vf::RX_BLOCK, self.0.place());
        hal.write(block + rx::RDLEN, u32::from(count) * SIZE as u32);
        hal.write(block + rx::RDBAL, base as u32);
        hal.write(block + rx::RDBAH, (base >> 32) as u32);
        hal.write(block + rx::SRRCTL, SRRCTL);
        hal.write(block + rx::RXDCTL, RXDCTL);
        hal.write(block + rx::RDH, 0);
        hal.write(block + rx::RDT, 0);
        self.0.start(hal);
    }

    pub(super) fn disable<H: DmaHal>(&mut self, hal: &mut H) {
        hal.write(vf::RX_BLOCK + rx::RXDCTL, 0);
        self.0.stop();
    }

    /// Posts receive buffers in all free ring slots but one, with a doorbell per batch.
    pub(super) fn refill<H: DmaHal>(&mut self, hal: &mut H) {
        self.0.refill(hal);
    }

    /// Copies the next frame to the front of `into`. Returns `None` if no frame is complete.
    #[inline]
    pub(super) fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Result<Option<VfReceivedFrame>, RxError> {
        self.0.receive(hal, into)
    }

    /// Passes the next received frames, at most `most`, to the function `take`. Returns the number of passed frames.
    #[inline]
    pub(super) fn receive_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        most: usize,
        take: impl FnMut(&mut VfRxFrame<'_, H>),
    ) -> usize {
        self.0.receive_burst(hal, most, take)
    }
}

#[inline(always)]
fn describe(length: usize, last: &AdvancedRxWriteBack) -> VfReceivedFrame {
    let hashed = last.rss_type != rss_type::NONE;
    VfReceivedFrame {
        length,
        ip_checksum: checksum(last.status, status::IPCS, status::IPE),
        l4_checksum: checksum(last.status, status::L4CS | status::UDPCS, status::L4E),
        vlan: (last.status & status::VP != 0).then_some(last.vlan_tag),
        rss: hashed.then_some(RssHash { kind: last.rss_type, value: last.hash }),
    }
}

fn checksum(bits: u32, looked_at: u32, wrong: u32) -> ChecksumStatus {
    match (bits & looked_at != 0, bits & wrong != 0) {
        (false, _) => ChecksumStatus::Unknown,
        (true, false) => ChecksumStatus::Good,
        (true, true) => ChecksumStatus::Bad,
    }
}

impl super::Vf {
    /// Passes received frames to the function `take`, at most `most`, in order. A frame is in the ring's buffers until
    /// `take` returns, and is lost unless `take` copies it. Returns free buffers to the card in batches. Returns the
    /// number of passed frames.
    #[inline]
    pub fn receive_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        most: usize,
        take: impl FnMut(&mut VfRxFrame<'_, H>),
    ) -> usize {
        if self.running { self.rx.receive_burst(hal, most, take) } else { 0 }
    }

    /// Copies the next received frame to the front of `into`, as a burst of one frame. Returns `None` if no frame has
    /// arrived.
    ///
    /// # Errors
    /// [`RxError`]: that frame is lost. The next call returns the next frame.
    pub fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        into: &mut [u8],
    ) -> Result<Option<VfReceivedFrame>, RxError> {
        if self.running { self.rx.receive(hal, into) } else { Ok(None) }
    }
}
