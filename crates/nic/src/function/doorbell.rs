//! Pages of a VF's BAR0 that its guest has as memory ([`MAPPED`]): its loads and stores there are no accesses to the card.
//! The card finds later what the guest has stored, and puts there beforehand what the guest is to read.
//!
//! What differs from what the card has put into a register's place ([`pcie::pages`]) the guest has stored, and it counts as
//! a write of the register, in the same way as one that came by itself ([`Nic::look`]). Afterwards the card puts there what a
//! read would give now, unless the guest has stored anew ([`Nic::show`]).
//!
//! # What differs from a card that every access reaches
//! - Of several stores to a register between two looks the last counts. That is what a tail needs. VTEIMS needs more:
//!   a store that is overwritten would leave its vector masked for ever. So each store to it unmasks all vectors that
//!   the guest has enabled and the card has masked since (VTEIAM); a vector that is unmasked too early costs one
//!   interrupt for nothing.
//! - Stores are taken in the order of [`REGISTERS`], not in the guest's. A driver that cares reads a register that is not
//!   in these pages in between, as drivers do to flush posted writes; the owner of the pages looks before it answers.
//! - A store of the value that is there already cannot be seen. Where it would mean something, in VTEICS, VTEIMS and
//!   VTEIMC, the card sets a bit that the datasheet reserves ([`SEEN`]), so that what a driver stores always differs.
//! - The card does not see loads: VTEICR and RQDPC are not cleared by one, and counters are as of the last look.
//!
//! What the guest has stored is worth as much as what it writes: nothing is believed that `write` would not believe.
//! Left out: the memory itself, and when to look.

use crate::Nic;
use crate::board::clock;
use i82576::register::vf::{QUEUE_STRIDE, RX_BLOCK, TX_BLOCK, VTEICS, VTEIMC, VTEIMS};
use i82576::register::{self as r, rx, tx};
use i82576::window::{self, MAPPED, Slot, TABLE, VECTOR_BITS};
use i82576::{Time, VfIndex};
use pcie::Function;
use pcie::pages::{Pages, Places};

/// In a register that acts on what is written: the card has taken it.
pub const SEEN: u32 = 1 << 31;

/// Registers in these pages.
pub const COUNT: usize = {
    let (mut count, mut row) = (0, 0);
    while row < TABLE.len() {
        if is_mapped(TABLE[row].offset) {
            count += TABLE[row].count as usize;
        }
        row += 1;
    }
    count
};

/// Their offsets, in the order in which stores are taken: a mask is cleared before it is set, a ring is set up before it is
/// enabled, and a tail comes last.
pub const REGISTERS: [u32; COUNT] = {
    let mut offsets = [0; COUNT];
    let (mut place, mut rank) = (0, 0);
    while rank <= LAST {
        let mut row = 0;
        while row < TABLE.len() {
            let mut element = 0;
            while is_mapped(TABLE[row].offset) && element < TABLE[row].count {
                let offset = TABLE[row].offset + element * TABLE[row].stride;
                if self::rank(offset) == rank {
                    offsets[place] = offset;
                    place += 1;
                }
                element += 1;
            }
            row += 1;
        }
        rank += 1;
    }
    offsets
};

const LAST: u8 = 4;

/// The first place of a tail.
const TAILS: usize = {
    let mut place = 0;
    while rank(REGISTERS[place]) < LAST {
        place += 1;
    }
    place
};

const fn is_mapped(offset: u32) -> bool {
    MAPPED.start <= offset && offset < MAPPED.end
}

const fn rank(offset: u32) -> u8 {
    let rx = offset.wrapping_sub(RX_BLOCK) % QUEUE_STRIDE;
    let tx = offset.wrapping_sub(TX_BLOCK) % QUEUE_STRIDE;
    match offset {
        VTEIMS => 1,
        VTEICS => 2,
        TX_BLOCK.. if tx == tx::TDT => LAST,
        TX_BLOCK.. if tx == tx::TXDCTL => 3,
        TX_BLOCK.. => 0,
        RX_BLOCK.. if rx == rx::RDT => LAST,
        RX_BLOCK.. if rx == rx::RXDCTL => 3,
        _ => 0,
    }
}

/// What the card knows of one VF's pages.
#[derive(Debug, Clone)]
pub struct Doorbells {
    vf: VfIndex,
    slots: [Slot; COUNT],
    places: Places<COUNT>,
    /// The vectors that the guest has enabled, though the card may have masked them since.
    enabled: u32,
}

impl Doorbells {
    /// Of pages that are as [`Nic::show`] has left them for the card's state, but for what the guest has stored since.
    #[must_use]
    pub fn adopt(nic: &Nic, vf: VfIndex, now: Time) -> Self {
        let slot = |offset| window::resolve(vf, offset).unwrap_or(NOTHING);
        let slots = REGISTERS.map(slot);
        let places = Places::adopt(&REGISTERS, TAILS, |place| nic.shown(vf, slots[place], now));
        Self { vf, slots, places, enabled: nic.vectors(vf, r::EIMS) | nic.vectors(vf, r::EIAM) }
    }

    /// Of pages with anything in them: they are made what the card's registers are, and stores so far do not count.
    #[must_use]
    pub fn renew<P: Pages>(nic: &Nic, vf: VfIndex, pages: &P, now: Time) -> Self {
        let doorbells = Self::adopt(nic, vf, now);
        doorbells.places.fill(pages);
        doorbells
    }

    /// Whether the guest has stored anything since the last look.
    #[must_use]
    pub fn stirred<P: Pages>(&self, pages: &P) -> bool {
        self.places.stirred(pages)
    }
}

/// What the store of a value means, beyond what a write of it would. `enabled` are the vectors that the guest has enabled.
fn meant(enabled: &mut u32, offset: u32, value: u32) -> u32 {
    match offset {
        VTEIMS => {
            *enabled |= value & VECTOR_BITS;
            *enabled
        }
        VTEIMC => {
            *enabled &= !value;
            value
        }
        _ => value,
    }
}

/// In the place of a register that there is not.
const NOTHING: Slot = Slot { offset: 0, shift: 0, mask: 0, access: window::TABLE[0].access };

impl Nic {
    /// Takes what the guest has stored since the last look. Answers whether there was anything.
    pub fn look<P: Pages>(&mut self, doorbells: &mut Doorbells, pages: &P, now: Time) -> bool {
        let Doorbells { vf, places, enabled, .. } = doorbells;
        *enabled &= self.vectors(*vf, r::EIMS) | self.vectors(*vf, r::EIAM);
        places.take(pages, acts, |offset, stored| {
            let value = meant(enabled, offset, stored);
            self.write(Function::Vf(vf.get()), offset, value, now);
        })
    }

    /// Puts into the pages what reads of them are to give from now on. What the guest has stored since the last look
    /// stays for the next.
    pub fn show<P: Pages>(&self, doorbells: &mut Doorbells, pages: &P, now: Time) {
        let Doorbells { vf, slots, places, .. } = doorbells;
        if self.answering(vf.get()).is_none() {
            places.show(pages, 0..COUNT, |_| u32::MAX);
            return;
        }
        places.show(pages, 0..COUNT, |place| self.held(slots[place], *vf, now));
    }

    /// What a load of a register is to give.
    fn shown(&self, vf: VfIndex, slot: Slot, now: Time) -> u32 {
        if self.answering(vf.get()).is_none() {
            return u32::MAX;
        }
        self.held(slot, vf, now)
    }

    /// The same of a VF that answers.
    #[inline]
    fn held(&self, slot: Slot, vf: VfIndex, now: Time) -> u32 {
        match slot.offset {
            r::FRTIMER => clock::free_running(now),
            r::EICS => self.vectors(vf, r::EICR) | SEEN,
            r::EIMS | r::EIMC => self.vectors(vf, r::EIMS) | SEEN,
            offset => self.state.file.get(offset) >> slot.shift & slot.mask,
        }
    }

    /// The VF's bits of a register that has a bit for each vector.
    fn vectors(&self, vf: VfIndex, offset: u32) -> u32 {
        self.state.file.get(offset) >> vf.first_vector() & VECTOR_BITS
    }
}

/// Whether a register acts on what is stored, even if it is what is there already.
const fn acts(offset: u32) -> bool {
    matches!(offset, VTEICS | VTEIMS | VTEIMC)
}
