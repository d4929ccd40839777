//! Computes arithmetic and logic operations of emulated instructions with their flags (SDM volume 1, appendix A).
//! Shifts, multiplication and division are not emulated.

use super::cpu::{AF, CF, OF, PF, SF, ZF, mask};
use iced_x86::Mnemonic;

/// Mask of the RFLAGS bits that arithmetic emulation computes.
pub const FLAGS: u64 = CF | PF | AF | ZF | SF | OF;

/// Arithmetic or logic operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AluOperation {
    kind: AluOperationKind,
    /// The instruction writes the operation's result; comparisons discard it.
    pub writes_result: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AluOperationKind {
    Add { carry: bool },
    Subtract { borrow: bool },
    And,
    Or,
    Xor,
}

impl AluOperation {
    /// Returns the arithmetic or logic operation of an instruction with two operands.
    #[must_use]
    pub fn of(mnemonic: Mnemonic) -> Option<Self> {
        let (kind, writes_result) = match mnemonic {
            Mnemonic::Add => (AluOperationKind::Add { carry: false }, true),
            Mnemonic::Adc => (AluOperationKind::Add { carry: true }, true),
            Mnemonic::Sub => (AluOperationKind::Subtract { borrow: false }, true),
            Mnemonic::Sbb => (AluOperationKind::Subtract { borrow: true }, true),
            Mnemonic::Cmp => (AluOperationKind::Subtract { borrow: false }, false),
            Mnemonic::And => (AluOperationKind::And, true),
            Mnemonic::Test => (AluOperationKind::And, false),
            Mnemonic::Or => (AluOperationKind::Or, true),
            Mnemonic::Xor => (AluOperationKind::Xor, true),
            _ => return None,
        };
        Some(Self { kind, writes_result })
    }

    /// Applies the operation to two values of `bytes` bytes. Returns the result, and `flags` with the operation's
    /// changes.
    #[must_use]
    pub fn apply(self, a: u64, b: u64, bytes: usize, flags: u64) -> (u64, u64) {
        let (a, b, all) = (a & mask(bytes), b & mask(bytes), u128::from(mask(bytes)));
        let sign = 1 << (8 * bytes - 1);
        let carry_in = |uses: bool| u128::from(uses && flags & CF != 0);
        let (result, carry, overflow) = match self.kind {
            AluOperationKind::Add { carry } => {
                let wide = u128::from(a) + u128::from(b) + carry_in(carry);
                let result = (wide & all) as u64;
                (result, wide > all, (a ^ result) & (b ^ result) & sign != 0)
            }
            AluOperationKind::Subtract { borrow } => {
                let less = u128::from(b) + carry_in(borrow);
                let result = (u128::from(a).wrapping_sub(less) & all) as u64;
                (result, less > u128::from(a), (a ^ b) & (a ^ result) & sign != 0)
            }
            AluOperationKind::And => (a & b, false, false),
            AluOperationKind::Or => (a | b, false, false),
            AluOperationKind::Xor => (a ^ b, false, false),
        };
        let logic = matches!(self.kind, AluOperationKind::And | AluOperationKind::Or | AluOperationKind::Xor);
        let half = !logic && (a ^ b ^ result) & 0x10 != 0;
        let even = (result as u8).count_ones().is_multiple_of(2);
        let pairs = [
            (CF, carry),
            (PF, even),
            (AF, half),
            (ZF, result == 0),
            (SF, result & sign != 0),
            (OF, overflow),
        ];
        let set = pairs.iter().filter(|(_, set)| *set).fold(0, |set, (flag, _)| set | flag);
        (result, flags & !FLAGS | set)
    }
}

/// Performs an arithmetic or logic operation on one value. Returns the result, and `flags` with the operation's
/// changes.
#[must_use]
pub fn unary(mnemonic: Mnemonic, value: u64, bytes: usize, flags: u64) -> Option<(u64, u64)> {
    let apply = |kind, a, b| AluOperation { kind, writes_result: true }.apply(a, b, bytes, flags);
    // INC and DEC do not change the carry flag.
    let keep_carry = |(result, after): (u64, u64)| (result, after & !CF | flags & CF);
    match mnemonic {
        Mnemonic::Not => Some((!value & mask(bytes), flags)),
        Mnemonic::Neg => Some(apply(AluOperationKind::Subtract { borrow: false }, 0, value)),
        Mnemonic::Inc => Some(keep_carry(apply(AluOperationKind::Add { carry: false }, value, 1))),
        Mnemonic::Dec => Some(keep_carry(apply(AluOperationKind::Subtract { borrow: false }, value, 1))),
        _ => None,
    }
}
