//! Guest with a rate that sends as fast as its ring takes frames.

use super::super::account::check_rate;
use super::super::function::LONGEST;
use super::super::policy::SimulatedPolicy;
use super::{SimulatedGuest, SimulatedWorld, TURN};
use std::time::Duration;

/// Times of a short flood and of a long one. The long one sends more than a guest may make up for at once: a rate that is too high
/// by half breaks its bound.
const TIMES: [Duration; 2] = [Duration::from_micros(800), Duration::from_millis(150)];
/// Maximum number of turns of a flood.
const TURNS: u32 = 1_000;
/// Longest turn of a flood. A ring has frames for a longer time at every rate.
const LONGEST_TURN: Duration = Duration::from_millis(1);
/// Maximum number of frames that the guest sends between two turns.
const FRAMES: usize = 16;

impl SimulatedWorld {
    /// Limits a guest's rate, and has the guest send to another as fast as its ring takes frames. The port may not send more than
    /// the rate permits, at any length of the ring.
    pub(super) fn flood(&mut self, (from, to): (usize, usize), rate: u32, seed: u64) -> Result<(), String> {
        let Some(address) = self.guests[to].mac().filter(|_| to != from && self.guests[from].has_link())
        else {
            return Ok(());
        };
        let policy = self.host.borrow().policies.of(from);
        if policy.rate != rate {
            self.set_policy(from, SimulatedPolicy { rate, ..policy }, None)?;
        }
        // A host that dies may have refused the change.
        if self.host.borrow().policies.of(from).rate != rate {
            return Ok(());
        }
        let (disturbances, begin) = (self.disturbances(), self.host.borrow().clock.time());
        let before = self.host.borrow_mut().status().vfs[from].tx.bytes;
        let time = TIMES[fastrand::Rng::with_seed(seed).usize(0..TIMES.len())];
        for _ in 0..TURNS {
            if self.host.borrow().clock.time() >= begin + time {
                break;
            }
            let guest = &mut self.guests[from];
            (0..FRAMES).take_while(|_| guest.send(to as u16, address, LONGEST)).for_each(drop);
            self.host.borrow_mut().step(if time > LONGEST_TURN { LONGEST_TURN } else { TURN });
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
        }
        let after = self.host.borrow_mut().status().vfs[from].tx.bytes;
        if self.disturbances() != disturbances {
            return Ok(());
        }
        let bytes = after - before;
        self.flooded += bytes;
        let host = self.host.borrow();
        let rates = (0..self.guests.len()).map(|guest| host.policies.of(guest).rate);
        let fastest = rates.max().unwrap_or(0);
        check_rate(from, (bytes, host.clock.time().since(begin)), (rate, fastest))
    }
}
