//! AVF guest that floods its port: with commands, requests and packets that its driver would not send.

use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::{aqlen, dyn_ctl};
use avf::descriptor::tx::{TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::register as r;
use avf::virtchnl::{
    EncodedMessageList, EtherAddress, EtherAddressType, QueuePairInfo, QueueSet, RxQueueInfo, TxQueueInfo,
    VirtchnlRequest,
};
use core::time::Duration;
use driver::DmaHal;
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use driver::vf::TxOffload;
use i82576::MacAddress;

/// Queue pairs of a flooding guest, the most of a VF.
const PAIRS: u8 = 16;
/// Descriptors of the guest's send mailbox ring.
const SLOTS: u32 = 64;
/// Offset of the ring's buffers from the ring, and their distance, in bytes.
const BUFFERS: (u64, u64) = (0x1000, 0x800);

/// Number of descriptors in a flooding guest's own transmit ring, which all of its queues have, and the offset of the
/// packet from it.
const RAW: (u16, u64) = (512, 0x2000);
/// Bytes of the longest headers that a data descriptor can state.
const HEADERS: usize = 254 + 508 + 60;

/// Packet that no driver of this project sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RawPacket {
    /// TCP packet of 8,000 bytes with the longest headers, to be cut into segments of 128 bytes.
    LongHeaders,
    /// SCTP packet of 9,714 bytes, whose checksum the card computes.
    Sctp,
    /// Context descriptor without a packet.
    Context,
}

/// Flooding guest with its driver.
pub(crate) struct AvfFlooder {
    pub(crate) driver: AvfDriver,
    /// VSI of the VF.
    vsi: u16,
    /// Address of the send mailbox ring, once the guest has taken the mailbox from its driver.
    ring: u64,
    head: u32,
    /// Tail of the guest's own transmit rings, once it has some.
    raw_tail: Option<u16>,
}

impl AvfFlooder {
    /// Starts the driver of VF `vf` with 16 queue pairs.
    pub(crate) fn start<H: DmaHal>(hal: &mut H, vf: u8, mac: MacAddress) -> Self {
        let config = AvfDriverConfig { pairs: PAIRS.into(), descriptors: 64, ..AvfDriverConfig::default() };
        let probe = |hal: &mut H| {
            let driver = AvfDriver::probe_with(hal, mac, config).unwrap();
            // The PF driver numbers VSIs so.
            Self { driver, vsi: u16::from(vf) + 1, ring: 0, head: 0, raw_tail: None }
        };
        let mut guest = probe(hal);
        guest.request(hal, &[VirtchnlRequest::Queues(PAIRS.into())]);
        let is_reset = |hal: &mut H| {
            hal.wait(Duration::from_millis(1));
            guest.driver.was_reset(hal)
        };
        assert!((0..1_000).any(|_| is_reset(hal)), "the PF resets a VF that gets more queues");
        let mut guest = probe(hal);
        guest.driver.start(hal).unwrap();
        assert_eq!(guest.driver.pairs(), u16::from(PAIRS));
        guest
    }

    /// Takes the send mailbox ring from the driver.
    fn seize_mailbox<H: DmaHal>(&mut self, hal: &mut H) {
        self.ring = hal.dma_alloc(0x2000, 0x1000).unwrap().iova;
        for (register, value) in [
            (r::VF_ATQLEN, 0),
            (r::VF_ATQH, 0),
            (r::VF_ATQT, 0),
            (r::VF_ATQBAL, self.ring as u32),
            (r::VF_ATQBAH, (self.ring >> 32) as u32),
            (r::VF_ATQLEN, SLOTS | aqlen::ENABLE),
        ] {
            hal.write(register, value);
        }
    }

    /// Fills the send mailbox ring with descriptors and their bodies, in turn. Returns the number of descriptors that the card has
    /// taken since the last call.
    fn fill_mailbox<H: DmaHal>(&mut self, hal: &mut H, messages: &[(AdminQueueDescriptor, Vec<u8>)]) -> u64 {
        if self.ring == 0 {
            self.seize_mailbox(hal);
        }
        let head = hal.read(r::VF_ATQH);
        let taken = (head + SLOTS - self.head) % SLOTS;
        self.head = head;
        for slot in 0..SLOTS as usize {
            let place = slot % messages.len();
            let (descriptor, body) = &messages[place];
            let buffer = self.ring + BUFFERS.0 + BUFFERS.1 * place as u64;
            let descriptor = match body.len() {
                0 => *descriptor,
                length => AdminQueueDescriptor {
                    flags: descriptor.flags | flag::BUF | flag::RD | flag::LB,
                    length: length as u16,
                    address: buffer,
                    ..*descriptor
                },
            };
            hal.dma_write(buffer, body);
            hal.dma_write(self.ring + (slot * SIZE) as u64, &descriptor.emit());
        }
        hal.write(r::VF_ATQT, (head + SLOTS - 1) % SLOTS);
        taken.into()
    }

    /// Fills the send mailbox ring with requests to the PF, in turn.
    fn request<H: DmaHal>(&mut self, hal: &mut H, requests: &[VirtchnlRequest<'_>]) -> u64 {
        let message = |request: &VirtchnlRequest<'_>| {
            let descriptor = AdminQueueDescriptor {
                flags: flag::SI,
                opcode: opcode::SEND_TO_PF,
                cookie_high: request.op().number(),
                ..AdminQueueDescriptor::default()
            };
            (descriptor, request.encode())
        };
        let messages: Vec<_> = requests.iter().map(message).collect();
        self.fill_mailbox(hal, &messages)
    }

    /// Sends commands with an opcode that no VF has.
    pub(crate) fn send_commands<H: DmaHal>(&mut self, hal: &mut H) -> u64 {
        let command = AdminQueueDescriptor { opcode: 0x0102, ..AdminQueueDescriptor::default() };
        self.fill_mailbox(hal, &[(command, Vec::new())])
    }

    /// Sends short requests that change nothing.
    pub(crate) fn send_requests<H: DmaHal>(&mut self, hal: &mut H) -> u64 {
        self.request(hal, &[VirtchnlRequest::GetHashTypes])
    }

    /// Sends lists of more addresses than the VF's quota.
    pub(crate) fn send_address_lists<H: DmaHal>(&mut self, hal: &mut H) -> u64 {
        let address = |n| EtherAddress { mac: [6, 0, 0, 0, 0, n], usage: EtherAddressType::Extra };
        let addresses: Vec<_> = (0..100).map(address).collect();
        let vsi = self.vsi;
        self.request(
            hal,
            &[VirtchnlRequest::Addresses(true, vsi, EncodedMessageList::new(&addresses).list())],
        )
    }

    /// Disables and enables a queue pair.
    pub(crate) fn switch_queues<H: DmaHal>(&mut self, hal: &mut H) -> u64 {
        let queues = QueueSet { vsi: self.vsi, rx: 1, tx: 1 };
        self.request(hal, &[false, true].map(|on| VirtchnlRequest::SwitchQueues(on, queues)))
    }

    /// Sends large packets to be cut into segments of 128 bytes, on all queue pairs.
    pub(crate) fn send_segments<H: DmaHal>(&mut self, hal: &mut H, to: MacAddress) {
        send_large_packets(&mut self.driver, hal, to, (8_000, 128));
    }

    /// Sends packets to be cut into segments that are too short for the card, on all queue pairs.
    pub(crate) fn send_malformed<H: DmaHal>(&mut self, hal: &mut H) {
        send_large_packets(&mut self.driver, hal, MacAddress::BROADCAST, (200, 8));
    }

    /// Sends copies of a packet on all queue pairs. The rings have the packet of the first call, or of
    /// [`AvfFlooder::take_raw_rings`].
    pub(crate) fn send_raw<H: DmaHal>(&mut self, hal: &mut H, packet: RawPacket) {
        if self.raw_tail.is_none() {
            self.take_raw_rings(hal, packet);
        }
        // The card reports nothing, so the head is unknown: at the old tail the ring would have room for this number.
        let tail = (self.raw_tail.unwrap_or_default() + RAW.0 - 4) % RAW.0;
        self.raw_tail = Some(tail);
        (0..PAIRS).for_each(|queue| hal.write(r::qtx_tail(queue), tail.into()));
    }

    /// Triggers the interrupts of all vectors.
    pub(crate) fn trigger_interrupts<H: DmaHal>(&self, hal: &mut H) {
        let trigger = dyn_ctl::INTENA | dyn_ctl::SWINT_TRIG | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT;
        (0..=PAIRS).for_each(|vector| hal.write(r::dyn_ctl(vector), trigger));
    }

    /// Replaces the transmit rings of all queues by one that is filled with copies of a packet. Sends none of them.
    pub(crate) fn take_raw_rings<H: DmaHal>(&mut self, hal: &mut H, packet: RawPacket) {
        self.raw_tail = Some(0);
        let ring = hal.dma_alloc(0x2000 + 0x3000, 0x1000).unwrap().iova;
        let address = ring + RAW.1;
        let own = self.driver.mac().0;
        hal.dma_write(address, &[&[2, 9, 9, 9, 9, 9][..], &own, &[8, 0]].concat());
        let descriptors = packet.descriptors(hal, address);
        let filled: Vec<u8> = descriptors.iter().cycle().take(RAW.0.into()).flatten().copied().collect();
        hal.dma_write(ring, &filled);
        let vsi = self.vsi;
        let all = QueueSet { vsi, rx: (1 << PAIRS) - 1, tx: (1 << PAIRS) - 1 };
        self.driver.ask(hal, VirtchnlRequest::SwitchQueues(false, all)).unwrap();
        let pair = |queue| QueuePairInfo {
            tx: TxQueueInfo { vsi, queue, length: RAW.0, base: ring, ..TxQueueInfo::default() },
            rx: RxQueueInfo { vsi, queue, ..RxQueueInfo::default() },
        };
        let pairs: Vec<_> = (0..PAIRS.into()).map(pair).collect();
        let pairs = EncodedMessageList::new(&pairs);
        self.driver.ask(hal, VirtchnlRequest::ConfigureQueues(vsi, pairs.list())).unwrap();
        self.driver.ask(hal, VirtchnlRequest::SwitchQueues(true, QueueSet { rx: 0, ..all })).unwrap();
    }
}

/// Fills the transmit rings of a driver with TCP packets of `payload` bytes, to be cut into segments of `mss` bytes.
pub(crate) fn send_large_packets<H: DmaHal>(
    driver: &mut AvfDriver,
    hal: &mut H,
    to: MacAddress,
    (payload, mss): (u16, u16),
) {
    let mut ip = [0; 20];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 6);
    ip[2..4].copy_from_slice(&(40 + payload).to_be_bytes());
    let mut tcp = [0; 20];
    tcp[12] = 0x50;
    let packet = [&to.0[..], &driver.mac().0, &[8, 0], &ip, &tcp, &vec![1; payload.into()]].concat();
    let offload = TxOffload { tso: Some(mss), ..TxOffload::default() };
    driver.clean(hal);
    for queue in 0..driver.pairs() as u8 {
        while driver.transmit_with(hal, queue, &packet, &offload) {}
    }
    driver.flush(hal);
}

impl RawPacket {
    /// Writes the packet behind its Ethernet header at an address, and returns its descriptors.
    fn descriptors<H: DmaHal>(self, hal: &mut H, address: u64) -> Vec<[u8; 16]> {
        let data = TxDataDescriptor { address, end_of_packet: true, ..TxDataDescriptor::default() };
        match self {
            Self::LongHeaders => {
                hal.dma_write(address + 254, &[0x45]);
                let context = TxContextDescriptor {
                    segment: true,
                    payload: 8_000,
                    mss: 128,
                    ..TxContextDescriptor::default()
                };
                let lengths = TxDataDescriptor { mac_length: 254, ip_length: 508, l4_length: 60, ..data };
                let data = TxDataDescriptor { ip: TxIpHeaderKind::V4, l4: TxL4Checksum::Tcp, ..lengths };
                let length = HEADERS as u16 + 8_000;
                vec![context.emit(), TxDataDescriptor { length, ..data }.emit()]
            }
            Self::Sctp => {
                hal.dma_write(address + 14, &[0x45, 0]);
                hal.dma_write(address + 16, &9_700_u16.to_be_bytes());
                hal.dma_write(address + 23, &[132]);
                let lengths = TxDataDescriptor { mac_length: 14, ip_length: 20, l4_length: 12, ..data };
                let data = TxDataDescriptor { ip: TxIpHeaderKind::V4, l4: TxL4Checksum::Sctp, ..lengths };
                vec![TxDataDescriptor { length: 9_714, ..data }.emit()]
            }
            Self::Context => vec![TxContextDescriptor::default().emit()],
        }
    }
}
