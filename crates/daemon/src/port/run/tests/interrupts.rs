//! Tests that VFs pay for the interrupts that their VMMs trigger by messages.

use super::shares::client_of;
use super::{PortFixture, message};
use host::eventfd::EventFd;
use pcie::Function;
use std::io::Write;
use std::os::fd::AsFd;
use vfio_user::wire::pci_irq;

/// Gives a vector of a VF an eventfd. Returns another descriptor of it.
fn eventfd(world: &mut PortFixture, vf: u8) -> EventFd {
    let ours = EventFd::new().unwrap();
    let theirs = EventFd::adopt(ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
    world.port.engine.reach_mut(Function::Vf(vf)).set_eventfd(pci_irq::MSIX, 0, Some(theirs));
    ours
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
