//! Tests the charge for interrupts: a guest pays for them with its own frames, and with a quarter of its share at most.

use super::flooder::{RawPacket, send_large_packets};
use super::{FLOODER, FloodedPort, GuestFlood, GuestHal, ROUNDS, with_raw_rings};
use driver::avf::vf::AvfDriver;
use host::eventfd::EventFd;
use i82576::MacAddress;
use pcie::Function;
use units::WorkCost;
use units::work::{FRAME_OVERDRAFT, FRAME_QUANTUM, INTERRUPT_LIMIT};
use vfio_user::wire::pci_irq;

/// Vectors of an AVF VF with 16 queue pairs.
const VECTORS: u64 = 17;
/// Cost of an SCTP packet of the flooder (`avf_floods_of_costly_packets_keep_to_one_share`).
const PACKET: u64 = 80;
/// Address beyond the uplink.
const OUTSIDE: MacAddress = MacAddress([2, 9, 9, 9, 9, 9]);

/// Gives the vectors of a VF an eventfd each.
fn set_eventfds(port: &mut FloodedPort, vf: u8) {
    for vector in 0..VECTORS as u32 {
        let eventfd = EventFd::new().unwrap();
        let bus = port.world.port.engine.reach_mut(Function::Vf(vf));
        bus.set_eventfd(pci_irq::MSIX, vector, Some(eventfd));
    }
}

/// Returns the numbers of frames and interrupts that a VF has sent.
fn counts(port: &mut FloodedPort, vf: u8) -> [u64; 2] {
    let engine = &mut port.world.port.engine;
    let frames = engine.card_mut().counters(Function::Vf(vf)).tx_packets;
    [frames, engine.reach(Function::Vf(vf)).interrupts()]
}

/// Floods with SCTP packets, during which the neighbours are served as on the quiet port. Returns the packets and interrupts of the
/// flooder, and the rounds.
fn flood_of_packets(flood: GuestFlood) -> [u64; 3] {
    let mut port = with_raw_rings(RawPacket::Sctp);
    set_eventfds(&mut port, FLOODER);
    let before = counts(&mut port, FLOODER);
    port.flood(flood);
    let after = counts(&mut port, FLOODER);
    [after[0] - before[0], after[1] - before[1], port.rounds]
}

#[test]
fn avf_flood_of_interrupts_takes_from_its_own_frames() {
    let [alone, _, _] =
        flood_of_packets(|port| port.with_flooder(|flooder, hal| flooder.send_raw(hal, RawPacket::Sctp)));
    let [packets, interrupts, rounds] = flood_of_packets(|port| {
        port.with_flooder(|flooder, hal| {
            flooder.send_raw(hal, RawPacket::Sctp);
            flooder.trigger_interrupts(hal);
        });
    });
    assert!(interrupts >= (VECTORS - 1) * rounds, "{interrupts} interrupts in {rounds} rounds");
    // The interrupts of a round are charged at its end.
    let credit = (rounds + 1) * u64::from(FRAME_QUANTUM.0) + u64::from(FRAME_OVERDRAFT.0);
    let most = (credit - rounds * u64::from(INTERRUPT_LIMIT.0)) / PACKET;
    assert!(
        packets <= most && packets < alone,
        "{packets} packets, at most {most}, {alone} without interrupts"
    );
    assert!(2 * packets > alone, "{packets} packets, {alone} without interrupts");
}

/// Has a driver handle its interrupts, and send short frames until each queue has `pending` descriptors.
fn send_short_frames(driver: &mut AvfDriver, hal: &mut GuestHal<'_>, pending: usize) {
    for vector in 1..driver.vectors() {
        driver.handle_interrupt(hal, vector);
    }
    driver.receive_done(hal);
    driver.clean(hal);
    let frame = [&OUTSIDE.0[..], &driver.mac().0, &[0x88, 0xb5], &[7; 46]].concat();
    for queue in 0..driver.pairs() as u8 {
        while driver.tx_pending(queue) < pending && driver.transmit(hal, queue, &frame) {}
    }
    driver.flush(hal);
}

/// Has a guest send short frames on 16 pairs for some rounds, beside a flooder. Returns the numbers of its frames and interrupts.
fn send_on_16_pairs(with_eventfds: bool) -> [u64; 2] {
    let mut port = FloodedPort::open();
    if with_eventfds {
        set_eventfds(&mut port, FLOODER);
    }
    port.flood = Some(|port| {
        port.with_flooder(|guest, hal| send_short_frames(&mut guest.driver, hal, 10));
        port.with(2, |driver, hal| send_large_packets(driver, hal, OUTSIDE, (8_000, 128)));
    });
    let before = counts(&mut port, FLOODER);
    (0..ROUNDS).for_each(|_| port.round());
    let after = counts(&mut port, FLOODER);
    [0, 1].map(|at| after[at] - before[at])
}

#[test]
fn avf_guest_with_16_pairs_keeps_three_quarters_of_a_share() {
    // Without eventfds no interrupt is sent, and none is charged.
    let [whole, _] = send_on_16_pairs(false);
    let [sent, interrupts] = send_on_16_pairs(true);
    let most = u64::from(INTERRUPT_LIMIT.0 / WorkCost::INTERRUPT.0);
    assert!(interrupts > most * ROUNDS, "{interrupts} interrupts cost no more than their limit");
    // A guest with one pair pays for one interrupt in a round.
    let one = whole - whole * u64::from(WorkCost::INTERRUPT.0) / u64::from(FRAME_QUANTUM.0);
    assert!(4 * sent >= 3 * one && sent < whole, "{sent} of {whole} frames, {interrupts} interrupts");
}
