//! Uses a card that was restored from a damaged but accepted state: polls, frames, and all registers of its VFs. Tests
//! of damaged states and the fuzzer of the state reader share this file.

use avf::register as r;
use avf_nic::Nic;
use avf_nic::doorbell::REGISTERS;
use pcie::{Bus, DmaFault, Function, Iova};
use plane::ForwardingPlane;
use plane::switch::PortMirrorRules;
use plane::uplink::{UnpluggedWire, UplinkMode};
use units::Time;

/// Bus that counts requests. Every address can be read, half of the addresses can be written.
struct RequestCountingBus {
    requests: usize,
}

impl Bus for RequestCountingBus {
    fn dma_read(&mut self, _: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.requests += 1;
        (0..).zip(into).for_each(|(i, byte)| *byte = (iova.wrapping_add(i) >> 3) as u8);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, _: &[u8]) -> Result<(), DmaFault> {
        self.requests += 1;
        if iova & 0x400 == 0 { Ok(()) } else { Err(DmaFault { function, iova }) }
    }

    fn msix(&mut self, _: Function, _: u16) {}
}

/// Returns the offsets of all registers.
pub(crate) fn all_registers() -> impl Iterator<Item = u32> + Clone {
    (0..0x1_0000).step_by(4)
}

/// Polls a card, moves its frames and accesses its VFs' registers, and asserts that memory requests are bounded and
/// deadlines lie in the future. A past deadline would keep the port awake for ever. `registers` are the offsets of the
/// registers to read.
pub(crate) fn poke(
    card: &mut Nic,
    plane: &mut ForwardingPlane<64>,
    registers: &(impl Iterator<Item = u32> + Clone),
) {
    let now = Time::from_micros(3_000_000);
    let (mut bus, mut wire) = (RequestCountingBus { requests: 0 }, UnpluggedWire);
    card.apply_policy(plane, &PortMirrorRules::NONE);
    plane.now = now;
    plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
    for round in 0..4 {
        for _ in 0..3 {
            plane.storm.advance(now);
            card.arrive(plane, 64, &mut bus, &mut wire);
            let left = card.visit_ready(plane, 64, &mut bus, &mut wire);
            let poll = card.poll(now, &mut bus);
            let storm = plane.storm.is_on().then(|| plane.storm.ends());
            let deadline = [poll.deadline, card.due(), storm].into_iter().flatten().min();
            let passed = deadline.filter(|deadline| !left && !poll.more && *deadline <= now);
            assert!(passed.is_none(), "deadline {passed:?} is not after {now:?}");
        }
        for vf in 0..8 {
            REGISTERS.iter().for_each(|at| card.write(vf, *at, 9 + round));
            card.write(vf, r::VF_ATQT, 9 + round);
            card.write(vf, r::VF_ARQT, 9 + round);
            registers.clone().for_each(|at| _ = card.read(vf, at));
        }
    }
    assert!(bus.requests < 500_000, "{} requests for memory", bus.requests);
}
