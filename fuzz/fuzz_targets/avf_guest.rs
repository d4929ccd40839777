//! A hostile guest with an Adaptive Virtual Function beside two honest ones and the PF: it writes registers and memory, resets, and
//! sends messages with a valid operation and length, so that the fuzzer reaches the code behind those checks, and
//! packets with any headers and any offloads.
//!
//! The first byte of the input selects the guest's policy and mapped doorbells. The rest is a list of moves, each a byte with
//! the kind and then its parameters. Checked: no panic, the honest VFs are neither reset nor left without an answer, their
//! memory beside their rings and buffers stays as it is, and they receive each other's frames and the uplink's, none of which
//! is ever in the hostile guest's memory.
#![cfg_attr(not(test), no_main)]

use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf::descriptor::tx::{self, TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::register as r;
use avf::virtchnl::VirtchnlOpcode;
use avf_nic::RxDescriptorFields;
use core::time::Duration;
use driver::avf::vf::AvfDriver;
use driver::{DmaHal, Hal};
use etherparse::PacketBuilder;
use pcie::Function;
use policy::{FrameGuards, SourceIps, VfPolicy};
use softiov_fuzz::{FrameMark, FuzzerInput};
use world::{CardFixture, mac};

#[path = "../../crates/avf-nic/tests/driver_against_card/pages.rs"]
mod pages;
#[path = "../../crates/avf-nic/tests/driver_against_card/world.rs"]
mod world;

/// Guest address of the ring by which the hostile guest sends messages, and of the messages' bodies.
const RING: u64 = 0x10_0000;
const BODIES: u64 = 0x11_0000;
/// Guest address of the hostile guest's transmit ring, and of the packet to send.
const TX_RING: u64 = 0x12_0000;
const PACKET: u64 = 0x13_0000;
const SLOTS: u32 = 32;
/// Bytes of the other VF's memory that no ring and no buffer has, and their value.
const KEPT: usize = 0x1_0000;
const KEPT_BYTE: u8 = 0xa5;
/// Number of a station beyond the uplink.
const STATION: u8 = 99;

/// Honest guest beside the hostile one.
struct Neighbour {
    vf: u8,
    driver: AvfDriver,
    /// Offset of the memory that no ring and no buffer has.
    kept: usize,
}

/// Sends a mailbox message by a ring of the hostile guest, which is set up again. With `own`, the message's body begins
/// with the id of the VF's VSI.
fn send(world: &mut CardFixture, number: u32, mut body: Vec<u8>, own: bool) {
    if own && body.len() > 1 {
        body[..2].copy_from_slice(&1_u16.to_le_bytes());
    }
    let descriptor = AdminQueueDescriptor {
        flags: flag::SI | flag::BUF | flag::RD,
        opcode: opcode::SEND_TO_PF,
        length: body.len() as u16,
        cookie_high: number,
        address: BODIES,
        ..AdminQueueDescriptor::default()
    };
    let memory = world.memories.of(Function::Vf(0));
    memory[BODIES as usize..][..body.len()].copy_from_slice(&body);
    memory[RING as usize..][..SIZE].copy_from_slice(&descriptor.emit());
    let mut side = world.vf(0);
    let on = SLOTS | aqlen::ENABLE;
    for (register, value) in [
        (r::VF_ATQLEN, 0),
        (r::VF_ATQH, 0),
        (r::VF_ATQBAL, RING as u32),
        (r::VF_ATQBAH, 0),
        (r::VF_ATQLEN, on),
        (r::VF_ATQT, 1),
    ] {
        side.write(register, value);
    }
    world.round();
}

/// Sends a packet by a transmit ring that is set up again. The fuzzer's input gives its headers, and zeros follow.
fn send_packet(world: &mut CardFixture, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [wishes, mac, ip, l4, low, high, mss_low, mss_high, head] = input.array()?;
    let length = u16::from_le_bytes([low, high]) % 16_000;
    let head = input.bytes(usize::from(head));
    let data = TxDataDescriptor {
        address: PACKET,
        length,
        end_of_packet: true,
        report_status: true,
        tag: (wishes & 0x40 != 0).then_some(7),
        ip: [TxIpHeaderKind::None, TxIpHeaderKind::V6, TxIpHeaderKind::V4, TxIpHeaderKind::V4Checksum]
            [usize::from(wishes >> 2 & 3)],
        l4: [TxL4Checksum::None, TxL4Checksum::Tcp, TxL4Checksum::Sctp, TxL4Checksum::Udp]
            [usize::from(wishes >> 4 & 3)],
        mac_length: u16::from(mac) / 8 * 2,
        ip_length: u16::from(ip) / 2,
        l4_length: u16::from(l4) / 4,
        ..TxDataDescriptor::default()
    };
    let headers = data.mac_length / 2 * 2 + data.ip_length / 4 * 4 + data.l4_length / 4 * 4;
    let context = TxContextDescriptor {
        segment: wishes & 1 != 0,
        tag2: (wishes & 0x80 != 0).then_some(9),
        payload: length.saturating_sub(headers).into(),
        mss: u16::from_le_bytes([mss_low, mss_high]),
        ..TxContextDescriptor::default()
    };
    let ring = if wishes & 2 != 0 { vec![context.emit(), data.emit()] } else { vec![data.emit()] };
    let memory = world.memories.of(Function::Vf(0));
    memory[PACKET as usize..][..head.len()].copy_from_slice(head);
    memory[TX_RING as usize..][..ring.len() * tx::SIZE].copy_from_slice(ring.as_flattened());
    world.card.order(
        0,
        CardCommand::ConfigureTx(0, TxQueueContext { base: TX_RING, length: 64, head_address: None }),
    );
    world.card.order(0, CardCommand::Run { rx: u16::MAX, tx: 1 });
    world.vf(0).write(r::qtx_tail(0), ring.len() as u32);
    world.round();
    Some(())
}

/// Returns a TCP or UDP frame of the wire to the hostile guest, from a flow that RSS tells from others.
fn from_the_wire(address: u8, port: u16) -> Vec<u8> {
    let link = PacketBuilder::ethernet2(mac(STATION).0, mac(0).0);
    let ip = match address & 1 {
        0 => link.ipv4([10, 0, 0, address], [10, 0, 0, 1], 64),
        _ => link.ipv6([address; 16], [1; 16], 64),
    };
    let (mut frame, payload) = (Vec::new(), [address; 40]);
    match address & 2 {
        0 => ip.tcp(port, 80, 1, 1_000).write(&mut frame, &payload),
        _ => ip.udp(port, 53).write(&mut frame, &payload),
    }
    .expect("a vector takes all bytes");
    frame
}

/// Makes the hostile guest's next move, or lets its neighbours exchange frames. Returns `None` at the end of the fuzzer's input.
fn make_move(
    world: &mut CardFixture,
    input: &mut FuzzerInput<'_>,
    (neighbours, mark): (&mut [Neighbour; 2], FrameMark),
) -> Option<()> {
    let [kind] = input.array()?;
    match kind % 9 {
        0 | 1 => {
            let [row, a, b, c, d] = input.array()?;
            let offsets: Vec<u32> = avf::table::rows().flat_map(|row| row.offsets()).collect();
            let at = offsets[usize::from(row) % offsets.len()];
            world.vf(0).write(at, u32::from_le_bytes([a, b, c, d]));
        }
        2 => {
            let [low, high, length] = input.array()?;
            let start = usize::from(u16::from_le_bytes([low, high])) * 16;
            let bytes = input.bytes(usize::from(length % 64));
            world.memories.of(Function::Vf(0))[start..start + bytes.len()].copy_from_slice(bytes);
        }
        3 | 4 => {
            let [op, length, own] = input.array()?;
            let number = VirtchnlOpcode::ALL
                .get(usize::from(op) % (VirtchnlOpcode::ALL.len() + 1))
                .map_or(op.into(), |op| op.number());
            let body = input.bytes(usize::from(length) * 2).to_vec();
            send(world, number, body, own % 4 != 0);
        }
        // DEVICE_RESET of its VMM, and a reset by itself.
        5 if kind & 0x80 != 0 => world.card.reset_for_next_owner(0),
        5 => world.card.function_level_reset(0),
        7 => send_packet(world, input)?,
        6 if kind & 0x80 != 0 => {
            let [address, low, high] = input.array()?;
            world.cable.1.push_back(from_the_wire(address, u16::from_le_bytes([low, high])));
            world.round();
        }
        6 => {
            let [queue, low, high] = input.array()?;
            let frame = vec![0; usize::from(u16::from_le_bytes([low, high])) % 10_000];
            let _ = world.card.receive(0, queue, &frame, &RxDescriptorFields::default(), &mut world.memories);
        }
        _ if kind & 0x80 != 0 => exchange(world, neighbours, mark),
        _ => {
            world.now = world.now + Duration::from_micros(100);
            world.round();
        }
    }
    Some(())
}

softiov_fuzz::target!(run);

/// Returns the hostile guest's policy, which the input's first byte selects.
fn hostile_policy(first: u8) -> VfPolicy {
    let ips = SourceIps::of(&[]).expect("an empty list has room");
    let guards = FrameGuards { dhcp_guard: true, router_guard: true, ips: Some(ips), qinq: false };
    VfPolicy {
        max_tx_rate: if first & 1 != 0 { 100 } else { 0 },
        spoofchk: first & 1 == 0,
        guards: if first & 4 != 0 { guards } else { FrameGuards::default() },
        ..VfPolicy::default()
    }
}

impl Neighbour {
    /// Starts the driver of an honest guest, and fills memory that no ring and no buffer has.
    fn start(world: &mut CardFixture, vf: u8) -> Self {
        let policy = VfPolicy { mac: Some(mac(vf)), ..VfPolicy::default() };
        world.with_pf(|pf, side| pf.set_policy(side, vf, policy)).unwrap();
        let driver = world.start(vf);
        let kept = world.vf(vf).dma_alloc(KEPT, 4096).unwrap().iova;
        world.vf(vf).dma_write(kept, &[KEPT_BYTE; KEPT]);
        Self { vf, driver, kept: kept as usize }
    }

    /// Takes the frames that the guest has received.
    fn drain(&mut self, world: &mut CardFixture) -> Vec<Vec<u8>> {
        let (mut frames, mut into) = (Vec::new(), [0; 16_384]);
        while let Some(received) = self.driver.receive(&mut world.vf(self.vf), 0, &mut into) {
            frames.push(into[..received.length].to_vec());
        }
        self.driver.receive_done(&mut world.vf(self.vf));
        frames
    }

    /// Checks that the guest was not reset, is answered, and has the memory that it had.
    fn check(&mut self, world: &mut CardFixture) {
        let Self { vf, driver, kept } = self;
        assert!(!driver.was_reset(&mut world.vf(*vf)), "VF {vf} was reset");
        assert!(driver.statistics(&mut world.vf(*vf)).is_ok(), "VF {vf} is not answered");
        let memory = &world.memories.of(Function::Vf(*vf))[*kept..][..KEPT];
        assert!(memory.iter().all(|byte| *byte == KEPT_BYTE), "a stray write in VF {vf}'s memory");
    }
}

/// Sends marked frames to both neighbours, from each other and from the uplink. Checks that they get exactly these, and that the
/// hostile guest, which may be in any state, gets none.
fn exchange(world: &mut CardFixture, neighbours: &mut [Neighbour; 2], mark: FrameMark) {
    // Frames of the hostile guest may otherwise fill the neighbours' rings.
    world.round();
    for neighbour in &mut *neighbours {
        _ = neighbour.drain(world);
    }
    for (from, to) in [(1, 2), (STATION, 2), (2, 1), (STATION, 1)] {
        let frame = mark.frame(mac(to), mac(from));
        match neighbours.iter_mut().find(|neighbour| neighbour.vf == from) {
            Some(sender) => assert!(sender.driver.transmit(&mut world.vf(from), 0, &frame)),
            None => world.cable.1.push_back(frame.clone()),
        }
        world.round();
        for neighbour in &mut *neighbours {
            let expected = if neighbour.vf == to { std::slice::from_ref(&frame) } else { &[] };
            let (vf, received) = (neighbour.vf, neighbour.drain(world));
            assert!(received == expected, "from {from} to VF {to}: VF {vf} has {} frames", received.len());
        }
    }
    let found = mark.position(world.memories.of(Function::Vf(0)));
    assert_eq!(found, None, "the hostile guest has a neighbour's frame in its memory");
}

/// Runs the target on one input.
fn run(data: &[u8]) {
    let (mut input, mark) = (FuzzerInput(data), FrameMark::of(data));
    let [first] = input.array().unwrap_or_default();
    let mut world = CardFixture::new(3).across_a_plane();
    if first & 8 != 0 {
        assert!(world.with_pf(|pf, side| pf.set_pairs(side, 0, 4, 16)));
    }
    _ = world.start(0);
    let mut neighbours = [1, 2].map(|vf| Neighbour::start(&mut world, vf));
    if first & 2 != 0 {
        world.map(0);
    }
    world.with_pf(|pf, side| pf.set_policy(side, 0, hostile_policy(first))).unwrap();
    while make_move(&mut world, &mut input, (&mut neighbours, mark)).is_some() {
        for neighbour in &mut neighbours {
            _ = neighbour.drain(&mut world);
        }
    }
    exchange(&mut world, &mut neighbours, mark);
    // Packets of a limited VF would arrive between the neighbours' frames.
    world.card.function_level_reset(0);
    world.now = world.now + Duration::from_millis(100);
    world.round();
    for neighbour in &mut neighbours {
        neighbour.check(&mut world);
    }
    exchange(&mut world, &mut neighbours, mark);
}
