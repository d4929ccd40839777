//! The few instructions of a guest's kernel that a hypervisor may have to look at: those that write registers of
//! the APIC's page. They lie in the guest's memory, as Linux 2.6 for 64 bits compiles them, behind page tables.
//! Left out: all other code, which no exit is about.

use super::invariant::Broken;
use super::memory::Region;
use hypervisor::decode::apic_access::{ApicAccess, Effect, Guest, Policy, apic_access};
use hypervisor::decode::cpu::RAX;
use hypervisor::decode::paging::{NO_EXECUTE, PageSize, WRITE};
use hypervisor::decode::{Cpu, GuestMemory, GuestTables};
use hypervisor::lapic::{Lapic, Write, registers};
use hypervisor::memory::HostMemory;
use sim::Instant;

/// Where the kernel's text is mapped, with a page of 2 MiB, to physical address 0.
const TEXT: u64 = 0xffff_ffff_8000_0000;
/// Where the APIC's page is mapped: the fixed map of Linux 2.6.
const APIC: u64 = 0xffff_ffff_ff5f_c000;
/// The APIC's page, physical.
const APIC_PAGE: u64 = 0xfee0_0000;
/// Physical places: the instructions, and the first page of page tables.
const CODE_AT: u64 = 0x1000;
const TABLES_AT: u64 = 0x2000;

/// An instruction of the guest's that writes a register of its APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Store {
    /// Where, after the first.
    at: u64,
    bytes: &'static [u8],
    pub(crate) register: u16,
}

/// `movl $0, APIC + 0xb0`: ack_APIC_irq().
pub(crate) const END: Store =
    Store { at: 0, bytes: &[0xc7, 0x04, 0x25, 0xb0, 0xc0, 0x5f, 0xff, 0, 0, 0, 0], register: registers::EOI };
/// `movl %eax, APIC + 0x380`: the timer's initial count.
pub(crate) const START_TIMER: Store =
    Store { at: 0x40, bytes: &[0x89, 0x04, 0x25, 0x80, 0xc3, 0x5f, 0xff], register: registers::TMICT };

/// A guest's processor as far as those instructions go.
#[derive(Debug)]
pub(crate) struct Code {
    cpu: Cpu,
    region: Region,
}

impl Code {
    /// Puts code and page tables into a guest's memory. `None` if there is no room for them.
    pub(crate) fn load(memory: &mut HostMemory, region: Region) -> Option<Self> {
        let mut view = View { memory, region };
        let mut tables = GuestTables::new(TABLES_AT);
        let mapped = tables.map(&mut view, TEXT, 0, PageSize::Large, 0)
            && tables.map(&mut view, APIC, APIC_PAGE, PageSize::Small, WRITE | NO_EXECUTE)
            && [END, START_TIMER].iter().all(|store| view.write(CODE_AT + store.at, store.bytes));
        mapped.then(|| Self { cpu: Cpu { cr3: tables.cr3(), ..Cpu::default() }, region })
    }

    /// The guest comes to that instruction, and its processor exits: the hypervisor does what it has to by the
    /// policy for ends of interrupt.
    pub(crate) fn exit(
        &mut self,
        store: Store,
        value: u32,
        policy: Policy,
        (lapic, memory): (&mut Lapic, &mut HostMemory),
        now: Instant,
    ) -> Result<Write, Broken> {
        let rip = TEXT + CODE_AT + store.at;
        self.cpu.rip = rip;
        self.cpu.registers[RAX] = value.into();
        let exit = ApicAccess::new(u64::from(store.register) | LINEAR_WRITE, store.bytes.len() as u8);
        let view = &mut View { memory, region: self.region };
        let guest = Guest { memory: view, lapic, apic_page: APIC_PAGE, now };
        match apic_access(policy, exit, &mut self.cpu, guest).result {
            Ok(Effect::Write(write)) if self.cpu.rip == rip + store.bytes.len() as u64 => Ok(write),
            _ => Err(Broken::Instruction(store.register)),
        }
    }
}

/// Exit qualification: an instruction writes.
const LINEAR_WRITE: u64 = 1 << 12;

/// The host's memory as its guest numbers it.
#[derive(Debug)]
struct View<'a> {
    memory: &'a mut HostMemory,
    region: Region,
}

impl GuestMemory for View<'_> {
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
    use super::{Broken, CODE_AT, Code, END, HostMemory, Policy, START_TIMER};
    use crate::machine::memory::{GUEST_MEMORY, Region};
    use hypervisor::lapic::registers::{SVR, TMICT};
    use hypervisor::lapic::{Lapic, Write};
    use sim::{Instant, Span};

    fn guest() -> (HostMemory, Code, Lapic) {
        let mut memory = HostMemory::new(2 * GUEST_MEMORY as usize);
        let code = Code::load(&mut memory, Region::of(1)).unwrap();
        let mut lapic = Lapic::new(0, Span::from_nanos(10));
        lapic.write(Instant::ZERO, SVR, 0x1ff);
        (memory, code, lapic)
    }

    #[test]
    fn every_policy_ends_the_interrupt_that_is_in_service() {
        let (mut memory, mut code, mut lapic) = guest();
        for policy in [Policy::Emulate, Policy::FastChecked, Policy::Fast] {
            lapic.accept(0x41);
            lapic.inject();
            let ended = code.exit(END, 0, policy, (&mut lapic, &mut memory), Instant::ZERO);
            assert!(matches!(ended, Ok(Write::Eoi(eoi)) if eoi.ended == Some(0x41)), "{policy:?}: {ended:?}");
        }
    }

    #[test]
    fn the_timers_count_is_what_the_guest_has_in_its_register() {
        let (mut memory, mut code, mut lapic) = guest();
        let set = code.exit(START_TIMER, 6_250, Policy::Fast, (&mut lapic, &mut memory), Instant::ZERO);
        assert_eq!(set, Ok(Write::Timer));
        assert_eq!(lapic.read(Instant::ZERO, TMICT), 6_250);
    }

    /// Who believes the exit does not see it; who fetches does.
    #[test]
    fn code_that_is_gone_is_noticed_by_whoever_fetches_it() {
        let (mut memory, mut code, mut lapic) = guest();
        memory.write(GUEST_MEMORY + CODE_AT, &[0x0f, 0x0b]).unwrap();
        let mut exit = |policy| code.exit(END, 0, policy, (&mut lapic, &mut memory), Instant::ZERO);
        assert_eq!(exit(Policy::Emulate), Err(Broken::Instruction(0xb0)));
        assert_eq!(exit(Policy::FastChecked), Err(Broken::Instruction(0xb0)));
        assert!(exit(Policy::Fast).is_ok());
    }
}
