//! Registers of a vCPU that emulated instructions read and write. Vector registers and segment bases other
//! than FS and GS are not supported.

use super::GuestException;
use iced_x86::Register;

/// RFLAGS bit: carry flag.
pub const CF: u64 = 1;
/// RFLAGS bit: parity flag.
pub const PF: u64 = 1 << 2;
/// RFLAGS bit: auxiliary carry flag.
pub const AF: u64 = 1 << 4;
/// RFLAGS bit: zero flag.
pub const ZF: u64 = 1 << 6;
/// RFLAGS bit: sign flag.
pub const SF: u64 = 1 << 7;
/// RFLAGS bit: direction flag. If set, string instructions move towards lower addresses.
pub const DF: u64 = 1 << 10;
/// RFLAGS bit: overflow flag.
pub const OF: u64 = 1 << 11;

/// Index of RAX in [`VcpuRegisters::registers`].
pub const RAX: usize = 0;
/// Index of RCX in [`VcpuRegisters::registers`].
pub const RCX: usize = 1;
/// Index of RSI in [`VcpuRegisters::registers`].
pub const RSI: usize = 6;
/// Index of RDI in [`VcpuRegisters::registers`].
pub const RDI: usize = 7;

/// Registers of a vCPU in 64-bit mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VcpuRegisters {
    /// General-purpose registers: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub registers: [u64; 16],
    /// Address of the guest's next instruction.
    pub rip: u64,
    /// Value of the vCPU's RFLAGS register.
    pub flags: u64,
    /// Base addresses of the vCPU's segments FS and GS.
    pub bases: [u64; 2],
    /// Value of CR3: physical address of the page tables.
    pub cr3: u64,
    /// The vCPU runs user code (CPL 3).
    pub user: bool,
}

impl VcpuRegisters {
    /// Reads a general-purpose register of any size.
    ///
    /// # Errors
    /// [`GuestException::Undefined`] for other registers.
    pub(super) fn get(&self, register: Register) -> Result<u64, GuestException> {
        let value = self.registers[register_index(register)?];
        let shifted = if is_high_byte(register) { value >> 8 } else { value };
        Ok(shifted & mask(register.size()))
    }

    /// Writes a general-purpose register: a write of 32 bits clears the upper half, a smaller one keeps the
    /// rest.
    ///
    /// # Errors
    /// [`GuestException::Undefined`] for other registers.
    pub(super) fn set(&mut self, register: Register, value: u64) -> Result<(), GuestException> {
        let whole = &mut self.registers[register_index(register)?];
        let shift = if is_high_byte(register) { 8 } else { 0 };
        let kept = if register.size() >= 4 { 0 } else { !(mask(register.size()) << shift) };
        *whole = *whole & kept | (value & mask(register.size())) << shift;
        Ok(())
    }

    /// Returns a part of a memory operand's address: a segment's base, or a register's value.
    pub(super) fn address_part(&self, register: Register) -> Option<u64> {
        match register {
            Register::FS => Some(self.bases[0]),
            Register::GS => Some(self.bases[1]),
            Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
            _ => self.get(register).ok(),
        }
    }
}

/// Returns the bit mask of an operand of 1 to 8 bytes.
pub(super) fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}

fn register_index(register: Register) -> Result<usize, GuestException> {
    if register.is_gpr() {
        Ok(register.full_register().number() % 16)
    } else {
        Err(GuestException::Undefined)
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::CH | Register::DH | Register::BH)
}
