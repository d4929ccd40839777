//! VF driver's side of an AVF's mailbox: a send ring and a receive ring, with a buffer for each descriptor. The driver
//! finds replies by their done bits.

use crate::hal::{DmaHal, OutOfDmaMemory};
use ::avf::admin::{AdminQueueDescriptor, LARGE, MAX_BODY, SIZE, flag, opcode};
use ::avf::bits::{aqlen, icr0};
use ::avf::register as r;
use ::avf::virtchnl::{VirtchnlRequest, VirtchnlStatus};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// Number of descriptors in either ring of the mailbox.
const SLOTS: u16 = 8;
/// Pause between two checks for a reply of the PF.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// Maximum number of checks for a reply of the PF.
pub(super) const PATIENCE: u32 = 2_000;
/// Offset of a mailbox ring's buffers from the ring's start, in bytes.
const RING: u64 = 4096;

/// Virtchnl message that the PF sent to the VF.
#[derive(Debug)]
pub(super) struct MessageFromPf {
    pub(super) operation: u32,
    pub(super) status: VirtchnlStatus,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct AvfMailbox {
    send: u64,
    receive: u64,
    /// Send ring slot of the next message to send.
    out: u16,
    /// Receive ring slot of the next message to receive.
    next: u16,
}

/// Returns true if the VF's mailbox is enabled; a reset disables it.
pub(super) fn is_on<H: DmaHal>(hal: &mut H) -> bool {
    hal.read(r::VF_ARQLEN) & aqlen::ENABLE != 0
}

fn buffer(ring: u64, slot: u16) -> u64 {
    ring + RING + u64::from(slot) * MAX_BODY as u64
}

impl AvfMailbox {
    pub(super) fn new<H: DmaHal>(hal: &mut H) -> Result<Self, OutOfDmaMemory> {
        let mut ring = || hal.dma_alloc(RING as usize + usize::from(SLOTS) * MAX_BODY, RING as usize);
        Ok(Self { send: ring()?.iova, receive: ring()?.iova, out: 0, next: 0 })
    }

    /// Sets up both rings of the mailbox, with every receive buffer posted.
    pub(super) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        (self.out, self.next) = (0, 0);
        (0..SLOTS).for_each(|slot| self.post(hal, slot));
        let on = u32::from(SLOTS) | aqlen::ENABLE;
        for (head, tail, length, low, high, base) in [
            (r::VF_ATQH, r::VF_ATQT, r::VF_ATQLEN, r::VF_ATQBAL, r::VF_ATQBAH, self.send),
            (r::VF_ARQH, r::VF_ARQT, r::VF_ARQLEN, r::VF_ARQBAL, r::VF_ARQBAH, self.receive),
        ] {
            hal.write(head, 0);
            hal.write(tail, 0);
            hal.write(length, on);
            hal.write(low, base as u32);
            hal.write(high, (base >> 32) as u32);
        }
        hal.write(r::VF_ARQT, u32::from(SLOTS) - 1);
        hal.write(r::VFINT_ICR0_ENA, icr0::ADMINQ);
    }

    pub(super) fn send<H: DmaHal>(&mut self, hal: &mut H, request: &VirtchnlRequest<'_>) {
        let (body, place) = (request.encode(), buffer(self.send, self.out));
        let large = if body.len() > LARGE { flag::LB } else { 0 };
        let with_body = if body.is_empty() { 0 } else { flag::BUF | flag::RD | large };
        let descriptor = AdminQueueDescriptor {
            flags: flag::SI | with_body,
            opcode: opcode::SEND_TO_PF,
            length: body.len() as u16,
            cookie_high: request.op().number(),
            address: if body.is_empty() { 0 } else { place },
            ..AdminQueueDescriptor::default()
        };
        hal.dma_write(place, &body);
        hal.dma_write(self.send + u64::from(self.out) * SIZE as u64, &descriptor.emit());
        self.out = (self.out + 1) % SLOTS;
        hal.write(r::VF_ATQT, self.out.into());
    }

    /// Returns the next message of the PF. Checks the descriptor, since the card may be a remote process.
    pub(super) fn receive<H: DmaHal>(&mut self, hal: &mut H) -> Option<MessageFromPf> {
        let slot = self.next;
        let mut raw = [0; SIZE];
        hal.dma_read(self.receive + u64::from(slot) * SIZE as u64, &mut raw);
        let descriptor = AdminQueueDescriptor::parse(&raw);
        if !descriptor.is_done() {
            return None;
        }
        let mut body = vec![0; usize::from(descriptor.length).min(MAX_BODY)];
        hal.dma_read(buffer(self.receive, slot), &mut body);
        self.post(hal, slot);
        self.next = (slot + 1) % SLOTS;
        hal.write(r::VF_ARQT, slot.into());
        let good = descriptor.opcode == opcode::SEND_TO_VF && descriptor.flags & flag::ERR == 0;
        let operation = if good { descriptor.cookie_high } else { 0 };
        Some(MessageFromPf {
            operation,
            status: VirtchnlStatus::of(descriptor.cookie_low.cast_signed()),
            body,
        })
    }

    fn post<H: DmaHal>(&self, hal: &mut H, slot: u16) {
        let posted = AdminQueueDescriptor::posted(buffer(self.receive, slot), MAX_BODY as u16);
        hal.dma_write(self.receive + u64::from(slot) * SIZE as u64, &posted.emit());
    }
}
