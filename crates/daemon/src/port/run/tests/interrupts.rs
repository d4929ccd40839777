//! Tests that VFs pay for their interrupts: those that a guest triggers by registers, and those that its VMM triggers by messages.

use super::shares::client_of;
use super::{PortFixture, message};
use avf::bits::dyn_ctl;
use host::eventfd::EventFd;
use i82576::register::vf as r;
use pcie::Function;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;
use units::WorkCost;
use units::work::FRAME_QUANTUM;
use vfio_user::wire::{pci_irq, pci_region};

/// Writes of a guest that has its VF interrupt by software: offset in BAR0, and value.
type SoftwareInterrupt = [(u32, u32); 2];

/// The families whose guests interrupt by software, and how.
const FAMILIES: [(&str, SoftwareInterrupt); 2] = [
    ("82576", [(r::VTEIMS, 1), (r::VTEICS, 1)]),
    ("avf", [(avf::register::VFINT_DYN_CTL0, dyn_ctl::INTENA), (avf::register::VFINT_DYN_CTL0, SWINT)]),
];
/// Trigger of an AVF vector that leaves its enable bit as it is.
const SWINT: u32 = dyn_ctl::SWINT_TRIG | dyn_ctl::INTENA_MSK | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT;

/// Gives a vector of a VF an eventfd. Returns another descriptor of it.
fn eventfd(world: &mut PortFixture, vf: u8) -> EventFd {
    let ours = EventFd::new().unwrap();
    let theirs = EventFd::adopt(ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
    world.port.engine.reach_mut(Function::Vf(vf)).set_eventfd(pci_irq::MSIX, 0, Some(theirs));
    ours
}

/// Has a guest interrupt by software with the port's next round.
fn trigger(world: &mut PortFixture, vf: u8, interrupt: SoftwareInterrupt) {
    let now = world.port_time();
    for (offset, value) in interrupt {
        let card = world.port.engine.card_mut();
        card.write(Function::Vf(vf), pci_region::BAR0, offset.into(), &value.to_le_bytes(), now);
    }
}

/// Has VF 0 owe the credit of `rounds` rounds for interrupts, the last of which `event` has got.
fn owe(world: &mut PortFixture, rounds: u32, (event, interrupt): (&EventFd, SoftwareInterrupt)) {
    let count = rounds * FRAME_QUANTUM.0 / WorkCost::INTERRUPT.0 - 1;
    world.port.engine.reach_mut(Function::Vf(0)).owe_interrupts(count);
    trigger(world, 0, interrupt);
    world.round();
    assert_eq!(event.drain(), 1);
}

/// Opens a port of two VFs that are bus masters.
fn open(family: &str) -> PortFixture {
    let mut world = PortFixture::open_with(&format!("[[port]]\nfamily = {family:?}\nvfs = 2\n"));
    for vf in 0..2 {
        let now = world.port_time();
        // Command register: memory space and bus master.
        world.port.engine.card_mut().write(Function::Vf(vf), pci_region::CONFIG, 4, &[6, 0], now);
    }
    world.round();
    world
}

#[test]
fn software_interrupts_of_a_vf_in_debt_wait() {
    for (family, interrupt) in FAMILIES {
        let mut world = open(family);
        let events = [0, 1].map(|vf| eventfd(&mut world, vf));
        owe(&mut world, 20, (&events[0], interrupt));
        let mut waited = 0;
        let sent = loop {
            trigger(&mut world, 0, interrupt);
            trigger(&mut world, 1, interrupt);
            let next = world.round();
            assert_eq!(events[1].drain(), 1, "{family}: the neighbour's interrupts do not wait");
            let sent = events[0].drain();
            if sent > 0 {
                break sent;
            }
            assert_eq!(next, Some(Duration::ZERO), "{family}: the port comes back");
            waited += 1;
        };
        // The VF had the credit of a round, and interrupts do not wait for a debt of `FRAME_OVERDRAFT`, 2 rounds.
        assert_eq!((waited, sent), (15, 1), "{family}: one interrupt for all that have waited");
        (0..10).for_each(|_| {
            trigger(&mut world, 0, interrupt);
            world.round();
        });
        assert_eq!(events[0].drain(), 10, "{family}: a VF without such a debt");
    }
}

#[test]
fn interrupt_that_waits_is_sent_without_a_further_cause() {
    for (family, interrupt) in FAMILIES {
        let mut world = open(family);
        let event = eventfd(&mut world, 0);
        owe(&mut world, 100, (&event, interrupt));
        trigger(&mut world, 0, interrupt);
        let rounds = (0..100).take_while(|_| world.round() == Some(Duration::ZERO)).count();
        assert_eq!(event.drain(), 1, "{family}: after {rounds} rounds");
        assert!(rounds > 90, "{family}: {rounds} rounds");
    }
}

#[test]
fn interrupt_that_waits_is_sent_before_a_hand_over() {
    for (family, interrupt) in FAMILIES {
        let mut world = open(family);
        let event = eventfd(&mut world, 0);
        owe(&mut world, 100, (&event, interrupt));
        trigger(&mut world, 0, interrupt);
        world.round();
        assert_eq!(event.drain(), 0, "{family}");
        let now = world.port_time();
        assert!(world.port.note_all(now));
        assert_eq!(event.drain(), 1, "{family}");
    }
}

#[test]
fn interrupt_that_waits_does_not_reach_the_next_client() {
    for (family, interrupt) in FAMILIES {
        let mut world = open(family);
        let former = eventfd(&mut world, 0);
        owe(&mut world, 100, (&former, interrupt));
        trigger(&mut world, 0, interrupt);
        world.round();
        world.port.engine.reach_mut(Function::Vf(0)).set_eventfd(pci_irq::MSIX, 0, None);
        let next = eventfd(&mut world, 0);
        (0..200).for_each(|_| _ = world.round());
        assert_eq!([former.drain(), next.drain()], [0, 0], "{family}");
    }
}

#[test]
fn triggers_by_messages_end_with_their_clients_credit() {
    let mut world = PortFixture::open();
    let (mut client, mut neighbour) = (world.connect(), client_of(&mut world, 1));
    client.write_all(&message(0, 1, b"\0\0\x01\0{}\0")).unwrap();
    world.round();
    let event = eventfd(&mut world, 0);
    // DEVICE_SET_IRQS of MSI-X vector 0: argument size, DATA_NONE and ACTION_TRIGGER, index, start, count.
    let mut trigger = message(1, 8, &[20, 1 | 1 << 5, pci_irq::MSIX, 0, 1].map(u32::to_le_bytes).concat());
    // No_reply.
    trigger[8] = 0x10;
    client.write_all(&trigger.repeat(100)).unwrap();
    let mut sent = Vec::new();
    while sent.iter().sum::<u64>() < 100 {
        neighbour.write_all(&message(2, 99, &[])).unwrap();
        world.round();
        sent.push(event.drain());
        assert!(sent.len() < 100, "{sent:?}");
    }
    // A trigger costs 54 units: the message, a change of interrupts, and the interrupt.
    let most = sent.iter().max().unwrap();
    assert!(*most <= 4 && sent.len() >= 26, "{sent:?}");
}
