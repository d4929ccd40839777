//! The registers of the APIC by offset in its page (SDM volume 3, table 10-1), and as x2APIC MSRs (10.12.1).
//! Left out: accesses of other sizes than a register's, which the instruction emulator shapes.

use super::{ERROR_REGISTER, Eoi, Ipi, Lapic, Mode, SVR_ENABLE, ipi::logical_x2apic};
use sim::Instant;

/// APIC id, bits 31:24.
pub const ID: u16 = 0x20;
/// Version and number of LVT entries.
pub const VERSION: u16 = 0x30;
/// Task priority.
pub const TPR: u16 = 0x80;
/// Processor priority.
pub const PPR: u16 = 0xa0;
/// End of interrupt, write only.
pub const EOI: u16 = 0xb0;
/// Logical destination.
pub const LDR: u16 = 0xd0;
/// Destination format.
pub const DFR: u16 = 0xe0;
/// Spurious-interrupt vector and software enable.
pub const SVR: u16 = 0xf0;
/// In service, eight registers.
pub const ISR: u16 = 0x100;
/// Trigger mode, eight registers.
pub const TMR: u16 = 0x180;
/// Interrupt request, eight registers.
pub const IRR: u16 = 0x200;
/// Errors; a write shows what has accumulated.
pub const ESR: u16 = 0x280;
/// Interrupt command; the low half sends.
pub const ICR: u16 = 0x300;
/// Interrupt command, high half: the destination.
pub const ICR_HIGH: u16 = 0x310;
/// LVT entry of the timer. Those of the thermal sensor, the counters, LINT0, LINT1 and errors follow.
pub const LVT_TIMER: u16 = 0x320;
/// LVT entry for errors.
pub const LVT_ERROR: u16 = 0x370;
/// Timer: initial count.
pub const TMICT: u16 = 0x380;
/// Timer: current count.
pub const TMCCT: u16 = 0x390;
/// Timer: divide configuration.
pub const TDCR: u16 = 0x3e0;
/// Interrupt to oneself, x2APIC only.
pub const SELF_IPI: u16 = 0x3f0;
/// The MSR of the register at offset 0; the next is that of offset 10h.
pub const MSR_BASE: u32 = 0x800;

/// Version 14h, six LVT entries.
const VERSION_VALUE: u32 = 0x0005_0014;
/// LVT: masked.
const MASKED: u32 = 1 << 16;
/// Bits that software can write, by LVT entry.
const LVT_WRITABLE: [u32; 6] = [0x7_00ff, 0x1_07ff, 0x1_07ff, 0x1_a7ff, 0x1_a7ff, 0x1_00ff];

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// A register took the value. After TPR or SVR, ask [`Lapic::deliverable`].
    Stored,
    /// Nothing changed: read-only, reserved, or refused.
    Ignored,
    /// An interrupt has ended.
    Eoi(Eoi),
    /// An interrupt for other CPUs: the caller sends it.
    Ipi(Ipi),
    /// An interrupt for this CPU.
    SelfIpi(super::Accept),
    /// The timer was set up: ask [`Lapic::deadline`].
    Timer,
}

/// A general-protection fault: what an x2APIC answers to an MSR access that it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("general-protection fault at an x2APIC register")]
pub struct Gp;

/// The local vector table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lvt([u32; 6]);

impl Default for Lvt {
    fn default() -> Self {
        Self([MASKED; 6])
    }
}

impl Lvt {
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
    /// Reads the 32-bit register at `offset`, a multiple of 16. A reserved one is zero and noted as an error.
    pub fn read(&mut self, now: Instant, offset: u16) -> u32 {
        match aligned(offset) {
            ID => self.id << 24,
            VERSION => VERSION_VALUE,
            TPR => self.tpr.into(),
            PPR => self.ppr().into(),
            // Write only.
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

    /// Writes the 32-bit register at `offset`, a multiple of 16.
    pub fn write(&mut self, now: Instant, offset: u16, value: u32) -> Write {
        self.run_timer(now);
        match aligned(offset) {
            EOI => return Write::Eoi(self.eoi()),
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
            ID | VERSION | PPR | 0x100..=0x270 | TMCCT => return Write::Ignored,
            _ => {
                self.error(ERROR_REGISTER);
                return Write::Ignored;
            }
        }
        Write::Stored
    }

    /// Reads an x2APIC register.
    ///
    /// # Errors
    /// [`Gp`] if there is no such register, or it is write-only.
    pub fn read_msr(&mut self, now: Instant, msr: u32) -> Result<u64, Gp> {
        match x2apic_offset(msr)? {
            ID => Ok(self.id.into()),
            LDR => Ok(logical_x2apic(self.id).into()),
            ICR => Ok(self.command),
            EOI | SELF_IPI => Err(Gp),
            offset => Ok(self.read(now, offset).into()),
        }
    }

    /// Writes an x2APIC register.
    ///
    /// # Errors
    /// [`Gp`] if there is no such register, it is read-only, or a reserved bit is set: for EOI that is any.
    pub fn write_msr(&mut self, now: Instant, msr: u32, value: u64) -> Result<Write, Gp> {
        let offset = x2apic_offset(msr)?;
        let reserved = match offset {
            ICR => 0xfff3_3000,
            EOI | ESR => u64::MAX,
            TPR | SELF_IPI => !0xff,
            ID | VERSION | PPR | LDR | 0x100..=0x270 | TMCCT => return Err(Gp),
            _ => !0xffff_ffff,
        };
        if value & reserved != 0 {
            return Err(Gp);
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

    /// Disabling masks every LVT entry; what is requested and in service is held (10.4.7.2).
    fn write_spurious(&mut self, value: u32) {
        self.spurious = value & 0x3ff;
        if self.spurious & SVR_ENABLE == 0 {
            for entry in &mut self.lvt.0 {
                *entry |= MASKED;
            }
        }
    }

    fn write_lvt(&mut self, offset: u16, value: u32) -> Write {
        let at = usize::from(offset - LVT_TIMER) / 16;
        let forced = if self.enabled() { 0 } else { MASKED };
        let Some(entry) = self.lvt.0.get_mut(at) else { return Write::Ignored };
        *entry = value & LVT_WRITABLE[at] | forced;
        if at > 0 {
            return Write::Stored;
        }
        self.timer.set_mode(match value >> 17 & 3 {
            1 => Mode::Periodic,
            2 => Mode::TscDeadline,
            _ => Mode::OneShot,
        });
        Write::Timer
    }

    fn write_timer(&mut self, now: Instant, offset: u16, value: u32) -> Write {
        if offset == TMICT {
            self.timer.start(now, value);
        } else {
            self.timer.set_divide(now, value);
        }
        Write::Timer
    }
}

/// The offset; what is no multiple of 16 becomes 0, where there is no register.
fn aligned(offset: u16) -> u16 {
    if offset.is_multiple_of(16) { offset } else { 0 }
}

/// The offset of an MSR's register, if an x2APIC has it.
fn x2apic_offset(msr: u32) -> Result<u16, Gp> {
    let offset = msr.checked_sub(MSR_BASE).filter(|&n| n < 0x40).ok_or(Gp)? as u16 * 16;
    match offset {
        ID | VERSION | TPR | PPR..=EOI | LDR | SVR..=ESR | ICR | LVT_TIMER..=TMCCT | TDCR | SELF_IPI => {
            Ok(offset)
        }
        _ => Err(Gp),
    }
}
