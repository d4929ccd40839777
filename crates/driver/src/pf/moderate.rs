//! Bounds a VF's interrupt rate, whatever its driver writes: by a minimum, a maximum, and the adaptive rule of
//! [`crate::moderation`]. Each run of the PF driver corrects intervals out of bounds in the VF's EITRs. A guest's write
//! lasts until the next run.
//!
//! Vectors without a receive queue are bounded, but not adapted.

use super::Pf;
use crate::conduct::HELD_INTERVAL_US;
use crate::hal::Hal;
use crate::moderation::{
    AdaptiveModeration, BufferRedundancy, MAX_INTERVAL_US, PacketRateMeter, interrupt_frequency, interval_us,
    register_value,
};
use i82576::bits::{eitr, ivar};
use i82576::ids::VF_VECTORS;
use i82576::register::{self as r, rx, rx_block, vf_stats};
use i82576::{VectorIndex, VfIndex};
use policy::InterruptBounds;
use serde::{Deserialize, Serialize};

/// Redundancy of buffers (factor r) in the adaptive rule for interrupt intervals.
const REDUNDANCY: BufferRedundancy = BufferRedundancy(12);
/// Minimum interrupt frequency in hertz (lif) of the adaptive rule, if the policy sets no minimum.
const LOWEST_HZ: u32 = 1_000;
/// Bytes of a receive descriptor, to compute the ring's number of descriptors.
const DESCRIPTOR: u32 = i82576::descriptor::SIZE as u32;

/// Samples of a VF's packet rate, and the interrupt interval for that rate.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "Sampler")]
pub(super) struct VfPacketRateSampler {
    meter: PacketRateMeter,
    /// Number of packets that the VF has received so far; the lower half is the card's counter.
    packets: u64,
    interval_us: Option<u32>,
}

impl VfPacketRateSampler {
    /// Returns the number of packets that the VF has received so far.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Continues at a value of the card's counter, which a function-level reset of the VF has restarted. The interval stays,
    /// so that a guest does not lift the rule by resets.
    fn continue_at(&mut self, counted: u32) {
        self.packets = counted.into();
        self.meter.continue_at(self.packets);
    }
}

/// Returns the shortest and the longest interrupt interval of a VF in microseconds. `held` is true if the VF is
/// throttled or quarantined.
fn intervals(bounds: InterruptBounds, held: bool) -> (u32, u32) {
    let shortest = 1_000_000u32.checked_div(bounds.max_interrupts).unwrap_or(0);
    let shortest = if held { shortest.max(HELD_INTERVAL_US) } else { shortest };
    let longest = 1_000_000u32.checked_div(bounds.min_interrupts).unwrap_or(MAX_INTERVAL_US);
    // A throttle overrides the floor, since it protects other VFs.
    let shortest = shortest.min(MAX_INTERVAL_US);
    (shortest, longest.clamp(shortest, MAX_INTERVAL_US))
}

impl Pf {
    /// Corrects out-of-bounds interrupt intervals of every VF whose policy bounds them.
    pub(super) fn moderate<H: Hal>(&mut self, hal: &mut H) {
        for vf in self.enabled_vfs() {
            let bounds = self.state(vf).policy.interrupts;
            let held = self.conduct(vf).holds();
            if bounds != InterruptBounds::default() || held {
                self.moderate_vf(hal, vf, bounds, held);
            }
        }
    }

    /// Continues the measurement of a VF's packet rate after a reset of the VF, which may have restarted the card's counter.
    pub(super) fn continue_sampling<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let counted = hal.read(r::vf_block(vf) + vf_stats::VFGPRC);
        self.state_mut(vf).sampler.continue_at(counted);
    }

    fn moderate_vf<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, bounds: InterruptBounds, held: bool) {
        let adapted = if bounds.adaptive { self.adapted_interval(hal, vf, bounds) } else { None };
        let receives = if adapted.is_some() { receive_vectors(hal, vf) } else { 0 };
        let (shortest, longest) = intervals(bounds, held);
        for local in 0..VF_VECTORS as u8 {
            let Some(vector) = VectorIndex::new(vf.first_vector() + local) else { continue };
            let written = hal.read(r::eitr(vector));
            let chosen = adapted.filter(|_| receives & 1 << local != 0);
            let interval = chosen.unwrap_or(eitr::interval_us(written)).clamp(shortest, longest);
            if interval != eitr::interval_us(written) {
                hal.write(r::eitr(vector), corrected(written, interval));
            }
        }
    }

    /// Returns the interrupt interval for the VF's packet rate. Measures the rate again once a period has passed.
    fn adapted_interval<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, bounds: InterruptBounds) -> Option<u32> {
        let now = hal.now();
        // A reset of a VF without credit may wait, and has restarted the counter.
        let may_wait = u32::from(self.held) & vf.bit() != 0;
        if may_wait || !self.state(vf).sampler.meter.is_due(now) {
            return self.state(vf).sampler.interval_us;
        }
        let counted = hal.read(r::vf_block(vf) + vf_stats::VFGPRC);
        let buffers = hal.read(rx_block(vf.queue(0)) + rx::RDLEN) / DESCRIPTOR;
        let sampler = &mut self.state_mut(vf).sampler;
        // The counter wraps.
        sampler.packets += u64::from(counted.wrapping_sub(sampler.packets as u32));
        let rate = sampler.meter.sample(now, sampler.packets).filter(|_| buffers > 0);
        let lowest_hz = if bounds.min_interrupts > 0 { bounds.min_interrupts } else { LOWEST_HZ };
        let rule = AdaptiveModeration { redundancy: REDUNDANCY, buffers, lowest_hz };
        sampler.interval_us = rate.map(|rate| interval_us(interrupt_frequency(rate, &rule)));
        sampler.interval_us
    }
}

/// Replaces the interval in an EITR value that a guest has written. Also restarts the counter if the guest's interval
/// was shorter, since frequent writes would otherwise evade the bound.
fn corrected(written: u32, interval: u32) -> u32 {
    let counter = if interval > eitr::interval_us(written) {
        (interval / eitr::COUNTER_STEP_US).min(eitr::COUNTER_END) << eitr::COUNTER_SHIFT
    } else {
        eitr::CNT_IGNR
    };
    written & eitr::KEPT & !eitr::INTERVAL_MASK | register_value(interval) | counter
}

/// Returns the interrupt vectors of the VF's receive queues, a bit each, by the VF's own vector numbers.
fn receive_vectors<H: Hal>(hal: &mut H, vf: VfIndex) -> u32 {
    let [first, _, second, _] = hal.read(r::vtivar(vf)).to_le_bytes();
    let bit = |entry: u8| if entry & ivar::VALID == 0 { 0 } else { 1 << (entry & ivar::VF_VECTOR) };
    bit(first) | bit(second)
}

#[cfg(test)]
mod tests {
    use super::corrected;
    use i82576::bits::eitr;
    use policy::InterruptBounds;

    fn intervals(min_interrupts: u32, max_interrupts: u32, held: bool) -> (u32, u32) {
        super::intervals(InterruptBounds { min_interrupts, max_interrupts, adaptive: false }, held)
    }

    #[test]
    fn interrupt_rate_floor_and_ceiling_bound_the_eitr_interval() {
        assert_eq!(intervals(0, 0, false), (0, 8191));
        assert_eq!(intervals(2_000, 0, false), (0, 500));
        assert_eq!(intervals(0, 10_000, false), (100, 8191));
        assert_eq!(intervals(1, 1, false), (8191, 8191), "limited by EITR");
        assert_eq!(intervals(10_000, 2_000, false), (500, 500), "the ceiling wins");
    }

    #[test]
    fn corrected_interval_keeps_other_eitr_bits() {
        let others = eitr::KEPT & !eitr::INTERVAL_MASK;
        for other in [0, others] {
            let written = other | 400 << eitr::INTERVAL_SHIFT;
            assert_eq!(corrected(written, 100), other | 100 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR);
        }
    }

    #[test]
    fn throttled_vf_has_at_most_1000_interrupts_a_second() {
        assert_eq!(intervals(0, 0, true), (1_000, 8191));
        assert_eq!(intervals(0, 500, true), (2_000, 8191), "unless its ceiling is lower");
    }
}
