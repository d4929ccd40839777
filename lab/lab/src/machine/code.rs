//! Guest code that a hypervisor may have to emulate: instructions that write registers of the APIC page, as
//! 64-bit Linux 2.6 compiles them, in guest memory behind page tables.

use super::invariant::InvariantViolation;
use super::memory::DomainMemoryRegion;
use hypervisor::decode::apic_access::{
    AccessibleGuestState, ApicAccessExit, ApicInstructionEffect, EoiPolicy, apic_access,
};
use hypervisor::decode::cpu::RAX;
use hypervisor::decode::paging::{GuestPageSize, NO_EXECUTE, WRITE};
use hypervisor::decode::{GuestMemory, PageTableBuilder, VcpuRegisters};
use hypervisor::lapic::{ApicWriteEffect, Lapic, registers};
use hypervisor::memory::HostMemory;
use sim::VirtualInstant;

/// Virtual address of the kernel text, mapped with a 2 MiB page to physical address 0.
const TEXT: u64 = 0xffff_ffff_8000_0000;
/// Virtual address of the APIC page: the fixed map of Linux 2.6.
const APIC: u64 = 0xffff_ffff_ff5f_c000;
/// Physical address of the APIC page.
const APIC_PAGE: u64 = 0xfee0_0000;
/// Physical address of the guest's instructions.
const CODE_AT: u64 = 0x1000;
/// Physical address of the guest's first page table.
const TABLES_AT: u64 = 0x2000;

/// Guest instruction that writes an APIC register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApicStoreInstruction {
    /// Offset of the instruction from the guest's first instruction.
    at: u64,
    bytes: &'static [u8],
    pub(crate) register: u16,
}

/// Guest instruction `movl $0, APIC + 0xb0`, the EOI write of ack_APIC_irq().
pub(crate) const END: ApicStoreInstruction = ApicStoreInstruction {
    at: 0,
    bytes: &[0xc7, 0x04, 0x25, 0xb0, 0xc0, 0x5f, 0xff, 0, 0, 0, 0],
    register: registers::EOI,
};
/// Guest instruction `movl %eax, APIC + 0x380`, the write of the timer's initial count.
pub(crate) const START_TIMER: ApicStoreInstruction = ApicStoreInstruction {
    at: 0x40,
    bytes: &[0x89, 0x04, 0x25, 0x80, 0xc3, 0x5f, 0xff],
    register: registers::TMICT,
};

/// Processor state of a guest that executes the timer and EOI instructions.
#[derive(Debug)]
pub(crate) struct GuestApicCode {
    cpu: VcpuRegisters,
    region: DomainMemoryRegion,
}

impl GuestApicCode {
    /// Writes the instructions and page tables into a guest's memory. Returns `None` if there is no room.
    pub(crate) fn load(memory: &mut HostMemory, region: DomainMemoryRegion) -> Option<Self> {
        let mut view = GuestMemoryView { memory, region };
        let mut tables = PageTableBuilder::new(TABLES_AT);
        let mapped = tables.map(&mut view, TEXT, 0, GuestPageSize::Large, 0)
            && tables.map(&mut view, APIC, APIC_PAGE, GuestPageSize::Small, WRITE | NO_EXECUTE)
            && [END, START_TIMER].iter().all(|store| view.write(CODE_AT + store.at, store.bytes));
        mapped.then(|| Self { cpu: VcpuRegisters { cr3: tables.cr3(), ..VcpuRegisters::default() }, region })
    }

    /// Handles the VM exit of a guest's write to its APIC, with the given policy for EOI writes.
    pub(crate) fn exit(
        &mut self,
        store: ApicStoreInstruction,
        value: u32,
        policy: EoiPolicy,
        (lapic, memory): (&mut Lapic, &mut HostMemory),
        now: VirtualInstant,
    ) -> Result<ApicWriteEffect, InvariantViolation> {
        let rip = TEXT + CODE_AT + store.at;
        self.cpu.rip = rip;
        self.cpu.registers[RAX] = value.into();
        let exit = ApicAccessExit::new(u64::from(store.register) | LINEAR_WRITE, store.bytes.len() as u8);
        let view = &mut GuestMemoryView { memory, region: self.region };
        let guest = AccessibleGuestState { memory: view, lapic, apic_page: APIC_PAGE, now };
        match apic_access(policy, exit, &mut self.cpu, guest).result {
            Ok(ApicInstructionEffect::Write(write)) if self.cpu.rip == rip + store.bytes.len() as u64 => {
                Ok(write)
            }
            _ => Err(InvariantViolation::Instruction(store.register)),
        }
    }
}

/// Exit qualification of an APIC access: a write by linear address.
const LINEAR_WRITE: u64 = 1 << 12;

/// Memory of a guest, addressed by guest-physical addresses.
#[derive(Debug)]
struct GuestMemoryView<'a> {
    memory: &'a mut HostMemory,
    region: DomainMemoryRegion,
}

impl GuestMemory for GuestMemoryView<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let host = self.region.at(address, into.len());
        host.is_some_and(|host| self.memory.read(host, into).is_ok())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> bool {
        let host = self.region.at(address, from.len());
        host.is_some_and(|host| self.memory.write(host, from).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::{CODE_AT, END, EoiPolicy, GuestApicCode, HostMemory, InvariantViolation, START_TIMER};
    use crate::machine::memory::{DomainMemoryRegion, GUEST_MEMORY};
    use hypervisor::lapic::registers::{SVR, TMICT};
    use hypervisor::lapic::{ApicWriteEffect, Lapic};
    use sim::{VirtualDuration, VirtualInstant};

    fn guest() -> (HostMemory, GuestApicCode, Lapic) {
        let mut memory = HostMemory::new(2 * GUEST_MEMORY as usize);
        let code = GuestApicCode::load(&mut memory, DomainMemoryRegion::of(1)).unwrap();
        let mut lapic = Lapic::new(0, VirtualDuration::from_nanos(10));
        lapic.write(VirtualInstant::ZERO, SVR, 0x1ff);
        (memory, code, lapic)
    }

    #[test]
    fn every_eoi_policy_ends_the_apic_interrupt_in_service() {
        let (mut memory, mut code, mut lapic) = guest();
        for policy in [EoiPolicy::Emulate, EoiPolicy::FastChecked, EoiPolicy::Fast] {
            lapic.accept(0x41);
            lapic.inject();
            let ended = code.exit(END, 0, policy, (&mut lapic, &mut memory), VirtualInstant::ZERO);
            assert!(
                matches!(ended, Ok(ApicWriteEffect::Eoi(eoi)) if eoi.ended == Some(0x41)),
                "{policy:?}: {ended:?}"
            );
        }
    }

    #[test]
    fn apic_timer_write_takes_its_count_from_the_guests_eax() {
        let (mut memory, mut code, mut lapic) = guest();
        let set =
            code.exit(START_TIMER, 6_250, EoiPolicy::Fast, (&mut lapic, &mut memory), VirtualInstant::ZERO);
        assert_eq!(set, Ok(ApicWriteEffect::Timer));
        assert_eq!(lapic.read(VirtualInstant::ZERO, TMICT), 6_250);
    }

    /// Checks that a policy that trusts the VM exit does not notice overwritten code, and that a policy that fetches
    /// the instruction does.
    #[test]
    fn overwritten_eoi_code_is_detected_unless_the_policy_is_fast() {
        let (mut memory, mut code, mut lapic) = guest();
        memory.write(GUEST_MEMORY + CODE_AT, &[0x0f, 0x0b]).unwrap();
        let mut exit = |policy| code.exit(END, 0, policy, (&mut lapic, &mut memory), VirtualInstant::ZERO);
        assert_eq!(exit(EoiPolicy::Emulate), Err(InvariantViolation::Instruction(0xb0)));
        assert_eq!(exit(EoiPolicy::FastChecked), Err(InvariantViolation::Instruction(0xb0)));
        assert!(exit(EoiPolicy::Fast).is_ok());
    }
}
