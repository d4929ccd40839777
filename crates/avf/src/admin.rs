//! The descriptor of admin queues: 32 bytes, the same in a VF's mailbox and in the queues of an X710's PF. Who sends
//! fills it and says where the body is; who serves it writes it back with DD. Left out: the rings and their registers.

use serde::{Deserialize, Serialize};

/// Bytes of a descriptor.
pub const SIZE: usize = 32;
/// Bytes of a message's body at most, and of the buffers that drivers post.
pub const MAX_BODY: usize = 4096;

/// Flags of a descriptor.
pub mod flag {
    /// Descriptor done: it was served.
    pub const DD: u16 = 1 << 0;
    /// The command has completed.
    pub const CMP: u16 = 1 << 1;
    /// The return value is an error.
    pub const ERR: u16 = 1 << 2;
    /// A VF did something wrong.
    pub const VFE: u16 = 1 << 3;
    /// The buffer is longer than [`super::LARGE`] bytes.
    pub const LB: u16 = 1 << 9;
    /// The card reads the buffer.
    pub const RD: u16 = 1 << 10;
    /// The command is a VF's.
    pub const VFC: u16 = 1 << 11;
    /// There is a buffer.
    pub const BUF: u16 = 1 << 12;
    /// No interrupt when it is done.
    pub const SI: u16 = 1 << 13;
    /// Interrupt on an error.
    pub const EI: u16 = 1 << 14;
    /// Later commands wait for this one.
    pub const FE: u16 = 1 << 15;
}

/// A buffer beyond this wants [`flag::LB`].
pub const LARGE: usize = 512;

/// Operations.
pub mod opcode {
    /// The driver is about to leave its queues.
    pub const QUEUE_SHUTDOWN: u16 = 0x0003;
    /// A message to the PF. In the PF's receive queue the return value is the VF's number.
    pub const SEND_TO_PF: u16 = 0x0801;
    /// A message to a VF. In the PF's send queue param0 is the VF's number.
    pub const SEND_TO_VF: u16 = 0x0802;
}

/// Return values.
pub mod returned {
    /// Done.
    pub const OK: u16 = 0;
    /// No such operation.
    pub const ESRCH: u16 = 3;
    /// Something in the descriptor makes no sense.
    pub const EINVAL: u16 = 14;
    /// No room.
    pub const ENOSPC: u16 = 16;
}

/// A descriptor. Every field has its own bytes, so any 32 bytes are one, and come back as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Descriptor {
    /// See [`flag`].
    pub flags: u16,
    /// See [`opcode`].
    pub opcode: u16,
    /// Bytes of the body; in a posted descriptor, of the buffer.
    pub length: u16,
    /// See [`returned`]; the VF's number where a PF receives.
    pub return_value: u16,
    /// The message's operation, [`crate::virtchnl::Op`].
    pub cookie_high: u32,
    /// The message's status, [`crate::virtchnl::Status`].
    pub cookie_low: u32,
    /// First parameter.
    pub param0: u32,
    /// Second parameter.
    pub param1: u32,
    /// Where the buffer is.
    pub address: u64,
}

impl Descriptor {
    /// Reads a descriptor.
    #[must_use]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let half = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        Self {
            flags: half(0),
            opcode: half(2),
            length: half(4),
            return_value: half(6),
            cookie_high: word(8),
            cookie_low: word(12),
            param0: word(16),
            param1: word(20),
            address: u64::from(word(24)) << 32 | u64::from(word(28)),
        }
    }

    /// The descriptor's bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let mut raw = [0; SIZE];
        let halves = [self.flags, self.opcode, self.length, self.return_value];
        for (bytes, half) in raw.chunks_exact_mut(2).zip(halves) {
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        let (high, low) = ((self.address >> 32) as u32, self.address as u32);
        let words = [self.cookie_high, self.cookie_low, self.param0, self.param1, high, low];
        for (bytes, word) in raw[8..].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        raw
    }

    /// A receive descriptor with a buffer, as drivers post it.
    #[must_use]
    pub fn posted(address: u64, length: u16) -> Self {
        let large = if usize::from(length) > LARGE { flag::LB } else { 0 };
        Self { flags: flag::BUF | large, length, address, ..Self::default() }
    }

    /// Whether it was served.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.flags & flag::DD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, SIZE, flag, opcode};
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_message_of_linux_is_read_as_it_means() {
        // VERSION as iavf sends it: SI, BUF and RD, eight bytes at 0x1_2345_6000.
        let mut raw = [0; SIZE];
        raw[..8].copy_from_slice(&[0x00, 0x34, 0x01, 0x08, 8, 0, 0, 0]);
        raw[8] = 1;
        raw[24] = 1;
        raw[28..].copy_from_slice(&[0x00, 0x60, 0x45, 0x23]);
        let descriptor = Descriptor::parse(&raw);
        let flags = flag::SI | flag::BUF | flag::RD;
        let wanted = Descriptor {
            flags,
            opcode: opcode::SEND_TO_PF,
            length: 8,
            cookie_high: 1,
            address: 0x1_2345_6000,
            ..Descriptor::default()
        };
        assert_eq!(descriptor, wanted);
    }

    #[test]
    fn a_posted_buffer_beyond_512_bytes_says_so() {
        assert_eq!(Descriptor::posted(0, 512).flags, flag::BUF);
        assert_eq!(Descriptor::posted(0, 513).flags, flag::BUF | flag::LB);
    }

    proptest! {
        #[test]
        fn any_32_bytes_are_a_descriptor_and_come_back(raw in any::<[u8; SIZE]>()) {
            assert_eq!(Descriptor::parse(&raw).emit(), raw);
        }
    }
}
