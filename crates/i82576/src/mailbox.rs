//! The words that PF and VF exchange through the shared mailbox memory (VMBMEM): 16 dwords, the first of
//! which names the message. Left out: the lock and doorbell bits, which are register bits (`bits`).

/// Dwords of a mailbox.
pub const WORDS: usize = 16;

/// Message identifiers, bits 15:0 of the first dword.
pub mod id {
    /// VF to PF: the VF has reset itself and asks for its address.
    pub const VF_RESET: u32 = 0x01;
    /// VF to PF: use this unicast address (dwords 1 and 2).
    pub const SET_MAC_ADDR: u32 = 0x02;
    /// VF to PF: multicast hashes, two 12-bit values a dword from dword 1 on; the count is in the info field.
    pub const SET_MULTICAST: u32 = 0x03;
    /// VF to PF: join (info 1) or leave (info 0) the VLAN in dword 1.
    pub const SET_VLAN: u32 = 0x04;
    /// VF to PF: largest frame, CRC included, in dword 1.
    pub const SET_LPE: u32 = 0x05;
    /// VF to PF: promiscuity, see [`super::promisc`].
    pub const SET_PROMISC: u32 = 0x06;
    /// PF to VF: something changed (link, reset); look again.
    pub const PF_CONTROL: u32 = 0x100;
}

/// The message id's field of the first dword.
pub const ID_MASK: u32 = 0xffff;
/// The info field of the first dword: a count or a choice that belongs to the message.
pub const INFO_SHIFT: u32 = 16;
/// Mask of the info field.
pub const INFO_MASK: u32 = 0x00ff_0000;

/// The receiver agreed.
pub const ACK: u32 = 0x8000_0000;
/// The receiver refused.
pub const NACK: u32 = 0x4000_0000;
/// Clear to send: the PF knows this VF and serves its requests.
pub const CTS: u32 = 0x2000_0000;

/// Info values of SET_MAC_ADDR.
pub mod mac_filter {
    /// Drop the VF's additional filters.
    pub const CLEAR: u32 = 1;
    /// Add a filter beside the VF's main address.
    pub const ADD: u32 = 2;
}

/// Info bits of SET_PROMISC.
pub mod promisc {
    /// Every unicast frame: refused by the 82576.
    pub const UNICAST: u32 = 1;
    /// Every multicast frame.
    pub const MULTICAST: u32 = 2;
}

/// The most multicast hashes one message carries.
pub const MAX_MULTICAST: usize = 30;
/// The count of SET_MULTICAST within the info field.
pub const MULTICAST_COUNT_MASK: u32 = 0x1f;
/// SET_MULTICAST info bit by which DPDK says that its list did not fit.
pub const MULTICAST_OVERFLOW: u32 = 0x80;
