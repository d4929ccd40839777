//! Mailbox of a VF. From the VF: a descriptor is read once, its body is copied into the PF's receive queue, and the descriptor is
//! written back; an unknown command is written back with an error. To the VF: the message is copied into the next posted buffer,
//! or is pending if there is none. At most [`WAITING`] messages are pending; more are counted and dropped.
//!
//! The PF driver interprets messages.

use crate::admin_ring::AdminRing;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use avf::admin::{AdminQueueDescriptor, LARGE, MAX_BODY, SIZE, flag, opcode, returned};
use pcie::{Bus, DmaFault, Function as BusFunction};
use serde::{Deserialize, Serialize};

/// Maximum number of pending messages to a VF: more than a driver that reads its mailbox ever has. A guest that does
/// not read must not make the card allocate without bound.
pub(crate) const WAITING: usize = 8;

/// A VF's send and receive mailbox queues, and the pending messages to the VF.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Mailbox {
    pub(crate) send: AdminRing,
    pub(crate) receive: AdminRing,
    pub(crate) waiting: VecDeque<MailboxMessage>,
}

impl Mailbox {
    /// Returns `true` if the mailbox registers have values that software can write, and the pending messages are within
    /// their bounds.
    pub(crate) fn is_sound(&self) -> bool {
        self.send.is_sound()
            && self.receive.is_sound()
            && self.waiting.len() <= WAITING
            && self.waiting.iter().all(|letter| letter.body.len() <= MAX_BODY)
    }
}

/// A message from the PF to a VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Letter")]
pub(crate) struct MailboxMessage {
    pub(crate) operation: u32,
    pub(crate) status: u32,
    pub(crate) body: Vec<u8>,
}

/// Reads a message descriptor from a mailbox ring, or from an admin ring of the PF.
pub(crate) fn fetch<B: Bus>(
    bus: &mut B,
    function: BusFunction,
    at: u64,
) -> Result<AdminQueueDescriptor, DmaFault> {
    let mut raw = [0; SIZE];
    bus.dma_read(function, at, &mut raw)?;
    Ok(AdminQueueDescriptor::parse(&raw))
}

/// Writes a mailbox descriptor back, the half with the done bit (DD) last: iPXE polls DD, and then reads the other
/// half.
pub(crate) fn write_back<B: Bus>(
    bus: &mut B,
    function: BusFunction,
    at: u64,
    descriptor: &AdminQueueDescriptor,
) -> Result<(), DmaFault> {
    let raw = descriptor.emit();
    bus.dma_write(function, at.wrapping_add(8), &raw[8..])?;
    bus.dma_write(function, at, &raw[..8])
}

/// Reads the message body that a mailbox descriptor names; empty without the flag BUF. Returns `None` if the body is
/// longer than 4096 bytes.
pub(crate) fn fetch_body<'a, B: Bus>(
    bus: &mut B,
    function: BusFunction,
    descriptor: &AdminQueueDescriptor,
    into: &'a mut [u8],
) -> Result<Option<&'a [u8]>, DmaFault> {
    if descriptor.flags & flag::BUF == 0 {
        return Ok(Some(&[]));
    }
    let Some(body) = into.get_mut(..descriptor.length.into()).filter(|body| body.len() <= MAX_BODY) else {
        return Ok(None);
    };
    bus.dma_read(function, descriptor.address, body)?;
    Ok(Some(body))
}

/// Result of taking a mailbox descriptor from a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MailboxDescriptorOutcome {
    /// The VF's message is in the PF's receive queue.
    Given,
    /// The card itself completed the command in the mailbox descriptor.
    Answered,
    /// The mailbox descriptor is invalid and is written back with this error code.
    Strange(u16),
    /// The PF has posted no buffer for the message, so the descriptor stays in the VF's ring.
    Later,
}

/// Puts a message into the receiver's posted buffer. If the buffer is too small, writes the buffer's descriptor back
/// with an error instead; drivers ignore such a descriptor.
pub(crate) fn deliver<B: Bus>(
    bus: &mut B,
    own: BusFunction,
    at: u64,
    letter: &MailboxMessage,
) -> Result<(), DmaFault> {
    let posted = fetch(bus, own, at)?;
    let fits = letter.body.len() <= usize::from(posted.length);
    let large = if letter.body.len() > LARGE { flag::LB } else { 0 };
    let mut filled = AdminQueueDescriptor {
        flags: flag::DD | flag::CMP | flag::BUF | large,
        opcode: opcode::SEND_TO_VF,
        length: letter.body.len() as u16,
        return_value: returned::OK,
        cookie_high: letter.operation,
        cookie_low: letter.status,
        ..posted
    };
    if fits {
        bus.dma_write(own, posted.address, &letter.body)?;
    } else {
        (filled.flags, filled.length) = (filled.flags | flag::ERR, 0);
        filled.return_value = returned::ENOSPC;
    }
    write_back(bus, own, at, &filled)
}
