//! Handles APIC-access exits by one of three policies (optimisation 2 of "High Performance Network
//! Virtualization with SR-IOV", HPCA 2010).

use super::execute::EmulatedInstruction;
use super::fetch::fetch;
use super::memory::GuestMemory;
use super::{EmulationWork, GuestException, VcpuRegisters};
use crate::lapic::{ApicWriteEffect, Lapic, registers::EOI};
use iced_x86::{Mnemonic, OpKind};
use sim::VirtualInstant;

/// Policy by which the hypervisor handles a guest's end-of-interrupt writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EoiPolicy {
    /// Policy that trusts the VM exit: a write at the EOI register is an EOI, and RIP advances by the instruction's
    /// length. Other effects of the instruction are lost: RDI, RSI and RCX of a string instruction.
    Fast,
    /// Policy that fetches the instruction of the EOI write, and trusts the exit qualification if the instruction is a
    /// plain move.
    FastChecked,
    /// Policy that fetches, decodes and emulates every instruction that accesses the APIC page.
    Emulate,
}

/// Type of an access to the APIC page (SDM volume 3, exit qualification for APIC-access exits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApicAccessKind {
    /// Read of data from the APIC page by an instruction, at a linear address.
    Read,
    /// Write of data to the APIC page by an instruction, at a linear address.
    Write,
    /// Fetch of an instruction from the APIC page.
    Fetch,
    /// Access to the APIC page by the delivery of an event, or by guest-physical address; no instruction accesses data
    /// itself.
    Other,
}

/// VM exit for an access to the APIC page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApicAccessExit {
    /// Offset of the access in the APIC page, 0 to FFFh.
    pub offset: u16,
    /// Type of the access to the APIC page.
    pub access: ApicAccessKind,
    /// Length of the accessing instruction in bytes, from the VM-exit instruction length.
    pub length: u8,
}

impl ApicAccessExit {
    /// Decodes the exit qualification of an APIC-access exit: offset in bits 11:0, access type in bits 15:12.
    #[must_use]
    pub fn new(qualification: u64, length: u8) -> Self {
        let access = match qualification >> 12 & 15 {
            0 => ApicAccessKind::Read,
            1 => ApicAccessKind::Write,
            2 => ApicAccessKind::Fetch,
            _ => ApicAccessKind::Other,
        };
        Self { offset: (qualification & 0xfff) as u16, access, length }
    }

    /// Returns `true` for a write at the EOI register by linear address.
    #[must_use]
    pub fn is_eoi(self) -> bool {
        self.access == ApicAccessKind::Write && self.offset == EOI
    }
}

/// State of the guest that an emulated instruction may access.
#[derive(Debug)]
pub struct AccessibleGuestState<'a, M> {
    /// Guest physical memory that the instruction may access.
    pub memory: &'a mut M,
    /// Virtual local APIC of the vCPU.
    pub lapic: &'a mut Lapic,
    /// Physical address of the APIC page.
    pub apic_page: u64,
    /// Current virtual time, for the APIC's timer.
    pub now: VirtualInstant,
}

impl<M> AccessibleGuestState<'_, M> {
    /// Returns the offset in the APIC page of a guest-physical address.
    pub(super) fn apic_offset(&self, address: u64) -> Option<u16> {
        (address >> 12 == self.apic_page >> 12).then_some((address & 0xfff) as u16)
    }
}

/// Path by which an APIC-access exit was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApicExitHandlingPath {
    /// The APIC-access exit was handled as an EOI by the exit qualification alone.
    Fast,
    /// The APIC-access exit was handled as an EOI after the accessing instruction was checked.
    Checked,
    /// The instruction of the APIC-access exit was emulated, or trapped.
    Emulated,
}

/// Effect of an instruction on the APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApicInstructionEffect {
    /// The instruction did not access the APIC page.
    None,
    /// The instruction only read APIC registers.
    Read,
    /// The instruction wrote an APIC register, with this effect.
    Write(ApicWriteEffect),
}

/// Outcome of handling an APIC-access exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApicExitOutcome {
    /// Path by which the APIC-access exit was handled.
    pub how: ApicExitHandlingPath,
    /// Work of fetching and emulating the instruction, for which the caller charges cycles.
    pub work: EmulationWork,
    /// Effect of the instruction on the APIC, or the exception to inject.
    pub result: Result<ApicInstructionEffect, GuestException>,
}

/// Handles a guest's APIC-access exit. Advances RIP and changes registers unless the result is a trap. A repeated
/// string instruction executes one element and exits again for the next.
pub fn apic_access<M: GuestMemory>(
    policy: EoiPolicy,
    exit: ApicAccessExit,
    cpu: &mut VcpuRegisters,
    guest: AccessibleGuestState<'_, M>,
) -> ApicExitOutcome {
    let mut work = EmulationWork::default();
    if policy == EoiPolicy::Fast && exit.is_eoi() {
        cpu.rip = cpu.rip.wrapping_add(exit.length.into());
        return ApicExitOutcome {
            how: ApicExitHandlingPath::Fast,
            work,
            result: Ok(end(guest.lapic, guest.now)),
        };
    }
    let instruction = match fetch(guest.memory, cpu, &mut work) {
        Ok(instruction) => instruction,
        Err(trap) => return ApicExitOutcome { how: ApicExitHandlingPath::Emulated, work, result: Err(trap) },
    };
    let plain = instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Memory;
    if policy == EoiPolicy::FastChecked && exit.is_eoi() && plain {
        cpu.rip = instruction.next_ip();
        return ApicExitOutcome {
            how: ApicExitHandlingPath::Checked,
            work,
            result: Ok(end(guest.lapic, guest.now)),
        };
    }
    let execution =
        EmulatedInstruction { guest, cpu, instruction, work: &mut work, effect: ApicInstructionEffect::None };
    let result = execution.run();
    ApicExitOutcome { how: ApicExitHandlingPath::Emulated, work, result }
}

fn end(lapic: &mut Lapic, now: VirtualInstant) -> ApicInstructionEffect {
    ApicInstructionEffect::Write(lapic.write(now, EOI, 0))
}
