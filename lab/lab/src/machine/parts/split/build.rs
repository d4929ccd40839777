//! Creates the service domain's part of the split driver, with every front end started. No CPU cycles are charged, as
//! simulated time has not begun.

use super::dispatch::BackEndPlacement;
use super::{
    BridgeFrameCounters, BridgedCard, EventChannelSource, FrontEndRingAccess, PendingCpuWork,
    ServiceDomainNetwork, SplitConnections, SplitInterface,
};
use crate::machine::server::setup::NetbackOptions;
use driver::vf::Vf;
use hypervisor::cpu::SharedPageRing;
use hypervisor::domain::DomainId;
use hypervisor::evtchn::{EventChannelBinding, EventChannelError, EventChannels};
use hypervisor::grant::GrantTables;
use i82576::MacAddress;
use split::bridge::{BridgePort, LearningBridge};
use split::dispatch::EventDispatcher;
use split::front::NetworkFrontendHal;
use split::ring::SLOTS;
use split::{InterfaceRings, MAX_FRAME, NetworkBackend, NetworkFrontend};
use std::collections::VecDeque;

impl ServiceDomainNetwork {
    /// Creates the network drivers of a service domain without cards and guests. `cpus` are the service domain's virtual
    /// CPUs in the order in which workers and cards are assigned to them.
    pub(crate) fn new(
        domain: DomainId,
        cpus: Vec<usize>,
        (workers, netback): (usize, NetbackOptions),
        converts_events: bool,
        channels: &mut EventChannels,
    ) -> Self {
        channels.add_domain(domain, cpus.len() as u16);
        let wires = SplitConnections {
            grants: GrantTables::new(),
            interfaces: Vec::new(),
            converts_events,
            notified: VecDeque::new(),
        };
        let mut duties = Vec::new();
        duties.resize_with(cpus.len(), PendingCpuWork::default);
        let mut backend = NetworkBackend::new(workers);
        backend.notify_every(netback.notify_every);
        Self {
            domain,
            backend,
            wires,
            cards: Vec::new(),
            sources: Vec::new(),
            duties,
            placement: BackEndPlacement::new(EventDispatcher::new(netback.dispatch), workers, cpus),
            staging: vec![0; MAX_FRAME].into(),
            counts: BridgeFrameCounters::default(),
        }
    }

    /// Adds a card with its driver. The dispatcher chooses the virtual CPU that takes the card's interrupts.
    pub(crate) fn add_card(
        &mut self,
        driver: Vf,
        channels: &mut EventChannels,
    ) -> Result<(), EventChannelError> {
        let card = self.cards.len();
        let location = self.placement.card(card);
        let cpu = location.cpu;
        let mut interrupts = Vec::new();
        for vector in 0..i82576::ids::VF_VECTORS as u16 {
            let port = channels.bind(self.domain, EventChannelBinding::Pirq(vector), cpu as u16)?;
            self.stands_for(port, EventChannelSource::Card(card, vector));
            interrupts.push(port);
        }
        let bridge = LearningBridge::new();
        self.cards.push(BridgedCard {
            driver,
            bridge,
            members: Vec::new(),
            interrupts,
            location,
            is_due: false,
        });
        Ok(())
    }

    /// Adds a guest, which runs on a socket of a machine with `sockets` of them, on a card's bridge. Returns its started front end and its event channel.
    pub(crate) fn add_guest(
        &mut self,
        (domain, socket, sockets): (DomainId, usize, usize),
        card: usize,
        mac: MacAddress,
        channels: &mut EventChannels,
    ) -> Result<(NetworkFrontend, u16), EventChannelError> {
        let vif = self.backend.connect();
        channels.add_domain(domain, 1);
        let theirs = channels.alloc_unbound(domain, self.domain)?;
        let own = channels.bind_interdomain(self.domain, domain, theirs)?;
        let worker = self.backend.worker_of(vif);
        self.placement.assigned.push(worker);
        channels.domain(self.domain)?.bind_vcpu(own, self.placement.workers[worker].cpu as u16)?;
        self.stands_for(own, EventChannelSource::Guest(vif));
        // Pages for sending and receiving, and a grant entry for each.
        self.wires.grants.add_domain(domain, 2 * SLOTS, 2 * SLOTS);
        let members = &mut self.cards[card].members;
        members.push(vif);
        let port = members.len() as u16;
        self.cards[card].bridge.learn(mac, BridgePort(port));
        self.wires.interfaces.push(SplitInterface {
            domain,
            socket,
            pages: SharedPageRing::new(SLOTS, sockets),
            is_page_cached: false,
            rings: InterfaceRings::default(),
            card,
            port,
            own,
            theirs,
        });
        let mut front = NetworkFrontend::new(mac);
        front.start(&mut FrontEndBootHal(self.front_end(vif.0.into())));
        Ok((front, theirs))
    }

    fn stands_for(&mut self, port: u16, source: EventChannelSource) {
        let at = usize::from(port);
        if self.sources.len() <= at {
            self.sources.resize(at + 1, None);
        }
        self.sources[at] = Some(source);
    }
}

/// Rings and grants that a starting front end uses. Events are dropped: the back end checks the rings before it sleeps.
struct FrontEndBootHal<'a>(FrontEndRingAccess<'a>);

impl NetworkFrontendHal for FrontEndBootHal<'_> {
    fn rings(&mut self) -> &mut InterfaceRings {
        self.0.rings()
    }

    fn page(&mut self, page: u32) -> &mut [u8] {
        self.0.page(page)
    }

    fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        self.0.grant(page, writable)
    }

    fn end_access(&mut self, reference: u32) -> bool {
        self.0.end_access(reference)
    }

    fn notify(&mut self) {}
}
