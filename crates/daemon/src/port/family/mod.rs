//! What a port does with its card and with the PF's software, whatever family they are of. Left out: clients, sockets,
//! the uplink, which are the port's own.
//!
//! | module | the family |
//! |---|---|
//! | `i82576` | the 82576, whose PF is the host's or a guest's |
//! | `avf` | Adaptive Virtual Functions |

mod avf;
mod i82576;

pub(super) use self::avf::Avf;
pub(super) use self::i82576::I82576;

use super::RefusedChange;
use super::bus::LiveBus;
use super::pages::Memory;
use super::tell::News;
use super::uplink::Uplink;
use crate::config;
use crate::control::status::{Conduct, Filters, Mailbox, Waiting};
use crate::settings::{PortSettings, VfSettings};
use crate::state::StateError;
use crate::state::port::ClientState;
use ::i82576::{MacAddress, Time};
use driver::conduct::{Monitor, Totals, Verdict};
use iovm::FunctionState;
use nic::{Poll, PoolCounters};
use pcie::{Function, VfIndex, VfSet};
use policy::{Offence, PolicyError, PortPolicy, VfPolicy};
use std::fmt::Debug;
use vfio_user::types::SparseArea;

/// A refused policy: the VF, or `None` for the port, and why.
pub(super) type Unfit = (Option<VfIndex>, PolicyError);

/// What a visit of the PF driver did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visit {
    /// VFs that were answered.
    pub(super) served: VfSet,
    /// The link that VFs are shown may be another.
    pub(super) link_changed: bool,
    /// When to come again though nothing new happens.
    pub(super) deadline: Option<Time>,
}

/// What a VF is, for the status.
#[derive(Debug)]
pub(super) struct VfFacts {
    /// The address that it uses; none if it has said none.
    pub(super) mac: Option<MacAddress>,
    pub(super) vlans: Vec<u16>,
    pub(super) link: bool,
    pub(super) active: bool,
    pub(super) filters: Filters,
    pub(super) settings: VfSettings,
    pub(super) conduct: Conduct,
    pub(super) mailbox: Mailbox,
}

/// What a VF has done, in the order of [`Offence`]. Requests are left out: the PF driver knows them.
fn totals(counters: &PoolCounters, interrupts: u64) -> Totals {
    let groups = counters.tx_broadcast + counters.tx_multicast;
    [0, counters.tx_blocked, groups, interrupts, counters.tx_invalid, counters.dma_faults]
}

/// What is told of a VF's conduct.
fn conduct(monitor: &Monitor) -> Conduct {
    let offences = Offence::ALL.into_iter().zip(monitor.offences()).filter(|(_, count)| **count > 0);
    Conduct {
        quarantine: monitor.quarantined().map(|cause| cause.name().to_owned()),
        throttled: monitor.throttled(),
        offences: offences.map(|(offence, count)| (offence.name().to_owned(), *count)).collect(),
    }
}

/// A card with the software of its PF.
pub(super) trait Family: Debug + Send {
    /// As the configuration names it.
    fn family(&self) -> config::file::Family;

    /// Bytes of a region of a function; 0 if there is no such region.
    fn region(&self, function: Function, index: u32) -> usize;

    /// A client reads a region of a function.
    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8]);

    /// A client writes a region of a function.
    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8]);

    /// Resets a function to its state after power-on: registers, MSI-X table and configuration space. Policy stays. Returns
    /// `false` if the reset fails.
    fn reset_function(&mut self, function: Function) -> bool;

    /// Whether a function may use the bus.
    fn is_bus_master(&self, function: Function) -> bool;

    /// What of a VF's BAR0 its client may map.
    fn mappable(&self) -> &'static [SparseArea];

    /// A client has these pages of a VF from now on. If they are `exactly` as the card has left them, but for what the guest
    /// has stored since, that counts; else they become what the card's registers are.
    fn share(&mut self, vf: VfIndex, pages: &Memory, exactly: bool);

    /// Whether the guest has stored anything into pages that its client has since the last look.
    fn stirred(&self, vf: VfIndex, pages: &Memory) -> bool;

    /// The card takes what the guest has stored.
    fn look(&mut self, vf: VfIndex, pages: &Memory);

    /// The card puts there what the guest is to read.
    fn show(&mut self, vf: VfIndex, pages: &Memory);

    /// The PF's software is here, and no guest has the PF.
    fn is_hosted(&self) -> bool;

    /// VFs whose requests wait for the PF driver.
    fn asking(&mut self) -> VfSet;

    /// The PF driver looks after its VFs.
    fn visit(&mut self, bus: &mut LiveBus) -> Visit;

    /// The PF driver judges a VF by what was counted, with the interrupts that the port has sent for it.
    fn judge(&mut self, vf: VfIndex, interrupts: u64, bus: &mut LiveBus) -> Option<Verdict>;

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
    fn show_link(&mut self, vf: VfIndex, hidden: bool, bus: &mut LiveBus) -> Result<(), PolicyError>;

    /// Tells a VF's driver to look at its link.
    fn notify(&mut self, vf: VfIndex, bus: &mut LiveBus);

    /// Checks that VFs, by index, could have these policies now, which make sense by themselves. A port can have any such.
    fn check(&self, vfs: &[VfPolicy]) -> Result<(), Unfit>;

    /// Gives the port and its VFs, by index, these policies, all of them or none.
    fn carry(&mut self, port: &PortPolicy, vfs: &[VfPolicy], bus: &mut LiveBus) -> Result<(), Unfit>;

    /// Quarantines a VF for the administrator, or releases it.
    fn quarantine(&mut self, vf: VfIndex, on: bool, bus: &mut LiveBus);

    /// Offers one VF more, the last of `count`.
    fn offer(&mut self, vf: VfIndex, count: u8, port: &str) -> Result<(), RefusedChange>;

    /// Stops offering this VF of a port: only `count` from now on. After an error the rest is done all the same.
    fn withdraw(&mut self, vf: VfIndex, count: u8, port: &str) -> Result<(), RefusedChange>;

    /// Resets the card and sets it up again. Guests are told before.
    fn reset(&mut self, bus: &mut LiveBus, uplink: &mut Uplink) -> Result<(), RefusedChange>;

    /// The port ends: drivers of VFs are told.
    fn remove(&mut self, bus: &mut LiveBus);

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

    /// A VF, for the status.
    fn facts(&self, vf: VfIndex) -> Option<VfFacts>;

    /// Where a VF is on the bus.
    fn rid(&self, vf: VfIndex) -> Option<String>;

    /// Descriptors of a VF's receive and transmit rings, as its driver has set them up.
    fn rings(&mut self, vf: VfIndex) -> (Vec<u32>, Vec<u32>);

    /// Whether a driver runs a VF.
    fn is_active(&self, vf: VfIndex) -> bool;

    /// What may be told of a VF.
    fn news(&self, vf: VfIndex) -> Option<News>;

    /// The name of a reason to refuse a request, by its place in [`News::refused`].
    fn reason(&self, place: usize) -> &'static str;

    /// Returns the configuration space and the MSI-X table of a function, which are the part of [`Self::software`] that a
    /// client changes. Returns `None` for a PF that a guest has: they are all of it.
    fn configuration(&self, function: Function) -> Option<FunctionState>;

    /// Encodes what outlives the card, for a successor.
    fn software(&mut self) -> Result<Vec<u8>, StateError>;

    /// All of it with what is known of the functions, as bytes for a successor.
    fn rest(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        bus: &mut LiveBus,
    ) -> Result<Vec<u8>, StateError>;
}
