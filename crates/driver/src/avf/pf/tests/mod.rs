//! Tests conversations of VFs with the PF driver, on a card that records the PF driver's orders. The card
//! also acts as the firmware: it puts messages into the PF's receive queue, and takes messages from the PF's
//! send queue.

mod conduct;
mod filters;
mod handshake;
mod own_address;
mod queues;
mod resets;
mod scaling;
mod vlans;
mod withheld;

use super::AvfPf;
use crate::avf::pf::OFFERED;
use crate::hal::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use ::avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use ::avf::bits::rstat;
use ::avf::control::{
    CardCommand, CardControl, MailboxAndInterruptLimits, QueueInterruptCause, RssHashFunction,
    RxQueueContext, TxQueueContext, VlanTagHandling,
};
use ::avf::pf_register as r;
use ::avf::virtchnl::reply::{decode, encode};
use ::avf::virtchnl::{
    VfCapabilities, VfResources, VfTrafficStatistics, VirtchnlEvent, VirtchnlOpcode, VirtchnlRequest,
    VirtchnlStatus, VirtchnlVersion,
};
use core::time::Duration;
use i82576::{MacAddress, Time};
use policy::VfPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

/// Message from the PF to a VF in the test: operation, status, body.
type MessageToVf = (VirtchnlOpcode, VirtchnlStatus, Vec<u8>);

/// State that the PF's orders give one VF of the card, with the number of the VF's resets.
#[derive(Debug, Default, Clone, PartialEq)]
struct RecordedCardCommands {
    addresses: BTreeSet<[u8; 6]>,
    vlans: BTreeSet<u16>,
    rx: BTreeMap<u8, RxQueueContext>,
    tx: BTreeMap<u8, TxQueueContext>,
    running: (u16, u16),
    rx_causes: BTreeMap<u8, QueueInterruptCause>,
    tx_causes: BTreeMap<u8, QueueInterruptCause>,
    tags: VlanTagHandling,
    promiscuous: (bool, bool),
    spoof_check: bool,
    rate: u32,
    restraint: MailboxAndInterruptLimits,
    key: Vec<u8>,
    table: Vec<u8>,
    types: u64,
    function: RssHashFunction,
    resets: u32,
}

/// Card that stores register values, memory from address 0 on, the PF's orders for each VF, and its messages
/// to each VF.
#[derive(Default)]
struct CommandRecordingCard {
    registers: BTreeMap<u32, u32>,
    memory: Vec<u8>,
    head: u32,
    now: Time,
    told: BTreeMap<u8, RecordedCardCommands>,
    sent: BTreeMap<u8, Vec<MessageToVf>>,
    /// Messages to VFs, by operation, and resets of VFs, in order.
    log: Vec<(u8, &'static str)>,
    /// Number of the PF's orders.
    orders: usize,
    /// VFs that the PF has charged for comparisons of addresses, each with the number.
    compared: Vec<(u8, usize)>,
    /// Addresses that the switch gives to no VF.
    withheld: BTreeSet<[u8; 6]>,
    /// Addresses that the switch knows of stations, or of VFs of another card.
    used_by_others: BTreeSet<[u8; 6]>,
}

impl Hal for CommandRecordingCard {
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
            *told = RecordedCardCommands { resets: told.resets + 1, ..RecordedCardCommands::default() };
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

    fn may_have_address(&mut self, _: u8, address: MacAddress) -> bool {
        !self.withheld.contains(&address.0)
    }

    fn revoke_address(&mut self, _: u8, address: MacAddress) -> bool {
        self.used_by_others.contains(&address.0)
    }
}

impl DmaHal for CommandRecordingCard {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let start = self.memory.len().next_multiple_of(align);
        self.memory.resize(start + length, 0);
        Ok(DmaAllocation { iova: start as u64, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.memory[iova as usize..][..into.len()]);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.memory[iova as usize..][..from.len()].copy_from_slice(from);
    }
}

impl CommandRecordingCard {
    fn of(&mut self, vf: u8) -> &mut RecordedCardCommands {
        self.told.entry(vf).or_default()
    }

    fn descriptor(&self, base: u64, slot: u32) -> AdminQueueDescriptor {
        let mut raw = [0; SIZE];
        self.dma_read(base + u64::from(slot) * SIZE as u64, &mut raw);
        AdminQueueDescriptor::parse(&raw)
    }

    /// Takes the messages that the PF has queued up to `tail`, as the firmware, and stores them by VF.
    fn take_sent(&mut self, tail: u32) {
        let base = u64::from(self.read(r::PF_ATQBAL));
        let mut head = self.read(r::PF_ATQH);
        while head != tail {
            let descriptor = self.descriptor(base, head);
            assert_eq!(descriptor.opcode, opcode::SEND_TO_VF);
            let mut body = vec![0; descriptor.length.into()];
            self.dma_read(descriptor.address, &mut body);
            let (vf, op) = (descriptor.param0 as u8, VirtchnlOpcode::of(descriptor.cookie_high));
            let op = op.unwrap_or(VirtchnlOpcode::Version);
            let name = decode::<VirtchnlEvent>(&body).filter(|_| op == VirtchnlOpcode::Event);
            self.log.push((
                vf,
                if name == Some(VirtchnlEvent::ResetImpending) { "reset impending" } else { op.name() },
            ));
            let status = VirtchnlStatus::of(descriptor.cookie_low.cast_signed());
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
        let written = AdminQueueDescriptor {
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

    /// Sets a VF's bit in the card's registers, as after a function level reset by its guest.
    fn flr(&mut self, vf: u8) {
        let register = r::GLGEN_VFLRSTAT + 4 * u32::from(vf / 32);
        let bits = self.read(register) | 1 << (vf % 32);
        self.registers.insert(register, bits);
    }
}

impl CardControl for CommandRecordingCard {
    fn order(&mut self, vf: u8, order: CardCommand<'_>) {
        self.orders += 1;
        let told = self.of(vf);
        match order {
            CardCommand::ConfigureRx(queue, context) => _ = told.rx.insert(queue, context),
            CardCommand::ConfigureTx(queue, context) => _ = told.tx.insert(queue, context),
            CardCommand::Run { rx, tx } => told.running = (rx, tx),
            CardCommand::MapRx(queue, cause) => _ = cause.map(|cause| told.rx_causes.insert(queue, cause)),
            CardCommand::MapTx(queue, cause) => _ = cause.map(|cause| told.tx_causes.insert(queue, cause)),
            CardCommand::Address { mac, on: true } => _ = told.addresses.insert(mac),
            CardCommand::Address { mac, on: false } => _ = told.addresses.remove(&mac),
            CardCommand::Vlan { vlan, on: true } => _ = told.vlans.insert(vlan),
            CardCommand::Vlan { vlan, on: false } => _ = told.vlans.remove(&vlan),
            CardCommand::Tags(tags) => told.tags = tags,
            CardCommand::Promiscuity { unicast, multicast } => told.promiscuous = (unicast, multicast),
            CardCommand::SpoofCheck(on) => told.spoof_check = on,
            CardCommand::Rate(mbps) => told.rate = mbps,
            CardCommand::Restrain(restraint) => told.restraint = restraint,
            CardCommand::HashKey(key) => told.key = key.to_vec(),
            CardCommand::LookupTable(table) => told.table = table.to_vec(),
            CardCommand::HashTypes(types) => told.types = types,
            CardCommand::HashFunction(function) => told.function = function,
        }
    }

    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics {
        VfTrafficStatistics { rx_bytes: 1_000 + u64::from(vf), ..VfTrafficStatistics::default() }
    }

    fn charge_comparisons(&mut self, vf: u8, count: usize) {
        self.compared.push((vf, count));
    }
}

/// Port with a PF driver and four VFs, on a card that records its orders.
struct FourVfPort {
    card: CommandRecordingCard,
    pf: AvfPf,
}

impl FourVfPort {
    fn new() -> Self {
        let mut card = CommandRecordingCard::default();
        let mut pf = AvfPf::probe(&mut card, 4).unwrap();
        pf.set_link(&mut card, Some(25_000));
        Self { card, pf }
    }

    /// Creates a port whose VF 0 is active with every capability that the PF offers.
    fn active() -> Self {
        let mut world = Self::new();
        world.introduce(0, OFFERED);
        world
    }

    fn introduce(&mut self, vf: u8, asked: VfCapabilities) -> VfResources {
        self.ask(vf, VirtchnlRequest::Version(VirtchnlVersion::V1_1));
        let (status, body) = self.ask(vf, VirtchnlRequest::Resources(Some(asked)));
        assert_eq!(status, VirtchnlStatus::Success);
        decode(&body).unwrap()
    }

    /// Sends a request of a VF and returns its only reply; other messages stay in `card.sent`.
    fn ask(&mut self, vf: u8, request: VirtchnlRequest<'_>) -> (VirtchnlStatus, Vec<u8>) {
        self.ask_raw(vf, request.op().number(), &request.encode())
    }

    fn ask_raw(&mut self, vf: u8, number: u32, body: &[u8]) -> (VirtchnlStatus, Vec<u8>) {
        self.card.sent.remove(&vf);
        self.card.arrive(vf, number, body);
        self.pf.visit(&mut self.card);
        let sent = self.card.sent.entry(vf).or_default();
        assert!(!sent.is_empty(), "every request gets a reply");
        let (_, status, body) = sent.remove(0);
        (status, body)
    }

    fn granted(&mut self, request: VirtchnlRequest<'_>) {
        assert_eq!(self.ask(0, request).0, VirtchnlStatus::Success, "{request:?}");
    }

    fn refused(&mut self, request: VirtchnlRequest<'_>, why: super::VirtchnlRefusal) {
        let before = self.refusals(why);
        assert_eq!(self.ask(0, request).0, why.status(), "{request:?}");
        assert_eq!(self.refusals(why), before + 1, "{why:?}");
    }

    fn refusals(&self, why: super::VirtchnlRefusal) -> u64 {
        self.pf.counters(0).unwrap().refused_for(why)
    }

    fn set(&mut self, change: impl FnOnce(&mut VfPolicy)) {
        let mut policy = *self.pf.policy(0).unwrap();
        change(&mut policy);
        self.pf.set_policy(&mut self.card, 0, policy).unwrap();
    }

    fn told(&self) -> &RecordedCardCommands {
        &self.card.told[&0]
    }

    /// Takes the events that the PF sent to VF 0. Panics if it sent another message.
    fn events(&mut self) -> Vec<VirtchnlEvent> {
        let sent = self.card.sent.remove(&0).unwrap_or_default();
        sent.iter()
            .map(|(op, _, body)| (*op == VirtchnlOpcode::Event).then(|| decode(body)).flatten().unwrap())
            .collect()
    }
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// Number of VF 0's VSI (virtual station interface).
const VSI: u16 = 1;

#[test]
fn vf_statistics_request_returns_the_cards_counters() {
    let body = encode(&VfTrafficStatistics { rx_bytes: 1_000, ..VfTrafficStatistics::default() });
    let mut world = FourVfPort::active();
    let queues = ::avf::virtchnl::QueueSet { vsi: VSI, rx: 0, tx: 0 };
    assert_eq!(world.ask(0, VirtchnlRequest::Statistics(queues)), (VirtchnlStatus::Success, body));
    assert_eq!(MacAddress(mac(1)).0, mac(1));
}
