//! Tests of the server's mechanisms in combination: DMA and interrupts of functions, ends of interrupt,
//! timers, resets.

use super::setup;
use crate::machine::chipset::Chipset;
use crate::machine::code::GuestApicCode;
use crate::machine::controller::{ApicWritePath, InterruptController};
use crate::machine::memory::{DomainMemoryRegion, GUEST_MEMORY};
use crate::machine::parts::bus::PortBus;
use crate::machine::parts::card::ManagedCard;
use crate::machine::parts::guest::GuestHardware;
use crate::machine::vectors::VECTORS;
use crate::machine::{ClientTraffic, ModelDefect, ServerMachine, ServerSetup, ServerSimulation};
use guest::{InterruptSource, KernelConfig, ProgramWorkload, TickMode};
use hypervisor::account::CycleCategory;
use hypervisor::decode::apic_access::EoiPolicy;
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;
use i82576::VfIndex;
use i82576::register::{rx, vf};
use pcie::msix::InterruptMessage;
use pcie::{Bus, Function};
use sim::{VirtualDuration, VirtualInstant};
use std::collections::BTreeSet;

fn at_millis(millis: u64) -> VirtualInstant {
    VirtualInstant::ZERO + VirtualDuration::from_millis(millis)
}

#[test]
fn assigned_pci_function_reaches_only_its_guests_memory() {
    let mut world = ServerSimulation::new(&ServerSetup { guests: 2, ..setup() }).unwrap();
    let ServerMachine { ports, chipset, .. } = &mut world.system;
    chipset.memory.write(0x30_0000, b"the first guest's").unwrap();
    let mut bus = PortBus { functions: &mut ports[0].functions, chipset };
    let mut seen = [0; 17];
    bus.dma_read(Function::Vf(0), 0x30_0000, &mut seen).unwrap();
    assert_eq!(&seen, b"the first guest's");
    bus.dma_write(Function::Vf(1), 0x30_0000, b"the second guest's").unwrap();
    bus.dma_read(Function::Vf(0), 0x30_0000, &mut seen).unwrap();
    assert_eq!(&seen, b"the first guest's");
    // The guest's memory ends in the middle of the request; the rest is the second guest's.
    assert!(bus.dma_write(Function::Vf(0), GUEST_MEMORY - 4, &[0xff; 8]).is_err());
    assert!(bus.dma_read(Function::Pf, 0x30_0000, &mut seen).is_err());
    let mut after = [1; 4];
    world.system.chipset.memory.read(GUEST_MEMORY, &mut after).unwrap();
    assert_eq!(after, [0; 4]);
    let measured = world.measure(VirtualDuration::ZERO, VirtualDuration::from_millis(1));
    assert!(
        matches!(measured, Err(ModelDefect::Books(ref open)) if open.found == 2 && open.what.contains("memory")),
        "{measured:?}"
    );
}

#[test]
fn vfs_of_sixty_guests_get_180_distinct_host_vectors() {
    let world = ServerSimulation::new(&ServerSetup { guests: 60, ports: 10, ..setup() }).unwrap();
    let mut chipset = world.system.chipset;
    let mut seen = BTreeSet::new();
    for path in world.system.ports.iter().flat_map(|port| &port.functions.paths) {
        for message in path.messages.iter().copied() {
            let interrupt = chipset.deliver_message(path.assigned.rid, message).unwrap();
            assert!(seen.insert(interrupt.vector), "{:?}", interrupt.vector);
            assert_eq!(chipset.remapper.vectors().owner(interrupt.vector), Some(interrupt.owner));
        }
    }
    assert_eq!((seen.len(), chipset.broken), (180, None));
}

#[test]
fn forged_interrupt_message_of_a_pci_function_is_blocked() {
    let mut world = ServerSimulation::new(&ServerSetup { guests: 2, ..setup() }).unwrap();
    let functions = &mut world.system.ports[0].functions;
    let [own, other] = [0, 1].map(|vf: usize| functions.paths[vf].assigned.rid);
    let anothers = functions.paths[1].messages[1];
    functions.sent.extend([(own, anothers), (other, InterruptMessage { address: 0xfee0_0000, data: 0x41 })]);
    let measured = world.measure(VirtualDuration::ZERO, VirtualDuration::from_millis(1));
    assert!(
        matches!(measured, Err(ModelDefect::Books(ref open)) if open.found == 2 && open.what.contains("interrupts")),
        "{measured:?}"
    );
}

#[test]
fn miscounted_frame_on_the_link_fails_the_conservation_check() {
    let mut world =
        ServerSimulation::new(&ServerSetup { traffic: ClientTraffic::Silent, ..setup() }).unwrap();
    world.system.ports[0].line.taken += 1;
    let measured = world.measure(VirtualDuration::ZERO, VirtualDuration::from_millis(1));
    assert!(
        matches!(measured, Err(ModelDefect::Books(ref open)) if open.found == 1 && open.what.contains("wire")),
        "{measured:?}"
    );
}

fn hardware(kind: DomainKind) -> (GuestHardware, Chipset) {
    let mut chipset = Chipset::new(1, 0, 1);
    let code = GuestApicCode::load(&mut chipset.memory, DomainMemoryRegion::of(0)).unwrap();
    let world = ServerSimulation::new(&ServerSetup { kind, ..setup() }).unwrap();
    let found = &world.system.vms[0].hardware;
    let code = (code, TickMode::Tickless(VirtualDuration::from_millis(1)));
    let controller = InterruptController::direct(kind, found.domain, code, &mut chipset.channels);
    (
        GuestHardware::direct(
            kind,
            (found.domain, found.vcpu),
            MsixTablePolicy::Hypervisor,
            controller,
            1_024,
        ),
        chipset,
    )
}

#[test]
fn masked_msix_vector_is_delivered_once_when_unmasked() {
    for kind in [DomainKind::Hvm, DomainKind::Pvm] {
        let (mut hardware, Chipset { mut channels, .. }) = hardware(kind);
        let channels = &mut channels;
        hardware.write_mask(1, true, channels);
        assert!(!hardware.signal(1, 0x42, channels) && !hardware.signal(1, 0x42, channels));
        assert_eq!(hardware.controller.take(channels), None);
        hardware.write_mask(1, false, channels);
        assert_eq!(hardware.controller.take(channels).map(|taken| taken.0), Some(InterruptSource::Device(1)));
        assert_eq!((hardware.controller.take(channels), hardware.broken), (None, None));
    }
}

#[test]
fn eoi_ends_one_interrupt_and_delivers_the_next() {
    for path in
        [ApicWritePath::Direct, ApicWritePath::Exit(EoiPolicy::Emulate), ApicWritePath::Exit(EoiPolicy::Fast)]
    {
        let (GuestHardware { mut controller, .. }, mut chipset) = hardware(DomainKind::Hvm);
        let (memory, channels, now) = (&mut chipset.memory, &mut chipset.channels, VirtualInstant::ZERO);
        controller.set_timer(Some(now), path, memory, now).unwrap();
        controller.run_timer(controller.deadline().unwrap(), channels);
        controller.request(0x42, channels);
        let mut taken = || controller.take(channels).map(|taken| taken.0);
        // The timer's vector has a higher class: the device's waits for its end.
        assert_eq!((taken(), taken()), (Some(InterruptSource::Timer), None));
        controller.end(path, memory, now).unwrap();
        assert_eq!(controller.take(channels).map(|taken| taken.0), Some(InterruptSource::Device(1)));
        controller.end(path, memory, now).unwrap();
        assert!(
            controller.end(path, memory, now).is_err(),
            "an end of interrupt without one in service is accepted: {path:?}"
        );
    }
}

/// Checks that a simulation charges each end of interrupt at the cost table's price.
#[test]
fn eoi_is_charged_8400_2500_or_4300_cycles_by_its_path() {
    for (eoi, price) in
        [(EoiPath::Emulated, 8_400.0), (EoiPath::Fast, 2_500.0), (EoiPath::FastChecked, 4_300.0)]
    {
        let mut world = ServerSimulation::new(&ServerSetup { eoi, ..setup() }).unwrap();
        let measured = world.measure(VirtualDuration::ZERO, VirtualDuration::from_millis(100)).unwrap();
        let counters = world.system.vms[0].counters();
        let ends = (counters.receive_interrupts + counters.timer_interrupts) as f64;
        let each = measured.mcycles_per_s(CycleCategory::ApicEoi) * 1e6 / 10.0 / ends;
        assert!((each / price - 1.0).abs() < 0.02, "{eoi:?}: {each}");
    }
}

#[test]
fn guest_with_periodic_tick_takes_1000_interrupts_a_second() {
    for kind in [DomainKind::Hvm, DomainKind::Pvm, DomainKind::Native] {
        let mut world = ServerSimulation::new(&ServerSetup {
            kind,
            spec: KernelConfig::linux_2_6_18(ProgramWorkload::Udp),
            ..setup()
        })
        .unwrap();
        world.run(at_millis(10));
        let before = world.system.vms[0].counters().timer_interrupts;
        world.run(at_millis(210));
        let ticks = world.system.vms[0].counters().timer_interrupts - before;
        assert!((199..=201).contains(&ticks), "{kind:?}: {ticks}");
    }
}

/// Offsets of the registers of a VF's receive queue and interrupts, which its driver sets up.
const VF_REGISTERS: [u32; 6] = [
    vf::RX_BLOCK + rx::RDBAL,
    vf::RX_BLOCK + rx::RDLEN,
    vf::RX_BLOCK + rx::SRRCTL,
    vf::RX_BLOCK + rx::RXDCTL,
    vf::VTIVAR,
    vf::VTEITR + 4,
];

#[test]
fn vf_reset_leaves_other_vfs_queues_intact() {
    let mut world = ServerSimulation::new(&ServerSetup { guests: 3, ..setup() }).unwrap();
    let read =
        |world: &ServerSimulation| [0, 1, 2].map(|n: usize| world.system.vms[n].counters().read_packets);
    let registers = |world: &mut ServerSimulation, n| {
        let nic = &mut world.system.ports[0].nic;
        VF_REGISTERS.map(|offset| nic.read(Function::Vf(n), offset, i82576::Time::ZERO))
    };
    world.run(at_millis(50));
    let at_reset = read(&world);
    let before = [1, 2].map(|n| registers(&mut world, n));
    let port = &mut world.system.ports[0];
    let vf = VfIndex::new(0).unwrap();
    port.manager.reset(&mut ManagedCard(&mut port.nic), vf).unwrap();
    assert_eq!([1, 2].map(|n| registers(&mut world, n)), before);
    assert_eq!(registers(&mut world, 0)[3] >> 25 & 1, 0, "the reset VF's receive queue is disabled");
    world.run(at_millis(100));
    let after = read(&world);
    // The frames in its ring are lost with it.
    assert!(after[0] - at_reset[0] <= 64, "{at_reset:?} {after:?}");
    for n in [1, 2] {
        let (first, second) = (at_reset[n], after[n] - at_reset[n]);
        assert!(second.abs_diff(first) < 100, "guest {n}: {first} packets in 50 ms, then {second}");
    }
    assert_eq!(world.system.ports[0].functions.faults, 0);
    assert_eq!(usize::from(VECTORS), world.system.ports[0].functions.paths[0].messages.len());
}
