//! Pages of a VF's BAR 0 that its guest maps ([`avf::ids::MAPPED`]): tails, intervals, and the control of every vector
//! but the first. The card reads the guest's stores later ([`Nic::read_doorbells`]) and handles them as register
//! writes, and publishes the values that the guest loads ([`Nic::publish_registers`]).
//!
//! # Stores that overwrite each other
//! Of several stores to a register between two reads, the last counts. That suffices for tails and intervals. A control register
//! holds enable, interval and trigger at once, and two processors of a guest may store there:
//! - INTENA enables or disables the vector. The last store counts, as on a card that sees both. Causes are kept while the vector is
//!   disabled, and interrupt when it is enabled, so a late read loses no interrupt. Only a store with INTENA_MSK (leave INTENA as
//!   it is) that overwrites an enabling store leaves the vector disabled; no known driver does that.
//! - A software interrupt (SWINT_TRIG) can be overwritten by a driver that enables the vector at the end of its poll. The trigger
//!   asks for exactly such a poll: Linux triggers it for a queue that seems stuck, and again after 2 s if it still is.
//! - An overwritten interval keeps its former value until the driver changes it again.
//!
//! A store of the present value must be detected, since a driver enables its vector with the same value each time. So the card sets
//! [`SEEN`] in the published value, a bit that no driver stores.
//!
//! A store is checked like a write by message. The owner of the pages decides when to read them.

use crate::card::Nic;
use crate::function::VfHardware;
use avf::bits::dyn_ctl::SEEN;
use avf::register as r;
use pcie::pages::{GuestRegisterPages, PageRegisters};

/// Number of mapped registers of each kind: one for each queue pair, or for each interrupt vector but the first.
const EACH: usize = avf::ids::MAX_PAIRS;

/// First offset of each kind of mapped register, in the order in which the guest's stores are handled: intervals before
/// the vector is enabled, tails last.
const KINDS: [u32; 6] = {
    let itr = r::VFINT_ITRN;
    [itr, itr + 0x40, itr + 0x80, r::VFINT_DYN_CTLN, r::QRX_TAIL, r::QTX_TAIL]
};

/// Number of registers in the mapped pages of a VF.
pub const COUNT: usize = KINDS.len() * EACH;

/// Offsets of the registers in the mapped pages of a VF, in the order in which the guest's stores are handled.
pub const REGISTERS: [u32; COUNT] = {
    let (mut offsets, mut place) = ([0; COUNT], 0);
    while place < COUNT {
        offsets[place] = KINDS[place / EACH] + 4 * (place % EACH) as u32;
        place += 1;
    }
    offsets
};

/// Register values that the card has published in the mapped pages of one VF.
#[derive(Debug, Clone)]
pub struct Doorbells {
    vf: u8,
    places: PageRegisters<COUNT>,
}

impl Doorbells {
    /// Takes over a VF's mapped pages in which a predecessor has published the card's present registers. Differing
    /// values are the guest's later stores, and stay for the next read.
    #[must_use]
    pub fn adopt(card: &Nic, vf: u8) -> Self {
        Self { vf, places: PageRegisters::adopt(&REGISTERS, COUNT, |place| card.published(vf, place)) }
    }

    /// Takes over a VF's mapped pages with any content: publishes the card's registers in them, and discards the
    /// guest's stores so far.
    #[must_use]
    pub fn renew<P: GuestRegisterPages>(card: &Nic, vf: u8, pages: &P) -> Self {
        let doorbells = Self::adopt(card, vf);
        doorbells.places.fill(pages);
        doorbells
    }

    /// Returns `true` if the guest has stored anything to its mapped pages since the last read.
    #[must_use]
    pub fn has_stores<P: GuestRegisterPages>(&self, pages: &P) -> bool {
        self.places.has_stores(pages)
    }
}

impl Nic {
    /// Handles the guest's stores to its mapped pages since the last read. Returns `true` if there were any.
    pub fn read_doorbells<P: GuestRegisterPages>(&mut self, doorbells: &mut Doorbells, pages: &P) -> bool {
        let Doorbells { vf, places } = doorbells;
        let controls = r::VFINT_DYN_CTLN..r::VFINT_DYN_CTLN + 4 * EACH as u32;
        places.take(
            pages,
            |offset| controls.contains(&offset),
            |offset, value| self.write(*vf, offset, value),
        )
    }

    /// Publishes in the mapped pages the registers that have changed. Stores of the guest since the last read stay for
    /// the next read.
    pub fn publish_registers<P: GuestRegisterPages>(&mut self, doorbells: &mut Doorbells, pages: &P) {
        let Some(function) = self.functions.get_mut(usize::from(doorbells.vf)) else { return };
        let stale = core::mem::take(&mut function.stale);
        for index in (0..EACH).filter(|index| stale >> index & 1 == 1) {
            let places = (index..COUNT).step_by(EACH);
            let all = doorbells.places.publish(pages, places, |place| function.published(place));
            // A register with a newer store is published after that store was read.
            function.stale |= u16::from(!all) << index;
        }
    }

    /// Returns the value that the card publishes for register `place` of [`REGISTERS`].
    fn published(&self, vf: u8, place: usize) -> u32 {
        self.functions.get(usize::from(vf)).map_or(0, |function| function.published(place))
    }
}

impl VfHardware {
    fn published(&self, place: usize) -> u32 {
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
