//! Tests conversations of VFs with the PF driver, on a card that records its orders. The card also plays the
//! firmware: it puts messages into the PF's receive queue and takes those of its send queue.

mod conduct;
mod filters;
mod handshake;
mod queues;
mod resets;
mod scaling;
mod vlans;

use super::Pf;
use crate::avf::pf::OFFERED;
use crate::hal::{DmaHal, DmaRegion, Hal, OutOfDmaMemory};
use ::avf::admin::{Descriptor, SIZE, flag, opcode};
use ::avf::bits::rstat;
use ::avf::control::{Cause, Control, HashFunction, Order, Restraint, RxContext, Tags, TxContext};
use ::avf::pf_register as r;
use ::avf::virtchnl::reply::{decode, encode};
use ::avf::virtchnl::{Capabilities, Event, Op, Request, Resources, Statistics, Status, Version};
use core::time::Duration;
use i82576::{MacAddress, Time};
use policy::VfPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

/// Message to a VF: operation, status, body.
type Sent = (Op, Status, Vec<u8>);

/// Orders that the card received for a VF.
#[derive(Debug, Default, Clone, PartialEq)]
struct Orders {
    addresses: BTreeSet<[u8; 6]>,
    vlans: BTreeSet<u16>,
    rx: BTreeMap<u8, RxContext>,
    tx: BTreeMap<u8, TxContext>,
    running: (u16, u16),
    rx_causes: BTreeMap<u8, Cause>,
    tx_causes: BTreeMap<u8, Cause>,
    tags: Tags,
    promiscuous: (bool, bool),
    spoof_check: bool,
    rate: u32,
    restraint: Restraint,
    key: Vec<u8>,
    table: Vec<u8>,
    types: u64,
    function: HashFunction,
    resets: u32,
}

/// Card with registers that keep their values, memory from address 0 on, and the orders for each VF.
#[derive(Default)]
struct Card {
    registers: BTreeMap<u32, u32>,
    memory: Vec<u8>,
    head: u32,
    now: Time,
    told: BTreeMap<u8, Orders>,
    sent: BTreeMap<u8, Vec<Sent>>,
    /// Events and resets of VFs, in order.
    log: Vec<(u8, &'static str)>,
}

impl Hal for Card {
    fn read(&mut self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn write(&mut self, offset: u32, value: u32) {
        let before = self.read(offset);
        let vflr = (r::GLGEN_VFLRSTAT..r::GLGEN_VFLRSTAT + 8).contains(&offset);
        self.registers.insert(offset, if vflr { before & !value } else { value });
        let vf = offset.wrapping_sub(r::VPGEN_VFRTRIG) / 4;
        if vf < 64 && value & r::VFSWR != 0 {
            let told = self.of(vf as u8);
            *told = Orders { resets: told.resets + 1, ..Orders::default() };
            self.registers.insert(r::VFGEN_RSTAT1 + 4 * vf, rstat::IN_PROGRESS);
            self.log.push((vf as u8, "reset"));
        }
        if offset == r::PF_ATQT {
            self.take_sent(value);
        }
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, _: Duration) {}
}

impl DmaHal for Card {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaRegion, OutOfDmaMemory> {
        let start = self.memory.len().next_multiple_of(align);
        self.memory.resize(start + length, 0);
        Ok(DmaRegion { iova: start as u64, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.memory[iova as usize..][..into.len()]);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.memory[iova as usize..][..from.len()].copy_from_slice(from);
    }
}

impl Card {
    fn of(&mut self, vf: u8) -> &mut Orders {
        self.told.entry(vf).or_default()
    }

    fn descriptor(&self, base: u64, slot: u32) -> Descriptor {
        let mut raw = [0; SIZE];
        self.dma_read(base + u64::from(slot) * SIZE as u64, &mut raw);
        Descriptor::parse(&raw)
    }

    /// Delivers the PF's queued messages to VFs.
    fn take_sent(&mut self, tail: u32) {
        let base = u64::from(self.read(r::PF_ATQBAL));
        let mut head = self.read(r::PF_ATQH);
        while head != tail {
            let descriptor = self.descriptor(base, head);
            assert_eq!(descriptor.opcode, opcode::SEND_TO_VF);
            let mut body = vec![0; descriptor.length.into()];
            self.dma_read(descriptor.address, &mut body);
            let (vf, op) = (descriptor.param0 as u8, Op::of(descriptor.cookie_high));
            let op = op.unwrap_or(Op::Version);
            let name = decode::<Event>(&body).filter(|_| op == Op::Event);
            self.log
                .push((vf, if name == Some(Event::ResetImpending) { "reset impending" } else { op.name() }));
            let status = Status::of(descriptor.cookie_low.cast_signed());
            self.sent.entry(vf).or_default().push((op, status, body));
            head = (head + 1) % (self.read(r::PF_ATQLEN) & 0x3ff);
        }
        self.registers.insert(r::PF_ATQH, head);
    }

    /// Puts a message of a VF into the PF's receive queue.
    fn arrive(&mut self, vf: u8, number: u32, body: &[u8]) {
        let base = u64::from(self.read(r::PF_ARQBAL));
        let posted = self.descriptor(base, self.head);
        assert!(!posted.is_done() && self.head != self.read(r::PF_ARQT), "there is a buffer");
        self.dma_write(posted.address, body);
        let written = Descriptor {
            flags: posted.flags | flag::DD | flag::CMP,
            opcode: opcode::SEND_TO_PF,
            length: body.len() as u16,
            return_value: vf.into(),
            cookie_high: number,
            ..posted
        };
        let at = base + u64::from(self.head) * SIZE as u64;
        self.dma_write(at, &written.emit());
        self.head = (self.head + 1) % 32;
    }

    /// Reports a VF's function level reset by its guest in the card's registers.
    fn flr(&mut self, vf: u8) {
        let register = r::GLGEN_VFLRSTAT + 4 * u32::from(vf / 32);
        let bits = self.read(register) | 1 << (vf % 32);
        self.registers.insert(register, bits);
    }
}

impl Control for Card {
    fn order(&mut self, vf: u8, order: Order<'_>) {
        let told = self.of(vf);
        match order {
            Order::ConfigureRx(queue, context) => _ = told.rx.insert(queue, context),
            Order::ConfigureTx(queue, context) => _ = told.tx.insert(queue, context),
            Order::Run { rx, tx } => told.running = (rx, tx),
            Order::MapRx(queue, cause) => _ = cause.map(|cause| told.rx_causes.insert(queue, cause)),
            Order::MapTx(queue, cause) => _ = cause.map(|cause| told.tx_causes.insert(queue, cause)),
            Order::Address { mac, on: true } => _ = told.addresses.insert(mac),
            Order::Address { mac, on: false } => _ = told.addresses.remove(&mac),
            Order::Vlan { vlan, on: true } => _ = told.vlans.insert(vlan),
            Order::Vlan { vlan, on: false } => _ = told.vlans.remove(&vlan),
            Order::Tags(tags) => told.tags = tags,
            Order::Promiscuity { unicast, multicast } => told.promiscuous = (unicast, multicast),
            Order::SpoofCheck(on) => told.spoof_check = on,
            Order::Rate(mbps) => told.rate = mbps,
            Order::Restrain(restraint) => told.restraint = restraint,
            Order::HashKey(key) => told.key = key.to_vec(),
            Order::LookupTable(table) => told.table = table.to_vec(),
            Order::HashTypes(types) => told.types = types,
            Order::HashFunction(function) => told.function = function,
        }
    }

    fn statistics(&mut self, vf: u8) -> Statistics {
        Statistics { rx_bytes: 1_000 + u64::from(vf), ..Statistics::default() }
    }
}

/// Port of four VFs, and the conversations with them.
struct World {
    card: Card,
    pf: Pf,
}

impl World {
    fn new() -> Self {
        let mut card = Card::default();
        let mut pf = Pf::probe(&mut card, 4).unwrap();
        pf.set_link(&mut card, Some(25_000));
        Self { card, pf }
    }

    /// Creates a port whose VF 0 has requested every capability.
    fn active() -> Self {
        let mut world = Self::new();
        world.introduce(0, OFFERED);
        world
    }

    fn introduce(&mut self, vf: u8, asked: Capabilities) -> Resources {
        self.ask(vf, Request::Version(Version::V1_1));
        let (status, body) = self.ask(vf, Request::Resources(Some(asked)));
        assert_eq!(status, Status::Success);
        decode(&body).unwrap()
    }

    /// Sends a request and returns its only reply; other messages stay in `card.sent`.
    fn ask(&mut self, vf: u8, request: Request<'_>) -> (Status, Vec<u8>) {
        self.ask_raw(vf, request.op().number(), &request.encode())
    }

    fn ask_raw(&mut self, vf: u8, number: u32, body: &[u8]) -> (Status, Vec<u8>) {
        self.card.sent.remove(&vf);
        self.card.arrive(vf, number, body);
        self.pf.visit(&mut self.card);
        let sent = self.card.sent.entry(vf).or_default();
        assert!(!sent.is_empty(), "every request gets a reply");
        let (_, status, body) = sent.remove(0);
        (status, body)
    }

    fn granted(&mut self, request: Request<'_>) {
        assert_eq!(self.ask(0, request).0, Status::Success, "{request:?}");
    }

    fn refused(&mut self, request: Request<'_>, why: super::Refusal) {
        let before = self.refusals(why);
        assert_eq!(self.ask(0, request).0, why.status(), "{request:?}");
        assert_eq!(self.refusals(why), before + 1, "{why:?}");
    }

    fn refusals(&self, why: super::Refusal) -> u64 {
        self.pf.counters(0).unwrap().refused_for(why)
    }

    fn set(&mut self, change: impl FnOnce(&mut VfPolicy)) {
        let mut policy = *self.pf.policy(0).unwrap();
        change(&mut policy);
        self.pf.set_policy(&mut self.card, 0, policy).unwrap();
    }

    fn told(&self) -> &Orders {
        &self.card.told[&0]
    }

    /// Returns the events sent to VF 0.
    fn events(&mut self) -> Vec<Event> {
        let sent = self.card.sent.remove(&0).unwrap_or_default();
        sent.iter().map(|(op, _, body)| (*op == Op::Event).then(|| decode(body)).flatten().unwrap()).collect()
    }
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// Number of VF 0's VSI.
const VSI: u16 = 1;

#[test]
fn statistics_body_round_trips() {
    let body = encode(&Statistics { rx_bytes: 1_000, ..Statistics::default() });
    let mut world = World::active();
    let queues = ::avf::virtchnl::QueueSet { vsi: VSI, rx: 0, tx: 0 };
    assert_eq!(world.ask(0, Request::Statistics(queues)), (Status::Success, body));
    assert_eq!(MacAddress(mac(1)).0, mac(1));
}
