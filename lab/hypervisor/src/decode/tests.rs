//! Tests of guest instructions at the APIC page under each EOI policy, and of the effects that the fast
//! policy loses.

use super::alu::{AluOperation, FLAGS, unary};
use super::cpu::{AF, CF, DF, OF, PF, RAX, RCX, RDI, RSI, SF, ZF};
use super::paging::{GuestMemoryAccessKind, GuestPageSize, NO_EXECUTE, USER, WRITE, walk};
use super::{
    AccessibleGuestState, ApicAccessExit, ApicExitHandlingPath, ApicExitOutcome, ApicInstructionEffect,
    EmulationWork, EoiPolicy, FlatGuestMemory, GuestException, GuestMemory, PageFault, PageTableBuilder,
    VcpuRegisters, apic_access,
};
use crate::lapic::{ApicWriteEffect, EoiEffect, Lapic, registers};
use iced_x86::Mnemonic;
use proptest::prelude::*;
use sim::{VirtualDuration, VirtualInstant};

/// Physical address of the APIC page.
const APIC_PAGE: u64 = 0xfee0_0000;
/// Linear address of the APIC page in Linux.
const APIC: u64 = 0xffff_ffff_ff5f_d000;
/// Linear address of the guest code in the test.
const CODE: u64 = 0xffff_ffff_8020_0000;
/// Linear address of the guest data in the test.
const DATA: u64 = 0xffff_8800_0000_5000;
/// Physical address of the first of two pages with the guest's code.
const CODE_PAGE: u64 = 0x3000;
/// Physical address of the page with the guest's data.
const DATA_PAGE: u64 = 0x5000;
/// Physical address of the guest's first page table.
const TABLES: u64 = 0x1_0000;
/// Exit qualification of a write at the EOI register.
const WRITES_EOI: u64 = 0x10b0;

struct EmulatedVcpu {
    memory: FlatGuestMemory,
    cpu: VcpuRegisters,
    lapic: Lapic,
}

impl EmulatedVcpu {
    /// Creates a guest kernel that executes `code` at `rip`, with vector 41h in service and 31h requested.
    fn at(rip: u64, code: &[u8]) -> Self {
        let mut memory = FlatGuestMemory::new(0x2_0000);
        let mut tables = PageTableBuilder::new(TABLES);
        for (linear, page, rights) in [
            (APIC, APIC_PAGE, WRITE | NO_EXECUTE),
            (CODE, CODE_PAGE, 0),
            (CODE + 0x1000, CODE_PAGE + 0x1000, 0),
            (DATA, DATA_PAGE, WRITE | NO_EXECUTE),
        ] {
            assert!(tables.map(&mut memory, linear, page, GuestPageSize::Small, rights));
        }
        assert!(memory.write(CODE_PAGE + rip - CODE, code));
        let mut lapic = Lapic::new(0, VirtualDuration::from_nanos(10));
        lapic.write(VirtualInstant::ZERO, registers::SVR, 0x1ff);
        lapic.accept(0x41);
        lapic.inject();
        lapic.accept(0x31);
        Self { memory, lapic, cpu: VcpuRegisters { rip, cr3: tables.cr3(), ..VcpuRegisters::default() } }
    }

    fn running(code: &[u8]) -> Self {
        Self::at(CODE, code)
    }

    fn with(mut self, register: usize, value: u64) -> Self {
        self.cpu.registers[register] = value;
        self
    }

    fn exit(&mut self, policy: EoiPolicy, qualification: u64, length: u8) -> ApicExitOutcome {
        let EmulatedVcpu { memory, cpu, lapic } = self;
        let guest = AccessibleGuestState { memory, lapic, apic_page: APIC_PAGE, now: VirtualInstant::ZERO };
        apic_access(policy, ApicAccessExit::new(qualification, length), cpu, guest)
    }

    fn emulate(&mut self) -> Result<ApicInstructionEffect, GuestException> {
        self.exit(EoiPolicy::Emulate, WRITES_EOI, 0).result
    }
}

fn ended() -> ApicInstructionEffect {
    ApicInstructionEffect::Write(ApicWriteEffect::Eoi(EoiEffect {
        ended: Some(0x41),
        level: false,
        next: Some(0x31),
    }))
}

/// Code of `mov dword [APIC + b0h], 0`: the EOI write of Linux 2.6.28.
const MOV_IMMEDIATE: [u8; 11] = [0xc7, 0x04, 0x25, 0xb0, 0xd0, 0x5f, 0xff, 0, 0, 0, 0];
/// Code of the guest instruction `stosd`.
const STOS: [u8; 1] = [0xab];
/// Code of the guest instruction `rep stosd`.
const REP_STOS: [u8; 2] = [0xf3, 0xab];
/// Code of the guest instruction `movsd`.
const MOVS: [u8; 1] = [0xa5];

#[test]
fn eoi_exit_counts_page_table_loads_and_accesses_of_its_policy() {
    for (policy, how, table_loads, accesses) in [
        (EoiPolicy::Fast, ApicExitHandlingPath::Fast, 0, 0),
        (EoiPolicy::FastChecked, ApicExitHandlingPath::Checked, 4, 0),
        (EoiPolicy::Emulate, ApicExitHandlingPath::Emulated, 8, 1),
    ] {
        let mut world = EmulatedVcpu::running(&MOV_IMMEDIATE);
        let handled = world.exit(policy, WRITES_EOI, 11);
        assert_eq!((handled.how, handled.result), (how, Ok(ended())));
        assert_eq!((handled.work.table_loads, handled.work.accesses), (table_loads, accesses));
        assert_eq!(world.cpu.rip, CODE + 11);
    }
}

#[test]
fn only_a_data_write_to_the_eoi_register_takes_the_fast_path() {
    // Access types: 0 read, 1 write, 2 fetch, 3 event delivery; offset b0h and 80h.
    for qualification in [0x00b0, 0x20b0, 0x30b0, 0xf0b0, 0x1080, 0x10b4] {
        let mut world = EmulatedVcpu::running(&MOV_IMMEDIATE);
        assert_eq!(world.exit(EoiPolicy::Fast, qualification, 11).how, ApicExitHandlingPath::Emulated);
    }
}

#[test]
fn every_form_of_mov_to_the_eoi_register_ends_the_interrupt() {
    let codes: [&[u8]; 8] = [
        &[0x89, 0x07],                                           // mov [rdi], eax
        &[0x89, 0x47, 0x00],                                     // mov [rdi+0], eax
        &[0xa3, 0xb0, 0xd0, 0x5f, 0xff, 0xff, 0xff, 0xff, 0xff], // mov [moffs64], eax
        &[0x89, 0x04, 0x25, 0xb0, 0xd0, 0x5f, 0xff],             // mov [disp32], eax
        &[0x44, 0x89, 0x07],                                     // mov [rdi], r8d
        &[0x87, 0x07],                                           // xchg [rdi], eax
        &[0x66, 0xc7, 0x07, 0x00, 0x00],                         // mov word [rdi], 0
        &[0xc6, 0x07, 0x00],                                     // mov byte [rdi], 0
    ];
    for code in codes {
        let mut world = EmulatedVcpu::running(code).with(RDI, APIC + 0xb0);
        assert_eq!(world.emulate(), Ok(ended()), "{code:x?}");
        assert_eq!(world.cpu.rip, CODE + code.len() as u64);
    }
}

#[test]
fn decoded_operand_address_includes_segment_base_and_index() {
    // mov gs:[rdi + 4*rcx + 10h], eax
    let mut world = EmulatedVcpu::running(&[0x65, 0x89, 0x44, 0x8f, 0x10]).with(RDI, 0x50).with(RCX, 0x10);
    world.cpu.bases[1] = APIC + 0x10;
    assert_eq!(world.emulate(), Ok(ended()));
}

#[test]
fn apic_reads_are_extended_to_the_destination_register() {
    // mov eax, [rdi]; movzx eax, byte [rdi]; mov ah, [rdi]; movsx rax, byte [rdi]; movsxd rax, dword [rdi].
    let codes: [(&[u8], u64); 5] = [
        (&[0x8b, 0x07], 0x8034_56f1),
        (&[0x0f, 0xb6, 0x07], 0xf1),
        (&[0x8a, 0x27], 0x7777_7777_7777_f177),
        (&[0x48, 0x0f, 0xbe, 0x07], 0xffff_ffff_ffff_fff1),
        (&[0x48, 0x63, 0x07], 0xffff_ffff_8034_56f1),
    ];
    for (code, expected) in codes {
        let mut world = EmulatedVcpu::running(code).with(RDI, DATA).with(RAX, 0x7777_7777_7777_7777);
        world.memory.write(DATA_PAGE, &0x8034_56f1u32.to_le_bytes());
        assert_eq!(
            (world.emulate(), world.cpu.registers[RAX]),
            (Ok(ApicInstructionEffect::None), expected),
            "{code:x?}"
        );
    }
    let mut world = EmulatedVcpu::running(&[0x8b, 0x07]).with(RDI, APIC + 0x30);
    assert_eq!((world.emulate(), world.cpu.registers[RAX]), (Ok(ApicInstructionEffect::Read), 0x5_0014));
}

#[test]
fn read_modify_write_updates_an_apic_register() {
    // TPR: mov [rdi], eax; or dword [rdi], 0fh; and dword [rdi], f0h; xor, add, inc, not byte.
    let mut world = EmulatedVcpu::running(&[
        0xc7, 0x07, 0x30, 0, 0, 0, 0x83, 0x0f, 0x0f, 0x81, 0x27, 0xf0, 0, 0, 0, 0x83, 0x37, 0x01, 0x83, 0x07,
        0x02, 0xff, 0x07, 0xf6, 0x17,
    ])
    .with(RDI, APIC + 0x80);
    for expected in [0x30, 0x3f, 0x30, 0x31, 0x33, 0x34, 0xcb] {
        assert_eq!(
            (world.emulate(), world.lapic.tpr()),
            (Ok(ApicInstructionEffect::Write(ApicWriteEffect::Stored)), expected)
        );
    }
    assert_eq!(world.cpu.rip, CODE + 25);
}

#[test]
fn decoded_comparison_sets_flags_and_does_not_write() {
    // test dword [rdi], 8: TPR stays, ZF set. cmp dword [rdi], 1: CF and SF.
    let mut world = EmulatedVcpu::running(&[0xf7, 0x07, 8, 0, 0, 0, 0x83, 0x3f, 0x01]).with(RDI, APIC + 0x80);
    assert_eq!((world.emulate(), world.cpu.flags), (Ok(ApicInstructionEffect::Read), ZF | PF));
    assert_eq!((world.emulate(), world.cpu.flags), (Ok(ApicInstructionEffect::Read), CF | PF | AF | SF));
}

#[test]
fn fast_eoi_path_loses_the_rdi_update_of_stos() {
    let rdi = |policy| {
        let mut world = EmulatedVcpu::running(&STOS).with(RDI, APIC + 0xb0);
        assert_eq!(world.exit(policy, WRITES_EOI, 1).result, Ok(ended()));
        world.cpu.registers[RDI] - APIC
    };
    assert_eq!((rdi(EoiPolicy::Emulate), rdi(EoiPolicy::FastChecked)), (0xb4, 0xb4));
    assert_eq!(rdi(EoiPolicy::Fast), 0xb0, "the fast path does not update RDI");
}

#[test]
fn fast_eoi_path_loses_the_rsi_and_rdi_updates_of_movs() {
    let moved = |policy, flags| {
        let mut world = EmulatedVcpu::running(&MOVS).with(RDI, APIC + 0xb0).with(RSI, DATA);
        world.cpu.flags = flags;
        assert_eq!(world.exit(policy, WRITES_EOI, 1).result, Ok(ended()));
        [world.cpu.registers[RDI].wrapping_sub(APIC + 0xb0), world.cpu.registers[RSI].wrapping_sub(DATA)]
    };
    assert_eq!(moved(EoiPolicy::Emulate, 0), [4, 4]);
    assert_eq!(moved(EoiPolicy::FastChecked, DF), [4u64.wrapping_neg(); 2]);
    assert_eq!(moved(EoiPolicy::Fast, 0), [0, 0]);
}

#[test]
fn repeated_stos_exits_per_element_except_by_the_fast_path() {
    let mut world = EmulatedVcpu::running(&REP_STOS).with(RDI, APIC + 0xb0).with(RCX, 3);
    for (effect, left, rip) in [
        (ended(), 2, CODE),
        (ApicInstructionEffect::Write(ApicWriteEffect::Ignored), 1, CODE),
        (ApicInstructionEffect::Write(ApicWriteEffect::Ignored), 0, CODE + 2),
    ] {
        assert_eq!(world.emulate(), Ok(effect));
        assert_eq!((world.cpu.registers[RCX], world.cpu.rip), (left, rip));
    }
    let mut world = EmulatedVcpu::running(&REP_STOS).with(RDI, APIC + 0xb0).with(RCX, 3);
    assert_eq!(world.exit(EoiPolicy::Fast, WRITES_EOI, 2).result, Ok(ended()));
    assert_eq!((world.cpu.registers[RCX], world.cpu.rip), (3, CODE + 2));
}

#[test]
fn only_an_instruction_across_two_pages_reads_the_second_page() {
    let rip = CODE + 0x1000 - 5;
    let mut world = EmulatedVcpu::at(rip, &MOV_IMMEDIATE);
    let handled = world.exit(EoiPolicy::Emulate, WRITES_EOI, 11);
    assert_eq!(handled.result, Ok(ended()));
    assert_eq!(handled.work, EmulationWork { table_loads: 12, fetched: 15, decoded: 1, accesses: 1 });
    let mut world = EmulatedVcpu::at(CODE + 0x1000 - 2, &[0x89, 0x07]).with(RDI, APIC + 0xb0);
    let handled = world.exit(EoiPolicy::Emulate, WRITES_EOI, 2);
    assert_eq!(handled.work, EmulationWork { table_loads: 8, fetched: 2, decoded: 1, accesses: 1 });
    let mut world = EmulatedVcpu::at(CODE + 0x2000 - 5, &MOV_IMMEDIATE[..5]);
    let fault = PageFault { linear: CODE + 0x2000, code: 1 << 4 };
    assert_eq!((world.emulate(), world.cpu.rip), (Err(GuestException::Page(fault)), CODE + 0x2000 - 5));
}

#[test]
fn faulting_instruction_leaves_the_guest_unchanged() {
    // movsd from a page that is not present; stosd to pages that are not writable or not present.
    let codes: [(&[u8], u64, u64, u32); 3] =
        [(&MOVS, APIC + 0xb0, 0x1000, 0), (&STOS, CODE, 0, 3), (&STOS, 0x1000, 0, 2)];
    for (code, rdi, rsi, error) in codes {
        let mut world = EmulatedVcpu::running(code).with(RDI, rdi).with(RSI, rsi);
        let (before, in_service) = (world.cpu.clone(), *world.lapic.in_service());
        let linear = if code == MOVS { rsi } else { rdi };
        assert_eq!(world.emulate(), Err(GuestException::Page(PageFault { linear, code: error })));
        assert_eq!((&world.cpu, world.lapic.in_service()), (&before, &in_service));
    }
}

#[test]
fn emulation_of_an_unsupported_instruction_raises_an_exception() {
    let codes: [&[u8]; 6] = [
        &[0x0f, 0x0b],       // ud2
        &[0x0f, 0x11, 0x07], // movups [rdi], xmm0
        &[0x48, 0x89, 0x07], // mov [rdi], rax: 8 bytes
        &[0x67, 0xab],       // stosd with edi
        &[0xd1, 0x27],       // shl dword [rdi], 1
        &[0x8c, 0x1f],       // mov [rdi], ds
    ];
    for code in codes {
        let mut world = EmulatedVcpu::running(code).with(RDI, APIC + 0xb0);
        assert_eq!((world.emulate(), world.cpu.rip), (Err(GuestException::Undefined), CODE), "{code:x?}");
    }
    let mut world = EmulatedVcpu::running(&[0x89, 0x07]).with(RDI, 1 << 50);
    assert_eq!(world.emulate(), Err(GuestException::GeneralProtection));
    let mut world = EmulatedVcpu::running(&[0x89, 0x07]).with(RDI, APIC + 0xffe);
    assert_eq!(world.emulate(), Err(GuestException::Undefined), "a write across two pages traps");
}

#[test]
fn page_walk_loads_one_entry_per_level_and_obeys_its_rights() {
    // SDM volume 3, 4.5.4, 4.6.1, 4.7.
    let mut memory = FlatGuestMemory::new(0x1_0000);
    let mut tables = PageTableBuilder::new(0x1000);
    for (linear, size, rights) in [
        (0x1000, GuestPageSize::Small, USER),
        (0x4020_0000, GuestPageSize::Large, WRITE | NO_EXECUTE),
        (0x80_0000_0000, GuestPageSize::Huge, WRITE | USER),
    ] {
        assert!(tables.map(&mut memory, linear, 0x4000_0000, size, rights));
    }
    let cr3 = tables.cr3();
    let at = |linear, intent, user| {
        let walk = walk(&memory, cr3, linear, intent, user);
        (walk.result.map_err(|fault| fault.code), walk.loads)
    };
    assert_eq!(at(0x1234, GuestMemoryAccessKind::Read, true), (Ok(0x4000_0234), 4));
    assert_eq!(at(0x4021_2345, GuestMemoryAccessKind::Write, false), (Ok(0x4001_2345), 3));
    assert_eq!(at(0x80_2345_6789, GuestMemoryAccessKind::Fetch, true), (Ok(0x6345_6789), 2));
    assert_eq!(at(0x1234, GuestMemoryAccessKind::Write, true), (Err(0b00111), 4));
    assert_eq!(at(0x4021_2345, GuestMemoryAccessKind::Fetch, false), (Err(0b10001), 3));
    assert_eq!(at(0x4021_2345, GuestMemoryAccessKind::Read, true), (Err(0b00101), 3));
    assert_eq!(at(0x9000, GuestMemoryAccessKind::Read, false), (Err(0), 4));
    assert_eq!(at(0xffff_8000_0000_0000, GuestMemoryAccessKind::Write, false), (Err(0b00010), 1));
    assert_eq!(
        walk(&memory, 0xffff_f000, 0x1000, GuestMemoryAccessKind::Read, false).result.map_err(|f| f.code),
        Err(0)
    );
    let mut reserved = memory.clone();
    reserved.write(0x1000, &0x83u64.to_le_bytes());
    assert_eq!(
        walk(&reserved, cr3, 0x1000, GuestMemoryAccessKind::Read, false).result.map_err(|f| f.code),
        Err(0b01001)
    );
}

#[test]
fn handling_a_second_vm_exit_does_not_allocate() {
    let mut world = EmulatedVcpu::running(&MOV_IMMEDIATE);
    world.emulate().unwrap();
    let allocated = allocation_counter::measure(|| {
        for policy in [EoiPolicy::Fast, EoiPolicy::FastChecked, EoiPolicy::Emulate] {
            world.cpu.rip = CODE;
            assert!(world.exit(policy, WRITES_EOI, 11).result.is_ok());
        }
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn decoded_increment_keeps_carry_and_negation_sets_carry() {
    assert_eq!(unary(Mnemonic::Inc, 0xff, 1, CF), Some((0, CF | PF | AF | ZF)));
    assert_eq!(unary(Mnemonic::Dec, 0x80, 1, 0), Some((0x7f, OF | AF)));
    assert_eq!(unary(Mnemonic::Neg, 1, 4, 0), Some((0xffff_ffff, CF | PF | AF | SF)));
    assert_eq!(unary(Mnemonic::Not, 0xf0, 1, CF), Some((0x0f, CF)));
}

proptest! {
    #[test]
    fn decoded_addition_and_subtraction_agree_with_rust(a: u32, b: u32, carry: bool) {
        let flags = if carry { CF } else { 0 };
        let add = AluOperation::of(Mnemonic::Adc).unwrap().apply(a.into(), b.into(), 4, flags);
        let sum = i64::from(a as i32) + i64::from(b as i32) + i64::from(carry);
        prop_assert_eq!(add.0 as u32, sum as u32);
        prop_assert_eq!(add.1 & CF != 0, u64::from(a) + u64::from(b) + u64::from(carry) > u32::MAX.into());
        prop_assert_eq!(add.1 & OF != 0, i32::try_from(sum).is_err());
        let sub = AluOperation::of(Mnemonic::Sbb).unwrap().apply(a.into(), b.into(), 4, flags);
        let difference = i64::from(a as i32) - i64::from(b as i32) - i64::from(carry);
        prop_assert_eq!(sub.0 as u32, difference as u32);
        prop_assert_eq!(sub.1 & CF != 0, u64::from(b) + u64::from(carry) > u64::from(a));
        prop_assert_eq!(sub.1 & OF != 0, i32::try_from(difference).is_err());
        prop_assert_eq!((sub.1 & SF != 0, sub.1 & ZF != 0), ((difference as i32) < 0, difference as u32 == 0));
        prop_assert_eq!((add.1 | sub.1) & !FLAGS, 0);
    }

    #[test]
    fn decoding_any_guest_code_and_registers_does_not_panic(
        code in prop::collection::vec(any::<u8>(), 1..16),
        registers in prop::array::uniform16(prop_oneof![Just(APIC + 0xb0), Just(DATA), Just(2), any::<u64>()]),
        qualification: u64,
    ) {
        for policy in [EoiPolicy::Fast, EoiPolicy::FastChecked, EoiPolicy::Emulate] {
            let mut world = EmulatedVcpu::running(&code);
            world.cpu.registers = registers;
            let before = world.cpu.clone();
            let handled = world.exit(policy, qualification, 3);
            prop_assert!(handled.work.table_loads <= 24 && handled.work.fetched <= 15);
            prop_assert!(handled.result.is_ok() || world.cpu == before);
        }
    }

    #[test]
    fn walk_of_any_page_table_does_not_panic(tables in prop::collection::vec(any::<u8>(), 4096), linear: u64, cr3 in 0u64..4) {
        let mut memory = FlatGuestMemory::new(0x4000);
        memory.write(0, &tables);
        let walk = walk(&memory, cr3 << 12, linear, GuestMemoryAccessKind::Write, true);
        prop_assert!((1..=4).contains(&walk.loads));
    }
}
