//! Messages between a VF and its PF. From the VF: a descriptor is read once, its body copied, given to the PF's receive
//! queue, and written back; a descriptor that is no message is written back with an error. To the VF: the
//! message is copied into the next buffer that its driver has posted, and waits if there is none. `WAITING` messages
//! may wait; further ones are counted and dropped.
//!
//! Left out: what messages say.

use crate::ring::Ring;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use avf::admin::{Descriptor, LARGE, MAX_BODY, SIZE, flag, opcode, returned};
use pcie::{Bus, DmaFault, Function as BusFunction};
use serde::{Deserialize, Serialize};

/// Messages that may wait for a VF: more than a driver that reads them ever has.
pub(crate) const WAITING: usize = 8;

/// Both queues of a VF, and what waits for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Mailbox {
    pub(crate) send: Ring,
    pub(crate) receive: Ring,
    pub(crate) waiting: VecDeque<Letter>,
}

impl Mailbox {
    /// Whether no more waits than may, and nothing longer than a message.
    pub(crate) fn is_sound(&self) -> bool {
        self.send.is_sound()
            && self.receive.is_sound()
            && self.waiting.len() <= WAITING
            && self.waiting.iter().all(|letter| letter.body.len() <= MAX_BODY)
    }
}

/// A message to a VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) operation: u32,
    pub(crate) status: u32,
    pub(crate) body: Vec<u8>,
}

/// Reads a descriptor.
pub(crate) fn fetch<B: Bus>(bus: &mut B, function: BusFunction, at: u64) -> Result<Descriptor, DmaFault> {
    let mut raw = [0; SIZE];
    bus.dma_read(function, at, &mut raw)?;
    Ok(Descriptor::parse(&raw))
}

/// Writes a descriptor back: the half with the done bit last.
pub(crate) fn write_back<B: Bus>(
    bus: &mut B,
    function: BusFunction,
    at: u64,
    descriptor: &Descriptor,
) -> Result<(), DmaFault> {
    let raw = descriptor.emit();
    bus.dma_write(function, at.wrapping_add(8), &raw[8..])?;
    bus.dma_write(function, at, &raw[..8])
}

/// A body that a descriptor says it has; `None` if it is too long.
pub(crate) fn fetch_body<'a, B: Bus>(
    bus: &mut B,
    function: BusFunction,
    descriptor: &Descriptor,
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

/// What became of a descriptor of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The PF has it.
    Given,
    /// It is answered here.
    Answered,
    /// It was none.
    Strange(u16),
    /// The PF has no buffer: later.
    Later,
}

/// Puts a message into a posted buffer. One that is too small gets an error instead, which drivers drop.
pub(crate) fn deliver<B: Bus>(
    bus: &mut B,
    own: BusFunction,
    at: u64,
    letter: &Letter,
) -> Result<(), DmaFault> {
    let posted = fetch(bus, own, at)?;
    let fits = letter.body.len() <= usize::from(posted.length);
    let large = if letter.body.len() > LARGE { flag::LB } else { 0 };
    let mut filled = Descriptor {
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
