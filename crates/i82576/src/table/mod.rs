//! The register map of the PF as a table: where each register is, how it resets, and what a read or a write
//! does to it. A register whose whole behaviour is its row needs no code anywhere; where the card does more,
//! the row says what. `docs/REGISTERS.md` is this table in words.
//!
//! Left out: side effects on anything but the register itself; the card has those. An access of one, two or
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

/// What a row's `more` says of a register that nothing in the card looks at.
pub const STORED: &str = "stored only";

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
    /// What the card does beyond the row; empty for a register that is complete with it.
    pub more: &'static str,
}

impl Register {
    const fn one(name: &'static str, offset: u32, access: Access) -> Self {
        Self::many(name, offset, 4, 1, access)
    }

    const fn many(name: &'static str, offset: u32, stride: u32, count: u32, access: Access) -> Self {
        let (first, alias) = (None, None);
        Self { name, offset, stride, count, access, reset: 0, first, sticky: false, alias, more: "" }
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

    /// Software reads back what it wrote, and that is all.
    const fn stored(self) -> Self {
        self.more(STORED)
    }

    /// Nothing here ever happens that would change it.
    const fn still(self) -> Self {
        self.more("stays as it is")
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
