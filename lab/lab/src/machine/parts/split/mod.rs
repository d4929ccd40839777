//! The split driver in a modelled machine: the service domain's network drivers. The service domain receives
//! from a VF of each port, a bridge per port chooses the guest of a frame, and the back end's workers, each
//! on one virtual CPU of the service domain, deliver the frame.
//!
//! | module | contents |
//! |---|---|
//! | `build` | creation |
//! | `service` | the service domain's steps: events, polls of cards, turns of workers |
//! | `dispatch` | moves of workers, cards and interfaces |
//! | `host` | machine interface of the back end, with charges |
//! | `guest` | machine interface of a front end |
//!
//! There are no rate limits, and guests stay connected.

mod build;
mod dispatch;
mod guest;
mod host;
mod service;

pub(crate) use dispatch::MovableBackEndPart;
pub(crate) use guest::FrontEndRingAccess;
pub(crate) use service::ServiceCpuView;

use crate::machine::books::ConservationChecks;
use dispatch::{BackEndPartLocation, BackEndPlacement};
use driver::vf::Vf;
use hypervisor::cpu::SharedPageRing;
use hypervisor::domain::DomainId;
use hypervisor::grant::{GrantHandle, GrantTables};
use split::back::VifIndex;
use split::{InterfaceRings, LearningBridge, NetworkBackend};
use std::collections::VecDeque;

/// Network drivers of the service domain: the back end, the cards with their bridges, and the work of each
/// virtual CPU.
#[derive(Debug)]
pub(crate) struct ServiceDomainNetwork {
    /// Domain that runs the back end of the split driver.
    domain: DomainId,
    backend: NetworkBackend<GrantHandle>,
    wires: SplitConnections,
    cards: Vec<BridgedCard>,
    /// Source of each of the service domain's event channels, by port.
    sources: Vec<Option<EventChannelSource>>,
    /// Pending network work of each virtual CPU of the service domain.
    duties: Vec<PendingCpuWork>,
    /// Virtual CPUs of workers, and workers of interfaces, now and after their moves.
    placement: BackEndPlacement,
    /// Buffer in which the service domain assembles a frame for a card.
    staging: Box<[u8]>,
    counts: BridgeFrameCounters,
}

/// Grant tables and interfaces that connect the front ends with the back end.
#[derive(Debug)]
struct SplitConnections {
    grants: GrantTables,
    /// Split network interfaces, in the order of guests.
    interfaces: Vec<SplitInterface>,
    /// An event to a guest becomes an interrupt of a platform device, because the guests are
    /// hardware-virtualized.
    converts_events: bool,
    /// Guests to which the back end sent an event in the current step.
    notified: VecDeque<usize>,
}

/// Split network interface of a guest.
#[derive(Debug)]
struct SplitInterface {
    domain: DomainId,
    /// Socket on which the guest runs.
    socket: usize,
    /// Pages that the guest posts for received frames, in the last-level caches.
    pages: SharedPageRing,
    /// The guest's page that the back end copied to last was in the last-level cache.
    is_page_cached: bool,
    rings: InterfaceRings,
    /// Index of the card whose bridge has the interface.
    card: usize,
    /// Index of the interface's port on its card's bridge.
    port: u16,
    /// Event-channel port of the interface in the service domain.
    own: u16,
    /// Event-channel port of the interface in the guest.
    theirs: u16,
}

/// Card used by the service domain, with its bridge.
#[derive(Debug)]
struct BridgedCard {
    driver: Vf,
    bridge: LearningBridge,
    /// Interfaces of the guests on the bridge, from port 1 on; port 0 is the card.
    members: Vec<VifIndex>,
    /// Event channels of the card's interrupts.
    interrupts: Vec<u16>,
    /// Virtual CPU that takes the card's interrupts and polls the card.
    location: BackEndPartLocation,
    /// The card is to be polled once its move to another virtual CPU is complete.
    is_due: bool,
}

/// Source of an event channel of the service domain.
#[derive(Debug, Clone, Copy)]
enum EventChannelSource {
    /// Source of an event: an interrupt vector of a card.
    Card(usize, u16),
    /// Source of an event: the interface of a guest.
    Guest(VifIndex),
}

/// Pending network work of a virtual CPU of the service domain, besides its events.
#[derive(Debug, Default)]
struct PendingCpuWork {
    /// Cards that the virtual CPU has to poll.
    polls: VecDeque<usize>,
    /// Kind of network work that the virtual CPU does next: 0 polls a card, 1 takes frames from guests, 2
    /// copies frames to guests.
    turn: usize,
    /// Index of the back-end worker thread that ran last on the virtual CPU.
    worker: usize,
    /// True if the virtual CPU has to send the delayed events of its worker threads to guests now.
    notify_due: bool,
    /// True if a timer is set at which the virtual CPU has to send the delayed events of its worker threads to guests.
    has_timer: bool,
}

/// Counters of frames on the bridges, beyond those of interfaces and cards.
#[derive(Debug, Clone, Copy, Default)]
struct BridgeFrameCounters {
    /// Number of frames received from cards.
    arrived: u64,
    /// Number of frame copies that bridges made to flood a frame to several ports.
    duplicated: u64,
    /// Number of frames given to cards.
    departed: u64,
    /// Number of frames that a bridge dropped because the card had no room to send them.
    no_room: u64,
    /// Number of frames that a bridge did not forward, including each flooded frame, of which only copies are sent.
    filtered: u64,
}

impl ServiceDomainNetwork {
    /// Checks that every frame on the bridges was delivered, is in flight, or was dropped and counted, and
    /// that every guest received the frames copied to it.
    pub(crate) fn balance(
        &self,
        guests: &[split::front::NetworkFrontendCounters],
        books: &mut ConservationChecks,
    ) {
        let BridgeFrameCounters { arrived, duplicated, departed, no_room, filtered } = self.counts;
        let (mut sent, mut found) = (arrived + duplicated, departed + no_room + filtered);
        found += self.backend.in_flight() as u64;
        for (interface, front) in (0..self.wires.interfaces.len() as u16).zip(guests) {
            let counters = self.backend.counters(VifIndex(interface));
            sent += counters.transmitted;
            found += counters.received + counters.no_room + counters.unwritable;
            let lost = front.malformed + counters.unwritable + counters.malformed + front.stuck;
            books.never("frames between a front end and a back end lost or malformed", lost);
            let more = front.received.saturating_sub(counters.received);
            books.never("frames that a front end received and no back end sent", more);
        }
        books.balance("frames that came to a bridge", sent, found);
        books.never("turns of a worker on two virtual CPUs at once", self.placement.overlaps);
    }

    /// Returns the id of the service domain.
    pub(crate) fn domain(&self) -> DomainId {
        self.domain
    }

    /// Returns the event channel of an interrupt vector of a card.
    pub(crate) fn interrupt(&self, card: usize, vector: u16) -> Option<u16> {
        self.cards.get(card)?.interrupts.get(usize::from(vector)).copied()
    }

    /// Returns the event channel between back end and guest: the back end's port and the guest's port.
    pub(crate) fn channel(&self, guest: usize) -> (u16, u16) {
        let interface = &self.wires.interfaces[guest];
        (interface.own, interface.theirs)
    }
}
