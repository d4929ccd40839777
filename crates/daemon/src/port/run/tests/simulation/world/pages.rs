//! Register pages of the guests of a simulated world.

use super::SimulatedWorld;

impl SimulatedWorld {
    /// Checks the register pages of one guest, of another one at each rest: a message for each register takes long.
    pub(super) fn compare_pages(&mut self) -> Result<(), String> {
        let guest = self.page_looks % self.guests.len();
        self.page_looks += 1;
        self.summary.page_registers += self.guests[guest].compare_pages()?;
        Ok(())
    }
}
