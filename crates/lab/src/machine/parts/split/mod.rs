//! The split driver on the machine: what the service domain's network side consists of. Its own driver receives from
//! a VF of each port, a bridge for each port says for which guest a frame is, and the back end's workers, each on one of
//! the service domain's virtual CPUs, bring it there.
//!
//! | module | what it is |
//! |---|---|
//! | `build` | putting it together |
//! | `service` | the service domain's steps: events, polls of cards, turns of workers |
//! | `dispatch` | workers, cards and interfaces that go elsewhere |
//! | `host` | what the back end needs of the machine, each hypercall charged |
//! | `guest` | what a front end needs of the machine |
//!
//! Left out: limits of rates; guests that come and go.

mod build;
mod dispatch;
mod guest;
mod host;
mod service;

pub(crate) use dispatch::Movable;
pub(crate) use guest::Side;
pub(crate) use service::Around;

use crate::machine::books::Books;
use dispatch::{Place, Placing};
use driver::vf::Vf;
use hypervisor::domain::DomainId;
use hypervisor::grant::{Grants, Handle};
use split::back::Vif;
use split::{Backend, Bridge, Rings};
use std::collections::VecDeque;

/// The service domain's network side.
#[derive(Debug)]
pub(crate) struct Split {
    /// The service domain.
    domain: DomainId,
    backend: Backend<Handle>,
    wires: Wires,
    cards: Vec<Card>,
    /// What each of the service domain's event channels stands for, by port.
    sources: Vec<Option<Source>>,
    /// What each of its virtual CPUs has to do.
    duties: Vec<Duty>,
    /// Where workers and interfaces are, and should be.
    placing: Placing,
    /// A frame on its way to a card.
    staging: Box<[u8]>,
    counts: Counts,
}

/// What lies between front ends and back end.
#[derive(Debug)]
struct Wires {
    grants: Grants,
    /// By interface, which is by guest.
    interfaces: Vec<Interface>,
    /// Guests are on hardware virtualization: an event to one becomes an interrupt of a platform device.
    converts: bool,
    /// Guests that the back end has sent an event in this step.
    notified: VecDeque<usize>,
}

/// A guest's interface.
#[derive(Debug)]
struct Interface {
    domain: DomainId,
    rings: Rings,
    /// The card whose bridge it is on, and its port there.
    card: usize,
    port: u16,
    /// The event channel's ends, in the service domain and in the guest.
    own: u16,
    theirs: u16,
}

/// A card as the service domain uses it, with its bridge.
#[derive(Debug)]
struct Card {
    driver: Vf,
    bridge: Bridge,
    /// Guests on the bridge; port 0 is the card.
    members: Vec<Vif>,
    /// Event channels of the card's interrupts.
    interrupts: Vec<u16>,
    /// Which virtual CPU takes its interrupts and polls it.
    place: Place,
    /// It is to be polled where it arrives.
    is_due: bool,
}

/// What an event channel of the service domain stands for.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// A card's vector.
    Card(usize, u16),
    /// A guest.
    Guest(Vif),
}

/// What one virtual CPU of the service domain has to do beside its events.
#[derive(Debug, Default)]
struct Duty {
    /// Cards to be polled.
    polls: VecDeque<usize>,
    /// Whose turn it is: cards, frames from guests, frames to guests.
    turn: usize,
    /// The worker that had the last turn.
    worker: usize,
    /// Guests are to hear of frames that were withheld: at once, or when its timer comes.
    tells: bool,
    has_timer: bool,
}

/// Frames that are neither an interface's nor a card's.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Taken from cards.
    arrived: u64,
    /// Copies made for floods.
    duplicated: u64,
    /// Given to cards.
    departed: u64,
    /// Given to a card that had no room.
    no_room: u64,
    /// That go nowhere.
    filtered: u64,
}

impl Split {
    /// Every frame that came in from a card or a guest, or was copied, has gone somewhere, was dropped and counted, or
    /// is under way; and every guest has received what was copied to it, or finds it on its ring.
    pub(crate) fn balance(&self, guests: &[split::front::Counters], books: &mut Books) {
        let Counts { arrived, duplicated, departed, no_room, filtered } = self.counts;
        let (mut sent, mut found) = (arrived + duplicated, departed + no_room + filtered);
        found += self.backend.under_way() as u64;
        for (interface, front) in (0..self.wires.interfaces.len() as u16).zip(guests) {
            let counters = self.backend.counters(Vif(interface));
            sent += counters.transmitted;
            found += counters.received + counters.no_room + counters.unwritable;
            let lost = front.malformed + counters.unwritable + counters.malformed + front.stuck;
            books.never("frames between a front end and a back end lost or malformed", lost);
            let more = front.received.saturating_sub(counters.received);
            books.never("frames that a front end received and no back end sent", more);
        }
        books.balance("frames that came to a bridge", sent, found);
        books.never("turns of a worker on two virtual CPUs at once", self.placing.overlaps);
    }

    /// The service domain.
    pub(crate) fn domain(&self) -> DomainId {
        self.domain
    }

    /// The events of a card's vectors, as event channels.
    pub(crate) fn interrupt(&self, card: usize, vector: u16) -> Option<u16> {
        self.cards.get(card)?.interrupts.get(usize::from(vector)).copied()
    }

    /// The event channel on which a guest hears of the back end, as the back end has it; and the other end.
    pub(crate) fn channel(&self, guest: usize) -> (u16, u16) {
        let interface = &self.wires.interfaces[guest];
        (interface.own, interface.theirs)
    }
}
