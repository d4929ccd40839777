//! One VF does what it likes with its registers and descriptors, the other VFs' traffic goes on.

use crate::support::{Bench, between};
use driver::{DmaHal, Hal};
use i82576::window;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

const VILLAIN: u8 = 2;

/// Something that a villain does.
#[derive(Debug, Clone)]
enum Act {
    Write(u32, u32),
    Read(u32),
    Memory(u64, Vec<u8>),
    Poll(u16),
}

/// Values that registers find hard: extremes, lone bits, and addresses that exist.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        Just(0),
        Just(u32::MAX),
        (0u32..32).prop_map(|bit| 1 << bit),
        0u32..300,
        (0x10_0000u32..0x20_0000).prop_map(|a| a & !0x7f),
    ]
}

fn offset() -> impl Strategy<Value = u32> {
    let known = (0..window::TABLE.len(), 0u32..16).prop_map(|(row, element)| {
        let row = &window::TABLE[row];
        row.offset + row.stride * (element % row.count)
    });
    prop_oneof![4 => known, 1 => (0u32..0x4000).prop_map(|o| o & !3)]
}

fn descriptor() -> impl Strategy<Value = Vec<u8>> {
    let command = prop_oneof![
        any::<u32>(),
        (any::<u16>(), 0u32..256).prop_map(|(length, flags)| u32::from(length) | flags << 24 | 0x2030_0000),
        (any::<u16>(), 0u32..256).prop_map(|(low, flags)| u32::from(low) | flags << 24 | 0x2020_0000),
    ];
    (0x10_0000u64..0x18_0000, command, any::<u32>()).prop_map(|(address, command, sizes)| {
        let mut raw = address.to_le_bytes().to_vec();
        raw.extend(command.to_le_bytes());
        raw.extend(sizes.to_le_bytes());
        raw
    })
}

fn act() -> impl Strategy<Value = Act> {
    let slot = (0u64..1024).prop_map(|slot| 0x10_0000 + slot * 16);
    prop_oneof![
        6 => (offset(), value()).prop_map(|(o, v)| Act::Write(o, v)),
        1 => offset().prop_map(Act::Read),
        3 => (slot, descriptor()).prop_map(|(at, raw)| Act::Memory(at, raw)),
        2 => (1u16..2_000).prop_map(Act::Poll),
    ]
}

fn perform(bench: &mut Bench, act: &Act) {
    match act {
        Act::Write(offset, value) => bench.card.vf(VILLAIN).write(*offset, *value),
        Act::Read(offset) => {
            bench.card.vf(VILLAIN).read(*offset);
        }
        Act::Memory(at, raw) => bench.card.vf(VILLAIN).dma_write(*at, raw),
        Act::Poll(micros) => bench.advance_us(u64::from(*micros)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_others_traffic_goes_on(acts in proptest::collection::vec(act(), 1..200)) {
        let mut bench = Bench::new(3);
        for (round, acts) in acts.chunks(10).enumerate() {
            acts.iter().for_each(|act| perform(&mut bench, act));
            let seed = round as u8;
            bench.send(0, &between(0, 1, 64 + round, seed));
            let got = bench.receive_all(1);
            assert!(got.contains(&between(0, 1, 64 + round, seed)), "round {round}: {} frames", got.len());
            bench.send(1, &between(1, 0, 64, seed));
            assert!(bench.receive_all(0).contains(&between(1, 0, 64, seed)));
            bench.on(0, |vf, hal| vf.set_vlan(hal, 5, round % 2 == 0)).unwrap();
        }
        // And the villain's next owner finds a function that works.
        bench.on(VILLAIN, |vf, hal| vf.restart(hal)).unwrap();
        bench.send(VILLAIN, &between(VILLAIN, 0, 64, 1));
        assert!(bench.receive_all(0).contains(&between(VILLAIN, 0, 64, 1)));
    }
}
