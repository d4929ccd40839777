//! AVF guest that floods its port: with commands, requests and packets that its driver would not send.

use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::register as r;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, QueueSet, VirtchnlRequest};
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

/// Flooding guest with its driver.
pub(crate) struct AvfFlooder {
    driver: AvfDriver,
    /// VSI of the VF.
    vsi: u16,
    /// Address of the send mailbox ring, once the guest has taken the mailbox from its driver.
    ring: u64,
    head: u32,
}

impl AvfFlooder {
    /// Starts the driver of VF `vf` with 16 queue pairs.
    pub(crate) fn start<H: DmaHal>(hal: &mut H, vf: u8, mac: MacAddress) -> Self {
        let config = AvfDriverConfig { pairs: PAIRS.into(), descriptors: 64, ..AvfDriverConfig::default() };
        let probe = |hal: &mut H| {
            let driver = AvfDriver::probe_with(hal, mac, config).unwrap();
            // The PF driver numbers VSIs so.
            Self { driver, vsi: u16::from(vf) + 1, ring: 0, head: 0 }
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

    /// Fills the rings of all queue pairs with TCP packets of `payload` bytes, to be cut into segments of `mss` bytes.
    fn fill_rings<H: DmaHal>(&mut self, hal: &mut H, to: MacAddress, payload: u16, mss: u16) {
        let mut ip = [0; 20];
        (ip[0], ip[8], ip[9]) = (0x45, 64, 6);
        ip[2..4].copy_from_slice(&(40 + payload).to_be_bytes());
        let mut tcp = [0; 20];
        tcp[12] = 0x50;
        let own = self.driver.mac().0;
        let packet = [&to.0[..], &own, &[8, 0], &ip, &tcp, &vec![1; payload.into()]].concat();
        let offload = TxOffload { tso: Some(mss), ..TxOffload::default() };
        self.driver.clean(hal);
        for queue in 0..PAIRS {
            while self.driver.transmit_with(hal, queue, &packet, &offload) {}
        }
        self.driver.flush(hal);
    }

    /// Sends large packets to be cut into segments of 128 bytes, on all queue pairs.
    pub(crate) fn send_segments<H: DmaHal>(&mut self, hal: &mut H, to: MacAddress) {
        self.fill_rings(hal, to, 8_000, 128);
    }

    /// Sends packets to be cut into segments that are too short for the card, on all queue pairs.
    pub(crate) fn send_malformed<H: DmaHal>(&mut self, hal: &mut H) {
        self.fill_rings(hal, MacAddress::BROADCAST, 200, 8);
    }
}
