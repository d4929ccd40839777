//! Charges ports for the measured cost of accesses in their names, and drops frames for ports that are deep in debt for it.

use crate::PortIndex;
use crate::contents::GuardReason;
use crate::forward::ForwardingPlane;
use crate::shares::FrameShares;
use crate::sink::{DeliveryError, DeliveryOutcome};
use units::{Time, WorkCost};

/// Accounts of a plane's ports, which a device charges for the measured cost of accesses.
pub trait MeasuredShares {
    /// Charges a port for the cost that `accesses` accesses in its name had beyond their counted cost. Its surcharge becomes the
    /// mean cost of these accesses, unless it is higher.
    fn charge_measured(&mut self, port: PortIndex, cost: WorkCost, accesses: u32, now: Time);

    /// Charges a port for counted work between two visits to its transmit queues.
    fn charge_counted(&mut self, port: PortIndex, cost: WorkCost);

    /// Returns the counted cost that ports were charged for since the last call.
    fn take_counted(&mut self) -> WorkCost;

    /// Halves surcharges that are older than a second. Returns true if a port has a surcharge.
    fn age_surcharges(&mut self, now: Time) -> bool;

    /// Forgets the debts of ports with a surcharge: the thread has no work that waits for them.
    fn forget_debts(&mut self);
}

impl<const N: usize> MeasuredShares for FrameShares<N> {
    fn charge_measured(&mut self, port: PortIndex, cost: WorkCost, accesses: u32, now: Time) {
        self.charge_unplanned(port, cost);
        self.surcharges.note(port, cost.0 / accesses.max(1), now);
    }

    fn charge_counted(&mut self, port: PortIndex, cost: WorkCost) {
        self.charge(port, cost);
    }

    fn take_counted(&mut self) -> WorkCost {
        core::mem::take(&mut self.counted)
    }

    fn age_surcharges(&mut self, now: Time) -> bool {
        self.surcharges.age(now);
        !self.surcharges.ports.is_empty()
    }

    fn forget_debts(&mut self) {
        for port in self.surcharges.ports.iter() {
            self.limit_debt(port, WorkCost(0));
        }
    }
}

impl<const N: usize> ForwardingPlane<N> {
    /// Counts a frame for a port that is deep in debt for its memory, buffers or eventfds.
    #[cold]
    pub(crate) fn count_refused(&mut self, port: PortIndex) -> DeliveryOutcome {
        self.ledger.guarded(port)[GuardReason::ReceiverDebt as usize] += 1;
        self.count_lost(port, DeliveryError::Dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use units::work::{FRAME_QUANTUM, RECEIVE_DEBT};

    const PORTS: [PortIndex; 2] = [PortIndex::of_field(0), PortIndex::of_field(1)];

    /// Begins a round, and returns the number of frames that a queue of a port may send in it, of 64.
    fn budget(shares: &mut FrameShares<2>, port: PortIndex) -> usize {
        shares.begin_round();
        if shares.begin_visit(port) { shares.budget(port, 64) } else { 0 }
    }

    /// Offers a port 1,000 frames in a round. Returns the number of admitted frames.
    fn admitted(shares: &mut FrameShares<2>, port: PortIndex) -> u32 {
        shares.begin_round();
        (0..1_000).map(|_| u32::from(shares.may_receive(port))).sum()
    }

    fn seconds(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn dear_frames_shorten_the_visits_of_their_port() {
        let (mut shares, [dear, other]) = (FrameShares::new(), PORTS);
        assert_eq!([budget(&mut shares, dear), budget(&mut shares, other)], [64, 64]);
        // 10 page faults of 2.5 us each, which its credit pays.
        shares.charge_measured(dear, WorkCost(250), 10, Time::ZERO);
        assert_eq!([budget(&mut shares, dear), budget(&mut shares, other)], [9, 64]);
        // A page fault of 180 us is paid by 7 rounds.
        shares.charge_measured(dear, WorkCost(1_800), 1, Time::ZERO);
        let budgets = [(); 9].map(|()| budget(&mut shares, dear));
        assert_eq!(budgets, [0, 0, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(budget(&mut shares, other), 64);
    }

    #[test]
    fn surcharge_is_halved_each_second_after_the_last_dear_access() {
        let (mut shares, [dear, _]) = (FrameShares::<2>::new(), PORTS);
        shares.charge_measured(dear, WorkCost(15), 1, seconds(10));
        for (second, budget_then) in [(10, 16), (11, 32), (12, 64), (13, 64)] {
            shares.age_surcharges(seconds(second));
            shares.age_surcharges(seconds(second));
            (0..2).for_each(|_| shares.begin_round());
            assert_eq!(budget(&mut shares, dear), budget_then, "second {second}");
        }
        assert!(!shares.age_surcharges(seconds(14)) && !shares.is_surcharged(dear));
    }

    #[test]
    fn cheaper_access_does_not_lower_a_surcharge() {
        let (mut shares, [dear, _]) = (FrameShares::<2>::new(), PORTS);
        shares.charge_measured(dear, WorkCost(100), 1, Time::ZERO);
        shares.charge_measured(dear, WorkCost(100), 100, Time::ZERO);
        (0..2).for_each(|_| shares.begin_round());
        assert_eq!(budget(&mut shares, dear), 2);
    }

    #[test]
    fn receiver_deep_in_debt_gets_no_frame_until_rounds_have_paid() {
        let (mut shares, [dear, other]) = (FrameShares::new(), PORTS);
        shares.charge_measured(dear, RECEIVE_DEBT + FRAME_QUANTUM, 8, Time::ZERO);
        assert_eq!([admitted(&mut shares, dear), admitted(&mut shares, other)], [0, 1_000]);
        let missed = (0..100).take_while(|_| admitted(&mut shares, dear) == 0).count();
        assert!(missed < 3, "{missed} rounds");
    }

    #[test]
    fn receiver_gets_frames_of_a_round_up_to_its_expected_debt() {
        let (mut shares, [dear, _]) = (FrameShares::new(), PORTS);
        shares.charge_measured(dear, WorkCost(1_800), 1, Time::ZERO);
        (0..8).for_each(|_| shares.begin_round());
        // Each costs 1,800 units, and 8,192 are the deepest debt.
        assert_eq!([admitted(&mut shares, dear), admitted(&mut shares, dear)], [5, 5]);
        shares.charge_measured(dear, WorkCost(9_000), 5, Time::ZERO);
        assert_eq!(admitted(&mut shares, dear), 0);
        shares.forget_debts();
        assert_eq!(admitted(&mut shares, dear), 5);
    }

    #[test]
    fn measured_cost_is_no_counted_cost() {
        let (mut shares, [dear, _]) = (FrameShares::<2>::new(), PORTS);
        shares.charge_measured(dear, WorkCost(1_800), 1, Time::ZERO);
        shares.charge_counted(dear, WorkCost(8));
        assert_eq!([shares.take_counted(), shares.take_counted()], [WorkCost(8), WorkCost(0)]);
    }

    #[test]
    fn surcharge_and_debt_of_a_port_move_to_another_plane() {
        let (mut here, mut there, [dear, _]) = (FrameShares::<2>::new(), FrameShares::<2>::new(), PORTS);
        here.charge_measured(dear, WorkCost(1_800), 1, Time::ZERO);
        there.continue_port(dear, &here);
        assert!(there.is_surcharged(dear) && !there.have_credit(dear));
    }
}
