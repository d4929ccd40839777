//! Hostile guests that write any value to any register and memory: the card answers, other VFs are not disturbed, and memory stays
//! bounded.

use crate::world::{CardFixture, MEMORY, mac};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode, returned};
use avf::bits::aqlen;
use avf::control::{CardCommand, CardControl, RxQueueContext, TxQueueContext};
use avf::descriptor::tx::{self, TxContextDescriptor, TxDataDescriptor};
use avf::register as r;
use avf_nic::{Nic, RxDescriptorFields};
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

/// Puts a descriptor into VF 0's send mailbox and writes the tail. Returns the descriptor as the card has written it
/// back.
fn send(world: &mut CardFixture, descriptor: AdminQueueDescriptor) -> AdminQueueDescriptor {
    let memory = world.memories.of(Function::Vf(0));
    memory[..SIZE].copy_from_slice(&descriptor.emit());
    let mut side = world.vf(0);
    for (register, value) in [(r::VF_ATQLEN, 0), (r::VF_ATQH, 0), (r::VF_ATQBAL, 0), (r::VF_ATQBAH, 0)] {
        side.write(register, value);
    }
    side.write(r::VF_ATQLEN, 8 | aqlen::ENABLE);
    side.write(r::VF_ATQT, 1);
    world.round();
    AdminQueueDescriptor::parse(world.memories.of(Function::Vf(0))[..SIZE].try_into().unwrap())
}

#[test]
fn unknown_admin_command_returns_esrch() {
    let mut world = CardFixture::new(1);
    let back = send(&mut world, AdminQueueDescriptor { opcode: 0x0102, ..AdminQueueDescriptor::default() });
    assert_eq!((back.flags, back.return_value), (flag::DD | flag::CMP | flag::ERR, returned::ESRCH));
}

#[test]
fn admin_queue_shutdown_command_leaves_the_queue_enabled() {
    let mut world = CardFixture::new(1);
    let shutdown = AdminQueueDescriptor {
        opcode: opcode::QUEUE_SHUTDOWN,
        param0: 1,
        return_value: 7,
        ..AdminQueueDescriptor::default()
    };
    let back = send(&mut world, shutdown);
    assert_eq!((back.flags, back.return_value), (flag::DD | flag::CMP, returned::OK));
    assert_ne!(world.vf(0).read(r::VF_ATQLEN) & aqlen::ENABLE, 0);
}

#[test]
fn admin_message_body_beyond_4096_bytes_is_refused() {
    let mut world = CardFixture::new(1);
    let long = AdminQueueDescriptor {
        flags: flag::BUF | flag::RD,
        opcode: opcode::SEND_TO_PF,
        length: 4097,
        ..AdminQueueDescriptor::default()
    };
    assert_eq!(send(&mut world, long).return_value, returned::EINVAL);
}

#[test]
fn admin_ring_outside_guest_memory_stops_until_vf_driver_probe() {
    let mut world = CardFixture::new(1);
    let mut side = world.vf(0);
    side.write(r::VF_ATQBAL, MEMORY as u32);
    side.write(r::VF_ATQLEN, 8 | aqlen::ENABLE);
    side.write(r::VF_ATQT, 5);
    (0..4).for_each(|_| world.round());
    assert_ne!(world.vf(0).read(r::VF_ATQLEN) & aqlen::CRIT, 0);
    assert_eq!(world.card.counters(0).unwrap().dma_faults, 1, "one fault, not one per poll");
    assert!(AvfDriver::probe(&mut world.vf(0), mac(1)).is_ok());
}

/// Sends a frame from VF 1 to another VF. Returns true if VF 2 receives it.
fn arrives_beside(world: &mut CardFixture, neighbours: &mut [AvfDriver; 2], to: u8) -> bool {
    let [sender, receiver] = neighbours;
    let frame = [&mac(to).0[..], &mac(1).0, &[0x88, 0xb5], &[7; 50]].concat();
    sender.clean(&mut world.vf(1));
    assert!(sender.transmit(&mut world.vf(1), 0, &frame));
    world.round();
    receiver.receive(&mut world.vf(2), 0, &mut [0; 2048]).is_some()
}

#[test]
fn avf_rings_in_unmapped_memory_stop_and_count_a_fault() {
    // Behind the memory, at its last bytes, and at the end of the address space.
    for base in [MEMORY as u64, MEMORY as u64 - 16, 1 << 63, !127] {
        let mut world = CardFixture::new(3).across_a_plane();
        let mut own = world.start(0);
        let mut neighbours = [1, 2].map(|vf| world.start(vf));
        let faults = |world: &CardFixture| world.card.counters(0).unwrap().dma_faults;
        let tx = TxQueueContext { base, length: 64, head_address: None };
        let rx =
            RxQueueContext { base, length: 64, buffer_bytes: 2_048, max_frame: 1_518, ..Default::default() };
        for (order, is_receive) in
            [(CardCommand::ConfigureTx(0, tx), false), (CardCommand::ConfigureRx(0, rx), true)]
        {
            world.card.order(0, CardCommand::Run { rx: 0, tx: 0 });
            world.card.order(0, order);
            world.card.order(0, CardCommand::Run { rx: u16::from(is_receive), tx: u16::from(!is_receive) });
            let before = faults(&world);
            for tail in [10, 20, 30] {
                world.vf(0).write(if is_receive { r::qrx_tail(0) } else { r::qtx_tail(0) }, tail);
                world.round();
                assert!(!arrives_beside(&mut world, &mut neighbours, 0));
                assert_eq!(faults(&world), before + 1, "{base:#x}, tail {tail}, receive {is_receive}");
                assert!(arrives_beside(&mut world, &mut neighbours, 2), "the neighbours exchange frames");
            }
        }
        assert!(world.cable.0.is_empty(), "the VF sends nothing");
        own.restart(&mut world.vf(0)).unwrap();
        arrives_beside(&mut world, &mut neighbours, 0);
        let received = own.receive(&mut world.vf(0), 0, &mut [0; 2048]);
        assert!(received.is_some(), "the rings start anew");
    }
}

#[test]
fn messages_to_a_vf_beyond_its_posted_buffers_are_dropped() {
    let mut world = CardFixture::new(1);
    let vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    for up in 0..100 {
        world.with_pf(|pf, side| pf.set_link(side, (up % 2 == 0).then_some(10_000)));
    }
    assert!(world.card.counters(0).unwrap().overflowed > 80);
    assert_ne!(world.vf(0).read(r::VF_ARQLEN) & aqlen::OVFL, 0);
    drop(vf);
}

#[test]
fn vf_that_floods_its_mailbox_does_not_delay_others() {
    let mut world = CardFixture::new(3);
    let mut quiet = AvfDriver::probe(&mut world.vf(2), mac(2)).unwrap();
    let mut loud = [0, 1].map(|n| AvfDriver::probe(&mut world.vf(n), mac(n)).unwrap());
    for _ in 0..50 {
        for (vf, n) in loud.iter_mut().zip(0..) {
            (0..7).for_each(|_| vf.reset(&mut world.vf(n)));
        }
        let before = world.now;
        quiet.ask(&mut world.vf(2), avf::virtchnl::VirtchnlRequest::GetHashTypes).unwrap();
        assert!(world.now.since(before).as_millis() <= 2);
    }
}

/// Sends the given descriptors from transmit queue 0 of VF 0, with the ring at the start of the VF's memory, in one
/// round of the port.
fn ring_of(world: &mut CardFixture, descriptors: &[[u8; tx::SIZE]]) {
    let context = TxQueueContext { base: 0, length: 256, head_address: None };
    world.card.order(0, CardCommand::ConfigureTx(0, context));
    world.card.order(0, CardCommand::Run { rx: 1, tx: 1 });
    world.memories.of(Function::Vf(0))[..descriptors.len() * tx::SIZE]
        .copy_from_slice(descriptors.as_flattened());
    world.vf(0).write(r::qtx_tail(0), descriptors.len() as u32);
    world.round();
}

#[test]
fn card_reads_no_buffer_before_a_packets_last_descriptor() {
    let mut world = CardFixture::new(1);
    let beyond = TxDataDescriptor { address: MEMORY as u64, length: 1_000, ..TxDataDescriptor::default() };
    ring_of(&mut world, &[beyond.emit(); 79]);
    let counters = *world.card.counters(0).unwrap();
    assert_eq!((counters.dma_faults, counters.malformed), (0, 0), "no buffer was read");
    world.vf(0).write(r::qtx_tail(0), 80);
    world.round();
    assert_eq!(
        world.card.counters(0).unwrap().malformed,
        1,
        "80 descriptors without an end of packet: no driver sends that"
    );
}

#[test]
fn malformed_packet_is_dropped_and_the_next_is_sent() {
    let good = TxDataDescriptor {
        address: 0x1000,
        length: 60,
        end_of_packet: true,
        report_status: true,
        ..TxDataDescriptor::default()
    };
    let piece = TxDataDescriptor { end_of_packet: false, report_status: false, ..good };
    let context =
        TxContextDescriptor { segment: true, mss: 63, payload: 10, ..TxContextDescriptor::default() };
    let cases: [&[[u8; tx::SIZE]]; 6] = [
        &[
            piece.emit(),
            piece.emit(),
            piece.emit(),
            piece.emit(),
            piece.emit(),
            piece.emit(),
            piece.emit(),
            piece.emit(),
        ],
        &[TxDataDescriptor { length: 0, ..piece }.emit()],
        &[TxDataDescriptor { dummy: true, ..piece }.emit()],
        &[[0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]],
        &[context.emit()],
        &[piece.emit(), TxContextDescriptor { mss: 100, ..context }.emit()],
    ];
    for (case, bad) in cases.into_iter().enumerate() {
        let mut world = CardFixture::new(1);
        ring_of(&mut world, &[bad, &[good.emit(), good.emit()]].concat());
        assert_eq!(world.card.counters(0).unwrap().malformed, 1, "case {case}");
        assert_eq!(world.packets.len(), 1, "case {case}");
    }
}

/// Action of a hostile guest, or a round of the port.
#[derive(Debug, Clone)]
enum HostileAction {
    Write(u32, u32),
    Read(u32),
    Memory(u16, Vec<u8>),
    Reset,
    Round,
    Frame(u8, usize),
}

fn offset() -> impl Strategy<Value = u32> {
    let rows: Vec<u32> = avf::table::rows().flat_map(|row| row.offsets()).collect();
    prop_oneof![9 => prop::sample::select(rows), 1 => any::<u32>()]
}

fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0..64_u32,
        3 => Just(32 | aqlen::ENABLE),
        2 => (0..16_u32).prop_map(|page| page * 128),
        1 => any::<u32>(),
    ]
}

fn a_move() -> impl Strategy<Value = HostileAction> {
    prop_oneof![
        6 => (offset(), value()).prop_map(|(at, value)| HostileAction::Write(at, value)),
        2 => offset().prop_map(HostileAction::Read),
        3 => (0..2048_u16, prop::collection::vec(any::<u8>(), 1..64)).prop_map(|(at, bytes)| HostileAction::Memory(at, bytes)),
        1 => Just(HostileAction::Reset),
        4 => Just(HostileAction::Round),
        2 => (0..20_u8, 0..10_000_usize).prop_map(|(queue, length)| HostileAction::Frame(queue, length)),
    ]
}

proptest! {
    /// Tests that the card answers whatever a guest does with registers and memory, and that another VF's driver
    /// notices nothing.
    #[test]
    fn arbitrary_guest_actions_do_not_disturb_another_vf(moves in prop::collection::vec(a_move(), 1..120)) {
        let mut world = CardFixture::new(2);
        let mut other = AvfDriver::probe(&mut world.vf(1), mac(2)).unwrap();
        other.start(&mut world.vf(1)).unwrap();
        let mut hostile = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
        hostile.start(&mut world.vf(0)).unwrap();
        for step in moves {
            match step {
                HostileAction::Write(at, value) => world.vf(0).write(at, value),
                HostileAction::Read(at) => _ = world.vf(0).read(at),
                HostileAction::Memory(at, bytes) => {
                    let start = usize::from(at) * 16;
                    world.memories.of(Function::Vf(0))[start..start + bytes.len()].copy_from_slice(&bytes);
                }
                HostileAction::Reset => world.card.function_level_reset(0),
                HostileAction::Round => world.round(),
                HostileAction::Frame(queue, length) => {
                    let frame = vec![1; length];
                    let _ = world.card.receive(0, queue, &frame, &RxDescriptorFields::default(), &mut world.memories);
                }
            }
        }
        assert!(!other.was_reset(&mut world.vf(1)));
        assert!(other.statistics(&mut world.vf(1)).is_ok());
    }
}

#[test]
fn missing_vf_reads_zero_and_ignores_writes() {
    let mut card = Nic::new(1);
    card.write(7, r::VF_ATQT, 1);
    card.function_level_reset(7);
    assert_eq!((card.read(7, r::VFGEN_RSTAT), card.pf_read(avf::pf_register::GLGEN_VFLRSTAT)), (0, 0));
}
