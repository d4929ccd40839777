//! The card's side of the admin receive queue of an X710: it writes messages of VFs into the buffers that the driver
//! has posted. The driver's side is the PF driver's own ([`driver::avf::queue`]). Left out: the registers, and bodies.

use avf::admin::{Descriptor, SIZE, flag, opcode};

/// VFs of a card.
pub(crate) const VFS: u16 = 128;

/// What a VF sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) vf: u16,
    /// What it asks for: a number of virtchnl.
    pub(crate) operation: u32,
    /// Bytes of the body.
    pub(crate) length: u16,
}

/// The card's side: where it writes next, and how far it may.
#[derive(Debug)]
pub(crate) struct Firmware {
    slots: u16,
    head: u16,
    tail: u16,
    /// Messages written in all.
    pub(crate) written: u64,
    /// Messages that found no buffer.
    pub(crate) refused: u64,
}

impl Firmware {
    pub(crate) fn new(slots: u16) -> Self {
        Self { slots, head: 0, tail: slots - 1, written: 0, refused: 0 }
    }

    /// The driver writes the tail register.
    pub(crate) fn set_tail(&mut self, tail: u16) {
        self.tail = tail % self.slots;
    }

    /// A VF sends a message: written, if a buffer is posted; the VF is told otherwise.
    pub(crate) fn send(&mut self, message: Sent, ring: &mut [u8]) -> bool {
        if self.head == self.tail {
            self.refused += 1;
            return false;
        }
        let descriptor = Descriptor {
            flags: flag::DD | flag::CMP | flag::BUF,
            opcode: opcode::SEND_TO_PF,
            length: message.length,
            return_value: message.vf,
            cookie_high: message.operation,
            ..Descriptor::default()
        };
        ring[usize::from(self.head) * SIZE..][..SIZE].copy_from_slice(&descriptor.emit());
        self.head = (self.head + 1) % self.slots;
        self.written += 1;
        true
    }
}
