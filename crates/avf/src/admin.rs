//! Descriptors of the admin queues: 32 bytes each, the same in a VF's mailbox and in the queues of an X710's PF. The
//! sender fills a descriptor and names the body's buffer; the receiver serves it and writes it back with DD set. The
//! rings and their registers are in [`crate::register`] and [`crate::pf_register`].

use pcie::low::low_dword;
use serde::{Deserialize, Serialize};

/// Bytes of an admin queue's descriptor.
pub const SIZE: usize = 32;
/// Longest body of a message, and longest buffer that drivers post, in bytes.
pub const MAX_BODY: usize = 4096;

/// Flags of an admin queue's descriptor.
pub mod flag {
    /// Admin descriptor flag (descriptor done): the receiver has served the descriptor.
    pub const DD: u16 = 1 << 0;
    /// Admin descriptor flag: the command is complete.
    pub const CMP: u16 = 1 << 1;
    /// Admin descriptor flag: the return value is an error.
    pub const ERR: u16 = 1 << 2;
    /// Admin descriptor flag: a VF made an error.
    pub const VFE: u16 = 1 << 3;
    /// Admin descriptor flag: the buffer is longer than [`super::LARGE`] bytes.
    pub const LB: u16 = 1 << 9;
    /// Admin descriptor flag: the card reads the buffer, rather than writes it.
    pub const RD: u16 = 1 << 10;
    /// Admin descriptor flag: a VF issued the command.
    pub const VFC: u16 = 1 << 11;
    /// Admin descriptor flag: the descriptor names a buffer.
    pub const BUF: u16 = 1 << 12;
    /// Admin descriptor flag: the descriptor raises no interrupt when it is done.
    pub const SI: u16 = 1 << 13;
    /// Admin descriptor flag: an error in the command raises an interrupt.
    pub const EI: u16 = 1 << 14;
    /// Admin descriptor flag: later commands wait until this command is done.
    pub const FE: u16 = 1 << 15;
}

/// Length in bytes of the longest message buffer that needs no flag [`flag::LB`].
pub const LARGE: usize = 512;

/// Operations of an admin queue's descriptor.
pub mod opcode {
    /// Admin operation: the driver announces that it stops using its queues.
    pub const QUEUE_SHUTDOWN: u16 = 0x0003;
    /// Admin operation: carries a message to the PF. In the PF's receive queue the return value is the VF's number.
    pub const SEND_TO_PF: u16 = 0x0801;
    /// Admin operation: carries a message to a VF. In the PF's send queue param0 is the VF's number.
    pub const SEND_TO_VF: u16 = 0x0802;
}

/// Return values of commands in an admin queue's descriptors.
pub mod returned {
    /// Admin return value: the command succeeded.
    pub const OK: u16 = 0;
    /// Admin return value: the operation is unknown.
    pub const ESRCH: u16 = 3;
    /// Admin return value: the descriptor has an invalid field.
    pub const EINVAL: u16 = 14;
    /// Admin return value: the queue has no free descriptor.
    pub const ENOSPC: u16 = 16;
}

/// Descriptor of an admin queue. Every field has its own bytes, so any 32 bytes can be parsed and are emitted
/// unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AdminQueueDescriptor {
    /// Flags of the descriptor, see [`flag`].
    pub flags: u16,
    /// Operation that the descriptor requests, see [`opcode`].
    pub opcode: u16,
    /// Length of the message's body in bytes; in a posted descriptor, length of the buffer.
    pub length: u16,
    /// Return value of the command, see [`returned`]; the VF's number in a descriptor that a PF receives.
    pub return_value: u16,
    /// Operation of the virtchnl message, [`crate::virtchnl::VirtchnlOpcode`].
    pub cookie_high: u32,
    /// Status of the virtchnl message, [`crate::virtchnl::VirtchnlStatus`].
    pub cookie_low: u32,
    /// First parameter of the admin queue operation.
    pub param0: u32,
    /// Second parameter of the admin queue operation.
    pub param1: u32,
    /// Address of the descriptor's buffer in the memory of the driver.
    pub address: u64,
}

impl AdminQueueDescriptor {
    /// Reads an admin queue's descriptor from its bytes.
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

    /// Returns the bytes of the admin queue's descriptor.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let mut raw = [0; SIZE];
        let halves = [self.flags, self.opcode, self.length, self.return_value];
        for (bytes, half) in raw.chunks_exact_mut(2).zip(halves) {
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        let (high, low) = (low_dword(self.address >> 32), low_dword(self.address));
        let words = [self.cookie_high, self.cookie_low, self.param0, self.param1, high, low];
        for (bytes, word) in raw[8..].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        raw
    }

    /// Creates a receive descriptor with a buffer, as drivers post it.
    #[must_use]
    pub fn posted(address: u64, length: u16) -> Self {
        let large = if usize::from(length) > LARGE { flag::LB } else { 0 };
        Self { flags: flag::BUF | large, length, address, ..Self::default() }
    }

    /// Returns true if the receiver has served the descriptor.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.flags & flag::DD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{AdminQueueDescriptor, SIZE, flag, opcode};
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_version_message_of_linux_is_parsed() {
        // VERSION as iavf sends it: SI, BUF and RD, eight bytes at 0x1_2345_6000.
        let mut raw = [0; SIZE];
        raw[..8].copy_from_slice(&[0x00, 0x34, 0x01, 0x08, 8, 0, 0, 0]);
        raw[8] = 1;
        raw[24] = 1;
        raw[28..].copy_from_slice(&[0x00, 0x60, 0x45, 0x23]);
        let descriptor = AdminQueueDescriptor::parse(&raw);
        let flags = flag::SI | flag::BUF | flag::RD;
        let wanted = AdminQueueDescriptor {
            flags,
            opcode: opcode::SEND_TO_PF,
            length: 8,
            cookie_high: 1,
            address: 0x1_2345_6000,
            ..AdminQueueDescriptor::default()
        };
        assert_eq!(descriptor, wanted);
    }

    #[test]
    fn posted_buffer_above_512_bytes_has_the_large_buffer_flag() {
        assert_eq!(AdminQueueDescriptor::posted(0, 512).flags, flag::BUF);
        assert_eq!(AdminQueueDescriptor::posted(0, 513).flags, flag::BUF | flag::LB);
    }

    proptest! {
        #[test]
        fn any_32_byte_admin_descriptor_round_trips_unchanged(raw in any::<[u8; SIZE]>()) {
            assert_eq!(AdminQueueDescriptor::parse(&raw).emit(), raw);
        }
    }
}
