//! Storm control as software sees it, and the registers of the police. Left out: frames that a pool may not send (`police`).

use crate::Nic;
use crate::policy::storm;
use i82576::Time;
use i82576::bits::icr;
use i82576::register as r;

impl Nic {
    /// Lets the windows of storm control pass up to `now`.
    pub(crate) fn pass_storm_windows(&mut self, now: Time) {
        if storm::is_limited(&self.state.file) {
            self.plane.storm.advance(now);
            storm::show_intervals(&self.plane.storm, &mut self.state.file, now);
            self.show_storm();
        }
    }

    /// Shows what storm control has seen, and tells if a storm has come or gone since it was shown.
    pub(crate) fn show_storm(&mut self) {
        if storm::is_limited(&self.state.file) {
            let before = self.state.file.get(r::SCSTS) != 0;
            storm::show(&self.plane.storm, &mut self.state.file);
            if before != self.plane.storm.is_on() {
                self.state.interrupts.raise_other(&mut self.state.file, icr::SCE);
            }
        }
    }

    /// When a storm may be over though nobody sends. Without a limit no window passes, whatever the registers show.
    pub(crate) fn end_of_storm_window(&self) -> Option<Time> {
        let passes = self.plane.storm.is_on() && storm::is_limited(&self.state.file);
        passes.then(|| self.plane.storm.ends())
    }

    /// Storm control as its registers have it.
    pub(crate) fn load_storm(&mut self) {
        self.plane.storm = storm::load(&self.state.file, self.plane.storm.began);
    }

    /// A register of this stop was written.
    pub(crate) fn police_written(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            // Who was let go may have been waiting.
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
