//! Pages of a VF's BAR0 that the guest maps as memory ([`MAPPED`]). The guest's loads and stores there cause no exit, so the
//! card compares the pages later ([`Nic::read_doorbells`]), and publishes the values that the guest is to read ([`Nic::publish_registers`]).
//!
//! A register in these pages that differs from its published value ([`pcie::pages`]) has been stored to by the guest.
//! The card treats the store as a write of the register. It then publishes the value that a read would return now,
//! unless the guest has stored again.
//!
//! # Differences from trapped accesses
//! - Of several stores to a register between two calls of [`Nic::read_doorbells`] only the last counts. A tail needs no more. VTEIMS
//!   does: a store that is overwritten would leave its vector masked for ever. So each store to VTEIMS unmasks all vectors
//!   that the guest has enabled and the card has masked since (VTEIAM). A vector that is unmasked too early costs one
//!   needless interrupt.
//! - Stores are applied in the order of [`REGISTERS`], not in the guest's order. A driver that depends on its order reads a
//!   register outside these pages in between, as drivers do to flush posted writes; the owner of the pages calls
//!   [`Nic::read_doorbells`] before it answers that read.
//! - A store of the published value cannot be noticed. In VTEICS, VTEIMS and VTEIMC such a store has an effect, so the card
//!   publishes them with a reserved bit set ([`SEEN`]): a driver's value always differs.
//! - The card does not notice loads: they do not clear VTEICR and RQDPC, and counters are as of the last publication.
//!
//! A store is checked like any write by the guest. The owner of the pages keeps the memory and decides when to look.

use crate::Nic;
use crate::board::clock;
use i82576::register::vf::{QUEUE_STRIDE, RX_BLOCK, TX_BLOCK, VTEICS, VTEIMC, VTEIMS};
use i82576::register::{self as r, rx, tx};
use i82576::window::{self, MAPPED, ResolvedVfRegister, TABLE, VECTOR_BITS};
use i82576::{Time, VfIndex};
use pcie::Function;
use pcie::pages::{GuestRegisterPages, PageRegisters};

/// Reserved bit in the values that the card publishes for VTEICS, VTEIMS and VTEIMC: software that stores writes the
/// bit as zero, so the card sees the store.
pub const SEEN: u32 = 1 << 31;

/// Number of VF registers in the mapped pages.
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

/// Offsets of the VF registers in the mapped pages, in the order in which the guest's stores are applied. Mask bits are
/// cleared before they are set, a ring is set up before it is enabled, and tails come last.
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

/// Rank of ring tails in the order of [`REGISTERS`]: stores to them are applied last.
const LAST: u8 = 4;

/// Index of the first ring tail in [`REGISTERS`].
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

/// Returns the rank of a register in the order of [`REGISTERS`]: stores to lower ranks are applied first.
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

/// Values that the card has published in one VF's mapped pages.
#[derive(Debug, Clone)]
pub struct Doorbells {
    vf: VfIndex,
    slots: [ResolvedVfRegister; COUNT],
    places: PageRegisters<COUNT>,
    /// Interrupt vectors that the guest has enabled, a bit each; the card may have masked them since (VTEIAM).
    enabled: u32,
}

impl Doorbells {
    /// Takes over a VF's mapped pages in which [`Nic::publish_registers`] has published the card's present registers.
    /// Differing values are the guest's later stores, which [`Nic::read_doorbells`] will apply.
    #[must_use]
    pub fn adopt(nic: &Nic, vf: VfIndex, now: Time) -> Self {
        let slot = |offset| window::resolve(vf, offset).unwrap_or(NOTHING);
        let slots = REGISTERS.map(slot);
        let places = PageRegisters::adopt(&REGISTERS, TAILS, |place| nic.load(vf, slots[place], now));
        Self { vf, slots, places, enabled: nic.vectors(vf, r::EIMS) | nic.vectors(vf, r::EIAM) }
    }

    /// Takes over a VF's mapped pages with any content: publishes the card's registers in them, and discards the
    /// guest's stores so far.
    #[must_use]
    pub fn renew<P: GuestRegisterPages>(nic: &Nic, vf: VfIndex, pages: &P, now: Time) -> Self {
        let doorbells = Self::adopt(nic, vf, now);
        doorbells.places.fill(pages);
        doorbells
    }

    /// Returns true if the guest has stored to the mapped pages since the last [`Nic::read_doorbells`].
    #[must_use]
    pub fn has_stores<P: GuestRegisterPages>(&self, pages: &P) -> bool {
        self.places.has_stores(pages)
    }
}

/// Returns the value to write to a register for a guest's store to its mapped page. A store to VTEIMS also unmasks the
/// `enabled` vectors, and stores to VTEIMS and VTEIMC update `enabled`.
fn value_to_write(enabled: &mut u32, offset: u32, value: u32) -> u32 {
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

/// Register bits of an offset without a register: reads return zero, and writes are ignored.
const NOTHING: ResolvedVfRegister =
    ResolvedVfRegister { offset: 0, shift: 0, mask: 0, access: window::TABLE[0].access };

impl Nic {
    /// Applies the guest's stores to the mapped pages since the last call. Returns true if there were any.
    pub fn read_doorbells<P: GuestRegisterPages>(
        &mut self,
        doorbells: &mut Doorbells,
        pages: &P,
        now: Time,
    ) -> bool {
        let Doorbells { vf, places, enabled, .. } = doorbells;
        // The card itself masks only vectors in VTEIAM. Any other masked vector was disabled by a reset or through the PF's view.
        *enabled &= self.vectors(*vf, r::EIMS) | self.vectors(*vf, r::EIAM);
        places.take(pages, acts, |offset, stored| {
            let value = value_to_write(enabled, offset, stored);
            self.write(Function::Vf(vf.get()), offset, value, now);
        })
    }

    /// Publishes the registers in the mapped pages. A store of the guest since the last [`Nic::read_doorbells`] stays
    /// for the next one.
    pub fn publish_registers<P: GuestRegisterPages>(&self, doorbells: &mut Doorbells, pages: &P, now: Time) {
        let Doorbells { vf, slots, places, .. } = doorbells;
        if self.answering(vf.get()).is_none() {
            places.publish(pages, 0..COUNT, |_| u32::MAX);
            return;
        }
        places.publish(pages, 0..COUNT, |place| self.value_of(slots[place], *vf, now));
    }

    /// Returns the value that the guest loads from a register: all ones if the VF does not answer memory requests.
    fn load(&self, vf: VfIndex, slot: ResolvedVfRegister, now: Time) -> u32 {
        if self.answering(vf.get()).is_none() {
            return u32::MAX;
        }
        self.value_of(slot, vf, now)
    }

    /// Returns the value that a guest reads from a register of its VF. The VF answers memory requests at present.
    #[inline]
    fn value_of(&self, slot: ResolvedVfRegister, vf: VfIndex, now: Time) -> u32 {
        match slot.offset {
            r::FRTIMER => clock::free_running(now),
            r::EICS => self.vectors(vf, r::EICR) | SEEN,
            r::EIMS | r::EIMC => self.vectors(vf, r::EIMS) | SEEN,
            offset => self.state.file.get(offset) >> slot.shift & slot.mask,
        }
    }

    /// Returns the VF's bits of a register with a bit for each vector.
    fn vectors(&self, vf: VfIndex, offset: u32) -> u32 {
        self.state.file.get(offset) >> vf.first_vector() & VECTOR_BITS
    }
}

/// Returns true if a store to the register has an effect even if it repeats the value stored last.
const fn acts(offset: u32) -> bool {
    matches!(offset, VTEICS | VTEIMS | VTEIMC)
}
