//! Interrupt vectors of a VF. An enabled vector with a pending cause interrupts when the cause's interval (ITR) is
//! over. The vector then disables itself (INTENA clears), and collects further causes for one interrupt after the
//! driver enables the vector again.
//!
//! The VMM keeps the MSI-X table and its pending bits, so CLEARPBA does nothing here.

use avf::bits::{dyn_ctl, icr0};
use avf::ids::{ITRS, MAX_VECTORS};
use core::time::Duration;
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};
use units::Time;

/// Interval number (ITR_INDX 3) of causes that interrupt at once, without an interval.
pub(crate) const AT_ONCE: u8 = 3;
/// Bits of register VFINT_DYN_CTL that are stored, apart from INTENA.
const CONTROL: u32 =
    dyn_ctl::WB_ON_ITR | dyn_ctl::INTERVAL << dyn_ctl::INTERVAL_SHIFT | 3 << dyn_ctl::ITR_SHIFT;
/// Unit of the interrupt interval registers (ITR), in nanoseconds.
const UNIT_NS: u64 = 2_000;

/// State of one interrupt vector of a VF.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "Vector")]
struct InterruptVector {
    /// Value of the vector's control register, without INTENA.
    control: u32,
    enabled: bool,
    intervals: [u16; ITRS],
    /// Pending causes of the vector: a bit for each interrupt interval, and one for causes without an interval.
    happened: u8,
    /// Time of the vector's last interrupt.
    sent: Option<Time>,
}

impl InterruptVector {
    fn is_sound(&self) -> bool {
        self.control & !CONTROL == 0
            && self.intervals.iter().all(|interval| u32::from(*interval) <= dyn_ctl::INTERVAL)
            && self.happened >> (AT_ONCE + 1) == 0
    }

    /// Returns the time at which the vector's pending causes may interrupt, at least `least` after the vector's last
    /// interrupt.
    fn due(&self, least: Duration) -> Option<Time> {
        let until = |itr: u8| match (self.intervals.get(usize::from(itr)), self.sent) {
            (Some(interval), Some(sent)) => sent + Duration::from_nanos(u64::from(*interval) * UNIT_NS),
            _ => Time::ZERO,
        };
        let due = (0..=AT_ONCE).filter(|itr| self.happened >> itr & 1 == 1).map(until).min();
        due.map(|due| due.max(self.sent.map_or(Time::ZERO, |sent| sent + least)))
    }
}

const fn all_vectors() -> u32 {
    (1 << MAX_VECTORS) - 1
}

/// Interrupt vectors of a VF, and the causes of vector 0.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    vectors: [InterruptVector; MAX_VECTORS],
    /// Vectors that the next `send` checks for a due interrupt, a bit each: all vectors after a saved state is
    /// restored.
    #[serde(skip, default = "all_vectors")]
    pending: u32,
    /// Values of registers VFINT_ICR01 (causes) and VFINT_ICR0_ENA1 (enabled causes).
    causes: u32,
    enabled: u32,
}

impl Interrupts {
    /// Returns `true` if every register of the vectors has a value that software can write.
    pub(crate) fn is_sound(&self) -> bool {
        self.vectors.iter().all(InterruptVector::is_sound)
    }

    /// Returns the vectors' state after a reset: that of power-on, but with the times of the last interrupts. So a
    /// reset does not shorten the interval that an interrupt limit demands.
    pub(crate) fn after_reset(&self) -> Self {
        Self {
            vectors: self
                .vectors
                .map(|InterruptVector { sent, .. }| InterruptVector { sent, ..InterruptVector::default() }),
            ..Self::default()
        }
    }

    fn vector(&mut self, vector: u8) -> Option<&mut InterruptVector> {
        self.vectors.get_mut(usize::from(vector))
    }

    /// Raises an interrupt cause of a vector. `itr` is the number of the cause's interval.
    pub(crate) fn raise(&mut self, number: u8, itr: u8) {
        if let Some(vector) = self.vector(number) {
            vector.happened |= 1 << itr.min(AT_ONCE);
            self.pending |= 1 << number;
        }
    }

    /// Raises the mailbox's interrupt cause. Sets ICR01.ADMINQ even if the cause does not interrupt, since DPDK polls
    /// that bit.
    pub(crate) fn raise_mailbox(&mut self) {
        self.causes |= icr0::ADMINQ;
        if self.enabled & icr0::ADMINQ != 0 {
            self.raise(0, AT_ONCE);
        }
    }

    /// Returns and clears the interrupt causes in VFINT_ICR01.
    pub(crate) fn take_causes(&mut self) -> u32 {
        core::mem::take(&mut self.causes)
    }

    pub(crate) fn enabled_causes(&self) -> u32 {
        self.enabled
    }

    /// Writes the enabled causes (VFINT_ICR0_ENA1). Causes that are set and become enabled interrupt now.
    pub(crate) fn enable_causes(&mut self, value: u32) {
        let fresh = value & !self.enabled;
        self.enabled = value;
        if self.causes & fresh != 0 {
            self.raise(0, AT_ONCE);
        }
    }

    pub(crate) fn interval(&self, vector: u8, itr: u8) -> u32 {
        let interval = |vector: &InterruptVector| vector.intervals.get(usize::from(itr)).copied();
        self.vectors.get(usize::from(vector)).and_then(interval).unwrap_or(0).into()
    }

    pub(crate) fn set_interval(&mut self, vector: u8, itr: u8, value: u32) {
        let vector = self.vector(vector);
        if let Some(interval) = vector.and_then(|vector| vector.intervals.get_mut(usize::from(itr))) {
            *interval = (value & dyn_ctl::INTERVAL) as u16;
        }
    }

    pub(crate) fn control(&self, vector: u8) -> u32 {
        let vector = self.vectors.get(usize::from(vector));
        vector.map_or(0, |vector| vector.control | u32::from(vector.enabled))
    }

    pub(crate) fn write_control(&mut self, number: u8, value: u32) {
        let itr = (value >> dyn_ctl::ITR_SHIFT & 3) as u8;
        self.set_interval(number, itr, value >> dyn_ctl::INTERVAL_SHIFT);
        let Some(vector) = self.vector(number) else { return };
        vector.control = value & CONTROL;
        // A write with INTENA_MSK leaves INTENA as it is.
        if value & dyn_ctl::INTENA_MSK == 0 {
            vector.enabled = value & dyn_ctl::INTENA != 0;
        }
        self.pending |= 1 << number;
        if value & dyn_ctl::SWINT_TRIG != 0 {
            let by = (value >> dyn_ctl::SW_ITR_SHIFT & 3) as u8;
            self.raise(number, if value & dyn_ctl::SW_ITR_ENA != 0 { by } else { AT_ONCE });
        }
    }

    /// Sends the due interrupts, each vector at least `least` after its last interrupt. Returns the vectors that
    /// interrupted, a bit each, and the earliest time at which a further vector is due.
    pub(crate) fn send<B: Bus>(
        &mut self,
        vf: u8,
        least: Duration,
        now: Time,
        bus: &mut B,
    ) -> (u32, Option<Time>) {
        let (mut sent, mut deadline, mut left) = (0, None, self.pending);
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left - 1;
            let vector = self.vectors.get_mut(number as usize).filter(|vector| vector.enabled);
            let due = vector.as_ref().and_then(|vector| vector.due(least));
            if let Some(due) = due.filter(|due| *due > now) {
                deadline = [deadline, Some(due)].into_iter().flatten().min();
                continue;
            }
            self.pending &= !(1 << number);
            if let (Some(vector), Some(_)) = (vector, due) {
                (vector.enabled, vector.happened, vector.sent) = (false, 0, Some(now));
                bus.msix(Function::Vf(vf), number as u16);
                sent |= 1 << number;
            }
        }
        (sent, deadline)
    }
}
