//! Uplink whose far end vanishes, and comes back some steps later or with the next process.

use super::SimulatedWorld;
use std::time::Duration;

/// Maximum number of steps of a life in which the uplink is gone.
const STEPS: usize = 12;

/// Steps within which a port has its link again: a wait may report the wire after other events.
const LINK_STEPS: usize = 100;

impl SimulatedWorld {
    /// Unplugs the uplink for some of the next steps, which the seed chooses. Guests send until they see that their link is down,
    /// and virtio guests, whose links stay up, all the time.
    pub(super) fn unplug(&mut self, seed: u64) -> Result<(), String> {
        if !self.host.borrow().is_uplink_up() {
            return Ok(());
        }
        // The port takes the frames of stations: none is on the wire, where no counter names its loss.
        self.rest()?;
        self.steps_unplugged = fastrand::Rng::with_seed(seed).usize(1..=STEPS);
        let mut host = self.host.borrow_mut();
        host.take_departed_frames();
        if let Some(uplink) = &mut host.uplink {
            uplink.unplug();
        }
        // The wire wakes the port, which sends nothing to it from now on.
        host.step(Duration::ZERO);
        Ok(())
    }

    /// Passes a step. Plugs the uplink in if it was gone for long enough.
    pub(super) fn pass_unplugged_step(&mut self) {
        self.steps_unplugged = self.steps_unplugged.saturating_sub(1);
        if self.steps_unplugged == 0 {
            self.plug_in();
        }
    }

    /// Plugs the uplink in, if it is gone. The port has its link again.
    pub(super) fn plug_in(&mut self) {
        self.steps_unplugged = 0;
        let mut host = self.host.borrow_mut();
        if !host.is_uplink_gone() {
            return;
        }
        host.plug_in_uplink();
        for _ in 0..LINK_STEPS {
            host.step(Duration::ZERO);
            if host.status().link {
                return;
            }
        }
        panic!("the port has no link {LINK_STEPS} steps after its uplink is back");
    }
}
