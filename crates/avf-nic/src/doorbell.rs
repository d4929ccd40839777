//! Pages of a VF's BAR 0 that its guest has as memory ([`avf::ids::MAPPED`]): tails, intervals, and the control of every
//! vector but the first. The card finds later what the guest has stored ([`Card::look`]), which goes the way of a written
//! register, and puts there what loads are to give ([`Card::show`]).
//!
//! # What is lost when two stores meet
//! Of several stores to a register between two looks the last counts. A tail needs no more, and an interval neither. A
//! control register is switch, interval and trigger in one, and two processors of a guest may store there:
//! - INTENA enables or disables the vector. The last store counts, as on a card that sees both. Causes that come while the vector
//!   is disabled are kept, and interrupt when it is enabled, so enabling it one look late loses no interrupt. Only a store with
//!   INTENA_MSK (leave INTENA as it is) that overwrites an enabling store leaves the vector disabled; no known driver does that.
//! - A software interrupt (SWINT_TRIG) can be overwritten by a driver that switches the vector on at the end of its poll. It
//!   asks for just such a poll: Linux triggers it for a queue that seems stuck, and does so again after 2 s if it still is.
//! - An interval that is overwritten stays as it was until the driver changes it again.
//!
//! A store of the value that is there already must be seen, since a driver switches its vector on with the same value each
//! time. So the card leaves [`SEEN`] there, which no driver stores.
//!
//! What the guest has stored is worth as much as what it writes by message. Left out: the memory itself, and when to look.

use crate::card::Card;
use crate::function::Function;
use avf::bits::dyn_ctl::SEEN;
use avf::register as r;
use pcie::pages::{Pages, Places};

/// Registers of a kind: one for each queue pair, or each vector but the first.
const EACH: usize = avf::ids::MAX_PAIRS;

/// Where each kind begins, in the order in which stores are taken: intervals before the vector is switched on, tails last.
const KINDS: [u32; 6] = {
    let itr = r::VFINT_ITRN;
    [itr, itr + 0x40, itr + 0x80, r::VFINT_DYN_CTLN, r::QRX_TAIL, r::QTX_TAIL]
};

/// Registers in these pages.
pub const COUNT: usize = KINDS.len() * EACH;

/// Their offsets, in the order in which stores are taken.
pub const REGISTERS: [u32; COUNT] = {
    let (mut offsets, mut place) = ([0; COUNT], 0);
    while place < COUNT {
        offsets[place] = KINDS[place / EACH] + 4 * (place % EACH) as u32;
        place += 1;
    }
    offsets
};

/// What the card knows of one VF's pages.
#[derive(Debug, Clone)]
pub struct Doorbells {
    vf: u8,
    places: Places<COUNT>,
}

impl Doorbells {
    /// Of pages that are as [`Card::show`] has left them for the card's state, but for what the guest has stored since.
    #[must_use]
    pub fn adopt(card: &Card, vf: u8) -> Self {
        Self { vf, places: Places::adopt(&REGISTERS, COUNT, |place| card.shown(vf, place)) }
    }

    /// Of pages with anything in them: they are made what the card's registers are, and stores so far do not count.
    #[must_use]
    pub fn renew<P: Pages>(card: &Card, vf: u8, pages: &P) -> Self {
        let doorbells = Self::adopt(card, vf);
        doorbells.places.fill(pages);
        doorbells
    }

    /// Whether the guest has stored anything since the last look.
    #[must_use]
    pub fn stirred<P: Pages>(&self, pages: &P) -> bool {
        self.places.stirred(pages)
    }
}

impl Card {
    /// Takes what the guest has stored since the last look. Answers whether there was anything.
    pub fn look<P: Pages>(&mut self, doorbells: &mut Doorbells, pages: &P) -> bool {
        let Doorbells { vf, places } = doorbells;
        let controls = r::VFINT_DYN_CTLN..r::VFINT_DYN_CTLN + 4 * EACH as u32;
        places.take(
            pages,
            |offset| controls.contains(&offset),
            |offset, value| self.write(*vf, offset, value),
        )
    }

    /// Puts into the pages what loads of them are to give from now on. What the guest has stored since the last look stays
    /// for the next.
    pub fn show<P: Pages>(&mut self, doorbells: &mut Doorbells, pages: &P) {
        let Some(function) = self.functions.get_mut(usize::from(doorbells.vf)) else { return };
        let stale = core::mem::take(&mut function.stale);
        for index in (0..EACH).filter(|index| stale >> index & 1 == 1) {
            let places = (index..COUNT).step_by(EACH);
            let all = doorbells.places.show(pages, places, |place| function.shown(place));
            // What the guest has stored meanwhile is looked at first.
            function.stale |= u16::from(!all) << index;
        }
    }

    /// What a load of a place is to give.
    fn shown(&self, vf: u8, place: usize) -> u32 {
        self.functions.get(usize::from(vf)).map_or(0, |function| function.shown(place))
    }
}

impl Function {
    fn shown(&self, place: usize) -> u32 {
        let (kind, index) = (place / EACH, place % EACH);
        let vector = index as u8 + 1;
        match kind {
            0..3 => self.interrupts.interval(vector, kind as u8),
            3 => self.interrupts.control(vector) | SEEN,
            4 => self.rx[index].tail,
            _ => self.tx[index].tail,
        }
    }
}
