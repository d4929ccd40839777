//! Tests frames from one VF's transmit ring to another's receive ring.

use crate::world::CardFixture;
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf::descriptor::tx::{self, TxDataDescriptor};
use avf::register as r;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;

/// Creates a card without a plane, and starts its VFs 0 and 1. Each VF receives the other VF's packets.
fn two() -> (CardFixture, AvfDriver, AvfDriver) {
    let mut world = CardFixture::new(2);
    let [a, b] = [0, 1].map(|vf| world.start(vf));
    (world, a, b)
}

fn frame(n: u16, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8) ^ n as u8).collect()
}

#[test]
fn frames_of_every_queue_arrive_once_while_rings_wrap_often() {
    let (mut world, mut a, mut b) = two();
    let mut into = [0; 4096];
    for n in 0..1_000_u16 {
        let queue = (n % 4) as u8;
        let sent = frame(n, 60 + usize::from(n));
        assert!(a.transmit(&mut world.vf(0), queue, &sent), "{n}");
        world.round();
        let received = b.receive(&mut world.vf(1), queue, &mut into).unwrap();
        assert_eq!(&into[..received.length], sent, "{n}");
    }
    let sent = b.statistics(&mut world.vf(1)).unwrap();
    assert_eq!(sent.rx_unicast, 1_000);
}

#[test]
fn full_tx_ring_accepts_frames_after_write_back() {
    let (mut world, mut a, _) = two();
    let sent = (0..100).filter(|n| a.transmit(&mut world.vf(0), 0, &frame(*n, 60))).count();
    assert_eq!((sent, a.tx_pending(0), a.tx_pending(1)), (63, 63, 0), "one slot stays free");
    world.round();
    assert_eq!((a.clean(&mut world.vf(0)), a.tx_pending(0)), (63, 0));
    assert!(a.transmit(&mut world.vf(0), 0, &frame(0, 60)));
}

#[test]
fn frame_without_enough_rx_buffers_is_dropped_and_counted() {
    let (mut world, mut a, mut b) = two();
    for n in 0..70 {
        a.transmit(&mut world.vf(0), 0, &frame(n, 60));
        world.round();
    }
    let mut into = [0; 4096];
    let received = core::iter::from_fn(|| b.receive(&mut world.vf(1), 0, &mut into)).count();
    assert_eq!((received, world.card.statistics(1).rx_discards), (63, 7));
}

#[test]
fn transmit_queue_stops_after_64_frames_below_17_bytes() {
    let (mut world, mut a, _) = two();
    for n in 0..64 {
        assert!(a.transmit(&mut world.vf(0), 0, &frame(n, 16)));
        world.round();
    }
    let counters = world.card.counters(0).unwrap();
    assert_eq!((counters.malformed, counters.stopped), (64, 1));
    a.transmit(&mut world.vf(0), 0, &frame(1, 60));
    a.transmit(&mut world.vf(0), 1, &frame(1, 60));
    world.round();
    assert_eq!(world.packets.len(), 1, "the other queues still send");
}

/// Tests a tail that Linux writes after a reset, as soon as it has vectors, while it still waits for the PF to set up
/// its queues. Until the packet at that tail is reported as sent, Linux holds back all others of the queue.
#[test]
fn tail_written_between_vf_reset_and_queue_setup_is_kept() {
    let mut world = CardFixture::new(1);
    let whole =
        TxDataDescriptor { address: 0x1000, length: 60, end_of_packet: true, ..TxDataDescriptor::default() };
    world.memories.of(Function::Vf(0))[..tx::SIZE].copy_from_slice(&whole.emit());
    world.vf(0).write(r::qtx_tail(0), 1);
    world.round();
    assert!(world.packets.is_empty(), "there is no queue yet");
    world
        .card
        .order(0, CardCommand::ConfigureTx(0, TxQueueContext { base: 0, length: 64, head_address: None }));
    world.card.order(0, CardCommand::Run { rx: 1, tx: 1 });
    world.round();
    assert_eq!(world.packets.len(), 1);
}

#[test]
fn stopped_queue_starts_empty_when_set_up_again() {
    let (mut world, mut a, mut b) = two();
    a.stop(&mut world.vf(0)).unwrap();
    a.transmit(&mut world.vf(0), 0, &frame(1, 60));
    world.round();
    assert!(world.packets.is_empty());
    a.start(&mut world.vf(0)).unwrap();
    world.round();
    assert!(world.packets.is_empty(), "the old tail sends nothing");
    a.transmit(&mut world.vf(0), 0, &frame(2, 60));
    world.round();
    let mut into = [0; 4096];
    let received = b.receive(&mut world.vf(1), 0, &mut into).unwrap();
    assert_eq!(&into[..received.length], frame(2, 60));
}
