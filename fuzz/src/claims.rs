//! Model of the claims to addresses on a card: which address a VF may get, by the frames of stations that the uplink has brought,
//! by policy, and by the addresses that other VFs hold. It says what the product promises, in another form than the product.

use crate::stations::{ADDRESSES, HOST, address};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use units::MacAddress;

/// Number of VFs of the card.
pub const VFS: usize = 3;
/// Time in nanoseconds after which an epoch of the stations ends.
const EPOCH: u64 = 150_000_000_000;

/// Claims of a VF.
#[derive(Debug, Clone, Default)]
pub struct VfClaims {
    /// True if the VF's claims are checked.
    pub checked: bool,
    /// Address that policy gives to the VF, or proposes.
    pub assigned: Option<MacAddress>,
    /// Addresses that the VF has in the switch's tables.
    pub present: BTreeSet<MacAddress>,
    /// Addresses that no other VF gets.
    held: BTreeSet<MacAddress>,
    /// Addresses that the VF keeps for some ends of an epoch, while its client is away.
    kept: BTreeMap<MacAddress, u8>,
    is_away: bool,
}

/// Claims of all VFs, and the stations beyond the uplink.
#[derive(Debug, Clone, Default)]
pub struct ClaimsModel {
    /// Claims of each VF.
    pub vfs: [VfClaims; VFS],
    /// Epoch in which each station was last seen.
    seen: BTreeMap<MacAddress, u64>,
    epoch: u64,
    /// Time in nanoseconds at which the epoch began.
    began: u64,
}

impl ClaimsModel {
    /// Notes the source of a frame that the uplink brings, unless a VF has the address.
    pub fn note(&mut self, source: MacAddress) {
        if source.is_valid_unicast() && self.vfs.iter().all(|vf| !vf.present.contains(&source)) {
            self.seen.insert(source, self.epoch);
        }
    }

    /// Returns true if a station is remembered: it was seen in this epoch or in the one before.
    #[must_use]
    pub fn is_station(&self, address: MacAddress) -> bool {
        self.seen.get(&address).is_some_and(|seen| self.epoch - seen <= 1)
    }

    /// Ends the epoch if it is over.
    pub fn review(&mut self, now: u64) {
        if now - self.began >= EPOCH {
            (self.began, self.epoch) = (now, self.epoch + 1);
            for vf in &mut self.vfs {
                vf.kept.values_mut().for_each(|left| *left -= 1);
                vf.kept.retain(|_, left| *left > 0);
            }
        }
    }

    /// Forgets the addresses of a VF whose client has gone.
    pub fn release(&mut self, vf: usize) {
        let claims = &mut self.vfs[vf];
        claims.held.clear();
        claims.kept.clear();
    }

    /// Keeps the addresses of a VF for two ends of an epoch: its client is away.
    pub fn keep_for_return(&mut self, vf: usize) {
        let claims = &mut self.vfs[vf];
        if claims.checked {
            claims.held.iter().for_each(|mac| _ = claims.kept.entry(*mac).or_insert(2));
        }
        claims.is_away = true;
    }

    /// Hands the card over to another process, which has seen no station. The VFs hold their addresses as after a restart, except
    /// those of the host and of another VF's policy.
    pub fn hand_over(&mut self) {
        (self.seen, self.epoch, self.began) = (BTreeMap::new(), 0, 0);
        let assigned = self.vfs.each_ref().map(|vf| vf.assigned);
        for (n, vf) in self.vfs.iter_mut().enumerate() {
            let is_of_other =
                |mac| assigned.iter().enumerate().any(|(other, of)| other != n && *of == Some(mac));
            vf.held.retain(|mac| *mac != HOST && !is_of_other(*mac));
            vf.kept = vf.held.iter().filter(|_| vf.checked).map(|mac| (*mac, 2)).collect();
            (vf.present, vf.is_away) = (BTreeSet::new(), false);
        }
    }

    /// Takes the addresses that the VFs now have in the switch's tables, and checks each that is new. `arrived` tells which VFs
    /// have a guest from another card, whose address was that of a station until now.
    ///
    /// # Panics
    /// If a VF has got an address that it must not have.
    pub fn update(
        &mut self,
        is_of: impl Fn(MacAddress, usize) -> bool,
        arrived: [bool; VFS],
        link: &OtherPlane,
    ) {
        let before = self.vfs.clone();
        for (n, vf) in self.vfs.iter_mut().enumerate() {
            let all = (0..ADDRESSES).map(address).filter(|mac| !mac.is_group());
            vf.present = all.filter(|mac| is_of(*mac, n)).collect();
            vf.hold();
        }
        for (n, before) in before.iter().enumerate() {
            for mac in &self.vfs[n].present {
                let own = before.present.contains(mac) || before.held.contains(mac);
                if !own && let Some(reason) = self.refusal(n, *mac, arrived[n], link) {
                    panic!("VF {n} gets {mac}, which is {reason}: {:?}", self.vfs);
                }
            }
        }
    }

    /// Returns the reason why a VF must not get an address that it did not hold.
    fn refusal(&self, n: usize, mac: MacAddress, arrived: bool, link: &OtherPlane) -> Option<&'static str> {
        let others = || self.vfs.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, vf)| vf);
        let VfClaims { checked, assigned, .. } = self.vfs[n];
        if mac == MacAddress::ZERO {
            return Some("no address");
        }
        if !checked || assigned == Some(mac) || mac.is_virtual_router() {
            return None;
        }
        let reasons = [
            ("the host's", mac == HOST),
            ("a station's", !arrived && self.is_station(mac)),
            ("another VF's", others().any(|vf| vf.checked && vf.held.contains(&mac))),
            ("another VF's by policy", others().any(|vf| vf.assigned == Some(mac))),
            ("that of a VF of another port", !arrived && link.has(mac)),
        ];
        reasons.into_iter().find_map(|(reason, applies)| applies.then_some(reason))
    }
}

impl VfClaims {
    /// Holds the addresses that the VF has, or those that it had until it lost all of them, and those that it keeps.
    fn hold(&mut self) {
        self.kept.retain(|mac, _| !self.present.contains(mac));
        self.is_away &= self.present.is_empty();
        if !self.present.is_empty() || self.is_away {
            self.held.clone_from(&self.present);
        }
        self.held.extend(self.kept.keys());
    }
}

/// Another port of the host on the same link: its VFs have addresses that no VF of the card gets.
#[derive(Debug, Default)]
pub struct OtherPlane {
    theirs: Mutex<BTreeSet<MacAddress>>,
    ours: Mutex<BTreeSet<MacAddress>>,
    releases: AtomicU64,
}

impl OtherPlane {
    /// Returns true if a VF of the other port has an address.
    pub fn has(&self, address: MacAddress) -> bool {
        self.theirs.lock().expect("no thread panicked").contains(&address)
    }

    /// Gives an address to a VF of the other port if it is free, or takes it away.
    pub fn toggle(&self, address: MacAddress) {
        let (mut theirs, ours) = (self.theirs.lock().expect("no thread panicked"), self.ours.lock());
        if theirs.remove(&address) {
            self.releases.fetch_add(1, Ordering::Relaxed);
        } else if !ours.expect("no thread panicked").contains(&address) {
            theirs.insert(address);
        }
    }
}

impl plane::guard::SharedAddresses for OtherPlane {
    fn claim(&self, address: MacAddress) -> bool {
        let free = !self.has(address);
        if free {
            self.ours.lock().expect("no thread panicked").insert(address);
        }
        free
    }

    fn is_held_elsewhere(&self, address: MacAddress) -> bool {
        self.has(address)
    }

    fn releases(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }

    fn hold(&self, addresses: &[MacAddress]) {
        *self.ours.lock().expect("no thread panicked") = addresses.iter().copied().collect();
    }
}
