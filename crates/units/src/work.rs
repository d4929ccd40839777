//! Cost of the work that guests cause, and the account of each function: shares are fair by cost (deficit round robin).
//!
//! A port's thread works for its functions in rounds. Each round credits every function with [`QUANTUM`]. A function
//! works while its account has credit, and each piece of work is charged when it is done. A piece is never cut, so an
//! account may end below zero; the function then waits until later rounds have paid its debt, and the others do not.
//! Credit that a function has not used is not saved for later.

use core::ops::Add;

/// Cost of work on a port's thread, in the cost of one access to a register (some 0.1 us).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkCost(pub u32);

/// Cost that a function is credited with in each round (some 20 us).
pub const QUANTUM: WorkCost = WorkCost(200);

impl WorkCost {
    /// Cost of an access to one dword of registers, configuration space or MSI-X table.
    pub const ACCESS: Self = Self(1);
    /// Cost of a client's message, without the accesses in it.
    pub const MESSAGE: Self = Self(6);
    /// Cost of reading the doorbells in a client's mapped register pages, and of publishing the registers there.
    pub const PAGES: Self = Self(4);
    /// Cost of a reset of a VF.
    pub const RESET: Self = Self(20);
    /// Cost of a client's request that is handed to a worker thread, such as a DMA window to map.
    pub const ERRAND: Self = Self(40);

    /// Returns the cost of accesses to `bytes` bytes of registers.
    #[must_use]
    pub fn of_accesses(bytes: usize) -> Self {
        Self(u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX))
    }
}

impl Add for WorkCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Account of a function's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkAccount {
    credit: i64,
}

impl WorkAccount {
    /// Credits the function with its share of a round.
    pub fn begin_round(&mut self) {
        let quantum = i64::from(QUANTUM.0);
        self.credit = quantum.min(self.credit.saturating_add(quantum));
    }

    /// Subtracts the cost of finished work.
    pub fn charge(&mut self, cost: WorkCost) {
        self.credit = self.credit.saturating_sub(cost.0.into());
    }

    /// Returns true if the function may work: its account has credit.
    #[must_use]
    pub fn has_credit(&self) -> bool {
        self.credit > 0
    }
}

#[cfg(test)]
mod tests {
    use super::{QUANTUM, WorkAccount, WorkCost};

    /// Runs `rounds` rounds of two functions that always have work, in pieces of these costs. Returns the cost that was
    /// spent on each.
    fn spent(rounds: u32, pieces: [u32; 2]) -> [u64; 2] {
        let (mut accounts, mut spent) = ([WorkAccount::default(); 2], [0; 2]);
        for _ in 0..rounds {
            for ((account, spent), piece) in accounts.iter_mut().zip(&mut spent).zip(pieces) {
                account.begin_round();
                while account.has_credit() {
                    account.charge(WorkCost(piece));
                    *spent += u64::from(piece);
                }
            }
        }
        spent
    }

    #[test]
    fn shares_are_equal_whatever_a_piece_of_work_costs() {
        for pieces in [[1, 1], [1, 150], [7, 10_000], [199, 201]] {
            let [one, other] = spent(1_000, pieces);
            let longest = u64::from(*pieces.iter().max().unwrap());
            assert!(one.abs_diff(other) <= longest + u64::from(QUANTUM.0), "{pieces:?}: {one}, {other}");
        }
    }

    #[test]
    fn unused_credit_is_not_saved() {
        let mut account = WorkAccount::default();
        (0..1_000).for_each(|_| account.begin_round());
        account.charge(QUANTUM);
        assert!(!account.has_credit());
    }

    #[test]
    fn debt_is_paid_by_later_rounds() {
        let mut account = WorkAccount::default();
        account.begin_round();
        account.charge(WorkCost(QUANTUM.0 * 4));
        let missed = (0..10).take_while(|_| {
            account.begin_round();
            !account.has_credit()
        });
        assert_eq!(missed.count(), 3);
        account.charge(WorkCost(u32::MAX));
        account.begin_round();
        assert!(!account.has_credit());
    }

    #[test]
    fn costs_saturate() {
        assert_eq!(WorkCost(u32::MAX) + WorkCost(1), WorkCost(u32::MAX));
        assert_eq!([0, 1, 4, 5].map(WorkCost::of_accesses), [0, 1, 1, 2].map(WorkCost));
    }
}
