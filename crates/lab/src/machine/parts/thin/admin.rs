//! The admin receive queue: a ring of 32-byte descriptors in memory. The driver posts buffers, the card writes a message
//! and sets the done bit, the driver finds the bit without reading a register. Left out: the registers; the driver says
//! what the tail is to be.

/// Bytes of a descriptor.
pub(crate) const BYTES: usize = 32;

/// Flags of a descriptor.
pub(crate) mod flag {
    /// The card has written it.
    pub(crate) const DONE: u16 = 1 << 0;
    /// The card has completed it.
    pub(crate) const COMPLETED: u16 = 1 << 1;
    /// The return value is an error.
    pub(crate) const ERROR: u16 = 1 << 2;
    /// The buffer is longer than 512 bytes.
    pub(crate) const LARGE: u16 = 1 << 9;
    /// There is a buffer.
    pub(crate) const BUFFER: u16 = 1 << 12;
}

/// The operation of a message from a VF.
pub(crate) const MESSAGE_FROM_VF: u16 = 0x0801;
/// VFs of a card.
pub(crate) const VFS: u16 = 128;

/// A message of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) vf: u16,
    /// What it asks for: a number of the virtual-channel protocol.
    pub(crate) operation: u32,
    /// Bytes in the buffer.
    pub(crate) length: u16,
}

/// What a descriptor held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A message.
    Message(Message),
    /// Something that is no message of a VF, or an error.
    Other(u16),
}

/// The driver's side of a queue.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: u16,
    next: u16,
    /// Descriptors taken in all.
    pub(crate) taken: u64,
    buffer_bytes: u16,
}

fn word(descriptor: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([descriptor[at], descriptor[at + 1]])
}

fn set_word(descriptor: &mut [u8], at: usize, value: u16) {
    descriptor[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

impl Queue {
    /// A queue of so many slots in `ring`, every buffer posted.
    pub(crate) fn new(slots: u16, buffer_bytes: u16, ring: &mut [u8]) -> Self {
        let mut queue = Self { slots, next: 0, taken: 0, buffer_bytes };
        (0..slots).for_each(|slot| queue.post(slot, ring));
        queue
    }

    /// Takes the next descriptor that the card is done with, and posts its buffer again.
    pub(crate) fn take(&mut self, ring: &mut [u8]) -> Option<Found> {
        let start = usize::from(self.next) * BYTES;
        let descriptor = ring.get(start..start + BYTES)?;
        let flags = word(descriptor, 0);
        if flags & flag::DONE == 0 {
            return None;
        }
        let (opcode, length, sender) = (word(descriptor, 2), word(descriptor, 4), word(descriptor, 6));
        let operation = u32::from(word(descriptor, 8)) | u32::from(word(descriptor, 10)) << 16;
        let fits = length <= self.buffer_bytes && sender < VFS;
        let found = if opcode == MESSAGE_FROM_VF && flags & flag::ERROR == 0 && fits {
            Found::Message(Message { vf: sender, operation, length })
        } else {
            Found::Other(opcode)
        };
        self.post(self.next, ring);
        self.next = (self.next + 1) % self.slots;
        self.taken += 1;
        Some(found)
    }

    /// What the tail register is to be: every slot but the one before the next is the card's.
    pub(crate) fn tail(&self) -> u16 {
        (self.next + self.slots - 1) % self.slots
    }

    fn post(&mut self, slot: u16, ring: &mut [u8]) {
        let start = usize::from(slot) * BYTES;
        let Some(descriptor) = ring.get_mut(start..start + BYTES) else { return };
        descriptor.fill(0);
        let large = if self.buffer_bytes > 512 { flag::LARGE } else { 0 };
        set_word(descriptor, 0, flag::BUFFER | large);
        set_word(descriptor, 4, self.buffer_bytes);
    }
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
    pub(crate) fn send(&mut self, message: Message, ring: &mut [u8]) -> bool {
        if self.head == self.tail {
            self.refused += 1;
            return false;
        }
        let descriptor = &mut ring[usize::from(self.head) * BYTES..][..BYTES];
        set_word(descriptor, 2, MESSAGE_FROM_VF);
        set_word(descriptor, 4, message.length);
        set_word(descriptor, 6, message.vf);
        set_word(descriptor, 8, message.operation as u16);
        set_word(descriptor, 10, (message.operation >> 16) as u16);
        set_word(descriptor, 0, flag::DONE | flag::COMPLETED | flag::BUFFER);
        self.head = (self.head + 1) % self.slots;
        self.written += 1;
        true
    }
}
