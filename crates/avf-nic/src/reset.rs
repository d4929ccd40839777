//! Resets of a VF. Each is the same for the VF: mailbox off (ARQLEN.ENABLE clear, by which drivers notice), queues and
//! vectors as after power-on, VFGEN_RSTAT in progress until the PF has set it up again. They differ in who hears of it.
//!
//! Left out: configuration space, which a function level reset resets too, and the MSI-X table.

use crate::card::Card;
use crate::function::Function;
use crate::mailbox::Mailbox;
use avf::bits::rstat;
use avf::virtchnl::Statistics;

impl Card {
    /// The guest resets the function (FLR): the PF finds it in GLGEN_VFLRSTAT.
    pub fn function_level_reset(&mut self, vf: u8) {
        if usize::from(vf) < self.functions.len() {
            self.begin_reset(vf);
            self.flr |= 1 << vf;
        }
    }

    /// Resets the function for its next owner: also the mailbox positions and the statistics go, which the resets of a driver
    /// keep for it.
    pub fn reset_for_next_owner(&mut self, vf: u8) {
        self.function_level_reset(vf);
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.mailbox = Mailbox::default();
            function.statistics = Statistics::default();
        }
    }

    /// The first half of every reset.
    pub(crate) fn begin_reset(&mut self, vf: u8) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let old = core::mem::replace(function, Function::new());
        function.rstat = rstat::IN_PROGRESS;
        // A driver that waits for its last message to be taken finds it taken: Linux spins for 250 ms otherwise.
        function.mailbox.send.tail = old.mailbox.send.tail;
        function.mailbox.send.head = old.mailbox.send.tail;
        (function.statistics, function.counters, function.master) =
            (old.statistics, old.counters, old.master);
        (function.brake, function.interrupts) = (old.brake, old.interrupts.after_reset());
        (function.filters.rate, function.filters.spoof_check) = (old.filters.rate, old.filters.spoof_check);
        function.filters.tags = old.filters.tags;
    }
}
