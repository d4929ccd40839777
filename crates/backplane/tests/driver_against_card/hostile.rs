//! Tests that a VF with arbitrary registers and descriptors does not disturb the traffic of other VFs.

use crate::support::{DrivenCardFixture, between, index};
use backplane::vf_mac;
use driver::{DmaHal, Hal};
use etherparse::PacketBuilder;
use i82576::descriptor::tx::{AdvancedContextDescriptor, L4PacketType};
use i82576::register::{tx, vf};
use i82576::{MacAddress, window};
use policy::VfPolicy;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

const VILLAIN: u8 = 2;

/// Action of the hostile VF, or a poll of the card.
#[derive(Debug, Clone)]
enum HostileVfAction {
    Write(u32, u32),
    Read(u32),
    Send(Vec<[u8; 16]>),
    Poll(u16),
}

/// Generates difficult register values: extremes, single bits, and existing addresses.
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

/// Address of the hostile VF's transmit ring, its first allocation. The address of its frame buffers, the next
/// allocation, follows.
const RING: u64 = 0x10_0000;
const SLOTS: u32 = 256;
const BUFFERS: u64 = RING + SLOTS as u64 * 16;

/// Generates transmit descriptors: data descriptors that are nearly right, context descriptors, and random bytes.
fn descriptor() -> impl Strategy<Value = [u8; 16]> {
    let address =
        prop_oneof![9 => (0u64..SLOTS.into()).prop_map(|slot| BUFFERS + slot * 2048), 1 => any::<u64>()];
    let length = prop_oneof![4 => 14u32..1_600, 1 => 0u32..0x1_0000];
    // EOP, IFCS, RS, VLE and TSE in any combination, of type data (3) or context (2), extended.
    let kind = prop_oneof![4 => Just(0x2030_0000u32), 1 => Just(0x2020_0000u32), 1 => any::<u32>()];
    let flags = (0u32..32).prop_map(|f| (f & 3) << 24 | (f >> 2 & 1) << 27 | (f >> 3) << 30);
    let command = (length.clone(), kind, flags).prop_map(|(length, kind, flags)| length | kind | flags);
    let sizes = prop_oneof![(length, 0u32..4).prop_map(|(l, popts)| l << 14 | popts << 8), any::<u32>()];
    (address, command, sizes).prop_map(|(address, command, sizes)| {
        (u128::from(address) | u128::from(command) << 64 | u128::from(sizes) << 96).to_le_bytes()
    })
}

/// Generates a context descriptor that fits the frames in the hostile VF's buffers, so that segmentation is reached.
fn fitting_context() -> impl Strategy<Value = [u8; 16]> {
    (1u16..2_000, any::<u16>()).prop_map(|(mss, vlan_tag)| {
        let lengths = AdvancedContextDescriptor {
            mac_length: 14,
            ip_length: 20,
            l4_length: 20,
            ..AdvancedContextDescriptor::default()
        };
        AdvancedContextDescriptor { vlan_tag, ipv4: true, l4: L4PacketType::Tcp, mss, ..lengths }.emit()
    })
}

fn act() -> impl Strategy<Value = HostileVfAction> {
    let burst = proptest::collection::vec(prop_oneof![3 => descriptor(), 1 => fitting_context()], 1..40);
    prop_oneof![
        2 => (offset(), value()).prop_map(|(o, v)| HostileVfAction::Write(o, v)),
        1 => offset().prop_map(HostileVfAction::Read),
        6 => burst.prop_map(HostileVfAction::Send),
        2 => (1u16..2_000).prop_map(HostileVfAction::Poll),
    ]
}

fn perform(bench: &mut DrivenCardFixture, act: &HostileVfAction) {
    match act {
        HostileVfAction::Write(offset, value) => bench.card.vf(VILLAIN).write(*offset, *value),
        HostileVfAction::Read(offset) => {
            bench.card.vf(VILLAIN).read(*offset);
        }
        HostileVfAction::Send(descriptors) => send(&mut bench.card.vf(VILLAIN), descriptors),
        HostileVfAction::Poll(micros) => bench.advance_us(u64::from(*micros)),
    }
}

/// Writes transmit descriptors to the hostile VF's ring at the tail, and moves the tail.
fn send(hal: &mut impl DmaHal, descriptors: &[[u8; 16]]) {
    let mut tail = hal.read(vf::TX_BLOCK + tx::TDT) % SLOTS;
    for raw in descriptors {
        hal.dma_write(RING + u64::from(tail) * 16, raw);
        tail = (tail + 1) % SLOTS;
    }
    hal.write(vf::TX_BLOCK + tx::TDT, tail);
}

/// Puts a TCP frame into each of the hostile VF's buffers: to a neighbour, to all stations, to the wire, to itself.
fn arm(bench: &mut DrivenCardFixture) {
    let targets = [vf_mac(0), MacAddress::BROADCAST, MacAddress([2, 9, 9, 9, 9, 9]), vf_mac(VILLAIN)];
    for (slot, target) in (0..u64::from(SLOTS)).zip(targets.iter().cycle()) {
        let mut frame = Vec::new();
        let builder =
            PacketBuilder::ethernet2(vf_mac(VILLAIN).0, target.0).ipv4([10, 0, 0, 9], [10, 0, 0, 1], 9);
        builder.tcp(1, 2, 3, 4).write(&mut frame, &[slot as u8; 1_400]).unwrap();
        bench.card.vf(VILLAIN).dma_write(BUFFERS + slot * 2048, &frame);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_accesses_of_a_vf_do_not_stop_other_vfs(acts in proptest::collection::vec(act(), 1..200)) {
        let mut bench = DrivenCardFixture::new(3);
        arm(&mut bench);
        // A trusted VF without a spoof check, so that its altered frames are sent and not blocked.
        let policy = *bench.card.pf_driver().unwrap().policy(index(VILLAIN));
        let policy = VfPolicy { spoofchk: false, trust: true, ..policy };
        bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(VILLAIN), policy)).unwrap().unwrap();
        for (round, acts) in acts.chunks(10).enumerate() {
            acts.iter().for_each(|act| perform(&mut bench, act));
            // A flood fills neighbours' rings; the test requires only that the flood ends.
            bench.card.settle();
            (0..2).for_each(|vf| drop(bench.receive_all(vf)));
            let seed = round as u8;
            bench.send(0, &between(0, 1, 64 + round, seed));
            let got = bench.receive_all(1);
            assert!(got.contains(&between(0, 1, 64 + round, seed)), "round {round}: {} frames", got.len());
            bench.send(1, &between(1, 0, 64, seed));
            assert!(bench.receive_all(0).contains(&between(1, 0, 64, seed)));
            bench.on(0, |vf, hal| vf.set_vlan(hal, 5, round % 2 == 0)).unwrap();
        }
        // The villain's next owner must get a working function.
        bench.on(VILLAIN, |vf, hal| vf.restart(hal)).unwrap();
        bench.send(VILLAIN, &between(VILLAIN, 0, 64, 1));
        assert!(bench.receive_all(0).contains(&between(VILLAIN, 0, 64, 1)));
    }
}
