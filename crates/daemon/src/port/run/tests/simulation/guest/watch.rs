//! Watchdog of a guest's driver: it finds resets of the function, and the link.

use super::SimulatedGuest;
use crate::config::file::CardFamily;
use std::time::Duration;

/// Time after which a guest runs its driver's watchdog.
const WATCHDOG: Duration = Duration::from_secs(2);
/// Time after which a guest looks again at a link that is down.
const LINK_DOWN: Duration = Duration::from_millis(20);

impl SimulatedGuest {
    /// Runs the driver's watchdog, which finds out that the function was reset, and starts it again then.
    pub(in super::super) fn watch(&mut self) -> Result<(), String> {
        // What happens while the driver looks may be found by its next look.
        let causes = self.place.reset_causes();
        let Some(function) = self.function.as_mut().filter(|_| !self.is_hostile) else { return Ok(()) };
        let link = function.watch();
        let link = link.map_err(|wrong| self.fault(&wrong))?;
        // A driver does not start while its VF is in quarantine, which it reports as a reset too.
        let is_quarantined = self.place.host.borrow().policies.of(self.index()).is_quarantined;
        if link.was_reset && !is_quarantined && self.reset_causes == self.place.reset_causes() {
            return Err(self.fault("was reset, although the host has not died and no policy has changed"));
        }
        if link.is_up || !link.was_reset {
            self.reset_causes = causes;
        }
        self.disturbances += u64::from(link.was_reset);
        self.link = link.is_up;
        self.watchdog = self.now() + if self.link { WATCHDOG } else { LINK_DOWN };
        Ok(())
    }

    /// Runs the driver's watchdog. Returns true if it finds that the function was reset.
    pub(super) fn finds_reset(&mut self) -> Result<bool, String> {
        let before = self.disturbances;
        self.watch()?;
        Ok(self.disturbances != before)
    }

    /// Checks that the host has ended the connection, as the guest's VF was removed.
    pub(in super::super) fn check_disconnected(&mut self) -> Result<(), String> {
        match self.function.as_mut().is_none_or(|function| function.is_disconnected()) {
            true => Ok(()),
            false => Err(self.fault("is connected, and its VF was removed")),
        }
    }

    /// Checks that the host has not ended the connection. Returns false if the guest has to connect again after a death.
    pub(super) fn check_connection(&mut self) -> Result<bool, String> {
        let Some(function) = &mut self.function else { return Ok(false) };
        let is_connected = function.check_connection();
        let is_connected = is_connected.map_err(|wrong| self.fault(&wrong))?;
        if !is_connected && self.link {
            self.link = false;
            self.watchdog = self.now() + LINK_DOWN;
        }
        Ok(is_connected)
    }

    /// Returns true if the guest does not see the link that the administrator has set, or sees one of a port whose uplink is gone.
    /// A virtio guest sees no link of the port.
    pub(in super::super) fn sees_wrong_link(&self) -> bool {
        let host = self.place.host.borrow();
        let has_link = self.family() == CardFamily::Virtio || !host.is_uplink_gone();
        let is_right = (host.policies.of(self.index()).has_link() && has_link) == self.link;
        self.is_attached() && !self.is_hostile && !is_right
    }

    /// Checks that the guest sees the link that the administrator and the uplink permit.
    pub(in super::super) fn check_link(&self) -> Result<(), String> {
        match (self.sees_wrong_link(), self.link) {
            (true, true) => {
                Err(self.fault("sees a link that the administrator has disabled, or that is gone"))
            }
            (true, false) => Err(self.fault("sees no link although the administrator has not disabled it")),
            (false, _) => Ok(()),
        }
    }
}
