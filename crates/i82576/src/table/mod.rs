//! Register map of the PF as a table: each register's offset, reset value, effect of reads and writes, and the part
//! of the card that acts on them ([`RegisterAccessEffect`]). A register whose whole behaviour is its row needs no other code.
//! `docs/REGISTERS.md` is generated from this table.
//!
//! The card implements the actions. An access of one, two or eight bytes accesses the dwords that it touches:
//! unwritten bytes keep their value where a write only stores, and count as zeros elsewhere.

mod filter;
mod general;
mod interrupt;
pub(crate) mod queues;
mod statistics;
mod switch;
#[cfg(test)]
mod tests;
mod vfs;

/// Effect of software's reads and writes on a register's stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterAccessRule {
    /// Read-write register: writes store the bits within the mask.
    Rw(u32),
    /// Read-only register: writes are ignored.
    Ro,
    /// Register cleared by reads; writes are ignored.
    Rc,
    /// Write-1-to-clear register: writing a one clears the bit, within the mask.
    W1c(u32),
    /// Write-1-to-set register: writing a one sets the bit, within the mask.
    W1s(u32),
    /// Write-only register: reads return zero; the card defines the effect of writes.
    Wo,
}

/// Use of a register's value by the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterAccessEffect {
    /// No use: no part of the card reads or changes the value.
    Never,
    /// No action on access: the card reads or changes the value when a frame passes.
    Stores,
    /// Action on access: this part of the card acts at once on software's reads or writes.
    Acts(CardPart),
}

/// Part of the card that acts on software's accesses to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardPart {
    /// Registers of control, status, NVM, PHY, clock and timer.
    Board,
    /// Registers of interrupt causes, masks, throttles and vectors.
    Interrupt,
    /// Registers of one VF: its mailbox, its reset, its interrupts.
    Vf,
    /// Registers by which queues restart or get descriptors.
    Queue,
    /// Registers that limit the transmit rates of pools.
    Pacing,
    /// Registers of blocked queues and of storm control.
    Police,
    /// Registers of 64-bit counters, each in a low and a high register.
    Statistics,
}

impl CardPart {
    /// Returns the name of the card's part in the register document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Interrupt => "interrupt",
            Self::Vf => "VF",
            Self::Queue => "queue",
            Self::Pacing => "pacing",
            Self::Police => "police",
            Self::Statistics => "statistics",
        }
    }
}

/// Set of the card's decoded register forms (switch tables, RSS, receive filters) that a register write makes stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodedRegisterSet(u8);

impl DecodedRegisterSet {
    /// Empty set of decoded register forms.
    pub const NONE: Self = Self(0);
    /// Decoded form: tables of the card's switch.
    pub const SWITCH: Self = Self(1);
    /// Decoded form: key, table and mode of receive-side scaling.
    pub const RSS: Self = Self(1 << 1);
    /// Decoded form: filters that select a receive queue.
    pub const STEERING: Self = Self(1 << 2);
    /// All decoded forms of registers.
    pub const ALL: Self = Self::SWITCH.and(Self::RSS).and(Self::STEERING);

    /// Returns the union of two sets of decoded register forms.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Adds the decoded forms of another set.
    pub fn add(&mut self, others: Self) {
        *self = self.and(others);
    }

    /// Returns true if the sets have a decoded form in common.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// Mask of all bits of a register.
pub(crate) const ALL: u32 = 0xffff_ffff;

/// Second location (alias) of some of a register's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterAlias {
    /// Offset in BAR0 of the second location of element 0.
    pub offset: u32,
    /// Distance from an element's second location to the next one's, in bytes.
    pub stride: u32,
    /// Number of elements that have a second location, from element 0 on.
    pub count: u32,
}

/// Row of the register table: a register, or an array of equal ones.
#[derive(Debug, Clone, Copy)]
pub struct PfRegister {
    /// Name of the register in the datasheet.
    pub name: &'static str,
    /// Offset in BAR0 of the register's element 0, in bytes.
    pub offset: u32,
    /// Distance to the register's next element in bytes.
    pub stride: u32,
    /// Number of elements of the register.
    pub count: u32,
    /// Effect of reads and writes on the register.
    pub access: RegisterAccessRule,
    /// Value of the register after reset.
    pub reset: u32,
    /// Value of element 0 after reset, where it differs from that of the others.
    pub first: Option<u32>,
    /// True if a software reset (CTRL.RST) keeps the value.
    pub sticky: bool,
    /// Second location of the register's first elements, if there is one.
    pub alias: Option<RegisterAlias>,
    /// Use of the register's value by the card, and the part of the card that acts on accesses.
    pub effect: RegisterAccessEffect,
    /// Decoded forms that the card recomputes after a write of the register.
    pub forms: DecodedRegisterSet,
    /// Further notes on the register for the document.
    pub more: &'static str,
}

impl PfRegister {
    const fn one(name: &'static str, offset: u32, access: RegisterAccessRule) -> Self {
        Self::many(name, offset, 4, 1, access)
    }

    const fn many(
        name: &'static str,
        offset: u32,
        stride: u32,
        count: u32,
        access: RegisterAccessRule,
    ) -> Self {
        Self {
            name,
            offset,
            stride,
            count,
            access,
            reset: 0,
            first: None,
            sticky: false,
            alias: None,
            effect: RegisterAccessEffect::Stores,
            forms: DecodedRegisterSet::NONE,
            more: "",
        }
    }

    const fn reset(mut self, value: u32) -> Self {
        self.reset = value;
        self
    }

    const fn first(mut self, value: u32) -> Self {
        self.first = Some(value);
        self
    }

    const fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }

    const fn also_at(mut self, offset: u32, stride: u32, count: u32) -> Self {
        self.alias = Some(RegisterAlias { offset, stride, count });
        self
    }

    /// Marks the register as one without effect on the card, with a note for the document.
    const fn never(mut self, what: &'static str) -> Self {
        self.effect = RegisterAccessEffect::Never;
        self.more(what)
    }

    /// Marks the register as one that stores its value without effect on the card.
    const fn stored(self) -> Self {
        self.never("stored only")
    }

    /// Marks the register as one whose value never changes, without effect on the card.
    const fn still(self) -> Self {
        self.never("stays as it is")
    }

    const fn acts(mut self, part: CardPart) -> Self {
        self.effect = RegisterAccessEffect::Acts(part);
        self
    }

    const fn decoded(mut self, forms: DecodedRegisterSet) -> Self {
        self.forms = forms;
        self
    }

    const fn more(mut self, what: &'static str) -> Self {
        self.more = what;
        self
    }

    /// Returns the offsets of the register's elements, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u32> {
        let (offset, stride) = (self.offset, self.stride);
        (0..self.count).map(move |i| offset + i * stride)
    }

    /// Returns the offsets and reset values of the register's elements, in order.
    pub fn resets(&self) -> impl Iterator<Item = (u32, u32)> {
        let (first, reset) = (self.first.unwrap_or(self.reset), self.reset);
        self.offsets().zip(core::iter::once(first).chain(core::iter::repeat(reset)))
    }

    /// Returns the offsets of the second locations of the register's elements, in order.
    pub fn aliases(&self) -> impl Iterator<Item = u32> {
        self.alias
            .into_iter()
            .flat_map(|alias| (0..alias.count).map(move |i| alias.offset + i * alias.stride))
    }
}

/// All 82576 registers, by chapter of the document.
pub const CHAPTERS: &[(&str, &[PfRegister])] = &[
    ("general", general::ROWS),
    ("interrupt", interrupt::ROWS),
    ("queues", queues::ROWS),
    ("filters and offloads", filter::ROWS),
    ("switch", switch::ROWS),
    ("mailbox and VFs", vfs::ROWS),
    ("statistics", statistics::ROWS),
];

/// Returns the rows of all 82576 registers.
pub fn rows() -> impl Iterator<Item = &'static PfRegister> {
    CHAPTERS.iter().flat_map(|(_, rows)| rows.iter())
}
