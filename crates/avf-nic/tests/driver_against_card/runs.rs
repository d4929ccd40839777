//! The card takes plain frames (one descriptor, no offload, no tag) from a ring in runs, and all others one by one. Frames,
//! counters and descriptors are the same either way.

use crate::built::udp4;
use crate::offloads::{SUMS, all_of, two};
use crate::world::MEMORY;
use avf::control::{Control, TxContext};
use avf::descriptor::tx::{self, Data, Transmit, command};
use avf::register as r;
use driver::Hal;
use driver::avf::vf::TxOffload;
use pcie::Function;
use proptest::prelude::{any, prop, proptest};

/// A UDP datagram with a number in it, without its sums.
fn packet(n: u8) -> Vec<u8> {
    udp4(&[n; 40])
}

proptest! {
    #[test]
    fn whatever_comes_between_frames_arrive_once_and_in_order(sums in prop::collection::vec(any::<bool>(), 1..150)) {
        let (mut world, mut a, mut b) = two(|_| {});
        let mut received = Vec::new();
        for (chunk, first) in sums.chunks(40).zip((0..).step_by(40)) {
            for (sums, n) in chunk.iter().zip(first..) {
                let offload = if *sums { SUMS } else { TxOffload::default() };
                assert!(a.transmit_with(&mut world.vf(0), 0, &packet(n), &offload));
            }
            (0..4).for_each(|_| world.round());
            received.extend(all_of(&mut world, &mut b).into_iter().map(|(_, frame)| frame[59]));
        }
        assert!(received.iter().copied().eq(0..sums.len() as u8), "{received:?}");
        assert_eq!(world.card.statistics(0).tx_unicast, sums.len() as u64);
    }

    /// A descriptor is plain exactly if reading all of it says so.
    #[test]
    fn what_is_plain_is_what_asks_for_nothing(raw in any::<[u8; tx::SIZE]>(), likely in any::<bool>()) {
        let mut raw = raw;
        if likely {
            (raw[8], raw[9]) = ((command::EOP << 4) as u8 | raw[8] & 0x60, 0);
        }
        let expected = match tx::parse(&raw) {
            Transmit::Data(data) => {
                let Data { address, length, report_status, .. } = data;
                let plain = Data {
                    address,
                    length,
                    report_status,
                    end_of_packet: true,
                    mac_length: data.mac_length,
                    ip_length: data.ip_length,
                    l4_length: data.l4_length,
                    ..Data::default()
                };
                (data == plain).then_some((address, length, report_status))
            }
            _ => None,
        };
        let found = tx::plain(&raw).map(|buffer| (buffer.address, buffer.length, buffer.report_status));
        assert_eq!(found, expected);
    }
}

#[test]
fn memory_that_cannot_be_reached_stops_the_queue_after_the_frames_before() {
    let (mut world, _a, mut b) = two(|_| {});
    let (ring, buffer, length) = (MEMORY - 0x1000, MEMORY - 0x2000, packet(7).len() as u16);
    let good = Data { address: buffer as u64, length, end_of_packet: true, ..Data::default() };
    let nowhere = Data { address: MEMORY as u64, ..good };
    let descriptors = [good, good, nowhere, good].map(|data| data.emit());
    let memory = world.memories.of(Function::Vf(0));
    memory[buffer..][..packet(7).len()].copy_from_slice(&packet(7));
    memory[ring..][..descriptors.len() * tx::SIZE].copy_from_slice(descriptors.as_flattened());
    world.card.configure_tx(0, 0, TxContext { base: ring as u64, length: 64, head_address: None });
    world.card.run(0, 1, 1);
    world.vf(0).write(r::qtx_tail(0), descriptors.len() as u32);
    world.round();
    assert_eq!(all_of(&mut world, &mut b).len(), 2);
    world.vf(0).write(r::qtx_tail(0), descriptors.len() as u32);
    world.round();
    assert_eq!(all_of(&mut world, &mut b).len(), 0, "the queue stands");
    assert_eq!(world.card.counters(0).unwrap().dma_faults, 1);
}

#[test]
fn a_head_that_cannot_be_written_back_stops_the_queue_and_is_counted() {
    let (mut world, _a, mut b) = two(|_| {});
    let (ring, buffer, length) = (MEMORY - 0x1000, MEMORY - 0x2000, packet(7).len() as u16);
    let good = Data { address: buffer as u64, length, end_of_packet: true, ..Data::default() }.emit();
    let memory = world.memories.of(Function::Vf(0));
    memory[buffer..][..packet(7).len()].copy_from_slice(&packet(7));
    memory[ring..][..tx::SIZE].copy_from_slice(&good);
    let nowhere = Some(MEMORY as u64);
    world.card.configure_tx(0, 0, TxContext { base: ring as u64, length: 64, head_address: nowhere });
    world.card.run(0, 1, 1);
    world.vf(0).write(r::qtx_tail(0), 1);
    world.round();
    assert_eq!(world.card.counters(0).unwrap().dma_faults, 1);
    assert_eq!(all_of(&mut world, &mut b).len(), 1, "frames leave before their descriptors go back");
}
