//! The card of a port with the software of its PF, whatever family it is of. Left out: clients, sockets and the uplink, which
//! are the port's own.

use super::bus::LiveBus;
use super::error::CardRefusal;
use super::pages::PageMemory;
use super::uplink::Uplink;
use crate::config;
use crate::control::status::{Conduct, Filters, Mailbox, Waiting};
use crate::settings::{PortSettings, VfSettings};
use crate::state::StateError;
use crate::state::port::ClientState;
use driver::conduct::{Monitor, Totals, Verdict};
use i82576::{MacAddress, Time};
use iovm::FunctionState;
use nic::{Poll, PoolCounters};
use pcie::{Function, VfIndex, VfSet};
use policy::{Offence, PolicyError, PortPolicy, VfPolicy};
use std::fmt::Debug;
use vfio_user::types::SparseArea;

/// A refused policy: the VF, or `None` for the port, and why.
pub(in crate::port) type RefusedPolicy = (Option<VfIndex>, PolicyError);

/// What a visit of the PF driver did.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::port) struct Visit {
    /// VFs that were answered.
    pub(in crate::port) served: VfSet,
    /// The link that VFs are shown may be another.
    pub(in crate::port) link_changed: bool,
    /// When to come again though nothing new happens.
    pub(in crate::port) deadline: Option<Time>,
}

/// What a VF is, for the status.
#[derive(Debug)]
pub(in crate::port) struct VfFacts {
    /// The address that it uses; none if it has said none.
    pub(in crate::port) mac: Option<MacAddress>,
    pub(in crate::port) vlans: Vec<u16>,
    pub(in crate::port) link: bool,
    pub(in crate::port) active: bool,
    pub(in crate::port) filters: Filters,
    pub(in crate::port) settings: VfSettings,
    pub(in crate::port) conduct: Conduct,
    pub(in crate::port) mailbox: Mailbox,
}

/// Counts what a VF has done, in the order of [`Offence`]. Requests are left out: the PF driver knows them.
pub(super) fn offence_counts(counters: &PoolCounters, interrupts: u64) -> Totals {
    let groups = counters.tx_broadcast + counters.tx_multicast;
    [0, counters.tx_blocked, groups, interrupts, counters.tx_invalid, counters.dma_faults]
}

/// Returns the status of a VF's conduct.
pub(super) fn conduct(monitor: &Monitor) -> Conduct {
    let offences = Offence::ALL.into_iter().zip(monitor.offences()).filter(|(_, count)| **count > 0);
    Conduct {
        quarantine: monitor.quarantined().map(|cause| cause.name().to_owned()),
        throttled: monitor.throttled(),
        offences: offences.map(|(offence, count)| (offence.name().to_owned(), *count)).collect(),
    }
}

/// Reasons for which a PF driver refuses requests, of the family that has most.
pub(in crate::port) const REASONS: usize = {
    let (igb, avf) = (driver::pf::Refusal::ALL.len(), driver::avf::pf::Refusal::NAMES.len());
    if igb > avf { igb } else { avf }
};

/// A VF's state that events are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct News {
    pub(in crate::port) active: bool,
    pub(in crate::port) link: bool,
    /// The guest wants more filters than fit.
    pub(in crate::port) cut: bool,
    pub(in crate::port) resets: u64,
    /// Requests refused, by reason.
    pub(in crate::port) refused: [u64; REASONS],
}

/// Returns the policy of a VF that is not offered: it moves nothing.
pub(in crate::port) fn not_offered() -> VfPolicy {
    VfPolicy { enabled: false, ..VfPolicy::default() }
}

/// A card with its PF's software, and what was counted of each function.
#[derive(Debug)]
pub(in crate::port) struct Inherited {
    pub(in crate::port) card: Box<dyn Family>,
    /// The time when the VFs were last judged.
    pub(in crate::port) watched: Time,
    pub(in crate::port) functions: Vec<ClientState>,
}

impl Inherited {
    /// Creates a card that nothing was counted with.
    pub(in crate::port) fn new(card: impl Family + 'static) -> Self {
        Self { card: Box::new(card), watched: Time::ZERO, functions: Vec::new() }
    }
}

/// A card with the software of its PF.
pub(in crate::port) trait Family: Debug + Send {
    /// As the configuration names it.
    fn family(&self) -> config::file::Family;

    /// Bytes of a region of a function; 0 if there is no such region.
    fn region(&self, function: Function, index: u32) -> usize;

    /// A client reads a region of a function.
    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8], now: Time);

    /// A client writes a region of a function.
    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8], now: Time);

    /// Resets a function to its state after power-on: registers, MSI-X table and configuration space. Policy stays. Returns
    /// `false` if the reset fails.
    fn reset_function(&mut self, function: Function) -> bool;

    /// Whether a function may use the bus.
    fn is_bus_master(&self, function: Function) -> bool;

    /// What of a VF's BAR0 its client may map.
    fn mappable(&self) -> &'static [SparseArea];

    /// A client has these pages of a VF from now on. If they are `exactly` as the card has left them, but for what the guest
    /// has stored since, that counts; else they become what the card's registers are.
    fn share_pages(&mut self, vf: VfIndex, pages: &PageMemory, exactly: bool, now: Time);

    /// Returns whether the guest has stored into pages that its client has since they were last read.
    fn has_new_doorbells(&self, vf: VfIndex, pages: &PageMemory) -> bool;

    /// Reads the doorbells that the guest has stored.
    fn read_doorbells(&mut self, vf: VfIndex, pages: &PageMemory, now: Time);

    /// Stores the registers that the guest reads.
    fn publish_registers(&mut self, vf: VfIndex, pages: &PageMemory, now: Time);

    /// The PF's software is here, and no guest has the PF.
    fn is_hosted(&self) -> bool;

    /// Returns the VFs whose requests wait for the PF driver.
    fn pending_requests(&mut self, now: Time) -> VfSet;

    /// The PF driver looks after its VFs.
    fn visit(&mut self, bus: &mut LiveBus, now: Time) -> Visit;

    /// The PF driver judges a VF by what was counted, with the interrupts that the port has sent for it.
    fn judge(&mut self, vf: VfIndex, interrupts: u64, bus: &mut LiveBus, now: Time) -> Option<Verdict>;

    /// Moves frames and sends interrupts, as far as the card's own budget goes.
    fn poll(&mut self, now: Time, bus: &mut LiveBus, uplink: &mut Uplink) -> Poll;

    /// The port's link.
    fn link(&self) -> bool;

    /// Gives the card a link, or takes it. The PF driver's next visit finds it.
    fn set_link(&mut self, up: bool);

    /// Forwards link-local frames of guests from now on, or drops them.
    fn forward_link_local(&mut self, on: bool);

    /// Shows a VF the link that the PF driver has decided on, or none while its client is let go (`hidden`). An error is the
    /// port's to log, here and below: it bounds how often clients can cause a line.
    fn show_link(
        &mut self,
        vf: VfIndex,
        hidden: bool,
        bus: &mut LiveBus,
        now: Time,
    ) -> Result<(), PolicyError>;

    /// Tells a VF's driver to look at its link.
    fn notify(&mut self, vf: VfIndex, bus: &mut LiveBus, now: Time);

    /// Checks that VFs, by index, could have these policies now, which make sense by themselves. A port can have any such.
    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy>;

    /// Gives the port and its VFs, by index, these policies, all of them or none.
    fn carry(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        bus: &mut LiveBus,
        now: Time,
    ) -> Result<(), RefusedPolicy>;

    /// Quarantines a VF for the administrator, or releases it.
    fn quarantine(&mut self, vf: VfIndex, on: bool, bus: &mut LiveBus, now: Time);

    /// Offers one VF more, the last of the number that the port of this name offers.
    fn offer(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardRefusal>;

    /// Stops offering this VF: the port of this name offers the number from now on. After an error the rest is done all the same.
    fn withdraw(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardRefusal>;

    /// Resets the card and sets it up again. Guests are told before.
    fn reset(&mut self, bus: &mut LiveBus, uplink: &mut Uplink, now: Time) -> Result<(), CardRefusal>;

    /// The port ends: drivers of VFs are told.
    fn remove(&mut self, bus: &mut LiveBus, now: Time);

    /// What was counted for a function.
    fn counters(&mut self, function: Function) -> PoolCounters;

    /// What waits in the card for the function to post receive descriptors; a family without such a buffer has nothing.
    fn waiting(&self, _: Function) -> Waiting {
        Waiting::default()
    }

    /// What is set for the port with so many VFs, if the PF's software is here.
    fn settings(&self, vfs: usize) -> Option<PortSettings>;

    /// How many storms there have been.
    fn storms(&self) -> u64;

    /// Returns the status of a VF.
    fn vf_status(&self, vf: VfIndex) -> Option<VfFacts>;

    /// Where a VF is on the bus.
    fn rid(&self, vf: VfIndex) -> Option<String>;

    /// Descriptors of a VF's receive and transmit rings, as its driver has set them up.
    fn rings(&mut self, vf: VfIndex, now: Time) -> (Vec<u32>, Vec<u32>);

    /// Whether a driver runs a VF.
    fn is_active(&self, vf: VfIndex) -> bool;

    /// What may be told of a VF.
    fn news(&self, vf: VfIndex) -> Option<News>;

    /// The name of a reason to refuse a request, by its place in [`News::refused`].
    fn reason(&self, place: usize) -> &'static str;

    /// Returns the configuration space and the MSI-X table of a function, which are the part of [`Self::save_drivers`] that a
    /// client changes. Returns `None` for a PF that a guest has: they are all of it.
    fn configuration(&self, function: Function) -> Option<FunctionState>;

    /// Encodes what outlives the card, for a successor.
    fn save_drivers(&mut self) -> Result<Vec<u8>, StateError>;

    /// Encodes the whole card with what is known of the functions, for a successor.
    fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        bus: &mut LiveBus,
        now: Time,
    ) -> Result<Vec<u8>, StateError>;
}
