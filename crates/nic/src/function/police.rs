//! Registers of storm control and of malicious driver protection. `police` reports the violations.

use crate::Nic;
use crate::switch::storm;
use i82576::Time;
use i82576::bits::icr;
use i82576::register as r;

impl Nic {
    /// Ends the windows of storm control that are over at `now`, and updates the status registers.
    pub(crate) fn pass_storm_windows(&mut self, now: Time) {
        if storm::is_limited(&self.state.file) {
            self.plane.storm.advance(now);
            storm::show_intervals(&self.plane.storm, &mut self.state.file, now);
            self.show_storm();
        }
    }

    /// Writes the counters and states of storm control to its registers, and raises ICR.SCE if a storm began or ended.
    pub(crate) fn show_storm(&mut self) {
        if storm::is_limited(&self.state.file) {
            let before = self.state.file.get(r::SCSTS) != 0;
            storm::show(&self.plane.storm, &mut self.state.file);
            if before != self.plane.storm.is_on() {
                self.state.interrupts.raise_other(&mut self.state.file, icr::SCE);
            }
        }
    }

    /// Returns the end of storm control's window during a storm: the card has to be polled then, since a storm may end
    /// without another frame. Without a limit no window passes.
    pub(crate) fn end_of_storm_window(&self) -> Option<Time> {
        let passes = self.plane.storm.is_on() && storm::is_limited(&self.state.file);
        passes.then(|| self.plane.storm.ends())
    }

    /// Loads the settings of storm control from the registers into the forwarding plane.
    pub(crate) fn load_storm(&mut self) {
        self.plane.storm = storm::load(&self.state.file, self.plane.storm.began);
    }

    /// Applies the effect of a write to a register of storm control or malicious driver protection.
    pub(crate) fn police_written(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            // A queue that is unblocked may have pending descriptors.
            r::MDFB => self.state.queues.ready |= value as u16,
            r::SCCRL | r::SCBI | r::BSCTRH | r::MSCTRH => {
                self.load_storm();
                self.plane.storm.restart(now);
                storm::show(&self.plane.storm, &mut self.state.file);
                self.state.file.set(r::SCTC, 0);
            }
            _ => {}
        }
    }
}
