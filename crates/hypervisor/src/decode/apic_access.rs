//! The exit for an access to the APIC's page, and three ways to handle it (opt. 2 of "High Performance Network
//! Virtualization with SR-IOV", HPCA 2010). Left out: the exit itself and its price.

use super::execute::Execution;
use super::fetch::fetch;
use super::memory::GuestMemory;
use super::{Cpu, Trap, Work};
use crate::lapic::{Lapic, Write, registers::EOI};
use iced_x86::{Mnemonic, OpKind};
use sim::Instant;

/// How an end of interrupt is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Believe the exit: a write at the EOI register is an EOI, and RIP moves on by the instruction's length.
    /// What else the instruction does is lost: RDI, RSI and RCX of a string instruction.
    Fast,
    /// Fetch the instruction and take the short way if it is a plain move.
    FastChecked,
    /// Fetch, decode and carry out every instruction.
    Emulate,
}

/// What the access was (SDM volume 3, exit qualification for APIC-access exits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A linear read by an instruction.
    Read,
    /// A linear write by an instruction.
    Write,
    /// An instruction fetch.
    Fetch,
    /// The delivery of an event, or a guest-physical access: no instruction's own data.
    Other,
}

/// An APIC-access exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApicAccess {
    /// Where in the page, 0 to FFFh.
    pub offset: u16,
    /// What for.
    pub access: Access,
    /// Bytes of the instruction, from the exit's VM-exit instruction length.
    pub length: u8,
}

impl ApicAccess {
    /// Reads the exit qualification: offset in bits 11:0, access type in bits 15:12.
    #[must_use]
    pub fn new(qualification: u64, length: u8) -> Self {
        let access = match qualification >> 12 & 15 {
            0 => Access::Read,
            1 => Access::Write,
            2 => Access::Fetch,
            _ => Access::Other,
        };
        Self { offset: (qualification & 0xfff) as u16, access, length }
    }

    /// Whether it is a linear write at the EOI register.
    #[must_use]
    pub fn is_eoi(self) -> bool {
        self.access == Access::Write && self.offset == EOI
    }
}

/// What an instruction may touch.
#[derive(Debug)]
pub struct Guest<'a, M> {
    /// The guest's memory.
    pub memory: &'a mut M,
    /// The vCPU's APIC.
    pub lapic: &'a mut Lapic,
    /// The physical address of the APIC's page.
    pub apic_page: u64,
    /// The time.
    pub now: Instant,
}

impl<M> Guest<'_, M> {
    /// The offset of an address in the APIC's page.
    pub(super) fn apic_offset(&self, address: u64) -> Option<u16> {
        (address >> 12 == self.apic_page >> 12).then_some((address & 0xfff) as u16)
    }
}

/// Which way was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// EOI from the exit's own words.
    Fast,
    /// EOI after a look at the instruction.
    Checked,
    /// The instruction was carried out, or trapped.
    Emulated,
}

/// What the APIC saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the instruction did not touch it after all.
    None,
    /// Reads only.
    Read,
    /// A write, and what it did.
    Write(Write),
}

/// How an exit was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handled {
    /// Which way.
    pub how: How,
    /// What it took.
    pub work: Work,
    /// What it did, or what is injected into the guest.
    pub result: Result<Effect, Trap>,
}

/// Handles an APIC-access exit. RIP and registers are changed unless the result is a trap; a repeated string
/// instruction does one element and exits again for the next.
pub fn apic_access<M: GuestMemory>(
    policy: Policy,
    exit: ApicAccess,
    cpu: &mut Cpu,
    guest: Guest<'_, M>,
) -> Handled {
    let mut work = Work::default();
    if policy == Policy::Fast && exit.is_eoi() {
        cpu.rip = cpu.rip.wrapping_add(exit.length.into());
        return Handled { how: How::Fast, work, result: Ok(end(guest.lapic, guest.now)) };
    }
    let instruction = match fetch(guest.memory, cpu, &mut work) {
        Ok(instruction) => instruction,
        Err(trap) => return Handled { how: How::Emulated, work, result: Err(trap) },
    };
    let plain = instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Memory;
    if policy == Policy::FastChecked && exit.is_eoi() && plain {
        cpu.rip = instruction.next_ip();
        return Handled { how: How::Checked, work, result: Ok(end(guest.lapic, guest.now)) };
    }
    let execution = Execution { guest, cpu, instruction, work: &mut work, effect: Effect::None };
    let result = execution.run();
    Handled { how: How::Emulated, work, result }
}

fn end(lapic: &mut Lapic, now: Instant) -> Effect {
    Effect::Write(lapic.write(now, EOI, 0))
}
