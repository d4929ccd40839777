//! Guards of a port's names on the wire: the addresses that a port may claim. The administrator sets them on the plane,
//! for ports of every family alike, so new switch tables of a family keep them.

use crate::PortIndex;
pub use crate::contents::{GuardCounts, GuardReason};
use crate::forward::ForwardingPlane;
use crate::frame::{AddressPair, Frame};
pub use crate::switch::{ClaimCounts, PortGuard, SavedStations, SharedAddresses};
use crate::switch::{FrameOrigin, PortGuards, SwitchDecision, SwitchDropReason};
use alloc::sync::Arc;
use alloc::vec::Vec;
use units::{MacAddress, Time};

/// Guards of a plane with any number of ports.
pub trait GuardedPlane {
    /// Sets the guards of the ports, by number, and the addresses of the host, which no guarded port may claim. A port
    /// keeps the addresses that it has now. `key` is a random number that stations beyond the uplink do not know: it keys the
    /// hash of their table, and another key than before empties the table.
    fn set_guards(&mut self, guards: &[PortGuard], reserved: &[MacAddress], key: u64);

    /// Divides the thresholds of storm control among the enabled ports and the uplink, or has each window count the traffic of all
    /// of them together.
    fn divide_storms(&mut self, on: bool);

    /// Shares the addresses of the ports with other planes on the same link, or with none: a guarded port gets no address
    /// that a port of another plane holds.
    fn share_addresses(&mut self, addresses: Option<Arc<dyn SharedAddresses>>);

    /// Ages the stations seen at the uplink, and grants refused addresses whose stations are gone. Returns `true` if the
    /// switch tables have changed. Call it about once a second.
    fn review_claims(&mut self, now: Time) -> bool;

    /// Returns `true` if a port may have an address that its guest requests of a PF driver. Counts a refusal. A PF driver
    /// asks before it acknowledges the request; otherwise the guest would believe that it has an address that the tables
    /// leave out.
    fn may_request(&mut self, port: PortIndex, address: MacAddress) -> bool;

    /// Takes an address back from a port that loses the right to use the addresses of others, if another one uses the address: the
    /// host, a station beyond the uplink, another guarded port or a port of another plane. Returns `true` then. The family's next
    /// tables must not have it.
    fn revoke_address(&mut self, port: PortIndex, address: MacAddress) -> bool;

    /// Forgets which addresses a port has held, for a port that gets another guest. Ports that wait for one of them get it.
    fn release_claims(&mut self, port: PortIndex);

    /// Keeps the addresses that a port has held for a few minutes more, for a port whose client is away and may come back.
    fn keep_claims_for_return(&mut self, port: PortIndex);

    /// Returns the unicast addresses that ports hold, for [`Self::restore_held_addresses`] in the successor process.
    fn held_addresses(&self) -> Vec<(PortIndex, MacAddress)>;

    /// Returns a number that changes with [`Self::held_addresses`], and seldom without.
    fn held_version(&self) -> u64;

    /// Holds addresses for the ports that held them in the predecessor process. Their guests get them back, as after a
    /// reset, and no other port gets them. Drops addresses of ports without a guard, of the host, and of ports to which
    /// policy gives them. Call it after [`Self::set_guards`].
    fn restore_held_addresses(&mut self, addresses: &[(PortIndex, MacAddress)]);

    /// Returns the stations seen at the uplink, for [`Self::restore_stations`] in the successor process.
    fn save_stations(&self) -> SavedStations;

    /// Returns a number that changes when a frame of the uplink changes the stations.
    fn station_version(&self) -> u64;

    /// Replaces the stations by those that the predecessor process has saved, and the key of their table by the saved one. They age
    /// on: a station is forgotten when it would have been without a hand-over. Call it after [`Self::set_guards`], whose later calls
    /// need the saved key.
    fn restore_stations(&mut self, saved: &SavedStations, now: Time);

    /// Returns the number of addresses that ports hold and that are not in the switch tables, such as those of ports that
    /// reset. New tables cost by them, as by the addresses of the tables.
    fn absent_addresses(&self) -> usize;

    /// Returns the number of a port's refused claims, and the last refused address.
    fn refused_claims(&self, port: PortIndex) -> ClaimCounts;

    /// Returns the numbers of a port's frames that its guard has dropped, in the order of [`GuardReason::ALL`].
    fn guarded_frames(&self, port: PortIndex) -> GuardCounts;

    /// Sets whether link-local frames of guests are forwarded or dropped. Pause frames and MAC control frames are always dropped.
    fn forward_link_local(&mut self, on: bool);
}

impl<const N: usize> GuardedPlane for ForwardingPlane<N> {
    fn set_guards(&mut self, guards: &[PortGuard], reserved: &[MacAddress], key: u64) {
        self.tables.set_guards(PortGuards::new(guards));
        self.flows.forget();
        self.claims.set_rules(guards, reserved, key, &self.tables.exact);
        self.claim_again();
    }

    fn divide_storms(&mut self, on: bool) {
        self.storm_parts.divided = on;
    }

    fn share_addresses(&mut self, addresses: Option<Arc<dyn SharedAddresses>>) {
        self.claims.share(addresses);
    }

    fn review_claims(&mut self, now: Time) -> bool {
        if !self.claims.age(now) {
            return false;
        }
        // A station whose frames belong to a remembered flow is noted again with its next frame.
        self.flows.forget_uplink();
        self.claim_again()
    }

    fn may_request(&mut self, port: PortIndex, address: MacAddress) -> bool {
        self.claims.may_request(port, address)
    }

    fn revoke_address(&mut self, port: PortIndex, address: MacAddress) -> bool {
        self.claims.revoke(port, address, &self.tables.exact)
    }

    fn release_claims(&mut self, port: PortIndex) {
        self.claims.release(port, &self.tables.exact);
        if self.claims.has_refused_claims() {
            self.claim_again();
        }
    }

    fn keep_claims_for_return(&mut self, port: PortIndex) {
        self.claims.keep_for_return(port);
    }

    fn held_addresses(&self) -> Vec<(PortIndex, MacAddress)> {
        let held = self.claims.held();
        held.flat_map(|(address, ports)| ports.iter().map(move |port| (port, address))).collect()
    }

    fn held_version(&self) -> u64 {
        self.claims.version()
    }

    fn restore_held_addresses(&mut self, addresses: &[(PortIndex, MacAddress)]) {
        self.claims.restore_held(addresses, &self.tables.exact);
    }

    fn save_stations(&self) -> SavedStations {
        self.claims.save_stations()
    }

    fn station_version(&self) -> u64 {
        self.claims.station_version()
    }

    fn restore_stations(&mut self, saved: &SavedStations, now: Time) {
        self.claims.restore_stations(saved, now);
        self.flows.forget_uplink();
    }

    fn absent_addresses(&self) -> usize {
        self.claims.absent()
    }

    fn refused_claims(&self, port: PortIndex) -> ClaimCounts {
        self.claims.counts(port)
    }

    fn guarded_frames(&self, port: PortIndex) -> GuardCounts {
        self.ledger.guarded_frames(port)
    }

    fn forward_link_local(&mut self, on: bool) {
        self.tables.forwards_link_local = on;
        self.flows.forget();
    }
}

impl<const N: usize> ForwardingPlane<N> {
    /// Decides on a frame by the remembered flows, by its ether type, and by the guard of its sender.
    #[inline(always)]
    pub(crate) fn decide(
        &mut self,
        origin: FrameOrigin,
        ends: AddressPair,
        frame: &mut Frame<'_>,
        length: usize,
    ) -> SwitchDecision {
        let decision = self.flows.decide((&self.tables, &mut self.claims), ends, frame.tag, length, origin);
        match origin {
            // One branch, which most frames do not take.
            FrameOrigin::Port(port) if self.tables.guards.inspect(port) | frame.is_mac_control() => {
                self.inspect(port, decision, frame)
            }
            FrameOrigin::Port(_) | FrameOrigin::Uplink => decision,
        }
    }

    /// Returns the decision on a MAC control frame, or on one whose sender has a guard: the given one, unless that drops the frame.
    #[cold]
    fn inspect(&self, port: PortIndex, decision: SwitchDecision, frame: &mut Frame<'_>) -> SwitchDecision {
        let refused = if self.tables.refuses_mac_control() && frame.is_mac_control() {
            Some(SwitchDropReason::LinkControl)
        } else {
            let guarded = self.tables.guard_violation(port, frame).filter(|_| !decision.is_refusal());
            guarded.map(SwitchDropReason::Guarded)
        };
        match refused {
            Some(_) => SwitchDecision { dropped: refused, ..SwitchDecision::default() },
            None => decision,
        }
    }

    /// Returns `true` if a port may learn an address. Counts a refusal.
    pub fn may_learn(&mut self, port: PortIndex, address: MacAddress) -> bool {
        self.claims.may_learn(port, address)
    }

    /// Lets a port have an address that a station beyond the uplink uses, since its guest was that station until now.
    /// Returns `false` for an address of the host or of another port.
    pub fn grant_address(&mut self, port: PortIndex, address: MacAddress) -> bool {
        self.claims.grant(port, address)
    }

    /// Decides again on the addresses that the family's tables have. Returns `true` if the switch tables have changed.
    fn claim_again(&mut self) -> bool {
        let wanted = self.claims.take_wanted().unwrap_or_else(|| self.tables.exact.clone());
        let granted = self.claims.admit(wanted);
        let changed = granted != self.tables.exact;
        if changed {
            self.tables.exact = granted;
            self.flows.forget();
        }
        changed
    }
}
