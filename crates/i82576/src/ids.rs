//! Ids and numbers of the 82576. Other device ids of the same MAC are omitted.

/// PCI vendor id of Intel.
pub const VENDOR: u16 = 0x8086;
/// Device id of the PF (82576 Gigabit Network Connection).
pub const DEVICE_PF: u16 = 0x10c9;
/// Device id of a VF (82576 Virtual Function).
pub const DEVICE_VF: u16 = 0x10ca;
/// PCI revision id of the 82576.
pub const REVISION: u8 = 0x01;
/// Class code of an Ethernet controller.
pub const CLASS: u32 = 0x02_0000;

/// Number of virtual functions of a port, and of pools of the port's switch.
pub const MAX_VFS: usize = VFS as usize;
/// [`MAX_VFS`] as a byte.
pub(crate) const VFS: u8 = 8;
/// Number of receive queues, and of transmit queues, of a port.
pub const QUEUES: usize = 16;
/// Number of internal interrupt vectors of a port.
pub const VECTORS: usize = 25;
/// Number of MSI-X vectors of a virtual function: Linux igbvf refuses any other number.
pub const VF_VECTORS: usize = VECTORS_OF_VF as usize;
/// [`VF_VECTORS`] as a byte.
pub(crate) const VECTORS_OF_VF: u8 = 3;
/// Number of exact-match unicast address filters (RAL/RAH).
pub const RECEIVE_ADDRESSES: usize = 24;
/// Number of VLAN pool filters (VLVF).
pub const VLAN_FILTERS: usize = 32;
/// Number of mirror rules (VMRCTL).
pub const MIRROR_RULES: usize = 4;
/// Bytes of the PF's BAR with the registers.
pub const PF_BAR0_SIZE: usize = 0x2_0000;
/// Bytes of a VF's BAR with the registers.
pub const VF_BAR0_SIZE: usize = 0x4000;
/// Bytes of the BAR with the MSI-X table (at 0) and pending bits (at 0x2000).
pub const BAR3_SIZE: usize = 0x4000;
/// Highest link speed of the MAC in Mb/s.
pub const LINK_SPEED: u32 = 1_000;
/// Longest frame of the MAC in bytes, CRC included (9.5 KB).
pub const MAX_FRAME: usize = 9728;
pub use units::FCS;
