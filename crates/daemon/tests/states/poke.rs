//! Uses a restored card in every way, without knowing its state. Tests of damaged states and the fuzz target of the
//! state reader share this file.

use i82576::Time;
use i82576::ids::MAX_VFS;
use i82576::register::{rx, tx, vf};
use nic::{Nic, PollBudget, UnpluggedWire};
use pcie::{Bus, ConfigAccess, DmaFault, Function, Iova};

/// Guest memory that can be read everywhere, and written at half of its addresses. Counts the card's requests.
struct HalfWritableMemory {
    requests: usize,
}

impl Bus for HalfWritableMemory {
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
    (0..0x2_0000).step_by(4)
}

/// Uses a card in every way, and checks that its memory requests are bounded and that its deadlines lie ahead. A past
/// deadline would keep the port's thread awake forever. `registers` are the offsets of the registers to read.
pub(crate) fn poke(nic: &mut Nic, registers: &(impl Iterator<Item = u32> + Clone)) {
    let now = Time::from_micros(3_000_000);
    let mut bus = HalfWritableMemory { requests: 0 };
    for round in 0..4 {
        for _ in 0..3 {
            let poll = nic.poll(now, PollBudget { frames: 64 }, &mut bus, &mut UnpluggedWire);
            let passed = poll.deadline.filter(|deadline| !poll.more && *deadline <= now);
            assert!(passed.is_none(), "the deadline {passed:?} is not after {now:?}");
        }
        for n in 0..MAX_VFS as u8 {
            for (at, value) in [(vf::TX_BLOCK + tx::TDT, 9), (vf::RX_BLOCK + rx::RDT, 9), (vf::VTEICS, 7)] {
                nic.write(Function::Vf(n), at, value + round, now);
            }
        }
    }
    assert!(bus.requests < 500_000, "{} requests for memory", bus.requests);
    for function in [Function::Pf, Function::Vf(0), Function::Vf(7)] {
        for at in registers.clone() {
            nic.read(function, at, now);
        }
        for at in (0..4096).step_by(4) {
            let value = nic.config_read(function, at, 4);
            nic.config_write(function, at, 4, value);
        }
    }
}
