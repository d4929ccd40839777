//! The orders that a PF driver gives the card for a VF. Real cards take them as queue contexts in host memory, registers and
//! admin commands; a card in software takes them as calls. The PF driver and the card meet here only.
//!
//! Left out: what a VF may have, which the PF driver decides; the mailbox and resets, which have registers
//! ([`crate::pf_register`]).

use crate::descriptor::rx::Form;
use crate::virtchnl::Statistics;
use serde::{Deserialize, Serialize};

/// A receive queue's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RxContext {
    /// Where the ring is.
    pub base: u64,
    /// Descriptors.
    pub length: u16,
    /// The form of its descriptors.
    pub form: Form,
    /// Bytes of a buffer.
    pub buffer_bytes: u32,
    /// The longest frame, frame check sequence included.
    pub max_frame: u32,
    /// The frame check sequence stays.
    pub keep_fcs: bool,
}

/// A transmit queue's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TxContext {
    /// Where the ring is.
    pub base: u64,
    /// Descriptors.
    pub length: u16,
    /// Where the card writes its head, if it does.
    pub head_address: Option<u64>,
}

/// The vector that a queue raises, and by which of its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "QueueCause")]
pub struct Cause {
    /// The vector.
    pub vector: u8,
    /// The interval; 3 is none.
    pub itr: u8,
}

/// The way that tags go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tags {
    /// Received frames have their tag taken out.
    pub strip: bool,
    /// Descriptors may have a tag put in.
    pub insert: bool,
    /// The VLAN (priority, DEI, id) that all frames of the VF are put on, behind its back.
    pub port_vlan: Option<u16>,
}

/// How the hash is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HashFunction {
    /// Toeplitz.
    #[default]
    Toeplitz,
    /// Toeplitz over both directions alike.
    Symmetric,
}

/// By how much a VF is held back: times that must pass at least, in microseconds. 0 holds nothing back.
///
/// An X710 holds interrupts back by VPINT_RATE0 and VPINT_RATEN, and no mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Restraint {
    /// Between two descriptors that the card takes from the VF's mailbox.
    pub mail_us: u32,
    /// Between two interrupts of a vector.
    pub interrupt_us: u32,
}

/// What a PF driver orders the card to do for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order<'a> {
    /// Sets a receive queue up, stopped. Its head is 0; its tail stays, since drivers write the tail first.
    ConfigureRx(u8, RxContext),
    /// Sets a transmit queue up, stopped and empty: head and tail are 0.
    ConfigureTx(u8, TxContext),
    /// Lets the queues run whose bits are set, and stops the others.
    Run {
        /// Receive queues, a bit each.
        rx: u16,
        /// Transmit queues, a bit each.
        tx: u16,
    },
    /// The interrupt cause of a receive queue.
    MapRx(u8, Option<Cause>),
    /// The interrupt cause of a transmit queue.
    MapTx(u8, Option<Cause>),
    /// Adds an address that the VF receives by and may send from, or removes it.
    Address {
        /// The MAC address.
        mac: [u8; 6],
        /// Add, or remove.
        on: bool,
    },
    /// Makes the VF a member of a VLAN, or ends that. VLAN 0 is frames without a tag.
    Vlan {
        /// The VLAN id, 0 to 4,095.
        vlan: u16,
        /// Join, or leave.
        on: bool,
    },
    /// How tags are inserted and stripped.
    Tags(Tags),
    /// Which frames the VF receives besides those to its own addresses.
    Promiscuity {
        /// Every frame to a single station.
        unicast: bool,
        /// Every frame to a group.
        multicast: bool,
    },
    /// Whether frames that the VF sends must have its addresses and VLANs.
    SpoofCheck(bool),
    /// The most that the VF may send, Mb/s; 0 is no limit.
    Rate(u32),
    /// The restraint on mail and interrupts.
    Restrain(Restraint),
    /// The hash key, from its first byte on; bytes beyond it stay.
    HashKey(&'a [u8]),
    /// The lookup table, from its first entry on; entries beyond it stay.
    LookupTable(&'a [u8]),
    /// The packet types that are hashed, a bit each.
    HashTypes(u64),
    /// The hash function.
    HashFunction(HashFunction),
}

impl Order<'_> {
    /// Whether the order changes where frames go or how fast, so that forwarding tables must be made anew.
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

/// A card that takes orders of a PF driver.
pub trait Control {
    /// Carries an order out. VFs are numbers below [`crate::ids::MAX_VFS`], queues below [`crate::ids::MAX_PAIRS`], vectors
    /// below [`crate::ids::MAX_VECTORS`]; an order beyond these is ignored. A reset of the VF undoes every order but
    /// [`Order::Rate`], [`Order::Restrain`], [`Order::SpoofCheck`] and [`Order::Tags`].
    fn order(&mut self, vf: u8, order: Order<'_>);

    /// What the VF has sent and received.
    fn statistics(&mut self, vf: u8) -> Statistics;
}
