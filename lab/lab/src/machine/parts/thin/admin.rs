//! The card's part of the admin receive queue of an X710: writes VF messages into the buffers posted by the driver.
//! [`driver::avf::queue`] is the driver's part. Message bodies are not modelled.

use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};

/// Number of VFs of a card with an admin receive queue.
pub(crate) const VFS: u16 = 128;

/// Message that a VF sent to the PF by mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VfMessage {
    pub(crate) vf: u16,
    /// Operation that the VF requests (virtchnl number).
    pub(crate) operation: u32,
    /// Bytes of the message's body.
    pub(crate) length: u16,
}

/// Card's state of the admin receive queue: position of the next message, and the end of the posted buffers.
#[derive(Debug)]
pub(crate) struct AdminQueueFirmware {
    slots: u16,
    head: u16,
    tail: u16,
    /// Number of VF messages written to buffers.
    pub(crate) written: u64,
    /// Number of VF messages refused because no buffer was posted.
    pub(crate) refused: u64,
}

impl AdminQueueFirmware {
    pub(crate) fn new(slots: u16) -> Self {
        Self { slots, head: 0, tail: slots - 1, written: 0, refused: 0 }
    }

    /// Handles the PF driver's write to the queue's tail register, which posts buffers.
    pub(crate) fn set_tail(&mut self, tail: u16) {
        self.tail = tail % self.slots;
    }

    /// Writes a VF's message to the admin receive queue. Returns `false` if no buffer is posted; the VF is then
    /// notified of the refusal.
    pub(crate) fn send(&mut self, message: VfMessage, ring: &mut [u8]) -> bool {
        if self.head == self.tail {
            self.refused += 1;
            return false;
        }
        let descriptor = AdminQueueDescriptor {
            flags: flag::DD | flag::CMP | flag::BUF,
            opcode: opcode::SEND_TO_PF,
            length: message.length,
            return_value: message.vf,
            cookie_high: message.operation,
            ..AdminQueueDescriptor::default()
        };
        ring[usize::from(self.head) * SIZE..][..SIZE].copy_from_slice(&descriptor.emit());
        self.head = (self.head + 1) % self.slots;
        self.written += 1;
        true
    }
}
