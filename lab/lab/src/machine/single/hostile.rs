//! Attacks of a guest on a shared CDNA card. Each must affect only memory of the attacker and disturb no other guest.

use crate::machine::parts::cdna::bits::{InterruptBitVectors, VECTORS};
use crate::machine::parts::cdna::card::{CONTEXTS, CdnaCard, TRANSMIT};
use crate::machine::parts::cdna::guard::CdnaGuardedRing;
use crate::machine::parts::cdna::pages::PageOwners;
use crate::machine::parts::cdna::{GuestNumber, PAGE, PageBuffer, RING, SEQUENCES};

/// Attack on other guests through a shared CDNA card, which the first guest carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CdnaAttack {
    /// The attacker publishes a producer index beyond the descriptors enqueued.
    ForgedProducer,
    /// The attacker publishes descriptors again that the card has taken.
    DuplicateSequence,
    /// The attacker forges a producer index at the point where sequence numbers wrap.
    Wrap,
    /// The attacker frees a page that the card is to read.
    FreeWhileDma,
    /// The attacker writes to mailboxes of other guests.
    CrossContextMailbox,
    /// The attacker makes the card interrupt until the buffer of interrupt bit vectors is full.
    InterruptRingFull,
    /// The attacker terminates while the card has descriptors of its pages.
    TeardownRace,
}

/// Number of guests in an attack: the attacker and well-behaved others.
const GUESTS: GuestNumber = 4;
/// Number of memory pages of each guest.
const OWN: u64 = 8;
/// Frames that each guest other than the attacker sends before, during and after an attack.
const FRAMES: u64 = 3;

struct AttackScenario {
    pages: PageOwners,
    card: CdnaCard,
    guards: Vec<CdnaGuardedRing>,
    /// Number of pages that the card accessed during the attack on behalf of a domain that did not own the page.
    stray_reads: u64,
    /// Number of frames sent by each guest other than the attacker.
    left: Vec<u64>,
}

impl AttackScenario {
    fn new() -> Self {
        let mut pages = PageOwners::new(usize::from(GUESTS) * OWN as usize);
        let mut card = CdnaCard::default();
        for domain in 0..GUESTS {
            (0..OWN).for_each(|page| {
                pages.give(u64::from(domain) * OWN + page, domain);
            });
            card.assign(domain);
        }
        let guards = (0..GUESTS).map(CdnaGuardedRing::new).collect();
        Self { pages, card, guards, stray_reads: 0, left: vec![0; GUESTS.into()] }
    }

    fn page(domain: GuestNumber, page: u64) -> PageBuffer {
        PageBuffer { address: (u64::from(domain) * OWN + page % OWN) * PAGE, length: 1_514 }
    }

    /// Enqueues a page of a guest for transmission. Returns the producer index, or `None` if the hypervisor rejected
    /// the page.
    fn enqueue(&mut self, domain: GuestNumber, page: u64) -> Option<u32> {
        let at = usize::from(domain);
        let consumed = self.card.consumed(at, TRANSMIT);
        self.guards[at].enqueue(domain, &[Self::page(domain, page)], consumed, &mut self.pages).ok()
    }

    /// Makes the card take a descriptor of a context and read its page. Returns `false` if the card takes none.
    fn take(&mut self, context: usize) -> bool {
        let Some(buffer) = self.card.take(context, TRANSMIT, &self.guards[context]) else { return false };
        self.stray_reads += u64::from(!self.pages.reaches(buffer, context as GuestNumber));
        true
    }

    fn send(&mut self, domain: GuestNumber, page: u64) -> bool {
        let Some(index) = self.enqueue(domain, page) else { return false };
        self.card.mailbox(domain, domain.into(), TRANSMIT, index) && self.take(domain.into())
    }

    /// Sends a few frames of every guest other than the attacker, on the attacked card.
    fn send_of_others(&mut self) {
        for domain in 1..GUESTS {
            self.left[usize::from(domain)] +=
                (0..FRAMES).filter(|page| self.send(domain, *page)).count() as u64;
        }
    }

    /// Sends `frames` valid frames of the attacker. Returns `true` if all were sent.
    fn send_valid(&mut self, frames: u32) -> bool {
        (0..frames).all(|page| self.send(0, page.into()))
    }

    /// Writes a forged producer index to the attacker's mailbox. Returns `true` if the card takes a descriptor for the
    /// index.
    fn forge(&mut self, index: u32) -> bool {
        self.card.mailbox(0, 0, TRANSMIT, index);
        self.take(0)
    }
}

/// Runs a guest's attack on its CDNA card. Returns `true` if only the attacker's memory was accessed, and the number of
/// other guests that were disturbed.
#[must_use]
pub fn attack(attack: CdnaAttack) -> (bool, u32) {
    let mut bench = AttackScenario::new();
    bench.send_of_others();
    let mut deaf = 0;
    let kept = match attack {
        CdnaAttack::ForgedProducer => {
            bench.send_valid(3) && !bench.forge(3 + 7) && bench.card.fault(0).is_some()
        }
        CdnaAttack::DuplicateSequence => {
            bench.send_valid(3) && !bench.forge(3 - 1) && bench.card.fault(0).is_some()
        }
        CdnaAttack::Wrap => {
            let kept = bench.send_valid(SEQUENCES) && !bench.forge(SEQUENCES + RING);
            kept && bench.card.fault(0).is_some()
        }
        CdnaAttack::FreeWhileDma => free_while_dma(&mut bench),
        CdnaAttack::CrossContextMailbox => {
            let written = (1..CONTEXTS).filter(|other| bench.card.mailbox(0, *other, TRANSMIT, 5)).count();
            written == 0 && bench.card.stray_writes as usize == CONTEXTS - 1
        }
        CdnaAttack::InterruptRingFull => {
            let mut bits = InterruptBitVectors::default();
            (0..4 * VECTORS).for_each(|_| bits.push(1));
            bits.push((1 << GUESTS) - 1);
            let event_pending: Vec<usize> = bits.take().collect();
            deaf = (1..usize::from(GUESTS)).filter(|guest| !event_pending.contains(guest)).count() as u32;
            event_pending.contains(&0)
        }
        CdnaAttack::TeardownRace => teardown_race(&mut bench),
    };
    bench.send_of_others();
    let slowed = bench.left[1..].iter().filter(|left| **left != 2 * FRAMES).count() as u32;
    (kept && bench.stray_reads == 0, slowed + deaf)
}

/// Frees a page that the card still has to read. Returns `true` if no other guest gets the page before the card has
/// read it.
fn free_while_dma(bench: &mut AttackScenario) -> bool {
    let Some(index) = bench.enqueue(0, 1) else { return false };
    bench.card.mailbox(0, 0, TRANSMIT, index);
    bench.pages.free(1, 0);
    let early = bench.pages.give(1, 1);
    let read = bench.take(0);
    bench.guards[0].release(bench.card.consumed(0, TRANSMIT), &mut bench.pages);
    let late = bench.pages.give(1, 1);
    !early && read && late
}

/// Terminates the attacker while the card has descriptors. Returns `true` if another guest gets the pages only after
/// the release of the descriptors.
fn teardown_race(bench: &mut AttackScenario) -> bool {
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
