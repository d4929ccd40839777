//! Tests that a VF that floods leaves others their frames, by the exact numbers of frames that polls send.

use crate::built::tcp4;
use crate::offloads::cut;
use crate::pings::{FloodedCard, check_pings_beside_broadcasts};
use crate::world::{CardFixture, mac};
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use plane::PortIndex;

/// Frames that a queue hands over in a poll.
const BUDGET: usize = 64;

/// Card with the drivers of three VFs, of which VF 0 floods with a packet.
struct FloodedFixture {
    world: CardFixture,
    drivers: [AvfDriver; 3],
    packet: Vec<u8>,
}

impl FloodedFixture {
    fn new() -> Self {
        let mut world = CardFixture::new(3).across_a_plane();
        let drivers = [0, 1, 2].map(|vf| {
            let config = AvfDriverConfig { pairs: 1, descriptors: 64, ..AvfDriverConfig::default() };
            let mut driver = AvfDriver::probe_with(&mut world.vf(vf), mac(vf), config).unwrap();
            driver.start(&mut world.vf(vf)).unwrap();
            driver
        });
        let mut packet = tcp4(&[7; 8_000]);
        packet[..6].fill(0xff);
        packet[6..12].copy_from_slice(&mac(0).0);
        Self { world, drivers, packet }
    }
}

impl FloodedCard for FloodedFixture {
    fn flood(&mut self) {
        let Self { world, drivers: [driver, ..], packet } = self;
        driver.clean(&mut world.vf(0));
        while driver.transmit_with(&mut world.vf(0), 0, packet, &cut(128)) {}
        driver.flush(&mut world.vf(0));
    }

    fn send(&mut self, from: u8, to: u8) {
        let (driver, mut hal) = (&mut self.drivers[usize::from(from)], self.world.vf(from));
        let frame = [&mac(to).0[..], &mac(from).0, &[0x88, 0xb5], &[7; 50]].concat();
        driver.clean(&mut hal);
        assert!(driver.transmit(&mut hal, 0, &frame));
        driver.flush(&mut hal);
    }

    fn take_from(&mut self, vf: u8, source: u8) -> usize {
        let (driver, mut hal) = (&mut self.drivers[usize::from(vf)], self.world.vf(vf));
        let mut bytes = [0; 2048];
        let mut count = 0;
        while driver.receive(&mut hal, 0, &mut bytes).is_some() {
            count += usize::from(bytes[6..12] == mac(source).0);
        }
        count
    }

    fn poll(&mut self) -> usize {
        let CardFixture { card, plane, memories, cable, mirrors, now, .. } = &mut self.world;
        let plane = plane.as_mut().unwrap();
        card.poll(*now, memories);
        card.apply_policy(plane, mirrors);
        plane.now = *now;
        card.arrive(plane, BUDGET, memories, cable);
        card.visit_ready(plane, BUDGET, memories, cable);
        std::mem::take(&mut cable.0).len()
    }

    fn lost(&mut self, vf: u8) -> u64 {
        let plane = self.world.plane.as_ref().unwrap();
        plane.ledger.total(PortIndex::of_field(vf.into())).rx_no_descriptors
    }
}

#[test]
fn avf_broadcasts_lose_less_than_1_percent_of_pings() {
    check_pings_beside_broadcasts(&mut FloodedFixture::new());
}
