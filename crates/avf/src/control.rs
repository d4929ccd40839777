//! Orders that a PF driver gives the card for a VF. Real cards take orders as queue contexts in host memory, registers
//! and admin commands; a card in software takes orders as calls. PF driver and card share only this interface.
//!
//! The PF driver decides the resources of a VF; the mailbox and resets go through registers
//! ([`crate::pf_register`]).

use crate::descriptor::rx::RxDescriptorFormat;
use crate::virtchnl::VfTrafficStatistics;
use serde::{Deserialize, Serialize};

/// Settings of a receive queue for the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "RxContext")]
pub struct RxQueueContext {
    /// Address of the receive queue's ring.
    pub base: u64,
    /// Number of descriptors in the receive ring.
    pub length: u16,
    /// Format of the receive queue's descriptors.
    pub form: RxDescriptorFormat,
    /// Size of a receive buffer in bytes.
    pub buffer_bytes: u32,
    /// Longest received frame in bytes, frame check sequence included.
    pub max_frame: u32,
    /// True if received frames keep their frame check sequence.
    pub keep_fcs: bool,
}

/// Settings of a transmit queue for the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "TxContext")]
pub struct TxQueueContext {
    /// Address of the transmit queue's ring.
    pub base: u64,
    /// Number of descriptors in the transmit ring.
    pub length: u16,
    /// Address to which the card writes the queue's head, if the driver requested that.
    pub head_address: Option<u64>,
}

/// Interrupt vector that a queue raises, and the interval that delays the interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "QueueCause")]
pub struct QueueInterruptCause {
    /// Number of the interrupt vector that the queue raises.
    pub vector: u8,
    /// Index of the interrupt's interval; 3 is none.
    pub itr: u8,
}

/// Handling of VLAN tags in a VF's frames: stripping, insertion and port VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Tags")]
pub struct VlanTagHandling {
    /// True if the card strips the tag of received frames.
    pub strip: bool,
    /// True if the card inserts the VLAN tags that the VF's descriptors request.
    pub insert: bool,
    /// VLAN (priority, DEI, id) of all frames of the VF, invisible to the VF.
    pub port_vlan: Option<u16>,
}

/// Function that computes a packet's RSS hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "HashFunction")]
pub enum RssHashFunction {
    /// RSS hash function: Toeplitz.
    #[default]
    Toeplitz,
    /// RSS hash function: Toeplitz, with the same result for both directions of a connection.
    Symmetric,
}

/// Rate limits on a VF's mailbox messages and interrupts: minimum times in microseconds. 0 sets no limit.
///
/// An X710 limits interrupts by VPINT_RATE0 and VPINT_RATEN, and does not limit mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Restraint")]
pub struct MailboxAndInterruptLimits {
    /// Minimum time between two descriptors that the card takes from the VF's mailbox, in microseconds.
    pub mail_us: u32,
    /// Minimum time between two interrupts of a vector, in microseconds.
    pub interrupt_us: u32,
}

/// Order of a PF driver to the card, for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardCommand<'a> {
    /// Sets up a receive queue, stopped. Its head is 0; its tail stays, since drivers write the tail first.
    ConfigureRx(u8, RxQueueContext),
    /// Sets up a transmit queue, stopped and empty: head and tail are 0.
    ConfigureTx(u8, TxQueueContext),
    /// Starts the VF's queues whose bits are set, and stops the VF's other queues.
    Run {
        /// Receive queues to start, a bit each; all others are stopped.
        rx: u16,
        /// Transmit queues to start, a bit each; all others are stopped.
        tx: u16,
    },
    /// Sets or removes the interrupt cause of a receive queue.
    MapRx(u8, Option<QueueInterruptCause>),
    /// Sets or removes the interrupt cause of a transmit queue.
    MapTx(u8, Option<QueueInterruptCause>),
    /// Adds an address that the VF receives by and may send from, or removes it.
    Address {
        /// MAC address to add to the VF or remove from it.
        mac: [u8; 6],
        /// True to add the MAC address, false to remove it.
        on: bool,
    },
    /// Makes the VF a member of a VLAN, or ends the membership. VLAN 0 stands for untagged frames.
    Vlan {
        /// Id of the VLAN that the VF joins or leaves, 0 to 4,095.
        vlan: u16,
        /// True to join the VLAN, false to leave it.
        on: bool,
    },
    /// Sets VLAN stripping and insertion of a VF.
    Tags(VlanTagHandling),
    /// Selects the frames that the VF receives besides those to its own addresses.
    Promiscuity {
        /// True if the VF receives every frame to an individual address.
        unicast: bool,
        /// True if the VF receives every frame to a group address.
        multicast: bool,
    },
    /// Sets the spoof check: frames that the VF sends must have its addresses and VLANs.
    SpoofCheck(bool),
    /// Limits the VF's transmit rate, in Mb/s; 0 is no limit.
    Rate(u32),
    /// Limits the rates of the VF's mailbox messages and interrupts.
    Restrain(MailboxAndInterruptLimits),
    /// Writes the hash key, from its first byte on; excess bytes of the order are ignored.
    HashKey(&'a [u8]),
    /// Writes the lookup table, from its first entry on; excess entries of the order are ignored.
    LookupTable(&'a [u8]),
    /// Selects the packet types that are hashed, a bit each.
    HashTypes(u64),
    /// Selects the RSS hash function of a VF.
    HashFunction(RssHashFunction),
}

impl CardCommand<'_> {
    /// Returns true if the order changes the path or the rate of frames, so that the forwarding tables must be
    /// rebuilt.
    #[must_use]
    pub fn changes_forwarding(&self) -> bool {
        match self {
            Self::Run { .. } | Self::Address { .. } | Self::Vlan { .. } | Self::Tags(_) => true,
            Self::Promiscuity { .. } | Self::SpoofCheck(_) | Self::Rate(_) => true,
            Self::ConfigureRx(..) | Self::ConfigureTx(..) | Self::MapRx(..) | Self::MapTx(..) => false,
            Self::Restrain(_) | Self::HashKey(_) | Self::LookupTable(_) => false,
            Self::HashTypes(_) | Self::HashFunction(_) => false,
        }
    }
}

/// Card that takes orders of a PF driver.
pub trait CardControl {
    /// Carries out the PF driver's order for a VF. VFs are numbers below [`crate::ids::MAX_VFS`], queues below
    /// [`crate::ids::MAX_PAIRS`], vectors below [`crate::ids::MAX_VECTORS`]; an order beyond these is ignored. A
    /// reset of the VF undoes every order but [`CardCommand::Rate`], [`CardCommand::Restrain`], [`CardCommand::SpoofCheck`]
    /// and [`CardCommand::Tags`].
    fn order(&mut self, vf: u8, order: CardCommand<'_>);

    /// Returns the card's counters of the traffic of a VF.
    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics;

    /// Charges a VF for the comparisons of addresses that its request costs the PF driver. Does nothing by default: only a host
    /// that shares its time among VFs needs to know.
    fn charge_comparisons(&mut self, _vf: u8, _count: usize) {}
}
