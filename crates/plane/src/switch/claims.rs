//! Decides which of the addresses in a family's switch tables its ports get. A port may not claim the address of a
//! station beyond the uplink, of the host, of another port, or of another port of the host on the same link. An address
//! that a port has got stays the port's, whatever the uplink sends later, and also while its function resets.
//!
//! Claims come with new switch tables, whatever the family is: a mailbox message, a filter of virtchnl, or the source of
//! a virtio guest's first frame. A refused address is left out of the tables: the port gets no frames for it, and the
//! spoof check drops frames from it.

mod saved;

use super::addresses::ExactFilter;
use super::guards::PortGuard;
use super::kept::{KeptAddresses, ResetCounts};
use super::shared_addresses::SharedAddresses;
use super::stations::{EPOCH, UplinkStations};
use crate::{PortIndex, PortSet};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use units::{MacAddress, Time};

/// Number of a port's refused claims, and the last refused address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimCounts {
    /// Number of addresses that the port has claimed and that were refused.
    pub refused: u64,
    /// Address that was refused last.
    pub last: Option<MacAddress>,
}

impl ClaimCounts {
    fn add(&mut self, address: MacAddress) {
        (self.refused, self.last) = (self.refused + 1, Some(address));
    }
}

/// Claims of all ports to Ethernet addresses.
#[derive(Debug, Clone)]
pub struct AddressClaims<const N: usize> {
    /// Ports that have a guard: those of the configuration.
    guarded: PortSet,
    /// Ports whose claims are checked.
    checked: PortSet,
    /// Address that policy gives to each port, or proposes to it.
    assigned: [Option<MacAddress>; N],
    /// Addresses of the host, which no checked port may claim.
    reserved: Box<[MacAddress]>,
    stations: UplinkStations,
    /// Addresses of the other planes on the same link, if there may be some.
    shared: Option<Arc<dyn SharedAddresses>>,
    /// Address that another plane held when a port would have learned it, with the number of releases until then.
    held_elsewhere: [Option<(MacAddress, u64)>; N],
    /// Time at which the present epoch of the stations began.
    began: Time,
    /// Addresses that the ports have, or had before they lost all of them, such as by a reset.
    held: ExactFilter,
    /// Number of changes of `held`, which wraps.
    version: u64,
    /// Number of the addresses in `held` that no port has now.
    absent: usize,
    /// Addresses that ports hold because they had them before a reset.
    kept: KeptAddresses,
    /// Ports whose guests have gone since the last tables, which still have their addresses.
    released: PortSet,
    /// Ports without an address whose clients are away. They hold kept addresses alone.
    away: PortSet,
    /// Resets of the ports' functions, as the last tables had them.
    resets: ResetCounts<N>,
    /// Addresses in the family's tables; `None` if none of them is refused.
    wanted: Option<ExactFilter>,
    /// Addresses that are refused now, with the ports that claim them.
    refused: ExactFilter,
    counts: [ClaimCounts; N],
}

impl<const N: usize> AddressClaims<N> {
    /// Creates claims without a check.
    pub(crate) fn new() -> Self {
        Self {
            guarded: PortSet::NONE,
            checked: PortSet::NONE,
            assigned: [None; N],
            reserved: Box::default(),
            stations: UplinkStations::new(),
            shared: None,
            held_elsewhere: [None; N],
            began: Time::ZERO,
            held: ExactFilter::with_room(0),
            version: 0,
            absent: 0,
            kept: KeptAddresses::default(),
            released: PortSet::NONE,
            away: PortSet::NONE,
            resets: ResetCounts::default(),
            wanted: None,
            refused: ExactFilter::with_room(0),
            counts: [ClaimCounts::default(); N],
        }
    }

    /// Sets which claims are checked, and the key of the stations' table. `present` has the addresses that the ports have now,
    /// and keep.
    pub(crate) fn set_rules(
        &mut self,
        guards: &[PortGuard],
        reserved: &[MacAddress],
        key: u64,
        present: &ExactFilter,
    ) {
        if self.checked.is_empty() {
            self.hold(present);
        }
        self.assigned = [None; N];
        (self.guarded, self.checked) = (PortSet::NONE, PortSet::NONE);
        for ((guard, assigned), n) in guards.iter().zip(&mut self.assigned).zip(0..) {
            *assigned = guard.assigned;
            self.guarded |= PortIndex::of_field(n).only();
            if guard.checks_claims {
                self.checked |= PortIndex::of_field(n).only();
            }
        }
        self.reserved = reserved.into();
        self.stations.set_key(key);
        self.publish();
    }

    /// Shares the addresses of the ports with other planes on the same link, or with none.
    pub(crate) fn share(&mut self, addresses: Option<Arc<dyn SharedAddresses>>) {
        self.shared = addresses;
        self.held_elsewhere = [None; N];
        self.publish();
    }

    /// Tells the other planes which addresses the host and the ports of this plane hold, or get from policy: their guests may
    /// not run yet.
    fn publish(&self) {
        if let Some(shared) = &self.shared {
            let held =
                self.held.entries().map(|(address, _)| address).chain(self.assigned.into_iter().flatten());
            let held = held.filter(|address| address.is_valid_unicast());
            shared.hold(&self.reserved.iter().copied().chain(held).collect::<Vec<_>>());
        }
    }

    /// Replaces the addresses that the ports hold.
    fn set_held(&mut self, held: ExactFilter) {
        if held != self.held {
            self.held = held;
            self.version = self.version.wrapping_add(1);
            self.publish();
        }
    }

    /// Notes the source address of a frame from the uplink, unless a port has it now (`present`): such a frame comes from a
    /// guest, over an outside switch or a wire. A port that has held the address may have it back all the same. Returns the
    /// station that the table has forgotten for this one.
    pub(crate) fn note(&mut self, source: MacAddress, present: &ExactFilter) -> Option<MacAddress> {
        let notes = !self.checked.is_empty() && source.is_valid_unicast() && present.ports(source).is_empty();
        notes.then(|| self.stations.note(source)).flatten()
    }

    /// Begins a new epoch of the stations if the present one is over, and returns `true` then.
    pub(crate) fn age(&mut self, now: Time) -> bool {
        let over = !self.checked.is_empty() && now.since(self.began) >= EPOCH;
        if over {
            self.began = now;
            self.stations.begin_epoch();
            self.kept.end_epoch();
        }
        over
    }

    /// Notes new tables of the family: keeps the addresses of the ports that were reset since the last ones.
    pub(crate) fn note_resets(&mut self, resets: ResetCounts<N>) {
        let reset = resets.since(&self.resets);
        self.resets = resets;
        self.released = PortSet::NONE;
        self.kept.keep(&self.held, reset & self.checked);
    }

    /// Returns the addresses of a family's tables without the refused ones, and counts each new refusal. Released ports keep
    /// what the tables have, and hold none of it.
    pub(crate) fn admit(&mut self, wanted: ExactFilter) -> ExactFilter {
        if self.checked.is_empty() {
            if self.wanted.take().is_some() {
                self.refused = ExactFilter::with_room(0);
            }
            return wanted;
        }
        let (mut granted, mut refused) = self.divide(&wanted);
        self.hold(&granted);
        if refused.entries().next().is_some() {
            // An address that a port gives up in these tables is free to the others now.
            (granted, refused) = self.divide(&wanted);
            self.hold(&granted);
        }
        let before = core::mem::replace(&mut self.refused, refused);
        self.count_new(&before);
        // The family's own table if nothing is refused: equal tables keep the remembered flows.
        if self.refused.entries().next().is_none() {
            self.wanted = None;
            wanted
        } else {
            self.wanted = Some(wanted);
            granted
        }
    }

    /// Divides the addresses of a family's tables into those that their ports get, and those that are refused. The first of several
    /// ports that claim a free address at once gets it.
    fn divide(&self, wanted: &ExactFilter) -> (ExactFilter, ExactFilter) {
        let addresses = wanted.entries().count();
        let (mut granted, mut refused) =
            (ExactFilter::with_room(addresses), ExactFilter::with_room(addresses));
        for (address, ports) in wanted.entries() {
            let claimed = (ports & self.checked & !self.released).iter();
            let mut is_given = false;
            let denied = claimed.filter(|port| self.is_checked(*port, address)).filter(|port| {
                let is_denied = is_given || !self.try_claim(*port, address);
                is_given |= !is_denied;
                is_denied
            });
            let denied = denied.fold(PortSet::NONE, |set, port| set | port.only());
            refused.add(address, denied);
            granted.add(address, ports & !denied);
        }
        (granted, refused)
    }

    /// Returns `true` if an address in the family's tables is refused.
    pub(crate) fn has_refused_claims(&self) -> bool {
        self.wanted.is_some()
    }

    /// Returns the addresses in the family's tables, if some of them are refused.
    pub(crate) fn take_wanted(&mut self) -> Option<ExactFilter> {
        self.wanted.take()
    }

    /// Claims an address for a port that needs a claim, also among the planes on one wire. Returns `false` if the port may not have
    /// it.
    fn try_claim(&self, port: PortIndex, address: MacAddress) -> bool {
        !self.is_used(port, address) && self.try_claim_on_wire(address)
    }

    /// Returns `true` if a port needs a claim to an address.
    fn is_checked(&self, port: PortIndex, address: MacAddress) -> bool {
        let own = self.assigned[port.index::<N>()] == Some(address) || self.held.is_of(address, port);
        let checked = self.checked.has(port) && address.is_valid_unicast() && !address.is_virtual_router();
        checked && !own
    }

    /// Returns `true` if the host, a station beyond the uplink or another port uses an address.
    fn is_used(&self, port: PortIndex, address: MacAddress) -> bool {
        self.reserved.contains(&address)
            || self.stations.have(address)
            || self.is_held_by_other(port, address)
    }

    /// Returns `true` if another checked port holds an address, or policy gives it to another port. Ports that are not checked
    /// share theirs.
    fn is_held_by_other(&self, port: PortIndex, address: MacAddress) -> bool {
        let holders = self.held.ports(address) & self.checked & !port.only();
        !holders.is_empty() || self.is_assigned_to_other(port, address)
    }

    /// Returns `true` if policy gives an address to another port.
    fn is_assigned_to_other(&self, port: PortIndex, address: MacAddress) -> bool {
        let mut assigned = self.assigned.iter().zip(0..);
        assigned.any(|(mac, n)| n != port.index::<N>() && *mac == Some(address))
    }

    /// Claims an address among the planes on one wire. Returns `false` if another one holds it.
    fn try_claim_on_wire(&self, address: MacAddress) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.claim(address))
    }

    /// Returns `true` if a port may have an address that its guest requests, before the PF driver acknowledges the request.
    /// Counts a refusal. Holds nothing on the wire: the address may never come into the tables, and a guest may request any
    /// number.
    pub(crate) fn may_request(&mut self, port: PortIndex, address: MacAddress) -> bool {
        let refused = self.is_checked(port, address) && self.is_used_by_others(port, address);
        if refused {
            self.counts[port.index::<N>()].add(address);
        }
        !refused
    }

    /// Takes an address back from a port if others use it too. The port then needs a claim to have it again. Returns `true` if the
    /// address is taken back. `present` has the addresses that the ports have in the tables.
    pub(crate) fn revoke(&mut self, port: PortIndex, address: MacAddress, present: &ExactFilter) -> bool {
        let is_used = self.is_used_by_others(port, address);
        if is_used {
            self.kept.forget(port, address);
            let revoked = |of: MacAddress| if of == address { port.only() } else { PortSet::NONE };
            let mut held = ExactFilter::with_room(self.held.entries().count());
            self.held.entries().for_each(|(of, ports)| held.add(of, ports & !revoked(of)));
            self.set_held(held);
            self.count_absent(present);
        }
        is_used
    }

    /// Returns `true` if the host, a station beyond the uplink, another port or a port of another plane uses an address.
    fn is_used_by_others(&self, port: PortIndex, address: MacAddress) -> bool {
        let is_elsewhere = || self.shared.as_ref().is_some_and(|shared| shared.is_held_elsewhere(address));
        self.is_used(port, address) || is_elsewhere()
    }

    /// Returns `true` if a port may learn an address. Counts a refusal, once for frames with the same source.
    ///
    /// A port without an address asks in each round in which it sends. Until a plane has given addresses up, the answer about the
    /// same address is known, so that the port does not take the wire's lock each time.
    pub(crate) fn may_learn(&mut self, port: PortIndex, address: MacAddress) -> bool {
        let mut refused = self.is_checked(port, address) && self.is_used(port, address);
        if !refused && self.is_checked(port, address) {
            let asked = self.shared.as_ref().map(|shared| (address, shared.releases()));
            let before = self.held_elsewhere[port.index::<N>()];
            refused = before.is_some() && before == asked || !self.try_claim_on_wire(address);
            self.held_elsewhere[port.index::<N>()] = asked.filter(|_| refused);
        }
        let counts = &mut self.counts[port.index::<N>()];
        if refused && counts.last != Some(address) {
            counts.add(address);
        }
        !refused
    }

    /// Lets a port have an address that a station beyond the uplink uses. Returns `false` for an address of the host or of another
    /// port.
    pub(crate) fn grant(&mut self, port: PortIndex, address: MacAddress) -> bool {
        let free = !self.reserved.contains(&address) && !self.is_held_by_other(port, address);
        if free {
            let mut held = ExactFilter::with_room(self.held.entries().count() + 1);
            self.held.entries().for_each(|(address, ports)| held.add(address, ports));
            held.add(address, port.only());
            self.set_held(held);
        }
        free
    }

    /// Counts the refusals that were not in force `before`.
    fn count_new(&mut self, before: &ExactFilter) {
        let counts = &mut self.counts;
        for (address, ports) in self.refused.entries() {
            (ports & !before.ports(address)).iter().for_each(|port| counts[port.index::<N>()].add(address));
        }
    }

    pub(crate) fn counts(&self, port: PortIndex) -> ClaimCounts {
        self.counts[port.index::<N>()]
    }

    /// Remembers the addresses that the ports have, except those of released ports. A port that has none holds those that it
    /// had, unless its client is away: its guest gets them back after a reset. Other addresses are kept for a while.
    fn hold(&mut self, present: &ExactFilter) {
        let released = self.released;
        self.kept.forget_present(present);
        let unicast = || {
            let unicast = present.entries().filter(|(address, _)| !address.is_group());
            unicast.map(move |(address, ports)| (address, ports & !released))
        };
        let having = unicast().fold(PortSet::NONE, |set, (_, ports)| set | ports);
        self.away &= !having;
        let room = unicast().count() + self.held.entries().count() + self.kept.len();
        let mut held = ExactFilter::with_room(room);
        self.held.entries().for_each(|(address, ports)| held.add(address, ports & !having & !self.away));
        self.kept.entries().for_each(|(address, ports)| held.add(address, ports));
        unicast().for_each(|(address, ports)| held.add(address, ports));
        self.set_held(held);
        self.count_absent(present);
    }

    /// Counts the held addresses that no port has in the tables, which have the addresses `present`.
    fn count_absent(&mut self, present: &ExactFilter) {
        self.absent = self.held.entries().filter(|(address, _)| present.ports(*address).is_empty()).count();
    }

    /// Returns the number of addresses that ports hold and that no port has in the tables. New tables cost by them too.
    pub(crate) fn absent(&self) -> usize {
        if self.checked.is_empty() { 0 } else { self.absent }
    }

    /// Keeps the addresses that a port holds for a while only: its client is away, and may come back or not.
    pub(crate) fn keep_for_return(&mut self, port: PortIndex) {
        self.kept.keep(&self.held, port.only() & self.checked);
        self.away |= port.only();
    }

    /// Forgets the addresses that a port has held. `present` has the addresses that the ports have in the tables.
    pub(crate) fn release(&mut self, port: PortIndex, present: &ExactFilter) {
        self.released |= port.only();
        self.kept.release(port);
        let mut held = ExactFilter::with_room(self.held.entries().count());
        self.held.entries().for_each(|(address, ports)| held.add(address, ports & !port.only()));
        self.set_held(held);
        self.count_absent(present);
    }
}
