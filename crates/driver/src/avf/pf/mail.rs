//! Admin queues of the PF: messages of VFs, found in memory by their done bits, and messages to VFs. A run of the PF
//! driver checks for resets first, then serves at most [`LIMITS`] messages in order.
//!
//! `requests` interprets the messages. Commands to the card other than messages are not supported.

use super::state::AvfPfRestoreError;
use super::{AvfPf, CardControlHal};
use crate::avf::inbox::{VfMessageInbox, VfMessageInboxLimits, VfMessageInboxState};
use crate::avf::queue::{AdminReceiveQueue, AdminRingMemory, MessageFromVf};
use crate::hal::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use ::avf::admin::{AdminQueueDescriptor, LARGE, MAX_BODY, SIZE, flag, opcode};
use ::avf::bits::aqlen;
use ::avf::pf_register as r;
use ::avf::virtchnl::{VirtchnlOpcode, VirtchnlStatus};
use alloc::vec;
use alloc::vec::Vec;
use i82576::Time;
use serde::{Deserialize, Serialize};

/// Number of descriptors of each admin queue (send and receive).
pub(super) const SLOTS: u16 = 32;
/// Limits for one run of the PF driver. A message takes some microseconds, so a run stays well below a millisecond.
pub(super) const LIMITS: VfMessageInboxLimits = VfMessageInboxLimits { messages: 16, resets_every: 1 };
/// Alignment of an admin queue's ring in bytes.
const ALIGN: usize = 4096;

/// The PF's send and receive queue, with a buffer for each descriptor.
#[derive(Debug, Clone)]
pub(super) struct PfAdminQueues {
    receive: AdminQueueMemory,
    send: AdminQueueMemory,
    inbox: VfMessageInbox,
    /// Tail of the send queue: index of the next slot to send.
    next: u16,
}

/// Memory of an admin queue: the ring, followed by its buffers.
#[derive(Debug, Clone, Copy)]
struct AdminQueueMemory {
    iova: u64,
}

/// Bytes of an admin queue's ring; the ring's buffers start on the next page.
const RING: u64 = ALIGN as u64;

impl AdminQueueMemory {
    fn new<H: DmaHal>(hal: &mut H) -> Result<Self, OutOfDmaMemory> {
        let DmaAllocation { iova, .. } =
            hal.dma_alloc(RING as usize + usize::from(SLOTS) * MAX_BODY, ALIGN)?;
        Ok(Self { iova })
    }

    fn buffer(self, slot: u16) -> u64 {
        self.iova + RING + u64::from(slot) * MAX_BODY as u64
    }
}

/// Ring of a PF's admin queue in DMA memory, by the address of its first descriptor.
struct DmaAdminRing<'a, H: ?Sized>(&'a mut H, u64);

impl<H: DmaHal + ?Sized> AdminRingMemory for DmaAdminRing<'_, H> {
    fn read(&self, at: usize, into: &mut [u8]) {
        self.0.dma_read(self.1 + at as u64, into);
    }

    fn write(&mut self, at: usize, from: &[u8]) {
        self.0.dma_write(self.1 + at as u64, from);
    }
}

/// Saved state of the PF's two admin queues. The card has taken every message that the PF sent, so only the receive
/// queue has pending messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "MailState")]
pub(super) struct AdminQueuesState {
    /// Device addresses of the receive queue and the send queue.
    places: [u64; 2],
    inbox: VfMessageInboxState,
    /// Bodies of the VFs' pending messages, in order.
    bodies: Vec<Vec<u8>>,
    next: u16,
}

/// Results of one run of the AVF's PF driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AvfPfServiceResults {
    /// Number of requests that the PF served in the run.
    pub served: u32,
    /// VFs whose request was served in the run, a bit each.
    pub answered: u64,
    /// VFs that their guests have reset, a bit each.
    pub resets: u64,
    /// VFs whose reset waits for credit, a bit each. Their earlier requests are void.
    pub unpaid: u64,
    /// True if more requests are pending than one run may serve, or a reset waits for credit: run the PF driver again at once.
    pub more: bool,
    /// Latest time of the next run of the PF driver, for the end of a throttle or for a delayed reset. New messages
    /// need an earlier run.
    pub deadline: Option<Time>,
}

impl PfAdminQueues {
    pub(super) fn new<H: DmaHal>(hal: &mut H, vfs: u16) -> Result<Self, OutOfDmaMemory> {
        let (mail, tail) = Self::lay_out(hal, vfs)?;
        let (receive, send) = (mail.receive, mail.send);
        for (base, high, low, length, head) in [
            (send.iova, r::PF_ATQBAH, r::PF_ATQBAL, r::PF_ATQLEN, r::PF_ATQH),
            (receive.iova, r::PF_ARQBAH, r::PF_ARQBAL, r::PF_ARQLEN, r::PF_ARQH),
        ] {
            hal.write(head, 0);
            hal.write(low, base as u32);
            hal.write(high, (base >> 32) as u32);
            hal.write(length, u32::from(SLOTS) | aqlen::ENABLE);
        }
        hal.write(r::PF_ATQT, 0);
        hal.write(r::PF_ARQT, tail.into());
        Ok(mail)
    }

    /// Places both admin queues in memory, with every buffer posted. Returns the receive queue's tail. Writes no
    /// register.
    fn lay_out<H: DmaHal>(hal: &mut H, vfs: u16) -> Result<(Self, u16), OutOfDmaMemory> {
        let (receive, send) = (AdminQueueMemory::new(hal)?, AdminQueueMemory::new(hal)?);
        let mut ring = DmaAdminRing(hal, receive.iova);
        let queue = AdminReceiveQueue::new(SLOTS, MAX_BODY as u16, receive.buffer(0), vfs, &mut ring);
        let tail = queue.tail();
        Ok((Self { receive, send, inbox: VfMessageInbox::new(queue, LIMITS, vfs), next: 0 }, tail))
    }

    /// Accepts messages of VFs 0..`vfs` from now on. The number of VFs never shrinks.
    pub(super) fn grow(&mut self, vfs: u16) {
        self.inbox.grow(vfs);
    }

    /// Returns the admin queues' state, from which another process can continue.
    pub(super) fn save<H: DmaHal>(&self, hal: &mut H) -> AdminQueuesState {
        let ring = DmaAdminRing(hal, self.receive.iova);
        let body = |slot: u16| {
            let mut raw = [0; SIZE];
            ring.read(usize::from(slot) * SIZE, &mut raw);
            let mut body = vec![0; usize::from(AdminQueueDescriptor::parse(&raw).length).min(MAX_BODY)];
            ring.0.dma_read(self.receive.buffer(slot), &mut body);
            body
        };
        let bodies = self.inbox.waiting(&ring).map(body).collect();
        let places = [self.receive.iova, self.send.iova];
        AdminQueuesState { places, inbox: self.inbox.save(&ring), bodies, next: self.next }
    }

    /// Restores the admin queues from a saved state. `hal` must allocate the same addresses as before.
    pub(super) fn restore<H: DmaHal>(
        hal: &mut H,
        vfs: u16,
        state: &AdminQueuesState,
    ) -> Result<Self, AvfPfRestoreError> {
        let no_memory = AvfPfRestoreError("no DMA memory is left for the admin queues");
        let (mut mail, _) = Self::lay_out(hal, vfs).map_err(|_| no_memory)?;
        let AdminQueuesState { places, inbox, bodies, next } = state;
        let mut ring = DmaAdminRing(hal, mail.receive.iova);
        if *places != [mail.receive.iova, mail.send.iova] || *next >= SLOTS {
            return Err(AvfPfRestoreError(
                "the addresses of the admin queues differ from the saved ones, or the next send slot is out \
                 of range",
            ));
        }
        if !mail.inbox.resume(inbox, &mut ring) {
            return Err(AvfPfRestoreError("the admin receive queue is invalid"));
        }
        mail.next = *next;
        let slots: Vec<u16> = mail.inbox.waiting(&ring).collect();
        for (slot, body) in slots.into_iter().zip(bodies) {
            hal.dma_write(mail.receive.buffer(slot), body.get(..MAX_BODY).unwrap_or(body));
        }
        if mail.save(hal).bodies != *bodies {
            return Err(AvfPfRestoreError("the body of a pending message does not match its descriptor"));
        }
        Ok(mail)
    }

    /// Sends a message to a VF. Returns false if the send queue is full.
    fn send<H: Hal + DmaHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        op: u32,
        status: VirtchnlStatus,
        body: &[u8],
    ) -> bool {
        let after = (self.next + 1) % SLOTS;
        if u32::from(after) == hal.read(r::PF_ATQH) || body.len() > MAX_BODY {
            return false;
        }
        let buffer = self.send.buffer(self.next);
        let large = if body.len() > LARGE { flag::LB } else { 0 };
        let with_body = if body.is_empty() { 0 } else { flag::BUF | flag::RD | large };
        let descriptor = AdminQueueDescriptor {
            flags: flag::SI | with_body,
            opcode: opcode::SEND_TO_VF,
            length: body.len() as u16,
            cookie_high: op,
            cookie_low: status.cookie(),
            param0: vf.into(),
            address: if body.is_empty() { 0 } else { buffer },
            ..AdminQueueDescriptor::default()
        };
        hal.dma_write(buffer, body);
        hal.dma_write(self.send.iova + u64::from(self.next) * SIZE as u64, &descriptor.emit());
        self.next = after;
        hal.write(r::PF_ATQT, after.into());
        true
    }
}

impl AvfPf {
    /// Serves the VFs: first resets, then requests. Call it at most 3 ms after a request arrived.
    pub fn visit<H: CardControlHal>(&mut self, hal: &mut H) -> AvfPfServiceResults {
        let mut visit = AvfPfServiceResults::default();
        let receive = self.mail.receive;
        if self.mail.inbox.begin() {
            [visit.resets, visit.unpaid] = self.serve_resets(hal);
        }
        let mut body = Vec::new();
        while let Some(message) = self.mail.inbox.next(&mut DmaAdminRing(hal, receive.iova)) {
            let MessageFromVf { vf, operation, length, slot } = message;
            body.resize(usize::from(length).min(MAX_BODY), 0);
            hal.dma_read(receive.buffer(slot), &mut body);
            // The queue accepts numbers of existing VFs only.
            self.serve(hal, vf as u8, operation, &body);
            visit.served += 1;
            visit.answered |= 1 << vf;
        }
        if let Some(tail) = self.mail.inbox.end() {
            hal.write(r::PF_ARQT, tail.into());
        }
        visit.more = visit.unpaid != 0 || self.mail.inbox.has_more(&DmaAdminRing(hal, receive.iova));
        visit.deadline = self.end_throttles(hal);
        visit
    }

    /// Voids the messages that a VF has sent and the PF has not served.
    pub(super) fn cancel_requests<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let receive = self.mail.receive;
        self.mail.inbox.cancel(vf.into(), &DmaAdminRing(hal, receive.iova));
    }

    /// Sends a reply or an event to a VF.
    pub(super) fn send<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        op: u32,
        status: VirtchnlStatus,
        body: &[u8],
    ) {
        let sent = self.mail.send(hal, vf, op, status, body);
        let counters = &mut self.state_mut(vf).counters;
        counters.lost += u64::from(!sent);
        counters.events += u64::from(sent && op == VirtchnlOpcode::Event.number());
    }

    /// Returns the number of descriptors in the PF's receive queue that were not messages of VFs, and of messages
    /// voided by a reset.
    #[must_use]
    pub fn passed_over(&self) -> (u64, u64) {
        (self.mail.inbox.strange(), self.mail.inbox.dropped())
    }
}
