//! Interrupts that a VF pays for. Its account of frames pays a fixed number of units for each interrupt that the card sends. While
//! the VF owes more than honest guests ever do, its interrupts wait, and are sent when the debt is paid.

use plane::PortIndex;
use plane::shares::FrameShares;
use units::WorkCost;

/// Interrupts of a VF that it has not paid for, or that wait.
#[derive(Debug, Default)]
pub(super) struct UnsettledInterrupts {
    /// Number of sent interrupts that the VF has not paid for.
    unpaid: u32,
    /// True while interrupts of the VF wait until its debt is paid.
    held: bool,
    /// MSI-X vectors whose interrupt waits, a bit each. No VF has more than 64.
    waiting: u64,
}

impl UnsettledInterrupts {
    /// Returns true if an interrupt of a vector has to wait, and remembers it.
    pub(super) fn hold(&mut self, vector: u32) -> bool {
        if self.held {
            self.waiting |= bit(vector);
        }
        self.held
    }

    /// Counts sent interrupts.
    pub(super) fn owe(&mut self, count: u32) {
        self.unpaid = self.unpaid.saturating_add(count);
    }

    /// Charges the VF for its interrupts, and decides by its debt whether its next ones wait. Returns true if they do.
    pub(super) fn settle<const N: usize>(&mut self, port: PortIndex, shares: &mut FrameShares<N>) -> bool {
        shares.charge(port, WorkCost::of_interrupts(std::mem::take(&mut self.unpaid)));
        self.held = shares.is_overdrawn(port);
        self.held
    }

    /// Returns true if an interrupt waits.
    pub(super) fn wait(&self) -> bool {
        self.waiting != 0
    }

    /// Ends the wait. Returns the vectors whose interrupt has waited, a bit each.
    pub(super) fn release(&mut self) -> u64 {
        self.held = false;
        std::mem::take(&mut self.waiting)
    }

    /// Drops a waiting interrupt, because its vector has lost its eventfd.
    pub(super) fn forget(&mut self, vector: u32) {
        self.waiting &= !bit(vector);
    }

    /// Drops all waiting interrupts.
    pub(super) fn forget_all(&mut self) {
        self.waiting = 0;
    }
}

fn bit(vector: u32) -> u64 {
    1_u64.checked_shl(vector).unwrap_or(0)
}
