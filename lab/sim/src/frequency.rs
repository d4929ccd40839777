//! Converts between virtual time and the cycles of a clock of constant frequency.
//!
//! Both conversions are functions of absolute time, not of differences, so nothing drifts. A cycle of 2.8 GHz
//! is 357.142857... ps; cycle n begins at the first picosecond not before n times that. For every cycle `c`
//! of a clock below 1 THz, `cycle_at(start_of(c)) == c`.

use crate::time::{PICOS_PER_SECOND, VirtualInstant};

/// Clock frequency, stored as the reduced fraction cycles / picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    cycles: u64,
    picos: u64,
}

impl Frequency {
    /// Creates a clock of `hertz`, clamped to at least 1 Hz and below 1 THz, the range that picoseconds can
    /// express.
    pub const fn from_hertz(hertz: u64) -> Frequency {
        let hertz = match hertz {
            0 => 1,
            PICOS_PER_SECOND.. => PICOS_PER_SECOND - 1,
            _ => hertz,
        };
        let common = greatest_common_divisor(hertz, PICOS_PER_SECOND);
        Frequency { cycles: hertz / common, picos: PICOS_PER_SECOND / common }
    }

    /// Returns the frequency in cycles per second.
    pub const fn hertz(self) -> u64 {
        PICOS_PER_SECOND / self.picos * self.cycles
    }

    /// Returns the number of cycles completed between time zero and `instant`.
    #[inline]
    pub const fn cycle_at(self, instant: VirtualInstant) -> u64 {
        match instant.picos().checked_mul(self.cycles) {
            Some(product) => product / self.picos,
            // Below 1 THz there are fewer cycles than picoseconds: the quotient fits.
            None => (instant.picos() as u128 * self.cycles as u128 / self.picos as u128) as u64,
        }
    }

    /// Returns the first picosecond of cycle `cycle`, or [`VirtualInstant::NEVER`] if it is beyond the end of time.
    #[inline]
    pub const fn start_of(self, cycle: u64) -> VirtualInstant {
        match cycle.checked_mul(self.picos) {
            Some(product) => VirtualInstant::from_picos(product.div_ceil(self.cycles)),
            None => {
                let wide = (cycle as u128 * self.picos as u128).div_ceil(self.cycles as u128);
                if wide > u64::MAX as u128 {
                    VirtualInstant::NEVER
                } else {
                    VirtualInstant::from_picos(wide as u64)
                }
            }
        }
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    const NEHALEM: Frequency = Frequency::from_hertz(2_800_000_000);

    #[test]
    fn one_second_has_as_many_cycles_as_the_frequency_in_hertz() {
        assert_eq!(NEHALEM.cycle_at(VirtualInstant::from_picos(PICOS_PER_SECOND)), 2_800_000_000);
        assert_eq!(NEHALEM.cycle_at(VirtualInstant::from_picos(PICOS_PER_SECOND - 1)), 2_799_999_999);
        assert_eq!(NEHALEM.hertz(), 2_800_000_000);
    }

    #[test]
    fn time_of_successive_clock_cycles_does_not_drift() {
        let mut cycle = 0;
        for _ in 0..10_000 {
            cycle = NEHALEM.cycle_at(NEHALEM.start_of(cycle)) + 1;
        }
        assert_eq!(NEHALEM.start_of(cycle), VirtualInstant::from_picos(10_000 * 2_500 / 7 + 1));
    }

    proptest! {
        #[test]
        fn instant_of_a_clock_cycle_converts_back_to_that_cycle(hertz in 1..PICOS_PER_SECOND, cycle in any::<u32>()) {
            let clock = Frequency::from_hertz(hertz);
            let start = clock.start_of(u64::from(cycle));
            if start != VirtualInstant::NEVER {
                assert_eq!(clock.cycle_at(start), u64::from(cycle));
                let before = VirtualInstant::from_picos(start.picos().saturating_sub(1));
                assert!(cycle == 0 || clock.cycle_at(before) < u64::from(cycle));
            }
        }

        #[test]
        fn clock_cycle_of_an_instant_starts_at_or_before_the_instant(hertz in any::<u64>(), picos in any::<u64>()) {
            let clock = Frequency::from_hertz(hertz);
            assert!(clock.start_of(clock.cycle_at(VirtualInstant::from_picos(picos))).picos() <= picos);
        }
    }
}
