//! Registers of the local APIC by offset in the APIC page (SDM volume 3, table 10-1) and as x2APIC MSRs (10.12.1). The
//! instruction emulator converts accesses of other sizes.

use super::{ApicTimerMode, ERROR_REGISTER, EoiEffect, Ipi, Lapic, SVR_ENABLE, ipi::logical_x2apic};
use sim::VirtualInstant;

/// Offset of the APIC id register, which has the id in bits 31:24.
pub const ID: u16 = 0x20;
/// Offset of the APIC version register: version, and number of LVT entries.
pub const VERSION: u16 = 0x30;
/// Offset of the APIC's task-priority register.
pub const TPR: u16 = 0x80;
/// Offset of the APIC's processor-priority register.
pub const PPR: u16 = 0xa0;
/// Offset of the end-of-interrupt register, write only.
pub const EOI: u16 = 0xb0;
/// Offset of the APIC's logical-destination register.
pub const LDR: u16 = 0xd0;
/// Offset of the APIC's destination-format register.
pub const DFR: u16 = 0xe0;
/// Offset of the spurious-interrupt vector register, which has the software enable.
pub const SVR: u16 = 0xf0;
/// Offset of the first of eight in-service registers.
pub const ISR: u16 = 0x100;
/// Offset of the first of eight trigger-mode registers.
pub const TMR: u16 = 0x180;
/// Offset of the first of eight interrupt-request registers.
pub const IRR: u16 = 0x200;
/// Offset of the error status register; a write updates the visible value with accumulated errors.
pub const ESR: u16 = 0x280;
/// Offset of the low half of the interrupt-command register; a write to it sends the interrupt.
pub const ICR: u16 = 0x300;
/// Offset of the high half of the interrupt-command register: the destination.
pub const ICR_HIGH: u16 = 0x310;
/// Offset of the timer's LVT entry; those of thermal sensor, performance counters, LINT0, LINT1 and errors follow.
pub const LVT_TIMER: u16 = 0x320;
/// Offset of the LVT entry for errors.
pub const LVT_ERROR: u16 = 0x370;
/// Offset of the APIC timer's initial-count register.
pub const TMICT: u16 = 0x380;
/// Offset of the APIC timer's current-count register.
pub const TMCCT: u16 = 0x390;
/// Offset of the APIC timer's divide-configuration register.
pub const TDCR: u16 = 0x3e0;
/// Offset of the APIC's self-IPI register, x2APIC only.
pub const SELF_IPI: u16 = 0x3f0;
/// Number of the x2APIC MSR for the register at offset 0; the next MSR is that of offset 10h.
pub const MSR_BASE: u32 = 0x800;

/// Value of the APIC version register: version 14h, six LVT entries.
const VERSION_VALUE: u32 = 0x0005_0014;
/// Bit of a local-vector-table (LVT) entry: the interrupt is masked.
const MASKED: u32 = 1 << 16;
/// Writable bits of each entry of the local vector table (LVT).
const LVT_WRITABLE: [u32; 6] = [0x7_00ff, 0x1_07ff, 0x1_07ff, 0x1_a7ff, 0x1_a7ff, 0x1_00ff];

/// Effect of a write to an APIC register, which the caller may have to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApicWriteEffect {
    /// Write effect: the APIC register was written without another effect. After TPR or SVR, call
    /// [`Lapic::deliverable`].
    Stored,
    /// Write effect: nothing changed, since the register is read-only or reserved, or the value was rejected.
    Ignored,
    /// Write effect: the APIC register write ended an interrupt.
    Eoi(EoiEffect),
    /// Write effect: an interrupt to other CPUs was sent, which the caller delivers.
    Ipi(Ipi),
    /// Write effect: an interrupt was requested at this CPU, with this outcome.
    SelfIpi(super::InterruptRequestOutcome),
    /// Write effect: the timer was programmed; call [`Lapic::deadline`].
    Timer,
}

/// General-protection fault of a rejected x2APIC MSR access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("general-protection fault: invalid access to an x2APIC register")]
pub struct GeneralProtectionFault;

/// Entries of an APIC's local vector table (LVT): timer, errors and other local interrupt sources.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalVectorTable([u32; 6]);

impl Default for LocalVectorTable {
    fn default() -> Self {
        Self([MASKED; 6])
    }
}

impl LocalVectorTable {
    pub(super) fn timer_vector(&self) -> u8 {
        self.0[0] as u8
    }

    pub(super) fn timer_masked(&self) -> bool {
        self.0[0] & MASKED != 0
    }

    pub(super) fn error_vector(&self) -> Option<u8> {
        (self.0[5] & MASKED == 0).then_some(self.0[5] as u8)
    }
}

impl Lapic {
    /// Reads the 32-bit APIC register at `offset`, a multiple of 16. A reserved register reads as zero and records an
    /// error.
    pub fn read(&mut self, now: VirtualInstant, offset: u16) -> u32 {
        match aligned(offset) {
            ID => self.id << 24,
            VERSION => VERSION_VALUE,
            TPR => self.tpr.into(),
            PPR => self.ppr().into(),
            // EOI is write-only.
            EOI => 0,
            LDR => self.logical,
            DFR => self.format,
            SVR => self.spurious,
            0x100..=0x170 => self.isr.dword(usize::from(offset - ISR) / 16),
            0x180..=0x1f0 => self.tmr.dword(usize::from(offset - TMR) / 16),
            0x200..=0x270 => self.irr.dword(usize::from(offset - IRR) / 16),
            ESR => self.errors_shown,
            ICR => self.command as u32,
            ICR_HIGH => (self.command >> 32) as u32,
            LVT_TIMER..=LVT_ERROR => self.lvt.0[usize::from(offset - LVT_TIMER) / 16],
            TMICT => self.timer.initial(),
            TMCCT => {
                self.run_timer(now);
                self.timer.current(now)
            }
            TDCR => self.timer.divide(),
            _ => {
                self.error(ERROR_REGISTER);
                0
            }
        }
    }

    /// Writes the 32-bit APIC register at `offset`, a multiple of 16.
    pub fn write(&mut self, now: VirtualInstant, offset: u16, value: u32) -> ApicWriteEffect {
        self.run_timer(now);
        match aligned(offset) {
            EOI => return ApicWriteEffect::Eoi(self.eoi()),
            ICR => {
                self.command = self.command & !0xffff_ffff | u64::from(value & 0x000c_cfff);
                return self.send(false);
            }
            ICR_HIGH => self.command = self.command & 0xffff_ffff | u64::from(value & 0xff00_0000) << 32,
            TPR => self.tpr = value as u8,
            LDR => self.logical = value & 0xff00_0000,
            DFR => self.format = value | 0x0fff_ffff,
            SVR => self.write_spurious(value),
            ESR => self.errors_shown = core::mem::take(&mut self.errors),
            LVT_TIMER..=LVT_ERROR => return self.write_lvt(offset, value),
            TMICT | TDCR => return self.write_timer(now, offset, value),
            ID | VERSION | PPR | 0x100..=0x270 | TMCCT => return ApicWriteEffect::Ignored,
            _ => {
                self.error(ERROR_REGISTER);
                return ApicWriteEffect::Ignored;
            }
        }
        ApicWriteEffect::Stored
    }

    /// Reads an x2APIC register.
    ///
    /// # Errors
    /// [`GeneralProtectionFault`] if the register does not exist or is write-only.
    pub fn read_msr(&mut self, now: VirtualInstant, msr: u32) -> Result<u64, GeneralProtectionFault> {
        match x2apic_offset(msr)? {
            ID => Ok(self.id.into()),
            LDR => Ok(logical_x2apic(self.id).into()),
            ICR => Ok(self.command),
            EOI | SELF_IPI => Err(GeneralProtectionFault),
            offset => Ok(self.read(now, offset).into()),
        }
    }

    /// Writes an x2APIC register.
    ///
    /// # Errors
    /// [`GeneralProtectionFault`] if the register does not exist or is read-only, or a reserved bit is set; all
    /// bits of EOI are reserved.
    pub fn write_msr(
        &mut self,
        now: VirtualInstant,
        msr: u32,
        value: u64,
    ) -> Result<ApicWriteEffect, GeneralProtectionFault> {
        let offset = x2apic_offset(msr)?;
        let reserved = match offset {
            ICR => 0xfff3_3000,
            EOI | ESR => u64::MAX,
            TPR | SELF_IPI => !0xff,
            ID | VERSION | PPR | LDR | 0x100..=0x270 | TMCCT => return Err(GeneralProtectionFault),
            _ => !0xffff_ffff,
        };
        if value & reserved != 0 {
            return Err(GeneralProtectionFault);
        }
        self.run_timer(now);
        Ok(match offset {
            ICR => {
                self.command = value;
                self.send(true)
            }
            SELF_IPI => {
                self.command = value | 1 << 18;
                self.send(true)
            }
            _ => self.write(now, offset, value as u32),
        })
    }

    /// Writes the spurious-interrupt register. Disabling masks every LVT entry and keeps requested and
    /// in-service interrupts (10.4.7.2).
    fn write_spurious(&mut self, value: u32) {
        self.spurious = value & 0x3ff;
        if self.spurious & SVR_ENABLE == 0 {
            for entry in &mut self.lvt.0 {
                *entry |= MASKED;
            }
        }
    }

    fn write_lvt(&mut self, offset: u16, value: u32) -> ApicWriteEffect {
        let at = usize::from(offset - LVT_TIMER) / 16;
        let forced = if self.enabled() { 0 } else { MASKED };
        let Some(entry) = self.lvt.0.get_mut(at) else { return ApicWriteEffect::Ignored };
        *entry = value & LVT_WRITABLE[at] | forced;
        if at > 0 {
            return ApicWriteEffect::Stored;
        }
        self.timer.set_mode(match value >> 17 & 3 {
            1 => ApicTimerMode::Periodic,
            2 => ApicTimerMode::TscDeadline,
            _ => ApicTimerMode::OneShot,
        });
        ApicWriteEffect::Timer
    }

    fn write_timer(&mut self, now: VirtualInstant, offset: u16, value: u32) -> ApicWriteEffect {
        if offset == TMICT {
            self.timer.start(now, value);
        } else {
            self.timer.set_divide(now, value);
        }
        ApicWriteEffect::Timer
    }
}

/// Returns the APIC register offset if it is a multiple of 16, or else 0, at which no register is.
fn aligned(offset: u16) -> u16 {
    if offset.is_multiple_of(16) { offset } else { 0 }
}

/// Returns the offset of the APIC register that an x2APIC MSR names, if it exists in x2APIC mode.
fn x2apic_offset(msr: u32) -> Result<u16, GeneralProtectionFault> {
    let offset = msr.checked_sub(MSR_BASE).filter(|&n| n < 0x40).ok_or(GeneralProtectionFault)? as u16 * 16;
    match offset {
        ID | VERSION | TPR | PPR..=EOI | LDR | SVR..=ESR | ICR | LVT_TIMER..=TMCCT | TDCR | SELF_IPI => {
            Ok(offset)
        }
        _ => Err(GeneralProtectionFault),
    }
}
