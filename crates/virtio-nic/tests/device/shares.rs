//! Tests that a VF that floods leaves others their frames, by the exact numbers of frames that polls send.

use crate::address;
use crate::driver::Buffer;
use crate::exchange::datagram;
use crate::machine::{MODERN, TestMachine};
use crate::offloads::{TSO, large_packet};
use crate::pings::{FloodedCard, check_pings_beside_broadcasts};
use plane::PortIndex;
use virtio::net::NetHeader;

/// Number of receive buffers of each guest.
const BUFFERS: usize = 120;
/// Frames that a ring hands over in a poll.
const BUDGET: usize = 64;

/// Card whose VF 0 floods with a packet, given by its buffers.
struct FloodedMachine {
    machine: TestMachine,
    packet: Vec<Buffer>,
}

impl FloodedCard for FloodedMachine {
    fn flood(&mut self) {
        self.machine.finished(0);
        while self.machine.make_available(0, 1, &self.packet) {}
    }

    fn send(&mut self, from: u8, to: u8) {
        self.machine.finished(from);
        assert!(self.machine.send(from, NetHeader::default(), &datagram(from, to, &[7; 60]), &[]));
    }

    fn take_from(&mut self, vf: u8, source: u8) -> usize {
        let frames = self.machine.received(vf);
        frames.iter().for_each(|_| self.machine.post(vf, &[&[1536]]));
        frames.iter().filter(|(_, bytes, _)| bytes[6..12] == address(source)).count()
    }

    fn poll(&mut self) -> usize {
        self.machine.poll_once(0, BUDGET);
        std::mem::take(&mut self.machine.wire.sent).len()
    }

    fn lost(&mut self, vf: u8) -> u64 {
        self.machine.plane.ledger.total(PortIndex::of_field(vf.into())).rx_no_descriptors
    }
}

#[test]
fn virtio_broadcasts_lose_less_than_1_percent_of_pings() {
    for packed in [false, true] {
        let mut machine = TestMachine::new(&[(packed, MODERN); 3]);
        [1, 2].into_iter().for_each(|vf| machine.post(vf, &[&[1536][..]; BUFFERS]));
        let mut packet = large_packet(0, 0, &[7; 10_000]);
        packet[..6].fill(0xff);
        let packet = machine.place(0, NetHeader { gso_size: 128, ..TSO }, &packet, &[]);
        check_pings_beside_broadcasts(&mut FloodedMachine { machine, packet });
    }
}
