//! Tables of the card's switch, each with the driver's copy: receive addresses, VLAN filters, multicast hashes. Only
//! changes are written.
//!
//! Entry 0 of the receive addresses is the port's own, 1 to 3 are reserved for it, VF n's is 23 - n, and the
//! entries between are shared by all VFs, as in Linux. VLVF 0 is VLAN 0: untagged frames.
//!
//! `messages` and `policy` decide which requests are granted.

use super::counters::MailboxRefusal;
use super::limits::SHARED_FROM;
use super::{Pf, VfState};
use crate::hal::Hal;
use i82576::bits::{rah, vlvf, vmolr};
use i82576::ids::{MAX_VFS, RECEIVE_ADDRESSES, VLAN_FILTERS};
use i82576::register as r;
use i82576::{MacAddress, VfIndex};
use pcie::VfSet;
use policy::{PortVlan, VlanSet};
use serde::{Deserialize, Serialize};
use units::LAST_VLAN;

/// Receive-address table as the driver has written it, without the entry of the port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Filters")]
pub(super) struct ReceiveAddressTable {
    entries: [Option<(VfIndex, MacAddress)>; RECEIVE_ADDRESSES],
}

impl Default for ReceiveAddressTable {
    fn default() -> Self {
        Self { entries: [None; RECEIVE_ADDRESSES] }
    }
}

impl ReceiveAddressTable {
    const fn main_entry(vf: VfIndex) -> usize {
        RECEIVE_ADDRESSES - 1 - vf.index()
    }

    fn set<H: Hal>(&mut self, hal: &mut H, entry: usize, owner: Option<(VfIndex, MacAddress)>) {
        if self.entries[entry] == owner {
            return;
        }
        self.entries[entry] = owner;
        let i = entry as u32;
        // An entry is never valid with half an address.
        hal.write(r::rah(i), 0);
        if let Some((vf, mac)) = owner {
            let (low, high) = mac.to_words();
            hal.write(r::ral(i), low);
            hal.write(r::rah(i), high | vf.bit() << rah::POOLSEL_SHIFT | rah::AV);
        }
    }

    /// Sets or clears the VF's main address in the VF's own entry of the receive-address table.
    pub(super) fn set_main<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, mac: Option<MacAddress>) {
        self.set(hal, Self::main_entry(vf), mac.map(|mac| (vf, mac)));
    }

    /// Adds an address for the VF, below the main entries of `enabled` VFs.
    pub(super) fn add<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        mac: MacAddress,
        enabled: u8,
    ) -> Result<(), MailboxRefusal> {
        if self.has(vf, mac) {
            return Ok(());
        }
        let shared = SHARED_FROM..RECEIVE_ADDRESSES - usize::from(enabled);
        let free = shared.into_iter().find(|i| self.entries[*i].is_none()).ok_or(MailboxRefusal::NoFilter)?;
        self.set(hal, free, Some((vf, mac)));
        Ok(())
    }

    /// Frees the receive-address entries for the main addresses of VFs `before`..`after`, by moving addresses in them
    /// to free entries. Returns false if no entry is free.
    pub(super) fn make_room<H: Hal>(&mut self, hal: &mut H, before: u8, after: u8) -> bool {
        let (first, end) = (RECEIVE_ADDRESSES - usize::from(after), RECEIVE_ADDRESSES - usize::from(before));
        for taken in first..end {
            let Some(address) = self.entries[taken] else { continue };
            let Some(free) = (SHARED_FROM..first).find(|i| self.entries[*i].is_none()) else { return false };
            self.set(hal, free, Some(address));
            self.set(hal, taken, None);
        }
        true
    }

    /// Removes the addresses that the VF has added to its main one.
    pub(super) fn clear_added<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        self.remove_added(hal, vf, |_| true);
    }

    /// Removes those of the addresses that the VF has added to its main one for which `is_lost` is true.
    pub(super) fn remove_added<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        is_lost: impl Fn(MacAddress) -> bool,
    ) {
        for entry in (0..RECEIVE_ADDRESSES).filter(|i| *i != Self::main_entry(vf)) {
            if self.entries[entry].is_some_and(|(owner, mac)| owner == vf && is_lost(mac)) {
                self.set(hal, entry, None);
            }
        }
    }

    /// Returns the addresses that the VF has added to its main one.
    pub(super) fn added(&self, vf: VfIndex) -> impl Iterator<Item = MacAddress> + '_ {
        let others = self.entries.iter().enumerate().filter(move |(i, _)| *i != Self::main_entry(vf));
        others.filter_map(move |(_, entry)| entry.filter(|(owner, _)| *owner == vf).map(|(_, mac)| mac))
    }

    /// Returns the VF of each address that a VF has added to its main one.
    pub(super) fn owners_of_added(&self) -> impl Iterator<Item = VfSet> + '_ {
        let added = |(i, entry): (usize, &Option<(VfIndex, MacAddress)>)| {
            entry.map(|(vf, _)| vf).filter(|vf| i != Self::main_entry(*vf))
        };
        self.entries.iter().enumerate().filter_map(added).map(|vf| VfSet::new(vf.bit().into()))
    }

    /// Returns true if a VF receives by an address in the receive-address table.
    pub(super) fn has(&self, vf: VfIndex, mac: MacAddress) -> bool {
        self.entries.contains(&Some((vf, mac)))
    }
}

/// VLAN filter table: VLAN ids and their member pools.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Vlans")]
pub(super) struct VlanFilterTable {
    /// VLAN id and member pools of each filter entry; an entry without pools is free, except entry 0.
    entries: [(u16, u32); VLAN_FILTERS],
    /// True if an entry was written since the last `take_changed`.
    changed: bool,
}

impl Default for VlanFilterTable {
    fn default() -> Self {
        Self { entries: [(0, 0); VLAN_FILTERS], changed: true }
    }
}

impl VlanFilterTable {
    /// Returns true if every VLAN filter entry has a valid VLAN and valid pools.
    pub(super) fn is_sound(&self) -> bool {
        self.entries.iter().all(|(vlan, pools)| *vlan <= LAST_VLAN && *pools >> MAX_VFS == 0)
    }

    /// Returns the filter entry of a VLAN id, or else a free entry.
    fn place(&self, vlan: u16) -> Option<usize> {
        if vlan == 0 {
            return Some(0);
        }
        let used = (1..VLAN_FILTERS).find(|i| self.entries[*i].1 != 0 && self.entries[*i].0 == vlan);
        used.or_else(|| (1..VLAN_FILTERS).find(|i| self.entries[*i].1 == 0))
    }

    /// Returns the members of each VLAN filter entry, without entry 0.
    pub(super) fn members(&self) -> impl Iterator<Item = VfSet> + '_ {
        self.entries[1..].iter().map(|(_, pools)| VfSet::new((*pools).into()))
    }

    /// Returns the members of a VLAN.
    pub(super) fn members_of(&self, vlan: u16) -> VfSet {
        let entry = self.entries[1..].iter().find(|(id, pools)| *pools != 0 && *id == vlan);
        VfSet::new(entry.map_or(0, |(_, pools)| (*pools).into()))
    }

    /// Returns true if the VF could change to a VLAN id: a filter entry already has the id, is free, or has this VF as
    /// its only member.
    pub(super) fn has_room(&self, vf: VfIndex, vlan: u16) -> bool {
        // An entry that the VF holds alone becomes free.
        self.place(vlan).is_some() || self.entries[1..].iter().any(|(_, pools)| *pools == vf.bit())
    }

    pub(super) fn join<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, vlan: u16) -> Result<(), MailboxRefusal> {
        let place = self.claim(vf, vlan).ok_or(MailboxRefusal::NoVlanFilter)?;
        self.write(hal, place);
        Ok(())
    }

    /// Makes a VF a member of a VLAN in the driver's table, and writes no register. Returns the filter entry, or `None`
    /// if none is free.
    pub(super) fn claim(&mut self, vf: VfIndex, vlan: u16) -> Option<usize> {
        let place = self.place(vlan)?;
        self.entries[place] = (vlan, self.entries[place].1 | vf.bit());
        Some(place)
    }

    /// Removes a VF from all VLANs in the driver's table, and writes no register.
    pub(super) fn vacate(&mut self, vf: VfIndex) {
        self.entries.iter_mut().for_each(|(_, pools)| *pools &= !vf.bit());
    }

    /// Removes a VF from a VLAN. Does nothing if it is no member.
    pub(super) fn leave<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, vlan: u16) {
        let place = self.place(vlan).filter(|i| self.entries[*i].1 & vf.bit() != 0);
        if let Some(place) = place {
            self.entries[place].1 &= !vf.bit();
            self.write(hal, place);
        }
    }

    pub(super) fn leave_all<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        for place in 0..VLAN_FILTERS {
            if self.entries[place].1 & vf.bit() != 0 {
                self.entries[place].1 &= !vf.bit();
                self.write(hal, place);
            }
        }
    }

    pub(super) fn of(&self, vf: VfIndex) -> impl Iterator<Item = u16> + '_ {
        self.entries.iter().filter(move |(_, pools)| pools & vf.bit() != 0).map(|(vlan, _)| *vlan)
    }

    /// Returns the VLAN filter entries of the given VLANs, a bit each, without entry 0.
    pub(super) fn filters_of(&self, vlans: &VlanSet) -> u32 {
        let named = |(_, (vlan, pools)): &(usize, &(u16, u32))| *pools != 0 && vlans.contains(*vlan);
        self.entries.iter().enumerate().skip(1).filter(named).fold(0, |all, (place, _)| all | 1 << place)
    }

    /// Returns true if an entry of the VLAN filter table was written since the last call of
    /// [`VlanFilterTable::take_changed`].
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Returns true if an entry of the VLAN filter table was written since the last call of this function.
    pub(super) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    /// Writes a VLAN filter entry, and the VLAN id's bit in VFTA, which the filter also requires.
    pub(super) fn write<H: Hal>(&mut self, hal: &mut H, place: usize) {
        self.changed = true;
        let (vlan, pools) = self.entries[place];
        let on = pools != 0 || place == 0;
        let filter = vlvf::VLANID_EN | pools << vlvf::POOLSEL_SHIFT | u32::from(vlan);
        hal.write(r::vlvf(place as u32), if on { filter } else { 0 });
        let word = r::vfta(u32::from(vlan) / 32);
        let bit = 1 << (vlan % 32);
        let others = hal.read(word) & !bit;
        hal.write(word, if on { others | bit } else { others });
    }
}

/// Words of the multicast table (MTA, 82576 datasheet 8.10.15).
const TABLE: usize = 128;

/// Multicast table: hashes of all VFs together.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "MulticastRows", from = "MulticastRows")]
pub(super) struct MulticastTable {
    words: [u32; TABLE],
}

/// Saved encoding of the multicast table's words, in rows as long as serde's longest array.
type MulticastRows = [[u32; 32]; TABLE / 32];

impl From<MulticastTable> for MulticastRows {
    fn from(groups: MulticastTable) -> Self {
        let mut rows = [[0; 32]; TABLE / 32];
        rows.as_flattened_mut().copy_from_slice(&groups.words);
        rows
    }
}

impl From<MulticastRows> for MulticastTable {
    fn from(rows: MulticastRows) -> Self {
        let mut words = [0; TABLE];
        words.copy_from_slice(rows.as_flattened());
        Self { words }
    }
}

impl Default for MulticastTable {
    fn default() -> Self {
        Self { words: [0; TABLE] }
    }
}

impl MulticastTable {
    fn rebuild<H: Hal>(&mut self, hal: &mut H, vfs: &[VfState; MAX_VFS]) {
        let mut wanted = [0u32; TABLE];
        for vf in vfs.iter().filter(|vf| !vf.receives_every_group()) {
            for hash in &vf.hashes[..vf.groups] {
                wanted[usize::from(hash >> 5) % TABLE] |= 1 << (hash & 31);
            }
        }
        for ((i, word), wanted) in (0..).zip(&mut self.words).zip(wanted) {
            if *word != wanted {
                *word = wanted;
                hal.write(r::mta(i), wanted);
            }
        }
    }
}

impl Pf {
    /// Sets or removes the main MAC address of a VF, also in the receive-address table.
    pub(super) fn use_mac<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, mac: Option<MacAddress>) {
        self.state_mut(vf).mac = mac;
        self.filters.set_main(hal, vf, mac);
    }

    /// Applies the VF's multicast requests to the table and its pool's options.
    pub(super) fn apply_groups<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        self.groups.rebuild(hal, &self.vfs);
        let state = self.state(vf);
        let choice = match (state.receives_every_group(), state.groups) {
            (true, _) => vmolr::MPME,
            (false, 0) => 0,
            (false, _) => vmolr::ROMPE,
        };
        update(hal, r::vmolr(vf.pool()), vmolr::ROMPE | vmolr::ROPE | vmolr::MPME, choice);
    }

    /// Sets the default VLAN options of a VF's pool. On a port VLAN, tags are stripped. Untagged frames are received
    /// without a port VLAN, or with one of id 0, which carries only a priority.
    pub(super) fn apply_pool<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, port_vlan: Option<PortVlan>) {
        let tags = match port_vlan {
            None => vmolr::AUPE,
            Some(PortVlan { id: 0, .. }) => vmolr::STRVLAN | vmolr::AUPE,
            Some(_) => vmolr::STRVLAN,
        };
        update(hal, r::vmolr(vf.pool()), vmolr::STRVLAN | vmolr::AUPE, tags);
    }
}

/// Clears some bits of a register, and sets others.
pub(super) fn update<H: Hal>(hal: &mut H, register: u32, clear: u32, set: u32) {
    let value = hal.read(register) & !clear | set;
    hal.write(register, value);
}
