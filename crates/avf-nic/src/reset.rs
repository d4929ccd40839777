//! Resets VFs. Each reset turns the mailbox off (Linux detects a reset by ARQLEN.ENABLE clear), returns queues and
//! vectors to their state after power-on, and leaves VFGEN_RSTAT in progress until the PF driver has set up the VF
//! again. Only a function level reset (FLR) also notifies the PF, by GLGEN_VFLRSTAT.
//!
//! The card's owner resets configuration space and MSI-X table.

use crate::card::Nic;
use crate::function::VfHardware;
use crate::mailbox::Mailbox;
use avf::bits::rstat;
use avf::virtchnl::VfTrafficStatistics;
use pcie::VfIndex;
use plane::PortIndex;
use units::WorkCost;

impl Nic {
    /// Resets a VF for its guest (FLR), and sets the VF's bit of GLGEN_VFLRSTAT for the PF.
    pub fn function_level_reset(&mut self, vf: u8) {
        if usize::from(vf) < self.functions.len() {
            self.scratch.work = self.scratch.work + WorkCost::RESET;
            self.begin_reset(vf);
            self.flr |= 1 << vf;
        }
    }

    /// Resets a VF for its next owner. Also clears mailbox positions and statistics, which other resets keep for the
    /// VF's driver.
    pub fn reset_for_next_owner(&mut self, vf: u8) {
        self.function_level_reset(vf);
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.mailbox = Mailbox::default();
            function.statistics = VfTrafficStatistics::default();
        }
    }

    /// Returns the cost of the function-level resets since the last call.
    pub fn take_work(&mut self) -> WorkCost {
        core::mem::take(&mut self.scratch.work)
    }

    /// Performs the card's part of every reset of a VF; the PF driver does the rest.
    pub(crate) fn begin_reset(&mut self, vf: u8) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let old = core::mem::replace(function, VfHardware::new());
        self.scratch.resets.count(PortIndex::of_field(vf.into()));
        function.rstat = rstat::IN_PROGRESS;
        // The last message counts as taken: Linux waits on unbind until ATQH is its tail, and spins for 250 ms otherwise.
        function.mailbox.send.tail = old.mailbox.send.tail;
        function.mailbox.send.head = old.mailbox.send.tail;
        (function.statistics, function.counters, function.master) =
            (old.statistics, old.counters, old.master);
        (function.brake, function.interrupts) = (old.brake, old.interrupts.after_reset());
        (function.filters.rate, function.filters.spoof_check) = (old.filters.rate, old.filters.spoof_check);
        function.filters.tags = old.filters.tags;
        if !old.held.is_empty() {
            self.note_dropped(vf);
        }
    }

    /// Counts a packet that is dropped after some of its segments have left, at the next visit.
    pub(crate) fn note_dropped(&mut self, vf: u8) {
        self.scratch.dropped = self.scratch.dropped.or(VfIndex::new(vf).into_iter().collect());
    }
}
