//! Trait of a port's card with the software of its PF, for every family. Clients, sockets and the uplink belong to the
//! port.

use super::bus::GuestBus;
use super::error::CardChangeRefusal;
use super::page_memory::VfRegisterPages;
use super::revocation::AddressRevocation;
use super::uplink::PortUplink;
use super::workers::{PortWorkers, WorkerFailure};
use crate::config::{self, PortConfig};
use crate::control::status::{
    PacketBufferStatus, VfConductStatus, VfFilterStatus, VfMailboxStatus, VfQuotaStatus, WorkerStatus,
};
use crate::settings::VfSettings;
use crate::state::SavedStateError;
use crate::state::port::ClientState;
use driver::conduct::{OffenceCounts, VfConductMonitor, VfConductVerdict};
use host::confine::PreparedSandbox;
use i82576::{MacAddress, Time};
use iovm::VirtualFunctionState;
use nic::{PollResult, PoolCounters};
use pcie::{Function, VfIndex, VfSet};
use plane::guard::GuardedPlane;
use policy::{Offence, PolicyError, PortPolicy, VfPolicy};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use units::WorkCost;
use vfio_user::types::SparseArea;

/// Refused policy: its VF, or `None` for a policy of the port, and the reason.
pub(in crate::port) type RefusedPolicy = (Option<VfIndex>, PolicyError);

/// Result of one run of the PF driver, in which it answers requests of VFs.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::port) struct PfDriverRunResult {
    /// VFs whose mailbox requests the PF driver has answered.
    pub(in crate::port) served: VfSet,
    /// True if the link that VFs see may have changed.
    pub(in crate::port) link_changed: bool,
    /// Time at which the PF driver has to run next if no event comes before.
    pub(in crate::port) deadline: Option<Time>,
}

/// State of a VF for the port's status report.
#[derive(Debug)]
pub(in crate::port) struct ReportedVfState {
    /// MAC address in use, or `None` if the VF has set none.
    pub(in crate::port) mac: Option<MacAddress>,
    pub(in crate::port) vlans: Vec<u16>,
    pub(in crate::port) link: bool,
    pub(in crate::port) active: bool,
    pub(in crate::port) filters: VfFilterStatus,
    pub(in crate::port) quotas: Option<VfQuotaStatus>,
    pub(in crate::port) settings: VfSettings,
    pub(in crate::port) conduct: VfConductStatus,
    pub(in crate::port) mailbox: VfMailboxStatus,
}

/// Returns the numbers of a VF's events that may be offences, in the order of [`Offence`]. The PF driver counts
/// mailbox requests.
pub(super) fn offence_counts(counters: &PoolCounters, interrupts: u64) -> OffenceCounts {
    let groups = counters.tx_broadcast + counters.tx_multicast;
    [0, counters.tx_blocked, groups, interrupts, counters.tx_invalid, counters.dma_faults]
}

/// Returns the offences of a VF, and its throttling or quarantine, for the VF's status.
pub(super) fn conduct(monitor: &VfConductMonitor) -> VfConductStatus {
    let offences = Offence::ALL.into_iter().zip(monitor.offences()).filter(|(_, count)| **count > 0);
    VfConductStatus {
        quarantine: monitor.quarantined().map(|cause| cause.name().to_owned()),
        throttled: monitor.throttled(),
        offences: offences.map(|(offence, count)| (offence.name().to_owned(), *count)).collect(),
    }
}

/// Maximum number of reasons to refuse a VF's request, over all families.
pub(in crate::port) const REASONS: usize = {
    let (igb, avf) = (driver::pf::MailboxRefusal::ALL.len(), driver::avf::pf::VirtchnlRefusal::NAMES.len());
    if igb > avf { igb } else { avf }
};

/// State of a VF and its driver whose changes are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct VfDriverState {
    pub(in crate::port) active: bool,
    pub(in crate::port) link: bool,
    /// True if the guest has requested more filters than the card has.
    pub(in crate::port) cut: bool,
    pub(in crate::port) resets: u64,
    /// Numbers of the VF's refused requests, by reason.
    pub(in crate::port) refused: [u64; REASONS],
}

/// Returns the policy of a VF that is not offered, which moves no frame.
pub(in crate::port) fn not_offered() -> VfPolicy {
    VfPolicy { enabled: false, ..VfPolicy::default() }
}

/// Card of this process, new or restored from the previous host process's state, with the saved state of each
/// function's client.
#[derive(Debug)]
pub(in crate::port) struct InheritedCard<C: ?Sized = dyn PortCard> {
    pub(in crate::port) card: Box<C>,
    /// Time when the VFs were last checked for offences.
    pub(in crate::port) watched: Time,
    pub(in crate::port) functions: Vec<ClientState>,
}

impl InheritedCard {
    /// Creates a card without counters of earlier processes.
    pub(in crate::port) fn new(card: impl PortCard + 'static) -> Self {
        Self { card: Box::new(card), watched: Time::ZERO, functions: Vec::new() }
    }
}

impl<C: PortCard + 'static> InheritedCard<C> {
    /// Forgets the card's family.
    pub(in crate::port) fn of_any_family(self) -> InheritedCard {
        let Self { card, watched, functions } = self;
        InheritedCard { card, watched, functions }
    }
}

/// Card of a port, of any device family, with the software of its PF.
pub(in crate::port) trait PortCard: AddressRevocation + Debug + Send {
    /// Returns the port's card family, as the configuration names the family.
    fn family(&self) -> config::file::CardFamily;

    /// Returns the card family of a VF.
    fn vf_family(&self, _: VfIndex) -> config::file::CardFamily {
        self.family()
    }

    /// Returns true if a function has vhost-user clients. All others are PCI devices with vfio-user clients.
    fn is_virtio(&self, function: Function) -> bool {
        function.vf().is_some_and(|vf| self.vf_family(vf) == config::file::CardFamily::Virtio)
    }

    /// Returns the port's card of the family `virtio`. Returns `None` if the port has no VFs of this family.
    fn virtio(&mut self) -> Option<&mut virtio_nic::Nic> {
        None
    }

    /// Returns true if the administrator or a quarantine has disabled a virtio VF, so that its client is disconnected.
    /// A client of another family sees a link that is down.
    fn is_disconnected(&self, _: VfIndex) -> bool {
        false
    }

    /// Returns the bytes of a region of a function, or 0 if there is no such region.
    fn region(&self, function: Function, index: u32) -> usize;

    /// Reads a region of a function for its client.
    fn read(&mut self, function: Function, region: u32, offset: u64, data: &mut [u8], now: Time);

    /// Writes a region of a function for its client.
    fn write(&mut self, function: Function, region: u32, offset: u64, data: &[u8], now: Time);

    /// Resets a function to its state after power-on: registers, MSI-X table and configuration space. Its policy stays.
    /// Returns `false` if the reset fails.
    fn reset_function(&mut self, function: Function) -> bool;

    /// Resets a function whose client has left ([`Self::reset_function`]), and forgets what the client's guest has chosen: the next
    /// client's guest finds the settings of the policy.
    fn reset_for_next_client(&mut self, function: Function) -> bool {
        self.reset_function(function)
    }

    /// Returns the cost of the work since the last call that accesses have caused beside themselves, such as resets.
    fn take_work(&mut self) -> WorkCost {
        WorkCost::default()
    }

    /// Leaves the requests and resets of these VFs to a later round, and serves those of all other VFs again. A family whose
    /// VFs have no PF driver ignores it.
    fn hold_requests(&mut self, _: VfSet) {}

    /// Calls `charge` for each VF with the cost of the work that the card has done for it outside its client's messages since
    /// the last call.
    fn settle_work(&mut self, _charge: &mut dyn FnMut(VfIndex, WorkCost)) {}

    /// Returns true if a function is bus master.
    fn is_bus_master(&self, function: Function) -> bool;

    /// Returns the ranges of a VF's BAR0 that its client may map.
    fn mappable(&self, vf: VfIndex) -> &'static [SparseArea];

    /// Begins to use the register pages that a VF's client maps. If `exactly`, the pages are as the card left them, and
    /// changed doorbells count as the guest's stores. Otherwise the card's registers overwrite the pages.
    fn share_pages(&mut self, vf: VfIndex, pages: &Arc<VfRegisterPages>, exactly: bool, now: Time);

    /// Ends the use of a VF's register pages, whose client is gone.
    fn unshare_pages(&mut self, _: VfIndex) {}

    /// Returns true if the guest has stored a doorbell since the card last read the register pages.
    fn has_new_doorbells(&self, vf: VfIndex, pages: &VfRegisterPages) -> bool;

    /// Reads the doorbells that the guest has stored into the register pages, and acts on them.
    fn read_doorbells(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time);

    /// Stores registers of the VF into its register pages, for the guest to read.
    fn publish_registers(&mut self, vf: VfIndex, pages: &VfRegisterPages, now: Time);

    /// Returns true if the host runs the PF driver, and false if a guest drives the PF.
    fn is_hosted(&self) -> bool;

    /// Returns the VFs with mailbox requests that the PF driver has not handled.
    fn pending_requests(&mut self, now: Time) -> VfSet;

    /// Has the PF driver answer mailbox requests of its VFs.
    fn visit(&mut self, bus: &mut GuestBus, now: Time) -> PfDriverRunResult;

    /// Has the PF driver check a VF for offences by its counters. `interrupts` is the number of interrupts that the
    /// port has sent for the VF.
    fn judge(
        &mut self,
        vf: VfIndex,
        interrupts: u64,
        bus: &mut GuestBus,
        now: Time,
    ) -> Option<VfConductVerdict>;

    /// Returns true if the card polls rings in guests' memory whose drivers send no notifications. Then a packet may come
    /// without an event, until [`Self::arm_rings`].
    fn polls_rings(&self) -> bool {
        false
    }

    /// Looks for a packet in the rings that the card polls. Returns true if there is one, which the next poll sends.
    fn look_at_rings(&mut self, _: &mut GuestBus) -> bool {
        false
    }

    /// Asks the drivers of polled rings for a notification of their next packet, before the port sleeps. Returns true if a
    /// ring has a packet already.
    fn arm_rings(&mut self, _: &mut GuestBus) -> bool {
        false
    }

    /// Starts the configured threads that share the card's VFs with the port's own. A family whose card cannot be divided starts
    /// none.
    fn start_workers(&mut self, _: &PortConfig, _: &PreparedSandbox) -> io::Result<()> {
        Ok(())
    }

    /// Returns the threads that share the card's VFs, if there are any beside the port's own.
    fn workers(&mut self) -> Option<&mut dyn PortWorkers> {
        None
    }

    /// Returns the status of the threads that share the port's `vfs` VFs, if there are several.
    fn worker_status(&mut self, _vfs: usize) -> Vec<WorkerStatus> {
        Vec::new()
    }

    /// Returns true while other threads have parts of the card. Then only [`Self::poll`], [`Self::gather`], [`Self::has_changed`],
    /// [`Self::is_bus_master`] and the functions for register pages may be called, which see no VF of another thread.
    fn is_divided(&self) -> bool {
        false
    }

    /// Returns true if the switch's tables have to be computed again, or the PF driver has to run, for which the card must not
    /// be divided.
    fn has_changed(&self) -> bool {
        false
    }

    /// Takes the parts of the card back from the other threads.
    ///
    /// # Errors
    /// [`WorkerFailure`]: a part is lost.
    fn gather(&mut self, _: &mut GuestBus, _: &mut PortUplink) -> Result<(), WorkerFailure> {
        Ok(())
    }

    /// Decides which thread serves each VF. `alone` is true while the port's own thread has to serve all of them.
    fn assign(&mut self, _: &mut GuestBus, _alone: bool, _: Time) {}

    /// Gives each other thread the part of the card with its VFs. `takes_uncut` is true if the uplink takes packets that are
    /// not segmented.
    ///
    /// # Errors
    /// [`WorkerFailure`]: a part is lost.
    fn divide(&mut self, _: &mut GuestBus, _takes_uncut: bool) -> Result<(), WorkerFailure> {
        Ok(())
    }

    /// Moves frames and sends interrupts, within the card's own budget.
    fn poll(&mut self, now: Time, bus: &mut GuestBus, uplink: &mut PortUplink) -> PollResult;

    /// Returns true if the port has a link.
    fn link(&self) -> bool;

    /// Sets the link of the card's port. The PF driver handles the change when it next runs.
    fn set_link(&mut self, up: bool);

    /// Returns the guards of the card's plane, where VF n is port n.
    fn guards(&self) -> &dyn GuardedPlane;

    /// Returns the guards of the card's plane, to change them. Other workers of the port take the plane's tables over.
    fn guards_mut(&mut self) -> &mut dyn GuardedPlane;

    /// Shows a VF the link that the PF driver has set, or no link while the VF's client is being disconnected
    /// (`hidden`). The caller logs errors, since it limits log lines that clients can cause.
    fn show_link(
        &mut self,
        vf: VfIndex,
        hidden: bool,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), PolicyError>;

    /// Notifies a VF's driver to check its link.
    fn notify(&mut self, vf: VfIndex, bus: &mut GuestBus, now: Time);

    /// Checks that the card can apply these policies to its VFs, by index, in its present state. Each policy must be
    /// valid by itself.
    fn check(&self, vfs: &[VfPolicy]) -> Result<(), RefusedPolicy>;

    /// Sets the policies of the port and of its VFs, by index: all of them or none.
    fn apply_policies(
        &mut self,
        port: &PortPolicy,
        vfs: &[VfPolicy],
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedPolicy>;

    /// Quarantines a VF for the administrator, or releases it.
    fn quarantine(&mut self, vf: VfIndex, on: bool, bus: &mut GuestBus, now: Time);

    /// Adds one of the card's VFs to the VFs that the port offers. `offered` is the port's name and its new number of
    /// VFs.
    fn offer(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal>;

    /// Removes a VF from those that the port offers to clients. `offered` is the port's name and its new number of VFs.
    /// If one step of the removal fails, the other steps run all the same.
    fn withdraw(&mut self, vf: VfIndex, offered: (&str, u8), now: Time) -> Result<(), CardChangeRefusal>;

    /// Resets the card and sets it up again. Guests are notified before.
    fn reset(
        &mut self,
        bus: &mut GuestBus,
        uplink: &mut PortUplink,
        now: Time,
    ) -> Result<(), CardChangeRefusal>;

    /// Notifies the drivers of all VFs that the port is removed.
    fn remove(&mut self, bus: &mut GuestBus, now: Time);

    /// Returns the frame counters of a function.
    fn counters(&mut self, function: Function) -> PoolCounters;

    /// Returns number and bytes of the received frames in the card that wait for descriptors of the function. A family
    /// without a packet buffer has none.
    fn waiting(&self, _: Function) -> PacketBufferStatus {
        PacketBufferStatus::default()
    }

    /// Returns the policy of the port, if the host runs the PF's software.
    fn port_policy(&self) -> Option<&PortPolicy>;

    /// Returns the number of storms that storm control has detected.
    fn storms(&self) -> u64;

    /// Returns the card's part of a VF's status.
    fn vf_status(&self, vf: VfIndex) -> Option<ReportedVfState>;

    /// Returns the routing id of a VF.
    fn rid(&self, vf: VfIndex) -> Option<String>;

    /// Returns the sizes of a VF's receive and transmit rings in descriptors, as its driver has set them up.
    fn rings(&mut self, vf: VfIndex, now: Time) -> (Vec<u32>, Vec<u32>);

    /// Returns true if a guest's driver has enabled the VF.
    fn is_active(&self, vf: VfIndex) -> bool;

    /// Returns the state of a VF and its driver whose changes are logged.
    fn driver_state(&self, vf: VfIndex) -> Option<VfDriverState>;

    /// Returns the name of a reason to refuse a request of a VF with a mailbox, by its index in [`VfDriverState::refused`].
    fn reason(&self, place: usize) -> &'static str;

    /// Returns the configuration space and the MSI-X table of a function: the part of [`Self::save_drivers`] that a
    /// client changes. Returns `None` for a PF that a guest drives, whose drivers' state has nothing else.
    fn configuration(&self, function: Function) -> Option<VirtualFunctionState>;

    /// Encodes the state of drivers and policies, which outlives the card, for the successor process.
    fn save_drivers(&mut self) -> Result<Vec<u8>, SavedStateError>;

    /// Encodes the whole card, with the state of each function's client, for the successor process.
    fn save_all(
        &mut self,
        watched: Time,
        functions: Vec<ClientState>,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<Vec<u8>, SavedStateError>;
}
