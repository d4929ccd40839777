//! What the card has counted for this VF. Its counters are 32 bits and wrap without a word, so they are added
//! up here, often enough (a gigabit of octets wraps in half a minute).
//!
//! Left out: what the driver counts itself (rings).

use super::{RxCounters, TxCounters, Vf};
use crate::hal::Hal;
use i82576::register::vf;

/// Counted since [`Vf::probe`], across resets. Octets include the FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Good packets received.
    pub rx_packets: u64,
    /// Good packets transmitted.
    pub tx_packets: u64,
    /// Good octets received.
    pub rx_octets: u64,
    /// Good octets transmitted.
    pub tx_octets: u64,
    /// Multicast packets received.
    pub rx_multicast: u64,
    /// Packets received from other VFs of the port.
    pub rx_loopback_packets: u64,
    /// Packets transmitted to other VFs of the port.
    pub tx_loopback_packets: u64,
    /// Octets received from other VFs of the port.
    pub rx_loopback_octets: u64,
    /// Octets transmitted to other VFs of the port.
    pub tx_loopback_octets: u64,
}

const REGISTERS: [u32; 9] = [
    vf::VFGPRC,
    vf::VFGPTC,
    vf::VFGORC,
    vf::VFGOTC,
    vf::VFMPRC,
    vf::VFGPRLBC,
    vf::VFGPTLBC,
    vf::VFGORLBC,
    vf::VFGOTLBC,
];

/// Sums over wrapping counters.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    last: [u32; REGISTERS.len()],
    sums: [u64; REGISTERS.len()],
}

impl Accumulator {
    /// Takes what the registers say now as zero.
    pub(super) fn rebase<H: Hal>(&mut self, hal: &mut H) {
        for (last, offset) in self.last.iter_mut().zip(REGISTERS) {
            *last = hal.read(offset);
        }
    }

    #[cfg(test)]
    pub(super) fn first(&self) -> u64 {
        self.sums[0]
    }

    /// Adds what was counted since.
    pub(super) fn update<H: Hal>(&mut self, hal: &mut H) {
        for ((sum, last), offset) in self.sums.iter_mut().zip(&mut self.last).zip(REGISTERS) {
            let value = hal.read(offset);
            *sum += u64::from(value.wrapping_sub(*last));
            *last = value;
        }
    }
}

impl Vf {
    /// Fetches the card's counters and answers all that was counted.
    pub fn statistics<H: Hal>(&mut self, hal: &mut H) -> Statistics {
        if self.running {
            self.statistics.update(hal);
        }
        let s = self.statistics.sums;
        Statistics {
            rx_packets: s[0],
            tx_packets: s[1],
            rx_octets: s[2],
            tx_octets: s[3],
            rx_multicast: s[4],
            rx_loopback_packets: s[5],
            tx_loopback_packets: s[6],
            rx_loopback_octets: s[7],
            tx_loopback_octets: s[8],
        }
    }

    /// What the driver has counted on the receive ring.
    #[must_use]
    pub fn rx_counters(&self) -> RxCounters {
        self.rx.counters()
    }

    /// What the driver has counted on the transmit ring.
    #[must_use]
    pub fn tx_counters(&self) -> TxCounters {
        self.tx.counters()
    }
}
