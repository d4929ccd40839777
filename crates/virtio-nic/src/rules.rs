//! Forwarding rules of a VF, as its policy sets them. The transport reports no requests of the guest.

use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{MacAddress, VlanIds};

/// VLANs whose frames a VF sends and receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VlanMembership {
    /// Port VLAN: the card tags all frames of the VF, and the guest sees no tag. The tag has priority, DEI and VLAN id.
    Port(u16),
    /// The guest's frames have tags of their own, or none. The VF is a member of these VLANs; 0 stands for untagged
    /// frames.
    Guest(Box<VlanIds>),
    /// The VF is a member of every VLAN. The guest's frames have tags of their own, or none.
    Any,
}

/// Forwarding rules of a VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfRules {
    /// True if the VF may send and receive.
    pub enabled: bool,
    /// Ethernet addresses of the VF. If the list is empty, the VF learns the source address of its first frame, unless
    /// that belongs to another VF.
    pub addresses: Vec<MacAddress>,
    /// Address that the VF's guest is expected to choose. No other VF can take it.
    pub promised: Option<MacAddress>,
    /// VLANs of the VF.
    pub vlans: VlanMembership,
    /// True if frames with a source address or a VLAN that is not the VF's are dropped.
    pub spoof_check: bool,
    /// True if the VF receives all multicast frames.
    pub all_multicast: bool,
    /// True if the VF receives unicast frames from the uplink that no VF has an address for.
    pub promiscuous: bool,
    /// Longest frame that the VF receives, in bytes, check sequence excluded, tag included.
    pub longest_frame: usize,
    /// Maximum rate of sent frames in Mb/s, check sequences included; 0 is no limit.
    pub max_tx_rate: u32,
}

impl Default for VfRules {
    /// Returns the rules of a VF without policy: every VLAN, no spoof check, no limits, and an address learned from the
    /// first frame.
    fn default() -> Self {
        Self {
            enabled: true,
            addresses: Vec::new(),
            promised: None,
            vlans: VlanMembership::Any,
            spoof_check: false,
            all_multicast: true,
            promiscuous: false,
            longest_frame: crate::limits::LONGEST_FRAME,
            max_tx_rate: 0,
        }
    }
}
