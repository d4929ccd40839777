//! Register map of a VF as a table: each register's offset, reset value, effects of reads and writes, and the part
//! of the card that acts on it. `docs/AVF-REGISTERS.md` is this table in words.
//!
//! The card implements those actions. Drivers read no register on the path of a frame.

use crate::bits::{aqlen, dyn_ctl, rstat};
use crate::register as r;
use MailboxQueue::{Receive, Send};
use MailboxRegister::{BaseHigh, BaseLow, Head, Length, Tail};
use RegisterKind::{
    Causes, Control, ControlOfVector0, EnabledCauses, HashKey, HashTypes, Interval, IntervalOfVector0,
    LookupTable, Mailbox, Reset, RxTail, TxTail, Unused,
};
use VfRegisterAccessMode::{Rc, Ro, Rw};
use pcie::low::low_byte;

/// Effect of software's reads and writes on the stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfRegisterAccessMode {
    /// Read-write register: written bits within the mask are stored.
    Rw(u32),
    /// Read-only register: writes are ignored.
    Ro,
    /// Register cleared by reads; writes are ignored.
    Rc,
}

/// Kind of a register, which determines the part of the card that acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterKind {
    /// Register kind: the doorbell of a transmit queue.
    TxTail,
    /// Register kind: the doorbell of a receive queue.
    RxTail,
    /// Register kind: a throttling interval of interrupt vectors 1 to 16.
    Interval(u8),
    /// Register kind: the throttling intervals of interrupt vector 0.
    IntervalOfVector0,
    /// Register kind: interrupt control of vectors 1 to 16.
    Control,
    /// Register kind: interrupt control of vector 0.
    ControlOfVector0,
    /// Register kind: interrupt causes of vector 0.
    Causes,
    /// Register kind: interrupt causes of vector 0 that are enabled.
    EnabledCauses,
    /// Register kind: a register of a mailbox queue.
    Mailbox(MailboxQueue, MailboxRegister),
    /// Register kind: state of the VF's reset.
    Reset,
    /// Register kind: packet types that RSS hashes.
    HashTypes,
    /// Register kind: RSS hash key.
    HashKey,
    /// Register kind: RSS lookup table.
    LookupTable,
    /// Register kind: accesses have no effect.
    Unused,
}

/// Direction of a mailbox queue: from the VF (send) or to the VF (receive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailboxQueue {
    /// Mailbox queue from the VF to the PF (ATQ).
    Send,
    /// Mailbox queue from the PF to the VF (ARQ).
    Receive,
}

/// Register of a mailbox queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailboxRegister {
    /// Low half of the mailbox ring's address.
    BaseLow,
    /// High half of the mailbox ring's address.
    BaseHigh,
    /// Length, error bits and enable bit of the mailbox ring.
    Length,
    /// Index of the descriptor that the card serves next.
    Head,
    /// Index of the descriptor that the driver fills next.
    Tail,
}

/// Effect of the VF's resets (RESET_VF, a reset by the PF, FLR) on a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterResetEffect {
    /// Effect of a reset: the register gets its value after power-on.
    Cleared,
    /// Effect of a reset: the register keeps its value.
    Kept,
}

/// Row of the register table: a register, or an array of equal ones.
#[derive(Debug, Clone, Copy)]
pub struct Register {
    /// Name of the register in Intel's headers.
    pub name: &'static str,
    /// Offset in BAR 0 of the register's element 0, in bytes.
    pub offset: u32,
    /// Number of the register's elements, 4 bytes apart.
    pub count: u32,
    /// Effect of reads and writes on the register.
    pub access: VfRegisterAccessMode,
    /// Value of the register after power-on.
    pub reset: u32,
    /// Effect of a reset of the VF on the register.
    pub after: RegisterResetEffect,
    /// Kind of the register, by the part of the card that acts on it.
    pub kind: RegisterKind,
    /// Further rules for accesses to the register, as text for `docs/AVF-REGISTERS.md`.
    pub more: &'static str,
}

impl Register {
    const fn one(
        name: &'static str,
        offset: u32,
        access: VfRegisterAccessMode,
        kind: RegisterKind,
        more: &'static str,
    ) -> Self {
        Self::many(name, offset, 1, access, kind, more)
    }

    const fn many(
        name: &'static str,
        offset: u32,
        count: u32,
        access: VfRegisterAccessMode,
        kind: RegisterKind,
        more: &'static str,
    ) -> Self {
        Self { name, offset, count, access, reset: 0, after: RegisterResetEffect::Cleared, kind, more }
    }

    const fn reset(mut self, value: u32) -> Self {
        self.reset = value;
        self
    }

    const fn kept(mut self) -> Self {
        self.after = RegisterResetEffect::Kept;
        self
    }

    /// Returns the offsets of the register's elements, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u32> {
        let offset = self.offset;
        (0..self.count).map(move |i| offset + 4 * i)
    }
}

/// Mask of a mailbox ring's address, which is 64-byte aligned.
const RING_BASE: u32 = !0x3f;
const LENGTH: u32 = aqlen::ENABLE | aqlen::ERRORS | aqlen::LENGTH;
const INDEX: u32 = crate::bits::AQ_INDEX;
const KEPT_IN_CONTROL: u32 = dyn_ctl::INTENA
    | dyn_ctl::WB_ON_ITR
    | dyn_ctl::INTERVAL << dyn_ctl::INTERVAL_SHIFT
    | 3 << dyn_ctl::ITR_SHIFT;

const TX_TAIL: &str = "index of the next descriptor that the driver fills; an index beyond the ring is \
    ignored. Configuring the queue sets the index to 0";
const RX_TAIL: &str = "index of the next descriptor that the driver fills; an index beyond the ring is \
    ignored. Configuring the queue keeps the index";
const INTERVAL: &str = "interval of vector i + 1, in units of 2 us";
const CONTROL: &str = "INTENA clears itself when the vector interrupts; ITR_INDX 0 to 2 also sets the \
    interval of that index; SWINT_TRIG interrupts; INTENA_MSK keeps INTENA";
const BASE: &str = "may be written after the length: the card reads the ring only after a write of the tail";
const ON: &str = "ENABLE starts the queue; a write to a running queue changes only the error bits";

const fn mailbox(
    name: &'static str,
    offset: u32,
    mask: u32,
    side: MailboxQueue,
    field: MailboxRegister,
    more: &'static str,
) -> Register {
    Register::one(name, offset, Rw(mask), Mailbox(side, field), more)
}

/// All registers of a VF's BAR0, by chapter of `docs/AVF-REGISTERS.md`.
pub const CHAPTERS: &[(&str, &[Register])] = &[
    (
        "queues",
        &[
            Register::many("QTX_TAIL1", r::QTX_TAIL, 16, Rw(u32::MAX), TxTail, TX_TAIL),
            Register::many("QRX_TAIL1", r::QRX_TAIL, 16, Rw(u32::MAX), RxTail, RX_TAIL),
        ],
    ),
    (
        "interrupts",
        &[
            Register::many("VFINT_ITRN1(0)", r::VFINT_ITRN, 16, Rw(dyn_ctl::INTERVAL), Interval(0), INTERVAL),
            Register::many(
                "VFINT_ITRN1(1)",
                r::VFINT_ITRN + 0x40,
                16,
                Rw(dyn_ctl::INTERVAL),
                Interval(1),
                INTERVAL,
            ),
            Register::many(
                "VFINT_ITRN1(2)",
                r::VFINT_ITRN + 0x80,
                16,
                Rw(dyn_ctl::INTERVAL),
                Interval(2),
                INTERVAL,
            ),
            Register::many("VFINT_DYN_CTLN1", r::VFINT_DYN_CTLN, 16, Rw(KEPT_IN_CONTROL), Control, CONTROL),
            Register::one(
                "VFINT_ICR01",
                r::VFINT_ICR01,
                Rc,
                Causes,
                "causes are set even if they do not interrupt: DPDK polls the register every 50 ms",
            ),
            Register::many(
                "VFINT_ITR01",
                r::VFINT_ITR01,
                3,
                Rw(dyn_ctl::INTERVAL),
                IntervalOfVector0,
                "interval of vector 0, in units of 2 us",
            ),
            Register::one(
                "VFINT_ICR0_ENA1",
                r::VFINT_ICR0_ENA,
                Rw(u32::MAX),
                EnabledCauses,
                "which causes of ICR01 raise vector 0",
            ),
            Register::one("VFINT_STAT_CTL01", r::VFINT_STAT_CTL0, Rw(u32::MAX), Unused, "stored only"),
            Register::one(
                "VFINT_DYN_CTL01",
                r::VFINT_DYN_CTL0,
                Rw(KEPT_IN_CONTROL),
                ControlOfVector0,
                CONTROL,
            ),
        ],
    ),
    (
        "mailbox",
        &[
            mailbox("VF_ARQBAH1", r::VF_ARQBAH, u32::MAX, Receive, BaseHigh, BASE),
            mailbox("VF_ARQBAL1", r::VF_ARQBAL, RING_BASE, Receive, BaseLow, BASE),
            mailbox("VF_ARQLEN1", r::VF_ARQLEN, LENGTH, Receive, Length, ON),
            mailbox(
                "VF_ARQH1",
                r::VF_ARQH,
                INDEX,
                Receive,
                Head,
                "advances when the card has written a message",
            ),
            mailbox(
                "VF_ARQT1",
                r::VF_ARQT,
                INDEX,
                Receive,
                Tail,
                "the card fills descriptors up to the one before this index",
            ),
            mailbox("VF_ATQBAH1", r::VF_ATQBAH, u32::MAX, Send, BaseHigh, BASE),
            mailbox("VF_ATQBAL1", r::VF_ATQBAL, RING_BASE, Send, BaseLow, BASE),
            mailbox("VF_ATQLEN1", r::VF_ATQLEN, LENGTH, Send, Length, ON),
            mailbox(
                "VF_ATQH1",
                r::VF_ATQH,
                INDEX,
                Send,
                Head,
                "advances when the card has read a message; RESET_VF leaves the head at the tail",
            )
            .kept(),
            mailbox(
                "VF_ATQT1",
                r::VF_ATQT,
                INDEX,
                Send,
                Tail,
                "the card reads messages up to the one before this index",
            )
            .kept(),
            Register::one(
                "VFGEN_RSTAT",
                r::VFGEN_RSTAT,
                Ro,
                Reset,
                "reset state that the PF reports: 0 in progress, 1 completed, 2 active",
            )
            .reset(rstat::ACTIVE),
        ],
    ),
    (
        "scaling",
        &[
            Register::many(
                "VFQF_HENA",
                r::VFQF_HENA,
                2,
                Rw(u32::MAX),
                HashTypes,
                "iavf sends messages instead if RSS_PF is negotiated",
            ),
            Register::many(
                "VFQF_HKEY",
                r::VFQF_HKEY,
                13,
                Rw(u32::MAX),
                HashKey,
                "iavf sends messages instead if RSS_PF is negotiated",
            ),
            Register::many(
                "VFQF_HLUT",
                r::VFQF_HLUT,
                16,
                Rw(u32::MAX),
                LookupTable,
                "iavf sends messages instead if RSS_PF is negotiated; a frame whose entry names no running queue is dropped",
            ),
        ],
    ),
];

/// Returns the rows of all AVF registers.
pub fn rows() -> impl Iterator<Item = &'static Register> {
    CHAPTERS.iter().flat_map(|(_, rows)| rows.iter())
}

/// Returns the row of the register at an offset, and the element's index in it, or `None` for an offset without a
/// register, where reads give zero and writes are ignored.
#[must_use]
pub fn find(offset: u32) -> Option<(&'static Register, u8)> {
    let within = |row: &&'static Register| (row.offset..row.offset + 4 * row.count).contains(&offset);
    let row = rows().find(within).filter(|_| offset.is_multiple_of(4))?;
    Some((row, low_byte((offset - row.offset) / 4)))
}

#[cfg(test)]
mod tests {
    use super::RegisterKind::{Control, Interval, RxTail, TxTail};
    use super::{find, rows};
    use crate::ids::{BAR0_SIZE, MAPPED};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn avf_registers_lie_within_bar_0_without_overlap() {
        let mut taken = HashMap::new();
        for row in rows() {
            for offset in row.offsets() {
                assert!(
                    offset.is_multiple_of(4) && (offset as usize) < BAR0_SIZE,
                    "{} at {offset:#x}",
                    row.name
                );
                assert_eq!(taken.insert(offset, row.name), None, "{} at {offset:#x}", row.name);
            }
        }
    }

    #[test]
    fn avf_register_names_are_unique() {
        let mut names = HashSet::new();
        assert!(rows().all(|row| names.insert(row.name)));
    }

    #[test]
    fn avf_register_is_found_only_at_its_own_offsets() {
        for row in rows() {
            for (index, offset) in row.offsets().enumerate() {
                let (found, at) = find(offset).unwrap();
                assert_eq!((found.name, usize::from(at)), (row.name, index));
                assert!(find(offset + 1).is_none(), "not aligned");
            }
        }
        assert!(find(0x0040).is_none() && find(0x3000).is_none() && find(0xfffc).is_none());
    }

    #[test]
    fn mapped_pages_contain_exactly_the_doorbell_registers() {
        for row in rows() {
            let is_mapped = MAPPED.iter().any(|pages| pages.contains(&row.offset));
            let is_doorbell = matches!(row.kind, TxTail | RxTail | Interval(_) | Control);
            assert_eq!(is_mapped, is_doorbell, "{}", row.name);
        }
    }
}
