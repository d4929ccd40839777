//! Accumulates the card's 32-bit counters of this VF before they wrap (at a gigabit, octet counters wrap in half a
//! minute).
//!
//! The rings have the driver's own counters.

use super::{RxCounters, TxCounters, Vf};
use crate::hal::Hal;
use i82576::register::vf;

/// Values of the card's counters of a VF, accumulated since [`Vf::probe`] and across resets. Octets include the FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccumulatedStatistics {
    /// Number of good packets that the VF received.
    pub rx_packets: u64,
    /// Number of good packets that the VF transmitted.
    pub tx_packets: u64,
    /// Number of good octets that the VF received.
    pub rx_octets: u64,
    /// Number of good octets that the VF transmitted.
    pub tx_octets: u64,
    /// Number of multicast packets that the VF received.
    pub rx_multicast: u64,
    /// Number of packets received from other VFs of the port.
    pub rx_loopback_packets: u64,
    /// Number of packets transmitted to other VFs of the port.
    pub tx_loopback_packets: u64,
    /// Number of octets received from other VFs of the port.
    pub rx_loopback_octets: u64,
    /// Number of octets transmitted to other VFs of the port.
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

/// Sums of the card's counters of this VF, which are 32 bits wide and wrap.
#[derive(Debug, Default)]
pub(super) struct StatisticsAccumulator {
    last: [u32; REGISTERS.len()],
    sums: [u64; REGISTERS.len()],
}

impl StatisticsAccumulator {
    /// Stores the current values of the card's counters, from which the next increments are computed.
    pub(super) fn rebase<H: Hal>(&mut self, hal: &mut H) {
        for (last, offset) in self.last.iter_mut().zip(REGISTERS) {
            *last = hal.read(offset);
        }
    }

    #[cfg(test)]
    pub(super) fn first(&self) -> u64 {
        self.sums[0]
    }

    /// Adds to the sums the increments of the card's counters since the last call.
    pub(super) fn update<H: Hal>(&mut self, hal: &mut H) {
        for ((sum, last), offset) in self.sums.iter_mut().zip(&mut self.last).zip(REGISTERS) {
            let value = hal.read(offset);
            *sum += u64::from(value.wrapping_sub(*last));
            *last = value;
        }
    }
}

impl Vf {
    /// Reads the card's counters of this VF. Returns the accumulated values.
    pub fn statistics<H: Hal>(&mut self, hal: &mut H) -> AccumulatedStatistics {
        if self.running {
            self.statistics.update(hal);
        }
        let s = self.statistics.sums;
        AccumulatedStatistics {
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

    /// Returns the driver's counters of the receive ring.
    #[must_use]
    pub fn rx_counters(&self) -> RxCounters {
        self.rx.counters()
    }

    /// Returns the driver's counters of the transmit ring.
    #[must_use]
    pub fn tx_counters(&self) -> TxCounters {
        self.tx.counters()
    }
}
