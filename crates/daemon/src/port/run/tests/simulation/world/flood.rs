//! Guest that sends faster than its rate permits.

use super::super::account::check_rate;
use super::super::function::LONGEST;
use super::super::policy::SimulatedPolicy;
use super::{SimulatedGuest, SimulatedWorld, TURN};

/// Turns of the host in which the guest sends.
const TURNS: usize = 40;
/// Maximum number of frames that the guest sends between two turns.
const FRAMES: usize = 16;

impl SimulatedWorld {
    /// Limits a guest's rate, and has the guest send to another as fast as its ring takes frames. The port may not send more than
    /// the rate permits, at any length of the ring.
    pub(super) fn flood(&mut self, (from, to): (usize, usize), rate: u32) -> Result<(), String> {
        let policy = SimulatedPolicy { rate, ..self.host.borrow().policies.of(from) };
        self.set_policy(from, policy, None)?;
        // A host that dies may have refused the change.
        let is_limited = self.host.borrow().policies.of(from).rate == rate;
        let Some(address) = self.guests[to].mac().filter(|_| to != from && is_limited) else {
            return Ok(());
        };
        let (disturbances, begin) = (self.disturbances(), self.host.borrow().clock.time());
        let before = self.host.borrow_mut().status().vfs[from].tx.bytes;
        for _ in 0..TURNS {
            let guest = &mut self.guests[from];
            (0..FRAMES).take_while(|_| guest.send(to as u16, address, LONGEST)).for_each(drop);
            self.host.borrow_mut().step(TURN);
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
        }
        let after = self.host.borrow_mut().status().vfs[from].tx.bytes;
        if self.disturbances() != disturbances {
            return Ok(());
        }
        let host = self.host.borrow();
        let rates = (0..self.guests.len()).map(|guest| host.policies.of(guest).rate);
        let fastest = rates.max().unwrap_or(0);
        check_rate(from, (after - before, host.clock.time().since(begin)), (rate, fastest))
    }
}
