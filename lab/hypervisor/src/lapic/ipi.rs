//! Interprocessor interrupts: the interrupt-command register (SDM volume 3, 10.6) and destination matching. The caller
//! delivers an interrupt to other APICs.

use super::{ERROR_SENT, InterruptRequestOutcome, Lapic, registers::ApicWriteEffect};

/// Delivery mode fixed: interrupt with the given vector.
const FIXED: u8 = 0;
/// Delivery mode lowest priority: interrupt with the given vector at one of the destinations.
const LOWEST_PRIORITY: u8 = 1;

/// Destination of an interprocessor interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpiDestination {
    /// Destination: the APIC with this id; an id of all ones addresses every APIC.
    Physical(u32),
    /// Destination: the APICs whose logical destination matches this value.
    Logical(u32),
    /// Destination: all APICs, including the sending one.
    All,
    /// Destination: all APICs except the sending one.
    Others,
}

/// Interprocessor interrupt that an APIC sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipi {
    /// Vector of the interprocessor interrupt.
    pub vector: u8,
    /// Delivery mode of the interrupt, 0 to 7: fixed, lowest priority, SMI, reserved, NMI, INIT, start-up, reserved.
    pub mode: u8,
    /// APICs that the interprocessor interrupt is sent to.
    pub to: IpiDestination,
}

impl Lapic {
    /// Returns `true` if destination `to` of another APIC's interrupt addresses this APIC (SDM volume 3, 10.6.2).
    /// `wide` selects 32-bit x2APIC ids instead of 8-bit xAPIC ids.
    #[must_use]
    pub fn is_destination(&self, to: IpiDestination, wide: bool) -> bool {
        match to {
            IpiDestination::All | IpiDestination::Others => true,
            IpiDestination::Physical(id) => id == self.id || id == if wide { u32::MAX } else { 0xff },
            IpiDestination::Logical(mask) if wide => {
                let own = logical_x2apic(self.id);
                mask == u32::MAX || mask >> 16 == own >> 16 && mask & own & 0xffff != 0
            }
            IpiDestination::Logical(mask) => self.matches_logical(mask),
        }
    }

    /// Returns `true` if a logical destination addresses this APIC: the flat model compares bits, the cluster model
    /// cluster number and bits (10.6.2.2).
    fn matches_logical(&self, mask: u32) -> bool {
        let own = self.logical >> 24;
        match self.format >> 28 {
            0xf => mask & own & 0xff != 0,
            0 => (mask >> 4 & 0xf == own >> 4 || mask >> 4 & 0xf == 0xf) && mask & own & 0xf != 0,
            _ => false,
        }
    }

    /// Sends the interrupt that the interrupt-command register describes.
    pub(super) fn send(&mut self, wide: bool) -> ApicWriteEffect {
        let low = self.command as u32;
        let (vector, mode) = (low as u8, (low >> 8) as u8 & 7);
        if mode <= LOWEST_PRIORITY && vector < 16 {
            self.error(ERROR_SENT);
            return ApicWriteEffect::Ignored;
        }
        let high = (self.command >> 32) as u32;
        let id = if wide { high } else { high >> 24 };
        let to = match low >> 18 & 3 {
            0 if low & 1 << 11 == 0 => IpiDestination::Physical(id),
            0 => IpiDestination::Logical(id),
            1 => return self.send_to_self(vector, mode),
            2 => IpiDestination::All,
            _ => IpiDestination::Others,
        };
        ApicWriteEffect::Ipi(Ipi { vector, mode, to })
    }

    /// Requests an interrupt by the destination shorthand "self", which permits fixed interrupts only (10.6.1).
    fn send_to_self(&mut self, vector: u8, mode: u8) -> ApicWriteEffect {
        if mode == FIXED { ApicWriteEffect::SelfIpi(self.accept(vector)) } else { ApicWriteEffect::Ignored }
    }

    /// Accepts an interprocessor interrupt from another CPU. Returns `None` for a delivery mode without a vector.
    pub fn receive(&mut self, ipi: Ipi) -> Option<InterruptRequestOutcome> {
        (ipi.mode <= LOWEST_PRIORITY).then(|| self.accept(ipi.vector))
    }
}

/// Returns the logical id derived from an x2APIC id: cluster in the upper half, one bit in the lower
/// (10.12.10.2).
pub(super) fn logical_x2apic(id: u32) -> u32 {
    id >> 4 << 16 | 1 << (id & 15)
}
