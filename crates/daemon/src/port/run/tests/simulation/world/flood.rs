//! Guest with a rate that sends as fast as its ring takes frames.

use super::super::function::LONGEST;
use super::super::policy::SimulatedPolicy;
use super::super::rates::{SentBytes, TransmitRate};
use super::{SimulatedGuest, SimulatedWorld, TURN};
use crate::control::status::VfStatus;
use i82576::MacAddress;
use std::time::Duration;

/// Times of a short flood and of a long one. The long one sends more than a guest may make up for at once: a rate that is too high
/// by half breaks its bound.
const TIMES: [Duration; 2] = [Duration::from_micros(800), Duration::from_millis(150)];
/// Time from which on a flood has to use its rate.
const MEASURED: Duration = Duration::from_millis(100);
/// Maximum number of turns of a flood.
const TURNS: u32 = 1_000;
/// Longest turn of a flood. A ring has frames for a longer time at every rate.
const LONGEST_TURN: Duration = Duration::from_millis(1);
/// Number of frames that no ring takes at once.
const RING: usize = 512;

/// Guest that sends to another.
#[derive(Clone, Copy)]
struct Flood {
    from: usize,
    to: usize,
    address: MacAddress,
}

impl SimulatedWorld {
    /// Limits a guest's rate, and has the guest send to another as fast as its ring takes frames. The port may not send more than
    /// the rate permits, at any length of the ring, and in a long flood it sends as much.
    pub(super) fn flood(&mut self, (from, to): (usize, usize), rate: u32, seed: u64) -> Result<(), String> {
        let is_linked = self.guests[from].has_link() && !self.host.borrow().is_uplink_gone();
        let policy = self.host.borrow().policies.of(from);
        // A guest may not know yet that its VF is in quarantine.
        let may_send = is_linked && !policy.is_quarantined && !self.guests[from].is_hostile();
        let Some(address) = self.guests[to].mac().filter(|_| to != from && may_send) else { return Ok(()) };
        if policy.rate != rate {
            self.set_policy(from, SimulatedPolicy { rate, ..policy }, None)?;
        }
        // A death or a change may have reset the VF. Its driver starts again.
        self.guests[from].watch()?;
        // A host that dies may have refused the change.
        if self.host.borrow().policies.of(from).rate != rate || !self.guests[from].has_link() {
            return Ok(());
        }
        let disturbances = (self.disturbances(), self.guests[from].disturbances);
        let begin = self.host.borrow().clock.time();
        let before = self.host.borrow_mut().status().vfs[from].clone();
        let time = TIMES[fastrand::Rng::with_seed(seed).usize(0..TIMES.len())];
        let ran_empty = self.send_for(time, Flood { from, to, address })?;
        let after = self.host.borrow_mut().status().vfs[from].clone();
        if self.disturbances() != disturbances.0 {
            return Ok(());
        }
        let bytes = after.tx.bytes - before.tx.bytes;
        self.summary.flooded += bytes;
        let host = self.host.borrow();
        let rate = TransmitRate::of_all(&self.guests, &host)[from].expect("the guest has a rate");
        let sent = SentBytes { guest: from, bytes, time: host.clock.time().since(begin) };
        sent.check_most(rate)?;
        let is_undisturbed = self.guests[from].disturbances == disturbances.1;
        if sent.time < MEASURED || ran_empty || !is_undisturbed || is_held(&before, &after) {
            return Ok(());
        }
        self.summary.measured_floods += 1;
        sent.check_least(rate)
    }

    /// Has a guest fill its transmit ring again and again for a time. Returns true if the ring may have been empty meanwhile: it
    /// had room for as many frames as at first, or another driver has waited for longer than a ring lasts.
    fn send_for(&mut self, time: Duration, flood: Flood) -> Result<bool, String> {
        let begin = self.host.borrow().clock.time();
        let places = self.fill(flood);
        let mut ran_empty = false;
        for _ in 0..TURNS {
            if self.host.borrow().clock.time() >= begin + time {
                break;
            }
            let filled = self.host.borrow().clock.time();
            self.host.borrow_mut().step(if time > LONGEST_TURN { LONGEST_TURN } else { TURN });
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
            let is_late = self.host.borrow().clock.time() > filled + 2 * LONGEST_TURN;
            ran_empty |= self.fill(flood) >= places || is_late;
        }
        Ok(ran_empty)
    }

    /// Fills the guest's transmit ring. Returns the number of frames that it has taken.
    fn fill(&mut self, Flood { from, to, address }: Flood) -> usize {
        let guest = &mut self.guests[from];
        (0..RING).take_while(|_| guest.send(to as u16, address, LONGEST)).count()
    }
}

/// Returns true if something besides the rate has held frames of a VF: a guard, or the PF for an offence.
fn is_held(before: &VfStatus, after: &VfStatus) -> bool {
    let blocked = |vf: &VfStatus| vf.drops.tx_invalid + vf.drops.tx_blocked;
    blocked(before) != blocked(after) || before.conduct.throttled || after.conduct.throttled
}
