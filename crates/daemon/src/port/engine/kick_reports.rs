//! Reports of kicks by a poller, of which some repeat an earlier one.
//!
//! The port never reads the eventfds of kicks, so the count of each eventfd that a guest has written to stays above 0. A poller
//! reports such an eventfd once when it gets the eventfd, although the guest has not kicked again.

/// Reports of the kicks of a function's rings. Rings that do not exist are ignored.
#[derive(Debug, Default)]
pub(in crate::port) struct KickReports {
    /// Bit mask of the rings whose eventfd a poller has reported.
    reported: u32,
    /// Bit mask of the rings whose next report repeats an earlier one.
    repeated: u32,
}

impl KickReports {
    /// Records that a ring has a new eventfd, which no poller has reported.
    pub(in crate::port) fn renew(&mut self, ring: u32) {
        self.reported &= !bit(ring);
        self.repeated &= !bit(ring);
    }

    /// Records that the eventfds of all rings have moved to another poller.
    pub(in crate::port) fn move_all(&mut self) {
        self.repeated = self.reported;
    }

    /// Records a report. Returns false if it may repeat an earlier one. A kick between a move and the repeated report is not
    /// reported apart.
    pub(super) fn is_kick(&mut self, ring: u32) -> bool {
        let is_kick = self.repeated & bit(ring) == 0;
        self.repeated &= !bit(ring);
        self.reported |= bit(ring);
        is_kick
    }
}

fn bit(ring: u32) -> u32 {
    1_u32.checked_shl(ring).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::KickReports;

    #[test]
    fn report_after_a_move_repeats_an_earlier_kick() {
        let mut reports = KickReports::default();
        assert!(reports.is_kick(1));
        reports.move_all();
        reports.move_all();
        assert_eq!([1, 1, 3].map(|ring| reports.is_kick(ring)), [false, true, true]);
        reports.renew(1);
        reports.move_all();
        assert_eq!([1, 3].map(|ring| reports.is_kick(ring)), [true, false]);
    }
}
