//! Memory pieces of receive buffers. A sender pays a fixed cost for a frame, however many pieces the receiver's buffers have. So
//! the receiver pays for pieces beyond those that the frame needs, and receives no frame in such pieces while it is in debt.

use crate::WorkCost;
use crate::work::FRAME_QUANTUM;

/// Pieces of a function's receive buffers that no frame needed, and that the function has not paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExcessPieces {
    unpaid: u32,
    in_debt: bool,
}

impl ExcessPieces {
    /// Returns the number of pieces of a frame of `bytes` bytes, with the header before it, that cost nothing: one for each 512
    /// bytes, and 4 more. Drivers post pieces of 1,024 bytes and more.
    #[must_use]
    pub fn free(bytes: usize) -> usize {
        4 + (bytes >> 9)
    }

    /// Returns the maximum number of pieces for a frame of `bytes` bytes. A function whose account has credit may have
    /// excess pieces for the credit of a round.
    #[must_use]
    pub fn limit(&self, bytes: usize) -> usize {
        let excess = if self.in_debt { 0 } else { FRAME_QUANTUM.0.saturating_sub(self.unpaid) };
        Self::free(bytes) + excess as usize
    }

    /// Adds the pieces that a frame of `bytes` bytes was written to. Each piece beyond [`Self::free`] costs a unit.
    pub fn add(&mut self, pieces: usize, bytes: usize) {
        let excess = pieces.saturating_sub(Self::free(bytes));
        self.unpaid = self.unpaid.saturating_add(WorkCost::of_units(excess).0);
    }

    /// Adds a buffer with a list of `pieces` pieces, which were read. 64 of them cost a unit.
    pub fn add_list(&mut self, pieces: usize) {
        self.unpaid = self.unpaid.saturating_add(WorkCost::of_units(pieces >> 6).0);
    }

    /// Returns true if there is nothing to pay, and the function was not in debt at the last call of [`Self::settle`].
    #[must_use]
    #[inline]
    pub fn are_settled(&self) -> bool {
        self.unpaid == 0 && !self.in_debt
    }

    /// Passes the cost of the excess pieces to `charge`, which returns true if the function's account still has credit.
    pub fn settle(&mut self, charge: impl FnOnce(WorkCost) -> bool) {
        let cost = WorkCost(core::mem::take(&mut self.unpaid));
        self.in_debt = !charge(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_honest_drivers_cost_nothing() {
        // Linux: a header of 12 bytes, then pages. FreeBSD: clusters of 2 KB. AVF and 82576: buffers of 1 KB and more.
        for (bytes, piece) in [(72, 4096), (1_526, 1_024), (9_728, 1_024), (65_562, 2_048), (65_562, 4_096)] {
            let mut pieces = ExcessPieces::default();
            pieces.add(1 + bytes / piece + 1, bytes);
            pieces.add_list(34);
            assert!(pieces.are_settled(), "{bytes} bytes in pieces of {piece}");
        }
    }

    #[test]
    fn excess_pieces_cost_a_unit_each() {
        let mut pieces = ExcessPieces::default();
        pieces.add(72, 72);
        pieces.add_list(128);
        pieces.settle(|cost| {
            assert_eq!(cost, WorkCost(68 + 2));
            true
        });
        assert!(pieces.are_settled());
    }

    #[test]
    fn excess_pieces_end_with_the_credit_of_a_round() {
        let mut pieces = ExcessPieces::default();
        assert_eq!(pieces.limit(60), 4 + 128);
        pieces.add(104, 60);
        assert_eq!(pieces.limit(60), 4 + 28);
        pieces.settle(|_| false);
        assert_eq!((pieces.limit(60), pieces.limit(9_728)), (4, 23), "only what the frame needs");
        assert!(!pieces.are_settled());
        pieces.settle(|cost| cost == WorkCost(0));
        assert!(pieces.are_settled());
    }
}
