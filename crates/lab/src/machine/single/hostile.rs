//! What a guest tries on a card that others use too, and what comes of it: whether it reached nothing that is not its
//! own, and how many others were disturbed. Left out: what it costs.

use crate::machine::parts::cdna::bits::{Bits, VECTORS};
use crate::machine::parts::cdna::card::{CONTEXTS, Card, TRANSMIT};
use crate::machine::parts::cdna::guard::Guard;
use crate::machine::parts::cdna::pages::Pages;
use crate::machine::parts::cdna::{Buffer, Domain, PAGE, RING, SEQUENCES};

/// What the first guest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// It says that there are more descriptors than it had enqueued.
    ForgedProducer,
    /// It announces descriptors again that the card has taken.
    DuplicateSequence,
    /// It forges an index where sequence numbers begin again.
    Wrap,
    /// It frees a page that the card is to read.
    FreeWhileDma,
    /// It writes to others' mailboxes.
    CrossContextMailbox,
    /// It has the card interrupt until the buffer of vectors is full.
    InterruptRingFull,
    /// It ends while the card has descriptors of it.
    TeardownRace,
}

/// Guests: the attacker, and others that do nothing wrong.
const GUESTS: Domain = 4;
/// Pages of each.
const OWN: u64 = 8;
/// Frames that each of the others sends before, meanwhile and after.
const FRAMES: u64 = 3;

struct Bench {
    pages: Pages,
    card: Card,
    guards: Vec<Guard>,
    /// Pages that the card reached in the name of a domain that they were not of.
    strayed: u64,
    /// Frames of the others that have left.
    left: Vec<u64>,
}

impl Bench {
    fn new() -> Self {
        let mut pages = Pages::new(usize::from(GUESTS) * OWN as usize);
        let mut card = Card::default();
        for domain in 0..GUESTS {
            (0..OWN).for_each(|page| {
                pages.give(u64::from(domain) * OWN + page, domain);
            });
            card.assign(domain);
        }
        let guards = (0..GUESTS).map(Guard::new).collect();
        Self { pages, card, guards, strayed: 0, left: vec![0; GUESTS.into()] }
    }

    fn page(domain: Domain, page: u64) -> Buffer {
        Buffer { address: (u64::from(domain) * OWN + page % OWN) * PAGE, length: 1_514 }
    }

    /// A guest enqueues a page of its own; answers the index for the mailbox.
    fn enqueue(&mut self, domain: Domain, page: u64) -> Option<u32> {
        let at = usize::from(domain);
        let consumed = self.card.consumed(at, TRANSMIT);
        self.guards[at].enqueue(domain, &[Self::page(domain, page)], consumed, &mut self.pages).ok()
    }

    /// The card takes a descriptor, and reads what it says.
    fn take(&mut self, context: usize) -> bool {
        let Some(buffer) = self.card.take(context, TRANSMIT, &self.guards[context]) else { return false };
        self.strayed += u64::from(!self.pages.reaches(buffer, context as Domain));
        true
    }

    fn send(&mut self, domain: Domain, page: u64) -> bool {
        let Some(index) = self.enqueue(domain, page) else { return false };
        self.card.mailbox(domain, domain.into(), TRANSMIT, index) && self.take(domain.into())
    }

    /// Everybody else sends a few frames.
    fn others(&mut self) {
        for domain in 1..GUESTS {
            self.left[usize::from(domain)] +=
                (0..FRAMES).filter(|page| self.send(domain, *page)).count() as u64;
        }
    }

    /// The attacker sends so many frames as it should.
    fn behave(&mut self, frames: u32) -> bool {
        (0..frames).all(|page| self.send(0, page.into()))
    }

    /// It writes an index; whether the card takes anything for it.
    fn forge(&mut self, index: u32) -> bool {
        self.card.mailbox(0, 0, TRANSMIT, index);
        self.take(0)
    }
}

/// Whether an attack reached nothing that is not the attacker's, and how many others it disturbed.
#[must_use]
pub fn attack(attack: Attack) -> (bool, u32) {
    let mut bench = Bench::new();
    bench.others();
    let mut deaf = 0;
    let kept = match attack {
        Attack::ForgedProducer => bench.behave(3) && !bench.forge(3 + 7) && bench.card.fault(0).is_some(),
        Attack::DuplicateSequence => bench.behave(3) && !bench.forge(3 - 1) && bench.card.fault(0).is_some(),
        Attack::Wrap => {
            let kept = bench.behave(SEQUENCES) && !bench.forge(SEQUENCES + RING);
            kept && bench.card.fault(0).is_some()
        }
        Attack::FreeWhileDma => free_while_dma(&mut bench),
        Attack::CrossContextMailbox => {
            let written = (1..CONTEXTS).filter(|other| bench.card.mailbox(0, *other, TRANSMIT, 5)).count();
            written == 0 && bench.card.stray as usize == CONTEXTS - 1
        }
        Attack::InterruptRingFull => {
            let mut bits = Bits::default();
            (0..4 * VECTORS).for_each(|_| bits.push(1));
            bits.push((1 << GUESTS) - 1);
            let told: Vec<usize> = bits.take().collect();
            deaf = (1..usize::from(GUESTS)).filter(|guest| !told.contains(guest)).count() as u32;
            told.contains(&0)
        }
        Attack::TeardownRace => teardown_race(&mut bench),
    };
    bench.others();
    let slowed = bench.left[1..].iter().filter(|left| **left != 2 * FRAMES).count() as u32;
    (kept && bench.strayed == 0, slowed + deaf)
}

/// Another guest is given no page that the card still reads.
fn free_while_dma(bench: &mut Bench) -> bool {
    let Some(index) = bench.enqueue(0, 1) else { return false };
    bench.card.mailbox(0, 0, TRANSMIT, index);
    bench.pages.free(1, 0);
    let early = bench.pages.give(1, 1);
    let read = bench.take(0);
    bench.guards[0].release(bench.card.consumed(0, TRANSMIT), &mut bench.pages);
    let late = bench.pages.give(1, 1);
    !early && read && late
}

/// What was enqueued is let go of before its pages are another's.
fn teardown_race(bench: &mut Bench) -> bool {
    let index = (0..4).filter_map(|page| bench.enqueue(0, page)).last();
    bench.card.mailbox(0, 0, TRANSMIT, index.unwrap_or_default());
    bench.guards[0].tear_down();
    (0..OWN).for_each(|page| {
        bench.pages.free(page, 0);
    });
    let early = (0..4).filter(|page| bench.pages.give(*page, 1)).count();
    let read = bench.take(0);
    bench.card.quiesce(0);
    bench.guards[0].quiesced(&mut bench.pages);
    let after = bench.take(0) || bench.enqueue(0, 5).is_some();
    let late = (0..4).filter(|page| bench.pages.give(*page, 1)).count();
    early == 0 && read && !after && late == 4
}
