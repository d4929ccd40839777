//! The register map of the PF as a table: where each register is, how it resets, what a read or a write does to
//! it, and which part of the card acts on that ([`Effect`]). A register whose whole behaviour is its row needs no
//! code anywhere. `docs/REGISTERS.md` is this table in words.
//!
//! Left out: the acts themselves; the card has those. An access of one, two or
//! eight bytes is one to the dwords it touches: bytes that are not written count as they are where storing is
//! all that a write does, and as zeros elsewhere.

mod filter;
mod general;
mod interrupt;
pub(crate) mod queues;
mod statistics;
mod switch;
#[cfg(test)]
mod tests;
mod vfs;

/// What software's reads and writes do to the stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Written bits within the mask are kept.
    Rw(u32),
    /// Writes are ignored.
    Ro,
    /// Reading clears; writes are ignored.
    Rc,
    /// Writing a one clears the bit, within the mask.
    W1c(u32),
    /// Writing a one sets the bit, within the mask.
    W1s(u32),
    /// Reads as zero; what a write does is the card's business.
    Wo,
}

/// What the card makes of a register, beyond keeping its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing, ever: no part of the card looks at the value, and none changes it.
    Never,
    /// Nothing when it is accessed: the card looks at the value, or changes it, when a frame passes.
    Stores,
    /// This part acts at once when software reads or writes it.
    Acts(Part),
}

/// A part of the card that acts on accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Control, status, NVM, PHY, clock and timer.
    Board,
    /// Causes, masks, throttles and vectors.
    Interrupt,
    /// What belongs to one VF: its mailbox, its reset, its interrupts.
    Vf,
    /// A queue, which begins anew or has something to do.
    Queue,
    /// The rates of pools.
    Pacing,
    /// Queues that are blocked, and storms.
    Police,
    /// Counters of two halves.
    Statistics,
}

impl Part {
    /// Its name in a table.
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

/// Decoded forms, which the card makes anew from the registers when one of them was written: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forms(u8);

impl Forms {
    /// No form.
    pub const NONE: Self = Self(0);
    /// The switch's tables.
    pub const SWITCH: Self = Self(1);
    /// Key, table and mode of receive-side scaling.
    pub const RSS: Self = Self(1 << 1);
    /// The filters that choose a queue.
    pub const STEERING: Self = Self(1 << 2);
    /// Every form.
    pub const ALL: Self = Self::SWITCH.and(Self::RSS).and(Self::STEERING);

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Adds others to these.
    pub fn add(&mut self, others: Self) {
        *self = self.and(others);
    }

    /// Whether one of `others` is among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// All bits.
pub(crate) const ALL: u32 = 0xffff_ffff;

/// A second place where some of a register's elements appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// Where element 0 appears.
    pub offset: u32,
    /// Distance to the next element, bytes.
    pub stride: u32,
    /// How many elements appear there, from element 0 on.
    pub count: u32,
}

/// A row: a register, or an array of equal ones.
#[derive(Debug, Clone, Copy)]
pub struct Register {
    /// The datasheet's name.
    pub name: &'static str,
    /// Where element 0 is, bytes from the start of BAR0.
    pub offset: u32,
    /// Distance to the next element, bytes.
    pub stride: u32,
    /// Elements.
    pub count: u32,
    /// Reads and writes.
    pub access: Access,
    /// Value after reset.
    pub reset: u32,
    /// Value of element 0 after reset, where it is not that of the others.
    pub first: Option<u32>,
    /// Whether a software reset (CTRL.RST) leaves the value alone.
    pub sticky: bool,
    /// The other place, if there is one.
    pub alias: Option<Alias>,
    /// What the card makes of it.
    pub effect: Effect,
    /// What is decoded from it.
    pub forms: Forms,
    /// What there is to say besides, in words.
    pub more: &'static str,
}

impl Register {
    const fn one(name: &'static str, offset: u32, access: Access) -> Self {
        Self::many(name, offset, 4, 1, access)
    }

    const fn many(name: &'static str, offset: u32, stride: u32, count: u32, access: Access) -> Self {
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
            effect: Effect::Stores,
            forms: Forms::NONE,
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
        self.alias = Some(Alias { offset, stride, count });
        self
    }

    /// Nothing comes of it: what it shows is said in words.
    const fn never(mut self, what: &'static str) -> Self {
        self.effect = Effect::Never;
        self.more(what)
    }

    /// Software reads back what it wrote, and that is all.
    const fn stored(self) -> Self {
        self.never("stored only")
    }

    /// Nothing here ever happens that would change it.
    const fn still(self) -> Self {
        self.never("stays as it is")
    }

    const fn acts(mut self, part: Part) -> Self {
        self.effect = Effect::Acts(part);
        self
    }

    const fn decoded(mut self, forms: Forms) -> Self {
        self.forms = forms;
        self
    }

    const fn more(mut self, what: &'static str) -> Self {
        self.more = what;
        self
    }

    /// Offsets of the elements, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u32> {
        let (offset, stride) = (self.offset, self.stride);
        (0..self.count).map(move |i| offset + i * stride)
    }

    /// Offsets and reset values of the elements, in order.
    pub fn resets(&self) -> impl Iterator<Item = (u32, u32)> {
        let (first, reset) = (self.first.unwrap_or(self.reset), self.reset);
        self.offsets().zip(core::iter::once(first).chain(core::iter::repeat(reset)))
    }

    /// Where the elements appear a second time, in order.
    pub fn aliases(&self) -> impl Iterator<Item = u32> {
        self.alias
            .into_iter()
            .flat_map(|alias| (0..alias.count).map(move |i| alias.offset + i * alias.stride))
    }
}

/// The whole table, by chapter.
pub const CHAPTERS: &[(&str, &[Register])] = &[
    ("general", general::ROWS),
    ("interrupt", interrupt::ROWS),
    ("queues", queues::ROWS),
    ("filters and offloads", filter::ROWS),
    ("switch", switch::ROWS),
    ("mailbox and VFs", vfs::ROWS),
    ("statistics", statistics::ROWS),
];

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Register> {
    CHAPTERS.iter().flat_map(|(_, rows)| rows.iter())
}
