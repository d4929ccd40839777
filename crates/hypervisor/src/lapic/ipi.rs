//! Interrupts from one CPU to others: the interrupt-command register (SDM volume 3, 10.6), and which APIC is
//! meant. Left out: sending; the caller knows the other APICs.

use super::{Accept, ERROR_SENT, Lapic, registers::Write};

/// Delivery mode: the vector, as it is.
const FIXED: u8 = 0;
/// Delivery mode: the vector, to one of those meant.
const LOWEST_PRIORITY: u8 = 1;

/// Who is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The APIC with this id; all ones mean all.
    Physical(u32),
    /// Those whose logical destination matches.
    Logical(u32),
    /// Everyone, the sender included.
    All,
    /// Everyone but the sender.
    Others,
}

/// An interrupt on its way to other CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipi {
    /// The vector.
    pub vector: u8,
    /// Delivery mode, 0 to 7: fixed, lowest priority, SMI, reserved, NMI, INIT, start-up, reserved.
    pub mode: u8,
    /// To whom.
    pub to: Destination,
}

impl Lapic {
    /// Whether an interrupt for `to` is meant for this APIC, which has not sent it (10.6.2). `wide`: x2APIC
    /// ids of 32 bits, else xAPIC's of 8.
    #[must_use]
    pub fn is_meant(&self, to: Destination, wide: bool) -> bool {
        match to {
            Destination::All | Destination::Others => true,
            Destination::Physical(id) => id == self.id || id == if wide { u32::MAX } else { 0xff },
            Destination::Logical(mask) if wide => {
                let own = logical_x2apic(self.id);
                mask == u32::MAX || mask >> 16 == own >> 16 && mask & own & 0xffff != 0
            }
            Destination::Logical(mask) => self.is_meant_logically(mask),
        }
    }

    /// The flat model compares bits, the cluster model a cluster number and bits (10.6.2.2).
    fn is_meant_logically(&self, mask: u32) -> bool {
        let own = self.logical >> 24;
        match self.format >> 28 {
            0xf => mask & own & 0xff != 0,
            0 => (mask >> 4 & 0xf == own >> 4 || mask >> 4 & 0xf == 0xf) && mask & own & 0xf != 0,
            _ => false,
        }
    }

    /// Carries out the command that has been written.
    pub(super) fn send(&mut self, wide: bool) -> Write {
        let low = self.command as u32;
        let (vector, mode) = (low as u8, (low >> 8) as u8 & 7);
        if mode <= LOWEST_PRIORITY && vector < 16 {
            self.error(ERROR_SENT);
            return Write::Ignored;
        }
        let high = (self.command >> 32) as u32;
        let id = if wide { high } else { high >> 24 };
        let to = match low >> 18 & 3 {
            0 if low & 1 << 11 == 0 => Destination::Physical(id),
            0 => Destination::Logical(id),
            1 => return self.send_to_self(vector, mode),
            2 => Destination::All,
            _ => Destination::Others,
        };
        Write::Ipi(Ipi { vector, mode, to })
    }

    /// Only fixed interrupts may go to oneself by the shorthand (10.6.1).
    fn send_to_self(&mut self, vector: u8, mode: u8) -> Write {
        if mode == FIXED { Write::SelfIpi(self.accept(vector)) } else { Write::Ignored }
    }

    /// Accepts another CPU's interrupt; None for a mode that has no vector.
    pub fn receive(&mut self, ipi: Ipi) -> Option<Accept> {
        (ipi.mode <= LOWEST_PRIORITY).then(|| self.accept(ipi.vector))
    }
}

/// The logical id that an x2APIC has by its id: cluster in the upper half, one bit in the lower (10.12.10.2).
pub(super) fn logical_x2apic(id: u32) -> u32 {
    id >> 4 << 16 | 1 << (id & 15)
}
