//! Engine of a port: its card with the PF's software, the bus that the card masters, the uplink, and workers. On the port's
//! thread it reads no clock and never sleeps. Time is an argument of every call, and [`PortEngine::poll`] returns the time
//! of the next call.
//!
//! | module | content |
//! |---|---|
//! | `family` | the trait of a card with its PF's software |
//! | `i82576` | the 82576, whose PF is the host's or a guest's |
//! | `avf` | Adaptive Virtual Functions |
//! | `virtio` | virtio network devices behind vhost-user |
//! | `mixed` | VFs of both AVF and virtio on one switch |
//! | `decided`, `switch_policy` | policies in force of VFs and port, for families without registers for them |
//! | `guards` | the guards of the plane that follow from policies |
//! | `revocation` | addresses of others that VFs lose with a change of the configuration |
//! | `access`, `bus` | memory and interrupts of each function |
//! | `interrupts` | interrupts to guests that the port sends, beside those of the card |
//! | `bell` | wakes a thread that sleeps beside a ring of frames |
//! | `workers` | threads that share a card's VFs |
//! | `polled_rings` | rings that are polled while there is traffic |
//! | `owed_work` | work for VFs that the port charges |
//! | `page_memory` | memory of registers that clients map |
//! | `kick_reports` | tells kicks from reports of a poller that repeat one |
//! | `ring_records` | positions of packed rings, which outlive the process |
//! | `uplink` | frames beyond the card |
//!
//! Clients and the succession use the engine, which knows neither. Only recordings of an uplink use the wall clock, for stamps.

mod access;
pub(in crate::port) mod avf;
mod batches;
mod bell;
pub(in crate::port) mod bus;
mod decided;
pub(in crate::port) mod error;
pub(in crate::port) mod family;
mod guards;
pub(in crate::port) mod i82576;
mod interrupts;
mod kick_reports;
pub(in crate::port) mod mixed;
mod owed_work;
pub(in crate::port) mod page_memory;
mod polled_rings;
mod revocation;
pub(in crate::port) mod ring_records;
mod station_key;
mod switch_policy;
pub(in crate::port) mod uplink;
pub(in crate::port) mod virtio;
mod workers;

use crate::capture::CaptureWriter;
use crate::config::PortConfig;
use crate::config::file::{CardFamily, PortLinkRule};
use crate::control::uplink::UplinkStatus;
use crate::port::tokens;
use crate::settings::LinkLocalPolicy;
use crate::state::SavedStateError;
use crate::state::port::ClientState;
use ::i82576::Time;
use bus::{FunctionBus, FunctionResources, GuestBus};
use driver::conduct::VfConductVerdict;
use error::CardChangeRefusal;
use family::{PfDriverRunResult, PortCard, RefusedPolicy};
use host::confine::PreparedSandbox;
use host::cpus::CpuList;
use host::poll::{PollInterest, Poller};
use pcie::{Function, VfIndex};
use plane::UplinkWire;
use policy::{PolicyError, PortPolicy, VfPolicy};
use station_key::random_key;
use std::io;
use std::time::Duration;
use uplink::{PortUplink, UplinkPipelineStages, UplinkPollContext};
use workers::WorkerFailure;

/// Outcome of one call of [`PortEngine::poll`], which polls card and uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct EnginePollOutcome {
    /// True if the card has more pending work: poll it again at once.
    pub(in crate::port) more: bool,
    /// Time to poll the card again if no event comes before.
    pub(in crate::port) deadline: Option<Time>,
}

/// Card, bus and uplink of a port.
#[derive(Debug)]
pub(in crate::port) struct PortEngine {
    card: Box<dyn PortCard>,
    bus: GuestBus,
    uplink: PortUplink,
    link_local: LinkLocalPolicy,
    /// True if the uplink has changed while the card was divided, so that the card's link may be outdated.
    uplink_changed: bool,
    /// Random key of the card's table of stations beyond the uplink, which cannot guess it.
    station_key: u64,
}

impl PortEngine {
    /// Creates the engine of a port from the card, the bus and the uplink.
    pub(in crate::port) fn new(
        card: Box<dyn PortCard>,
        bus: GuestBus,
        uplink: PortUplink,
        link_local: LinkLocalPolicy,
    ) -> Self {
        Self { card, bus, uplink, link_local, uplink_changed: false, station_key: random_key() }
    }

    /// Sets the card's link to the uplink's link, and the card's policy for link-local frames to the configured one.
    pub(in crate::port) fn begin(&mut self) {
        self.renew_link();
        self.set_link_local(self.link_local);
    }

    /// Adds the uplink's file descriptors to the port's poller.
    pub(in crate::port) fn join_uplink(&mut self, poller: &Poller, now: Time) -> io::Result<()> {
        self.uplink.join(UplinkPollContext { poller, token: tokens::UPLINK, now })
    }

    /// Returns the card of the port.
    pub(in crate::port) fn card(&self) -> &dyn PortCard {
        &*self.card
    }

    /// Returns the card of the port, for changes that need no bus.
    pub(in crate::port) fn card_mut(&mut self) -> &mut dyn PortCard {
        &mut *self.card
    }

    /// Returns the port's card of the family `virtio` with its bus, by which the card reads rings that start. Returns `None`
    /// if the port has no VFs of this family.
    pub(in crate::port) fn virtio(&mut self) -> Option<(&mut virtio_nic::Nic, &mut GuestBus)> {
        Some((self.card.virtio()?, &mut self.bus))
    }

    /// Returns the memory and interrupts of a function that the port offers.
    pub(in crate::port) fn reach(&self, function: Function) -> &FunctionBus {
        self.bus.reach(function)
    }

    /// Returns the memory and interrupts of a function that the port offers, to change them.
    pub(in crate::port) fn reach_mut(&mut self, function: Function) -> &mut FunctionBus {
        self.bus.reach_mut(function)
    }

    /// Has the PF driver answer mailbox requests of its VFs.
    pub(in crate::port) fn visit(&mut self, now: Time) -> PfDriverRunResult {
        self.card.visit(&mut self.bus, now)
    }

    /// Has the PF driver check a VF for offences by the counters of card and bus.
    pub(in crate::port) fn judge(&mut self, vf: VfIndex, now: Time) -> Option<VfConductVerdict> {
        let interrupts = self.bus.reach(vf.function()).interrupts();
        self.card.judge(vf, interrupts, &mut self.bus, now)
    }

    /// Moves frames and sends interrupts, within the card's budget, and flushes the uplink.
    pub(in crate::port) fn poll(&mut self, now: Time) -> EnginePollOutcome {
        self.uplink.set_time(now);
        let poll = self.card.poll(now, &mut self.bus, &mut self.uplink);
        self.uplink.flush();
        EnginePollOutcome { more: poll.more, deadline: poll.deadline }
    }

    /// Starts the other threads of a port that has several workers, and adds their waker to the port's poller.
    pub(in crate::port) fn start_workers(
        &mut self,
        config: &PortConfig,
        threads: &PreparedSandbox,
        poller: &Poller,
    ) -> io::Result<()> {
        if config.workers > 1 {
            self.card.start_workers(config, threads)?;
        }
        match self.card.workers() {
            Some(workers) => poller.add(workers.waker(), tokens::TRUNK, PollInterest::READ),
            None => Ok(()),
        }
    }

    /// Changes the processors that the other workers of the port run on.
    pub(in crate::port) fn run_workers_on(&mut self, cpus: &CpuList) {
        if let Some(workers) = self.card.workers() {
            workers.set_cpus(cpus);
        }
    }

    /// Prepares the waker of other workers for the next wake-up.
    pub(in crate::port) fn drain_trunk_waker(&mut self) {
        if let Some(workers) = self.card.workers() {
            workers.waker().drain();
        }
    }

    /// Records for how long the port's thread was busy in a round.
    pub(in crate::port) fn note_busy(&mut self, busy: Duration) {
        if let Some(workers) = self.card.workers() {
            workers.note_busy(busy);
        }
    }

    /// Returns the time at which the dispatcher decides again, while the card is divided.
    pub(in crate::port) fn end_of_window(&mut self) -> Option<Time> {
        self.card.workers().and_then(|workers| workers.deadline())
    }

    /// Returns true while other threads have parts of the card. Then the port may only move frames.
    pub(in crate::port) fn is_divided(&self) -> bool {
        self.card.is_divided()
    }

    /// Returns true if the card has to be gathered before the next poll: its tables or the uplink's link have changed, its PF
    /// driver has to run, or a capture needs all frames on one thread.
    pub(in crate::port) fn must_gather(&self) -> bool {
        self.card.has_changed() || self.uplink_changed || self.uplink.is_watched()
    }

    /// Takes the parts of the card back from the other threads.
    pub(in crate::port) fn gather(&mut self) -> Result<(), WorkerFailure> {
        if self.is_divided() {
            self.card.gather(&mut self.bus, &mut self.uplink)?;
            // A command before the next poll may replace the uplink or leave it to the successor process.
            self.uplink.flush();
        }
        Ok(())
    }

    /// Returns true if the card may not be divided before the next round, which makes tables or runs the PF driver.
    pub(in crate::port) fn needs_whole_card(&self) -> bool {
        self.card.has_changed()
    }

    /// Decides which thread serves each VF.
    pub(in crate::port) fn assign(&mut self, now: Time) {
        let alone = self.uplink.is_watched();
        self.card.assign(&mut self.bus, alone, now);
    }

    /// Gives each other thread the part of the card with its VFs.
    pub(in crate::port) fn divide(&mut self) -> Result<(), WorkerFailure> {
        self.card.divide(&mut self.bus, self.uplink.takes_uncut())
    }

    /// Handles changes of the uplink, and sets the card's link to the link of the uplink. Returns `true` if the card's link has
    /// changed, so that the PF driver has to handle it. A card without its uplink keeps running, since its switch needs none.
    /// A divided card gets its link once it is gathered ([`Self::must_gather`]).
    pub(in crate::port) fn follow_uplink(&mut self, poller: &Poller, now: Time) -> bool {
        self.note_uplink(poller, now);
        if self.is_divided() || !std::mem::take(&mut self.uplink_changed) {
            return false;
        }
        let before = self.card.link();
        self.card.set_link(self.uplink.link());
        self.card.link() != before
    }

    /// Prepares the uplink for the port's sleep. Returns `false` if it has frames for the port. Later frames wake the port.
    pub(in crate::port) fn may_sleep(&mut self) -> bool {
        self.uplink.may_sleep()
    }

    /// Returns the time to flush the uplink if no event comes before.
    pub(in crate::port) fn uplink_deadline(&self) -> Option<Time> {
        self.uplink.deadline()
    }

    /// Records that a file descriptor of the uplink is readable.
    pub(in crate::port) fn set_uplink_readable(&mut self) {
        self.uplink.set_readable();
    }

    /// Has the uplink delete its socket files when the port ends.
    pub(in crate::port) fn own_uplink(&mut self) {
        self.uplink.own();
    }

    /// Leaves the uplink's socket files to the successor process.
    pub(in crate::port) fn leave_uplink(&mut self) {
        self.uplink.leave();
    }

    /// Copies the port's frames to a capture.
    pub(in crate::port) fn capture(&mut self, capture: CaptureWriter) {
        self.uplink.capture(capture);
    }

    /// Returns the configured uplink as text, such as `tap:NAME`, with its state if the uplink is not up.
    pub(in crate::port) fn uplink_text(&self) -> String {
        self.uplink.to_string()
    }

    /// Returns the configured uplink as text, such as `tap:NAME`.
    pub(in crate::port) fn configured_uplink(&self) -> String {
        self.uplink.configured()
    }

    /// Returns the status of the port's uplink, if it has one.
    pub(in crate::port) fn uplink_status(&self, now: Time) -> Option<UplinkStatus> {
        self.uplink.status(now)
    }

    /// Sets whether the link follows the uplink's. Returns the former rule. [`Self::renew_link`] applies the new one.
    pub(in crate::port) fn set_link_policy(&mut self, link: PortLinkRule) -> PortLinkRule {
        self.uplink.set_policy(link)
    }

    /// Replaces the port's uplink and returns the former uplink. Changes nothing if the poller does not accept the new
    /// uplink. Call [`Self::share_addresses`] afterwards.
    pub(in crate::port) fn replace_uplink(
        &mut self,
        next: PortUplink,
        poller: &Poller,
        now: Time,
    ) -> Result<PortUplink, Box<(PortUplink, io::Error)>> {
        self.uplink.replace(next, UplinkPollContext { poller, token: tokens::UPLINK, now })
    }

    /// Replaces impairment and recording of the uplink's frames, and returns the former stages.
    pub(in crate::port) fn set_stages(&mut self, stages: UplinkPipelineStages) -> UplinkPipelineStages {
        self.uplink.set_stages(stages)
    }

    /// Sets the card's link to the link of the uplink. The PF driver handles the change when it next runs.
    pub(in crate::port) fn renew_link(&mut self) {
        self.card.set_link(self.uplink.link());
    }

    /// Shows a VF the PF driver's link, or no link while its client is being disconnected (`hidden`).
    pub(in crate::port) fn show_link(
        &mut self,
        vf: VfIndex,
        hidden: bool,
        now: Time,
    ) -> Result<(), PolicyError> {
        self.card.show_link(vf, hidden, &mut self.bus, now)
    }

    /// Notifies a VF's driver to check its link.
    pub(in crate::port) fn notify(&mut self, vf: VfIndex, now: Time) {
        self.card.notify(vf, &mut self.bus, now);
    }

    /// Sets the policies of the port and of its VFs, by index: all of them or none.
    pub(in crate::port) fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        now: Time,
    ) -> Result<(), RefusedPolicy> {
        self.card.apply_policies(port, vfs, &mut self.bus, now)
    }

    /// Quarantines a VF for the administrator, or releases it.
    pub(in crate::port) fn quarantine(&mut self, vf: VfIndex, on: bool, now: Time) {
        self.card.quarantine(vf, on, &mut self.bus, now);
    }

    /// Adds a VF of a family to the port's bus.
    pub(in crate::port) fn add_vf(&mut self, resources: FunctionResources, family: CardFamily) {
        self.bus.add_vf(resources, family);
    }

    /// Removes the last VF from the port's bus, with its thread and its part of the table of mappings.
    pub(in crate::port) fn remove_vf(&mut self) {
        self.bus.remove_vf();
    }

    /// Resets the card and sets it up again. Guests are notified before.
    pub(in crate::port) fn reset(&mut self, now: Time) -> Result<(), CardChangeRefusal> {
        self.card.reset(&mut self.bus, &mut self.uplink, now)
    }

    /// Notifies the drivers of VFs that the port is removed.
    pub(in crate::port) fn remove(&mut self, now: Time) {
        self.card.remove(&mut self.bus, now);
    }

    /// Encodes the whole card, with the state of each function's client, for the successor process.
    pub(in crate::port) fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        now: Time,
    ) -> Result<Vec<u8>, SavedStateError> {
        self.card.save_all(watched, functions, &mut self.bus, now)
    }
}
