//! Opens a port: a new one, or one that continues from the saved state of the previous host process.

use super::clients::PortClients;
use super::clients::dialer::VmmDialer;
use super::clients::errand::{BlockingCallCompletionSender, BlockingCallQueue};
use super::clients::holdings::ClientResources;
use super::clients::listening::{FunctionSocketConfig, KEPT_LISTENERS, kept_listener};
use super::clients::slot::OfferedFunction;
use super::command::PortCommandInbox;
use super::engine::PortEngine;
use super::engine::bus::GuestBus;
use super::engine::uplink::{ParentAddressRegistry, PortUplink, UplinkResources, WireRegistry, XdpPrograms};
use super::engine::virtio;
use super::error::PortStartError;
use super::run::{OpenPort, PortPhase};
use super::succession::{PortHandOverState, check_versions};
use super::waiting::PollingNapBackoff;
use crate::clock::SharedClock;
use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::confine::ThreadSandboxes;
use crate::file_calls::FileCalls;
use crate::flight::files::FlightRecordingSender;
use crate::socket_access;
use crate::state::port::ClientState;
use crate::vault::{FileDescriptorStore, PortFileDescriptorStore};
use host::cpus::CpuList;
use host::socket::StreamSocket;
use i82576::Time;
use pcie::{VfIndex, VfSet};
use policy::VfPolicy;

/// Resources that all ports of a host share: wires, addresses on shared interfaces, XDP programs, file calls, the writer of flight
/// recordings.
#[derive(Debug, Clone)]
pub(crate) struct SharedPortResources {
    pub(crate) wires: WireRegistry,
    pub(crate) parents: ParentAddressRegistry,
    /// XDP programs for the ports' uplinks. They are loaded before the process drops its privileges.
    pub(crate) programs: XdpPrograms,
    /// File calls of the host's threads.
    pub(crate) files: FileCalls,
    /// Channel to the thread that writes flight recordings of quarantined VFs.
    pub(crate) flights: FlightRecordingSender,
    /// Clock of the ports while they open. An open port reads the clock that its loop was given.
    pub(crate) clock: SharedClock,
}

/// Warns of more workers than processors: two busy workers on one processor are slower than one.
fn warn_of_workers(config: &PortConfig, anywhere: &CpuList) {
    let cpus = if config.cpus.is_empty() { anywhere } else { &config.cpus };
    let (port, workers, processors) = (&config.name, config.workers, cpus.iter().count());
    if workers > processors {
        tracing::warn!(
            port,
            workers,
            processors,
            "the port has more workers than processors, which makes it slower under load; set `workers` to {processors}, \
             or allow it more processors"
        );
    }
}

/// Opened port that has not changed the previous host process's state yet, so that either process may still serve the
/// port. [`Self::inherit`] cannot fail.
#[derive(Debug)]
pub(crate) struct PreparedPort {
    pub(super) port: OpenPort,
    /// State of each function's client that the previous host process has saved with the card.
    saved: Vec<ClientState>,
    clock: SharedClock,
}

impl PreparedPort {
    /// Checks that this program can continue a port of a host process that still runs.
    ///
    /// # Errors
    /// [`PortStartError`]: the saved state of the port or of a client is of another version, or damaged.
    pub(crate) fn check_saved(
        config: &PortConfig,
        vault: &FileDescriptorStore,
    ) -> Result<(), PortStartError> {
        check_versions(config, &PortFileDescriptorStore::new(vault, &config.name))
    }

    /// Opens a port: creates its card, drivers, sockets and uplink, or resumes those whose file descriptors the
    /// previous host process has kept. The port's threads drop the privileges that `threads` names.
    ///
    /// # Errors
    /// [`PortStartError`]. Everything that was opened is closed again.
    pub(crate) fn open(
        config: &PortConfig,
        vault: &FileDescriptorStore,
        inbox: &PortCommandInbox,
        threads: &ThreadSandboxes,
        common: &SharedPortResources,
    ) -> Result<Self, PortStartError> {
        let anywhere = CpuList::allowed()?;
        config.cpus.check(&anywhere)?;
        warn_of_workers(config, &anywhere);
        let now = common.clock.now();
        let vault = PortFileDescriptorStore::new(vault, &config.name);
        let mut succession = PortHandOverState::open(config, vault)?;
        let SharedPortResources { wires, parents, programs, files, flights, clock } = common;
        let (port, watcher, uplinks) = (&inbox.waker, &threads.control, &inbox.uplink_threads);
        let vault = succession.vault();
        let maker =
            UplinkResources { vault, port, watcher, threads: uplinks, files, wires, parents, programs, now };
        let uplink = PortUplink::open(config, &maker)?;
        let memory = config.client_memory.unwrap_or_else(host::limits::machine_memory);
        let families: Vec<_> = config.vfs.iter().map(|vf| vf.family).collect();
        let mut bus = GuestBus::new((&config.name, &families), memory, &threads.helper)?;
        let (desk, done) =
            BlockingCallCompletionSender::open(succession.vault(), &inbox.waker, &threads.helper)?;
        let slots = slots(config, &succession, &mut bus, &desk)?;
        let card = succession.card(config, uplink.link(), &mut bus, now)?;
        let mut engine = PortEngine::new(card.card, bus, uplink, config.link_local);
        engine.set_guards(config.mac, &policies(config));
        engine.restore_held_addresses(&succession.held_addresses());
        engine.restore_stations(succession.stations(), now);
        let poller = PortClients::poller_of(&inbox.waker)?;
        if let Some((nic, _)) = engine.virtio() {
            virtio::set_coalescing(nic, &config.coalescing);
        }
        engine.join_uplink(&poller, now)?;
        engine.share_addresses();
        engine.start_workers(config, &threads.port, &poller)?;
        let mut clients = PortClients::new(poller, config.wait, done, card.watched, flights.clone());
        clients.set_dialer(dialer(config, inbox, threads)?);
        slots.into_iter().try_for_each(|slot| clients.add(slot))?;
        let port = OpenPort {
            name: config.name.clone(),
            mac: config.mac,
            engine,
            clients,
            succession,
            desk,
            cpus: CpuList::default(),
            anywhere,
            phase: PortPhase::Serving,
            naps: PollingNapBackoff::default(),
            due: None,
            pausing: None,
        };
        Ok(Self { port, saved: card.functions, clock: clock.clone() })
    }

    /// Resumes the clients of the previous host process, and disconnects those that cannot be resumed. Releases file
    /// descriptors that this process does not need. Starts the engine, and continues the previous host process's
    /// counters.
    pub(crate) fn inherit(self, config: &PortConfig) -> OpenPort {
        let Self { mut port, saved, clock } = self;
        // Opening uplinks and sockets may have taken a while. The clients' timeouts do not count that time.
        let now = clock.now();
        port.take_over(&saved, now);
        port.revoke_addresses(config, now);
        PortUplink::forget_others(config, port.succession.vault());
        port.forget_unused_listeners();
        PortUplink::renew_access(config, port.succession.vault());
        for (slot, place) in port.clients.slots().iter().zip(FunctionSocketConfig::all(config)) {
            slot.endpoint
                .listener()
                .into_iter()
                .for_each(|listener| socket_access::renew(listener, place.access));
        }
        port.begin(now);
        port
    }
}

impl OpenPort {
    /// Releases the kept listening sockets of functions whose VMMs listen now, as this process would connect to them, and of
    /// VFs that the port no longer has, as their clients would wait for a reply.
    fn forget_unused_listeners(&self) {
        let listening = self.clients.slots().iter().filter(|slot| slot.endpoint.listener().is_some());
        let needed: Vec<String> = listening.map(|slot| kept_listener(&slot.name)).collect();
        self.succession.vault().forget_named_others(KEPT_LISTENERS, &needed);
    }

    /// Resumes the client that the previous host process served on each function.
    fn take_over(&mut self, saved: &[ClientState], now: Time) {
        let Self { engine, clients, succession, .. } = self;
        let mut saved = saved.iter();
        let orphans = clients.inherit(|poller, place, slot| {
            if let Some(state) = saved.next() {
                slot.restore(state, engine.reach_mut(slot.function));
            }
            succession.adopt(slot, engine, (poller, place), now)
        });
        for (function, orphan) in orphans {
            clients.hang_up(function, orphan, engine, now);
        }
    }

    /// Takes addresses that others use back from VFs that have lost the right to them since the previous host process. The other
    /// ports of the host are open by now, and share their addresses.
    fn revoke_addresses(&mut self, config: &PortConfig, now: Time) {
        if let Err((vf, error)) = self.engine.revoke_addresses(&policies(config), now) {
            tracing::error!(
                port = self.name,
                vf = vf.index(),
                %error,
                "cannot take addresses of others back from a VF without trust and share_mac; set the VF's mac"
            );
        }
    }

    /// Keeps the addresses that VFs without a client have held in the previous host process for a few minutes: their
    /// clients may come back.
    fn keep_claims_of_absent_guests(&mut self) {
        let absent = self.clients.slots().iter().filter(|slot| slot.connection().is_none());
        let absent: VfSet = absent.filter_map(|slot| slot.function.vf()).collect();
        let held = self.engine.held_addresses().vfs.into_iter();
        let holders: VfSet = held.map(|(vf, _)| VfIndex::of_field(vf.into())).collect();
        absent.and(holders).iter().for_each(|vf| self.engine.keep_claims_for_return(vf));
    }

    /// Disconnects clients that cannot be resumed, starts the engine, and continues the previous host process's
    /// counters.
    fn begin(&mut self, now: Time) {
        // A socket may still be kept under the number of an earlier hand-over.
        let is_served = |orphan: &StreamSocket| {
            let mut connections = self.clients.slots().iter().filter_map(OfferedFunction::connection);
            connections.any(|connection| connection.stream().is_same_socket(orphan))
        };
        let mut lost: Vec<StreamSocket> = self.succession.forget_others(self.clients.slots());
        lost.retain(|orphan| !is_served(orphan));
        for orphan in lost {
            self.clients.hang_up_unknown(orphan, &self.engine, now);
        }
        self.keep_claims_of_absent_guests();
        self.succession.open_addresses();
        self.engine.begin();
        self.clients.show_links(&mut self.engine, now);
        if let Some(noted) = self.succession.open_counters() {
            self.clients.resume_answers(&noted.answers);
            let (status, answers) = (self.report(now).status(), self.clients.save_answers());
            self.succession.carry_counters_over(noted, &status, self.engine.configured_uplink(), answers);
        }
    }
}

/// Returns the configured policies of the VFs, by index.
fn policies(config: &PortConfig) -> Vec<VfPolicy> {
    config.vfs.iter().map(|vf| vf.policy).collect()
}

/// Starts the thread that connects to VMMs and shuts listening sockets, for a port with virtio functions.
fn dialer(
    config: &PortConfig,
    inbox: &PortCommandInbox,
    threads: &ThreadSandboxes,
) -> Result<Option<VmmDialer>, PortStartError> {
    let virtio = config.has_family(CardFamily::Virtio);
    Ok(virtio.then(|| VmmDialer::start(&config.name, &inbox.waker, &threads.control)).transpose()?)
}

/// Opens the endpoint of each function that the port offers, and creates the function without a client.
fn slots(
    config: &PortConfig,
    succession: &PortHandOverState,
    bus: &mut GuestBus,
    desk: &BlockingCallCompletionSender,
) -> Result<Vec<OfferedFunction>, PortStartError> {
    let slot = |place: FunctionSocketConfig<'_>| {
        let reach = bus.reach_mut(place.function);
        reach.set_records(succession.ring_records(place.function));
        let worker = reach.worker();
        let successor = succession.of_client(place.function, worker.clone());
        let errands = BlockingCallQueue::new(place.function, worker.clone(), desk.clone());
        let endpoint = place.open(succession.vault())?;
        Ok(OfferedFunction::new(&place, endpoint, ClientResources::new(successor, errands)))
    };
    FunctionSocketConfig::all(config).map(slot).collect()
}
