//! Emulates instructions that access the APIC page: data moves, exchanges, string moves, logic and addition,
//! which compilers and kernels use on device memory. Every other instruction traps.

use super::alu::{AluOperation, unary};
use super::apic_access::{AccessibleGuestState, ApicInstructionEffect};
use super::cpu::{DF, RCX, RDI, RSI, mask};
use super::memory::GuestMemory;
use super::paging::{GuestMemoryAccessKind, is_canonical, walk};
use super::{EmulationWork, GuestException, VcpuRegisters};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Bytes of a page of guest memory.
const PAGE: u64 = 4096;

/// Guest instruction that is being emulated.
pub(super) struct EmulatedInstruction<'a, M> {
    pub(super) guest: AccessibleGuestState<'a, M>,
    pub(super) cpu: &'a mut VcpuRegisters,
    pub(super) instruction: Instruction,
    pub(super) work: &'a mut EmulationWork,
    pub(super) effect: ApicInstructionEffect,
}

impl<M: GuestMemory> EmulatedInstruction<'_, M> {
    /// Emulates the guest's instruction, or one element of a repeated instruction, and advances RIP when the
    /// instruction is complete.
    pub(super) fn run(mut self) -> Result<ApicInstructionEffect, GuestException> {
        let done = if self.instruction.is_string_instruction() {
            self.string()?
        } else {
            self.plain()?;
            true
        };
        if done {
            self.cpu.rip = self.instruction.next_ip();
        }
        Ok(self.effect)
    }

    fn plain(&mut self) -> Result<(), GuestException> {
        let mnemonic = self.instruction.mnemonic();
        match mnemonic {
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.operand(1)?;
                self.set_operand(0, value)
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let unused = 64 - 8 * self.bytes(1) as u32;
                let value = ((self.operand(1)? << unused) as i64 >> unused) as u64;
                self.set_operand(0, value)
            }
            Mnemonic::Xchg => {
                let values = [self.operand(0)?, self.operand(1)?];
                // Memory first, as it may fault: a memory operand is operand 0.
                self.set_operand(0, values[1])?;
                self.set_operand(1, values[0])
            }
            _ => self.arithmetic(mnemonic),
        }
    }

    fn arithmetic(&mut self, mnemonic: Mnemonic) -> Result<(), GuestException> {
        let bytes = self.bytes(0);
        let operation = AluOperation::of(mnemonic);
        if operation.is_none() && unary(mnemonic, 0, bytes, 0).is_none() {
            return Err(GuestException::Undefined);
        }
        let value = self.operand(0)?;
        let (result, flags) = match operation {
            Some(operation) => operation.apply(value, self.operand(1)?, bytes, self.cpu.flags),
            None => unary(mnemonic, value, bytes, self.cpu.flags).ok_or(GuestException::Undefined)?,
        };
        if operation.is_none_or(|operation| operation.writes_result) {
            self.set_operand(0, result)?;
        }
        self.cpu.flags = flags;
        Ok(())
    }

    /// Emulates one element of STOS, MOVS or LODS. Returns `true` if the instruction is complete. Each element of a
    /// repeated instruction is a VM exit of its own, so that a guest cannot occupy the hypervisor.
    fn string(&mut self) -> Result<bool, GuestException> {
        let repeats = self.instruction.has_rep_prefix() || self.instruction.has_repne_prefix();
        if repeats && self.cpu.registers[RCX] == 0 {
            return Ok(true);
        }
        let bytes = self.bytes(if self.loads_string() { 1 } else { 0 });
        let value = self.operand(1)?;
        self.set_operand(0, value)?;
        let step = if self.cpu.flags & DF == 0 { bytes as u64 } else { (bytes as u64).wrapping_neg() };
        for operand in 0..2 {
            let moved = match self.instruction.op_kind(operand) {
                OpKind::MemorySegRSI => RSI,
                OpKind::MemoryESRDI => RDI,
                _ => continue,
            };
            self.cpu.registers[moved] = self.cpu.registers[moved].wrapping_add(step);
        }
        if repeats {
            self.cpu.registers[RCX] -= 1;
        }
        Ok(!repeats || self.cpu.registers[RCX] == 0)
    }

    fn loads_string(&self) -> bool {
        self.instruction.op_kind(0) == OpKind::Register
    }

    /// Returns the size of an instruction's operand in bytes.
    fn bytes(&self, operand: u32) -> usize {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.instruction.op_register(operand).size(),
            _ => self.instruction.memory_size().size(),
        }
        .clamp(1, 8)
    }

    fn operand(&mut self, operand: u32) -> Result<u64, GuestException> {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.cpu.get(self.instruction.op_register(operand)),
            OpKind::Memory | OpKind::MemorySegRSI | OpKind::MemoryESRDI => {
                let linear = self.linear(operand)?;
                self.load(linear, self.bytes(operand))
            }
            _ => self.instruction.try_immediate(operand).map_err(|_| GuestException::Undefined),
        }
    }

    fn set_operand(&mut self, operand: u32, value: u64) -> Result<(), GuestException> {
        match self.instruction.op_kind(operand) {
            OpKind::Register => self.cpu.set(self.instruction.op_register(operand), value),
            OpKind::Memory | OpKind::MemoryESRDI => {
                let linear = self.linear(operand)?;
                self.store(linear, self.bytes(operand), value)
            }
            _ => Err(GuestException::Undefined),
        }
    }

    fn linear(&self, operand: u32) -> Result<u64, GuestException> {
        let part = |register, _, _| self.cpu.address_part(register);
        self.instruction.virtual_address(operand, 0, part).ok_or(GuestException::Undefined)
    }

    fn load(&mut self, linear: u64, bytes: usize) -> Result<u64, GuestException> {
        let address = self.translate(linear, bytes, GuestMemoryAccessKind::Read)?;
        if let Some(offset) = self.guest.apic_offset(address) {
            return self.apic_read(offset, bytes);
        }
        let mut value = [0; 8];
        if !self.guest.memory.read(address, &mut value[..bytes]) {
            return Err(GuestException::Undefined);
        }
        Ok(u64::from_le_bytes(value))
    }

    fn store(&mut self, linear: u64, bytes: usize, value: u64) -> Result<(), GuestException> {
        let address = self.translate(linear, bytes, GuestMemoryAccessKind::Write)?;
        if let Some(offset) = self.guest.apic_offset(address) {
            return self.apic_write(offset, bytes, value);
        }
        let stored = self.guest.memory.write(address, &value.to_le_bytes()[..bytes]);
        if stored { Ok(()) } else { Err(GuestException::Undefined) }
    }

    fn translate(
        &mut self,
        linear: u64,
        bytes: usize,
        intent: GuestMemoryAccessKind,
    ) -> Result<u64, GuestException> {
        if !is_canonical(linear) {
            return Err(GuestException::GeneralProtection);
        }
        if linear % PAGE + bytes as u64 > PAGE {
            return Err(GuestException::Undefined);
        }
        let walk = walk(self.guest.memory, self.cpu.cr3, linear, intent, self.cpu.user);
        self.work.table_loads += walk.loads;
        self.work.accesses += 1;
        Ok(walk.result?)
    }

    /// Reads an APIC register, which has 4 bytes (SDM volume 3, 10.4.1). Accesses to parts of a register are allowed,
    /// as operating systems rely on them; accesses of 8 bytes or across registers trap.
    fn apic_read(&mut self, offset: u16, bytes: usize) -> Result<u64, GuestException> {
        let (register, lane) = register_and_lane(offset, bytes)?;
        let value = self.guest.lapic.read(self.guest.now, register);
        if self.effect == ApicInstructionEffect::None {
            self.effect = ApicInstructionEffect::Read;
        }
        Ok(u64::from(value) >> lane & mask(bytes))
    }

    fn apic_write(&mut self, offset: u16, bytes: usize, value: u64) -> Result<(), GuestException> {
        let (register, lane) = register_and_lane(offset, bytes)?;
        let mut whole = value as u32;
        if bytes < 4 {
            let part = (mask(bytes) as u32) << lane;
            whole = self.guest.lapic.read(self.guest.now, register) & !part | whole << lane & part;
        }
        self.effect = ApicInstructionEffect::Write(self.guest.lapic.write(self.guest.now, register, whole));
        Ok(())
    }
}

/// Returns the APIC register that an access of the guest reads or writes, and the access's first bit in the register.
fn register_and_lane(offset: u16, bytes: usize) -> Result<(u16, u32), GuestException> {
    let inside = usize::from(offset % 4);
    if inside + bytes > 4 {
        Err(GuestException::Undefined)
    } else {
        Ok((offset - inside as u16, 8 * inside as u32))
    }
}
