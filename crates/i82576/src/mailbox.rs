//! Mailbox messages between PF and VF in the shared mailbox memory (VMBMEM): 16 dwords, the first of which has the
//! message id. Lock and doorbell bits are register bits (`bits`).

/// Number of dwords in a mailbox.
pub const WORDS: usize = 16;

/// Message identifiers, bits 15:0 of the first dword.
pub mod id {
    /// VF to PF: the VF has reset itself and requests its address.
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
    /// PF to VF: the link or reset state has changed; the VF must check link and reset state again.
    pub const PF_CONTROL: u32 = 0x100;
}

/// Mask of the message id in a mailbox message's first dword.
pub const ID_MASK: u32 = 0xffff;
/// Position of the info field in the first dword: a count or an option of the message.
pub const INFO_SHIFT: u32 = 16;
/// Mask of the info field in a mailbox message's first dword.
pub const INFO_MASK: u32 = 0x00ff_0000;

/// Reply bit: the receiver grants the mailbox request.
pub const ACK: u32 = 0x8000_0000;
/// Reply bit: the receiver refuses the mailbox request.
pub const NACK: u32 = 0x4000_0000;
/// Clear to send: the PF serves this VF's requests.
pub const CTS: u32 = 0x2000_0000;

/// Info values of SET_MAC_ADDR: what to do with the VF's additional addresses.
pub mod mac_filter {
    /// Info value of SET_MAC_ADDR: remove the VF's additional address filters.
    pub const CLEAR: u32 = 1;
    /// Info value of SET_MAC_ADDR: add an address filter beside the VF's main address.
    pub const ADD: u32 = 2;
}

/// Info bits of SET_PROMISC.
pub mod promisc {
    /// Info bit of SET_PROMISC: the VF requests every unicast frame, which the 82576 refuses.
    pub const UNICAST: u32 = 1;
    /// Info bit of SET_PROMISC: the VF requests every multicast frame.
    pub const MULTICAST: u32 = 2;
}

/// Maximum number of multicast hashes in one message.
pub const MAX_MULTICAST: usize = 30;
/// Mask of SET_MULTICAST's count within the info field.
pub const MULTICAST_COUNT_MASK: u32 = 0x1f;
/// Info bit of SET_MULTICAST by which DPDK reports that its list did not fit.
pub const MULTICAST_OVERFLOW: u32 = 0x80;
