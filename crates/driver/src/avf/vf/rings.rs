//! Frames out and in: rings whose buffers stay with their slots, 2 KB each. What the card writes back is checked before it
//! is used. Left out: what offloads do to a packet (`offload`).

use crate::hal::{DmaHal, OutOfDmaMemory};
use crate::offload::{HEADERS, Headers, TxOffload};
use ::avf::descriptor::rx::{self, Form, WriteBack};
use ::avf::descriptor::tx::{self, Context, Data, Ip, L4};
use ::avf::register as r;
use ::avf::virtchnl::{RxQueue, TxQueue};

/// Descriptors of a ring.
const SLOTS: u16 = 64;
/// Bytes of a buffer.
const BUFFER: usize = 2048;
/// The longest frame that a VF says it wants.
const LONGEST: u32 = 9728;

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes.
    pub length: usize,
    /// What the card says of it.
    pub said: WriteBack,
}

#[derive(Debug)]
pub(super) struct TxRing {
    ring: u64,
    buffers: u64,
    /// The slot that is filled next, and the first that the card has not given back.
    next: u16,
    clean: u16,
    /// The slot in which the packet ends that begins in a slot: the card gives that back.
    ends: [u16; SLOTS as usize],
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

fn memory<H: DmaHal>(hal: &mut H, size: usize) -> Result<(u64, u64), OutOfDmaMemory> {
    let slots = usize::from(SLOTS);
    Ok((hal.dma_alloc(slots * size, 128)?.iova, hal.dma_alloc(slots * BUFFER, BUFFER)?.iova))
}

fn after(slot: u16) -> u16 {
    (slot + 1) % SLOTS
}

impl TxRing {
    pub(super) fn new<H: DmaHal>(hal: &mut H) -> Result<Self, OutOfDmaMemory> {
        let (ring, buffers) = memory(hal, tx::SIZE)?;
        Ok(Self { ring, buffers, next: 0, clean: 0, ends: [0; SLOTS as usize] })
    }

    pub(super) fn describe(&self, vsi: u16, queue: u16) -> TxQueue {
        TxQueue { vsi, queue, length: SLOTS, base: self.ring, ..TxQueue::default() }
    }

    pub(super) fn start(&mut self) {
        (self.next, self.clean) = (0, 0);
    }

    /// Sends a packet, which the card may be asked to complete or to cut; `false` if there is no room, or its headers do not
    /// allow what is asked.
    pub(super) fn transmit<H: DmaHal>(
        &mut self,
        hal: &mut H,
        queue: u8,
        packet: &[u8],
        offload: &TxOffload,
    ) -> bool {
        while self.clean != self.next && self.is_done(hal, self.ends[usize::from(self.clean)]) {
            self.clean = after(self.ends[usize::from(self.clean)]);
        }
        let mut head = [0; HEADERS];
        let looked_at = packet.len().min(HEADERS);
        head[..looked_at].copy_from_slice(&packet[..looked_at]);
        let headers = if offload.needs_headers() { Headers::parse(&head[..looked_at]) } else { None };
        let possible = headers.is_some() || !offload.needs_headers();
        let slots = packet.len().div_ceil(BUFFER) + usize::from(offload.tso.is_some());
        let free = usize::from((self.clean + SLOTS - self.next - 1) % SLOTS);
        if !possible || slots > free || packet.is_empty() {
            return false;
        }
        if let Some(headers) = headers {
            headers.prepare(&mut head[..headers.total()], packet.len(), offload);
        }
        let first = self.next;
        if let (Some(mss), Some(headers)) = (offload.tso, headers) {
            let payload = (packet.len() - headers.total()) as u32;
            self.put(hal, &Context { segment: true, payload, mss, ..Context::default() }.emit());
        }
        let data = data_of(headers, offload);
        for (bytes, at) in packet.chunks(BUFFER).zip(0..) {
            let address = self.buffers + u64::from(self.next) * BUFFER as u64;
            hal.dma_write(address, bytes);
            if at == 0 {
                hal.dma_write(address, &head[..looked_at]);
            }
            let last = (at + 1) * BUFFER >= packet.len();
            let length = bytes.len() as u16;
            self.put(hal, &Data { address, length, end_of_packet: last, report_status: last, ..data }.emit());
        }
        self.ends[usize::from(first)] = (self.next + SLOTS - 1) % SLOTS;
        hal.write(r::qtx_tail(queue), self.next.into());
        true
    }

    fn put<H: DmaHal>(&mut self, hal: &mut H, raw: &[u8; tx::SIZE]) {
        hal.dma_write(self.ring + u64::from(self.next) * tx::SIZE as u64, raw);
        self.next = after(self.next);
    }

    fn is_done<H: DmaHal>(&self, hal: &H, slot: u16) -> bool {
        let mut raw = [0; tx::SIZE];
        hal.dma_read(self.ring + u64::from(slot) * tx::SIZE as u64, &mut raw);
        tx::is_done(&raw)
    }
}

#[derive(Debug)]
pub(super) struct RxRing {
    ring: u64,
    buffers: u64,
    next: u16,
    form: Form,
}

impl RxRing {
    pub(super) fn new<H: DmaHal>(hal: &mut H, form: Form) -> Result<Self, OutOfDmaMemory> {
        let (ring, buffers) = memory(hal, rx::SIZE)?;
        Ok(Self { ring, buffers, next: 0, form })
    }

    pub(super) fn describe(&self, vsi: u16, queue: u16, longest: u16, keep_fcs: bool) -> RxQueue {
        RxQueue {
            vsi,
            queue,
            length: SLOTS.into(),
            buffer_bytes: BUFFER as u32,
            max_frame: if longest == 0 { LONGEST } else { longest.into() },
            keep_fcs,
            rxdid: self.form.number(),
            base: self.ring,
            ..RxQueue::default()
        }
    }

    /// Posts every buffer but one.
    pub(super) fn start<H: DmaHal>(&mut self, hal: &mut H, queue: u8) {
        self.next = 0;
        (0..SLOTS).for_each(|slot| self.post(hal, slot));
        hal.write(r::qrx_tail(queue), u32::from(SLOTS) - 1);
    }

    /// The next whole frame, as much of it as there is room for.
    pub(super) fn receive<H: DmaHal>(&mut self, hal: &mut H, queue: u8, into: &mut [u8]) -> Option<Received> {
        let (slots, said) = self.find_end(hal)?;
        let mut length = 0;
        for _ in 0..slots {
            let slot = self.next;
            let bytes = self.write_back(hal, slot).map_or(0, |back| usize::from(back.length).min(BUFFER));
            if let Some(piece) = into.get_mut(length..length + bytes) {
                hal.dma_read(self.buffers + u64::from(slot) * BUFFER as u64, piece);
                length += bytes;
            }
            self.post(hal, slot);
            self.next = after(slot);
        }
        hal.write(r::qrx_tail(queue), u32::from((self.next + SLOTS - 1) % SLOTS));
        Some(Received { length, said })
    }

    /// How many slots the next frame fills, and what its last says.
    fn find_end<H: DmaHal>(&self, hal: &H) -> Option<(u16, WriteBack)> {
        for slots in 1..SLOTS {
            let back = self.write_back(hal, (self.next + slots - 1) % SLOTS)?;
            if back.end_of_packet {
                return Some((slots, back));
            }
        }
        None
    }

    fn write_back<H: DmaHal>(&self, hal: &H, slot: u16) -> Option<WriteBack> {
        let mut raw = [0; rx::SIZE];
        hal.dma_read(self.place(slot), &mut raw[..self.form.size()]);
        WriteBack::parse(&raw, self.form)
    }

    fn post<H: DmaHal>(&self, hal: &mut H, slot: u16) {
        let buffer = self.buffers + u64::from(slot) * BUFFER as u64;
        hal.dma_write(self.place(slot), &rx::posted(buffer)[..self.form.size()]);
    }

    fn place(&self, slot: u16) -> u64 {
        self.ring + u64::from(slot) * self.form.size() as u64
    }
}
