//! Formats of an AVF's receive and transmit descriptors, and messages to the PF that configure the rings. The rings
//! themselves are in `ring`.

use crate::hal::DmaHal;
use crate::offload::{HeaderLengths, TxOffload};
use crate::ring::BUFFER;
use crate::ring::receive::{self, RawRxDescriptor, RxDescriptorLayout, RxRing};
use crate::ring::transmit::burst::FamilyTxQueue;
use crate::ring::transmit::{TxError, TxPartDescriptor, TxRing};
use ::avf::descriptor::rx::{self, RxDescriptorFormat, RxWriteBack};
use ::avf::descriptor::tx::{self, TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use ::avf::virtchnl::{RxQueueInfo, TxQueueInfo};

/// Longest frame in bytes that a VF requests, if the PF sets no limit.
const LONGEST_FRAME: u32 = 9728;

/// Received frame of an AVF, as the card describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvfReceivedFrame {
    /// Length of the received frame in bytes.
    pub length: usize,
    /// The card's description of the received frame.
    pub said: RxWriteBack,
}

/// Received frame of an AVF, in the buffers of its ring.
pub type AvfRxFrame<'a, H> = receive::RxFrame<'a, H, RxDescriptorFormat>;

impl AvfReceivedFrame {
    /// Returns true if the card reports a wrong checksum of the frame.
    #[must_use]
    pub fn has_bad_checksum(&self) -> bool {
        self.said.checksums.is_some_and(|found| found.ip_wrong || found.l4_wrong)
    }
}

impl TxPartDescriptor for TxDataDescriptor {
    const REPORT: u64 = tx::REPORT;

    #[inline(always)]
    fn words_of(self, address: u64, length: u16, last: bool) -> [u64; 2] {
        Self { address, length, end_of_packet: last, ..self }.words()
    }

    #[inline(always)]
    fn plain_words(address: u64, length: u16) -> [u64; 2] {
        Self::default().words_of(address, length, true)
    }

    fn is_done(raw: &[u8; tx::SIZE]) -> bool {
        tx::is_done(raw)
    }
}

impl RxDescriptorLayout for RxDescriptorFormat {
    type Received = AvfReceivedFrame;

    #[inline(always)]
    fn size(self) -> usize {
        Self::size(self)
    }

    #[inline(always)]
    fn posted(self, buffer: u64) -> RawRxDescriptor {
        rx::posted(buffer)
    }

    #[inline(always)]
    fn filled(self, raw: &RawRxDescriptor) -> (usize, bool) {
        let back = RxWriteBack::parse(raw, self);
        back.map_or((0, false), |back| (back.length.into(), back.end_of_packet))
    }

    #[inline(always)]
    fn received(self, raw: &RawRxDescriptor, length: usize) -> AvfReceivedFrame {
        AvfReceivedFrame { length, said: RxWriteBack::parse(raw, self).unwrap_or_default() }
    }

    #[inline(always)]
    fn has_bad_checksum(self, raw: &RawRxDescriptor) -> bool {
        RxWriteBack::parse(raw, self)
            .is_some_and(|said| AvfReceivedFrame { length: 0, said }.has_bad_checksum())
    }
}

/// Returns a data descriptor with the fields that are equal in all data descriptors of a packet.
fn data_of(headers: Option<HeaderLengths>, offload: &TxOffload) -> TxDataDescriptor {
    let tag = offload.vlan;
    let Some(headers) = headers else { return TxDataDescriptor { tag, ..TxDataDescriptor::default() } };
    let (mac, ip, l4) = headers.lengths();
    let segment = offload.tso.is_some();
    let l4_kind = if headers.is_tcp() { TxL4Checksum::Tcp } else { TxL4Checksum::Udp };
    TxDataDescriptor {
        tag,
        ip: match (headers.is_ipv4(), offload.ip_checksum || segment) {
            (false, _) => TxIpHeaderKind::V6,
            (true, false) => TxIpHeaderKind::V4,
            (true, true) => TxIpHeaderKind::V4Checksum,
        },
        l4: if offload.l4_checksum || segment { l4_kind } else { TxL4Checksum::None },
        mac_length: mac as u16,
        ip_length: ip as u16,
        l4_length: l4 as u16,
        ..TxDataDescriptor::default()
    }
}

/// Returns the description of a transmit ring for CONFIG_VSI_QUEUES.
pub(super) fn describe_tx(ring: &TxRing<TxDataDescriptor>, vsi: u16, queue: u16) -> TxQueueInfo {
    let (base, length) = ring.place();
    TxQueueInfo { vsi, queue, length, base, ..TxQueueInfo::default() }
}

/// Returns the description of a receive ring for CONFIG_VSI_QUEUES.
pub(super) fn describe_rx(
    ring: &RxRing<RxDescriptorFormat>,
    form: RxDescriptorFormat,
    vsi: u16,
    queue: u16,
    longest: u16,
    keep_fcs: bool,
) -> RxQueueInfo {
    let (base, length) = ring.place();
    RxQueueInfo {
        vsi,
        queue,
        length: length.into(),
        buffer_bytes: BUFFER as u32,
        max_frame: if longest == 0 { LONGEST_FRAME } else { longest.into() },
        keep_fcs,
        rxdid: form.number(),
        base,
        ..RxQueueInfo::default()
    }
}

/// Makes an AVF's transmit ring a transmit queue for bursts. The card checks the packet length.
impl FamilyTxQueue for TxRing<TxDataDescriptor> {
    type Piece = TxDataDescriptor;
    const RESERVE: usize = 0;

    #[inline(always)]
    fn ring(&mut self) -> &mut TxRing<TxDataDescriptor> {
        self
    }

    fn transmit_any<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packet: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<(), TxError> {
        let headers = self.check(packet, offload, longest)?;
        let length = packet[0].len() + packet[1].len();
        self.make_room(hal, length, offload.tso.is_some().into())?;
        if let (Some(mss), Some(headers)) = (offload.tso, headers) {
            let payload = (length - headers.total()) as u32;
            self.put(
                TxContextDescriptor { segment: true, payload, mss, ..TxContextDescriptor::default() }.emit(),
            );
        }
        self.take(hal, packet, headers, offload, data_of(headers, offload));
        Ok(())
    }
}
