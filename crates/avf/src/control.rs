//! What a PF driver has the card do for a VF. On real cards this is queue contexts in host memory, registers and admin
//! commands; a card in software does it when it is told. The PF driver and the card meet here only.
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

/// What the PF driver has the card do. VFs are numbers below [`crate::ids::MAX_VFS`], queues below
/// [`crate::ids::MAX_PAIRS`], vectors below [`crate::ids::MAX_VECTORS`]; what is beyond is ignored. A reset of the VF
/// takes all of it back but rate, restraint, spoof check and what it was told of tags.
pub trait Control {
    /// Sets a receive queue up, stopped; its head is 0, its tail stays, since drivers write it before.
    fn configure_rx(&mut self, vf: u8, queue: u8, context: RxContext);

    /// Sets a transmit queue up, stopped and empty: head and tail are 0.
    fn configure_tx(&mut self, vf: u8, queue: u8, context: TxContext);

    /// Lets queues run that were set up, and stops others: a bit each.
    fn run(&mut self, vf: u8, rx: u16, tx: u16);

    /// What a receive queue raises.
    fn map_rx(&mut self, vf: u8, queue: u8, cause: Option<Cause>);

    /// What a transmit queue raises.
    fn map_tx(&mut self, vf: u8, queue: u8, cause: Option<Cause>);

    /// Adds an address that the VF receives by and may send from, or takes it away.
    fn address(&mut self, vf: u8, mac: [u8; 6], on: bool);

    /// Makes a VF a member of a VLAN, or no member. 0 is frames without a tag.
    fn vlan(&mut self, vf: u8, vlan: u16, on: bool);

    /// What becomes of tags.
    fn tags(&mut self, vf: u8, tags: Tags);

    /// Whether a VF receives every frame to one station, and every frame to a group.
    fn promiscuity(&mut self, vf: u8, unicast: bool, multicast: bool);

    /// Whether what a VF sends is held to its addresses and VLANs.
    fn spoof_check(&mut self, vf: u8, on: bool);

    /// The most that a VF may send, Mb/s; 0 is no limit.
    fn rate(&mut self, vf: u8, mbps: u32);

    /// How a VF is held back.
    fn restrain(&mut self, vf: u8, restraint: Restraint);

    /// The key of the hash, as far as it goes.
    fn hash_key(&mut self, vf: u8, key: &[u8]);

    /// The table of the hash, as far as it goes.
    fn lookup_table(&mut self, vf: u8, table: &[u8]);

    /// Which packet types are hashed.
    fn hash_types(&mut self, vf: u8, types: u64);

    /// How the hash is made.
    fn hash_function(&mut self, vf: u8, function: HashFunction);

    /// What a VF has sent and received.
    fn statistics(&mut self, vf: u8) -> Statistics;
}
