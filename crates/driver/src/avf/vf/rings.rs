//! What descriptors say of a frame, and messages of a ring. Left out: the rings themselves (`ring`).

use crate::hal::DmaHal;
use crate::offload::{Headers, TxOffload};
use crate::ring::BUFFER;
use crate::ring::receive::{Layout, Raw, RxRing};
use crate::ring::transmit::{Piece, TxError, TxRing};
use ::avf::descriptor::rx::{self, Form, WriteBack};
use ::avf::descriptor::tx::{self, Context, Data, Ip, L4};
use ::avf::virtchnl::{RxQueue, TxQueue};

/// The longest frame that a VF says it wants.
const LONGEST_FRAME: u32 = 9728;

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes.
    pub length: usize,
    /// What the card says of it.
    pub said: WriteBack,
}

impl Received {
    /// Whether a checksum is wrong.
    #[must_use]
    pub fn has_bad_checksum(&self) -> bool {
        self.said.checksums.is_some_and(|found| found.ip_wrong || found.l4_wrong)
    }
}

impl Piece for Data {
    const REPORT: u64 = tx::REPORT;

    #[inline(always)]
    fn words_of(self, address: u64, length: u16, last: bool) -> [u64; 2] {
        Self { address, length, end_of_packet: last, ..self }.words()
    }

    fn is_done(raw: &[u8; tx::SIZE]) -> bool {
        tx::is_done(raw)
    }
}

impl Layout for Form {
    fn size(self) -> usize {
        Self::size(self)
    }

    fn posted(self, buffer: u64) -> Raw {
        rx::posted(buffer)
    }

    #[inline(always)]
    fn filled(self, raw: &Raw) -> Option<(usize, bool)> {
        WriteBack::parse(raw, self).map(|back| (back.length.into(), back.end_of_packet))
    }
}

/// What every descriptor of a packet says.
fn data_of(headers: Option<Headers>, offload: &TxOffload) -> Data {
    let tag = offload.vlan;
    let Some(headers) = headers else { return Data { tag, ..Data::default() } };
    let (mac, ip, l4) = headers.lengths();
    let segment = offload.tso.is_some();
    let l4_kind = if headers.is_tcp() { L4::Tcp } else { L4::Udp };
    Data {
        tag,
        ip: match (headers.is_ipv4(), offload.ip_checksum || segment) {
            (false, _) => Ip::V6,
            (true, false) => Ip::V4,
            (true, true) => Ip::V4Checksum,
        },
        l4: if offload.l4_checksum || segment { l4_kind } else { L4::None },
        mac_length: mac as u16,
        ip_length: ip as u16,
        l4_length: l4 as u16,
        ..Data::default()
    }
}

/// How a message tells of a ring.
pub(super) fn describe_tx(ring: &TxRing<Data>, vsi: u16, queue: u16) -> TxQueue {
    let (base, length) = ring.place();
    TxQueue { vsi, queue, length, base, ..TxQueue::default() }
}

/// See [`describe_tx`].
pub(super) fn describe_rx(
    ring: &RxRing<Form>,
    form: Form,
    vsi: u16,
    queue: u16,
    longest: u16,
    keep_fcs: bool,
) -> RxQueue {
    let (base, length) = ring.place();
    RxQueue {
        vsi,
        queue,
        length: length.into(),
        buffer_bytes: BUFFER as u32,
        max_frame: if longest == 0 { LONGEST_FRAME } else { longest.into() },
        keep_fcs,
        rxdid: form.number(),
        base,
        ..RxQueue::default()
    }
}

/// Sends a packet, which the card may be asked to complete or to cut. How long it may be is the card's to say.
pub(super) fn transmit<H: DmaHal>(
    ring: &mut TxRing<Data>,
    hal: &mut H,
    packet: &[u8],
    offload: &TxOffload,
) -> Result<(), TxError> {
    let headers = ring.check([packet, &[]], offload, usize::MAX)?;
    ring.make_room(hal, packet.len(), offload.tso.is_some().into())?;
    if let (Some(mss), Some(headers)) = (offload.tso, headers) {
        let payload = (packet.len() - headers.total()) as u32;
        ring.put(hal, &Context { segment: true, payload, mss, ..Context::default() }.emit());
    }
    ring.take(hal, [packet, &[]], headers, offload, data_of(headers, offload));
    Ok(())
}
