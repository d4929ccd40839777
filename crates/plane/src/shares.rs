//! Shares of a plane's time: each port pays for the cost of its frames (`units::work`), whichever of its transmit queues
//! they come from. A port without credit sends nothing until later rounds have paid its debt, and the others do.
//!
//! A packet of many segments pauses between two of them once its port has overdrawn its account by [`FRAME_OVERDRAFT`].

use crate::PortIndex;
use units::work::{FRAME_OVERDRAFT, FRAME_QUANTUM, WorkAccount};
use units::{ExcessPieces, WorkCost};

/// Account of a port's frames, and the last round that it was credited for.
#[derive(Debug, Clone, Copy, Default)]
struct PortShare {
    account: WorkAccount,
    round: u32,
    /// Transmit queue that is visited first in a round: the one behind the queue that spent the last credit.
    first: u8,
}

/// Accounts of the frames of `N` ports.
#[derive(Debug, Clone)]
pub struct FrameShares<const N: usize> {
    ports: [PortShare; N],
    round: u32,
    /// Cost that each port is credited with in a round.
    quantum: WorkCost,
    /// Cost of the work for a transmit queue since the begin of its visit.
    spent: WorkCost,
    /// Cost that the visited port may spend in the present visit.
    credit: WorkCost,
}

impl<const N: usize> FrameShares<N> {
    /// Creates accounts without credit. The first round credits them.
    pub(crate) fn new() -> Self {
        let ports = [PortShare::default(); N];
        Self { ports, round: 0, quantum: FRAME_QUANTUM, spent: WorkCost(0), credit: WorkCost(0) }
    }

    /// Sets the cost that each port may spend in a round; it is [`FRAME_QUANTUM`] at first. Tests that compare two ways of a
    /// frame through a card set it so high that the ways' costs make no difference.
    pub fn set_quantum(&mut self, quantum: WorkCost) {
        self.quantum = quantum;
    }

    /// Begins a round, which credits each port with its share. A device, or a port with several, begins a round each
    /// time that it visits all transmit queues.
    #[inline]
    pub fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Returns true if a port may send in this round.
    #[must_use]
    #[inline]
    pub fn have_credit(&self, port: PortIndex) -> bool {
        let PortShare { mut account, round, .. } = self.ports[port.index::<N>()];
        account.begin_rounds(self.round.wrapping_sub(round), self.quantum);
        account.has_credit()
    }

    /// Continues the account of a port as another plane has left it.
    pub fn continue_port(&mut self, port: PortIndex, other: &Self) {
        let PortShare { mut account, round, first } = other.ports[port.index::<N>()];
        account.begin_rounds(other.round.wrapping_sub(round), other.quantum);
        self.ports[port.index::<N>()] = PortShare { account, round: self.round, first };
    }

    /// Returns the transmit queues of a port whose bits are set, in the order of their visits. Each queue is first in turn, if
    /// the queues before it spend the port's credit.
    #[inline]
    pub fn in_turn(&self, port: PortIndex, queues: u16) -> impl Iterator<Item = u8> + use<N> {
        let first = self.ports[port.index::<N>()].first;
        let mut left = queues.rotate_right(first.into());
        core::iter::from_fn(move || {
            let ahead = u8::try_from(left.trailing_zeros()).unwrap_or(16);
            left &= left.wrapping_sub(1);
            (ahead < 16).then_some((first + ahead) & 15)
        })
    }

    /// Begins a visit to a transmit queue of a port. Returns true if the port has credit.
    #[inline]
    pub(crate) fn begin_visit(&mut self, port: PortIndex) -> bool {
        let share = &mut self.ports[port.index::<N>()];
        share.account.begin_rounds(self.round.wrapping_sub(share.round), self.quantum);
        share.round = self.round;
        (self.spent, self.credit) = (WorkCost(0), share.account.credit());
        share.account.has_credit()
    }

    /// Ends a visit to a transmit queue of a port, and charges the port for it.
    #[inline]
    pub(crate) fn end_visit(&mut self, port: PortIndex, queue: u8) {
        if self.spent >= self.credit && self.spent > WorkCost(0) {
            self.ports[port.index::<N>()].first = (queue + 1) & 15;
        }
        self.end_own(port);
    }

    /// Ends a visit in which the host has sent a frame for a port, and charges the port for it. The order of the port's
    /// transmit queues stays.
    pub(crate) fn end_own(&mut self, port: PortIndex) {
        self.ports[port.index::<N>()].account.charge(self.spent);
        (self.spent, self.credit) = (WorkCost(0), WorkCost(0));
    }

    /// Charges a port for work between two visits to its transmit queues.
    pub fn charge(&mut self, port: PortIndex, cost: WorkCost) {
        self.begin_visit(port);
        self.spend(cost);
        self.end_own(port);
    }

    /// Charges a port for the excess pieces of its receive buffers, once a round.
    #[inline]
    pub fn settle_pieces(&mut self, port: PortIndex, pieces: &mut ExcessPieces) {
        if !pieces.are_settled() {
            pieces.settle(|cost| {
                self.charge(port, cost);
                self.have_credit(port)
            });
        }
    }

    /// Adds the cost of work to the present visit.
    #[inline]
    pub(crate) fn spend(&mut self, cost: WorkCost) {
        self.spent = self.spent + cost;
    }

    /// Returns true if the visited port may begin another packet.
    #[inline]
    pub(crate) fn may_begin(&self) -> bool {
        self.spent < self.credit
    }

    /// Returns true if the visited port may send the next frame of its packet.
    #[inline]
    pub(crate) fn may_continue(&self) -> bool {
        self.spent < self.credit + FRAME_OVERDRAFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Returns how much of `wanted` a port spends in one visit, in pieces of 10 units.
    fn visit(shares: &mut FrameShares<2>, port: PortIndex, wanted: u32) -> u32 {
        let mut spent = 0;
        if shares.begin_visit(port) {
            while spent < wanted && shares.may_begin() {
                shares.spend(WorkCost(10));
                spent += 10;
            }
        }
        shares.end_visit(port, 0);
        spent
    }

    #[test]
    fn visits_to_one_port_in_a_round_share_its_credit() {
        let (mut shares, [one, other]) = (FrameShares::new(), [0, 1].map(PortIndex::of_field));
        shares.begin_round();
        assert_eq!([100, 100, 100, 100].map(|wanted| visit(&mut shares, one, wanted)), [100, 30, 0, 0]);
        assert_eq!(visit(&mut shares, other, 1_000), 130);
        assert!(!shares.have_credit(one) && !shares.have_credit(other));
        shares.begin_round();
        assert!(shares.have_credit(one) && shares.have_credit(other));
        // The last round's visits were paid beyond its credit by 2 units.
        assert_eq!(visit(&mut shares, one, 1_000), 130);
    }

    #[test]
    fn packet_continues_until_its_port_is_overdrawn() {
        let (mut shares, port) = (FrameShares::<1>::new(), PortIndex::of_field(0));
        shares.begin_round();
        assert!(shares.begin_visit(port));
        let mut segments = 0;
        while shares.may_continue() {
            shares.spend(WorkCost(2));
            segments += 1;
        }
        shares.end_visit(port, 0);
        assert_eq!(segments, (FRAME_QUANTUM.0 + FRAME_OVERDRAFT.0) / 2);
        let missed = (0..10).take_while(|_| {
            shares.begin_round();
            !shares.have_credit(port)
        });
        assert_eq!(missed.count(), 4);
    }

    #[test]
    fn queue_behind_the_one_that_spent_the_credit_is_first() {
        let (mut shares, port) = (FrameShares::<1>::new(), PortIndex::of_field(0));
        let order = |shares: &FrameShares<1>| shares.in_turn(port, 1 << 15 | 0b111).collect::<Vec<_>>();
        assert_eq!(order(&shares), [0, 1, 2, 15]);
        for (queue, cost, next) in
            [(1, 127, [0, 1, 2, 15]), (1, 150, [2, 15, 0, 1]), (15, 150, [0, 1, 2, 15])]
        {
            shares.begin_round();
            shares.begin_round();
            assert!(shares.begin_visit(port));
            shares.spend(WorkCost(cost));
            shares.end_visit(port, queue);
            assert_eq!(order(&shares), next, "queue {queue} spent {cost}");
        }
        assert_eq!(shares.in_turn(port, 0).count(), 0);
    }

    #[test]
    fn account_of_a_port_moves_to_another_plane() {
        let (mut here, mut there, port) =
            (FrameShares::<1>::new(), FrameShares::<1>::new(), PortIndex::of_field(0));
        (0..7).for_each(|_| there.begin_round());
        here.begin_round();
        assert!(here.begin_visit(port));
        here.spend(WorkCost(3 * FRAME_QUANTUM.0));
        here.end_visit(port, 0);
        there.continue_port(port, &here);
        for paid in [false, false, true] {
            assert!(!there.have_credit(port));
            there.begin_round();
            assert_eq!(there.have_credit(port), paid);
        }
    }
}
