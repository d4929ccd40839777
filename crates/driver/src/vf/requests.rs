//! Requests of a VF to the PF: its address, multicast groups, VLANs, frame length, promiscuity. Granted requests
//! are remembered, so that they can be repeated after a reset.
//!
//! `mailbox` carries the messages.

use super::mailbox::MailboxError;
use super::{Vf, VfError};
use crate::hal::Hal;
use crate::offload::VLAN_TAG;
use i82576::MacAddress;
use i82576::ids::{FCS, MAX_FRAME};
use i82576::mailbox::{INFO_SHIFT, MAX_MULTICAST, WORDS, id, mac_filter, promisc};

const VLAN_IDS: u16 = 4096;

/// Requests of the VF that the PF has granted, except those for addresses.
#[derive(Debug)]
pub(super) struct GrantedVfRequests {
    /// VLANs that the VF has joined, a bit per id.
    vlans: [u64; VLAN_IDS as usize / 64],
    multicast: [u16; MAX_MULTICAST],
    groups: usize,
    all_multicast: bool,
    /// Longest frame that the PF has granted, in bytes, without FCS and tag.
    pub(super) max_frame: usize,
}

impl GrantedVfRequests {
    pub(super) fn new(max_frame: usize) -> Self {
        let vlans = [0; VLAN_IDS as usize / 64];
        Self { vlans, multicast: [0; MAX_MULTICAST], groups: 0, all_multicast: false, max_frame }
    }

    fn note_vlan(&mut self, vlan: u16, member: bool) {
        let bit = 1 << (vlan % 64);
        let word = &mut self.vlans[usize::from(vlan) / 64];
        *word = if member { *word | bit } else { *word & !bit };
    }

    fn vlan_ids(&self) -> impl Iterator<Item = u16> + use<> {
        let vlans = self.vlans;
        (0..VLAN_IDS).filter(move |v| vlans[usize::from(*v) / 64] & (1 << (v % 64)) != 0)
    }
}

/// Returns a group address's index in the multicast table with RCTL.MO 0: its top 12 bits (82576 datasheet
/// 7.1.1.2.1).
#[must_use]
pub fn multicast_hash(group: MacAddress) -> u16 {
    u16::from(group.0[4] >> 4) | u16::from(group.0[5]) << 4
}

impl Vf {
    /// Requests `mac` as the VF's address, for sending and receiving.
    ///
    /// # Errors
    /// [`VfError::Mailbox`]: refused if the administrator has set the address.
    pub fn set_mac<H: Hal>(&mut self, hal: &mut H, mac: MacAddress) -> Result<(), VfError> {
        self.mac_request(hal, id::SET_MAC_ADDR, mac)?;
        self.mac = mac;
        Ok(())
    }

    /// Requests that the PF let the VF receive by `mac` in addition to its main address.
    ///
    /// # Errors
    /// [`VfError::Mailbox`]: refused if all filters are in use, or as [`Vf::set_mac`].
    pub fn add_mac<H: Hal>(&mut self, hal: &mut H, mac: MacAddress) -> Result<(), VfError> {
        self.mac_request(hal, id::SET_MAC_ADDR | mac_filter::ADD << INFO_SHIFT, mac)
    }

    /// Removes every MAC address that [`Vf::add_mac`] added.
    ///
    /// # Errors
    /// [`VfError::Mailbox`].
    pub fn clear_macs<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.mac_request(hal, id::SET_MAC_ADDR | mac_filter::CLEAR << INFO_SHIFT, self.mac)
    }

    fn mac_request<H: Hal>(&mut self, hal: &mut H, first: u32, mac: MacAddress) -> Result<(), VfError> {
        let (low, high) = mac.to_words();
        Ok(self.mailbox.request(hal, &[first, low, high])?)
    }

    /// Requests that the VF receive these multicast groups, and no others. Requests all groups if a message cannot hold
    /// them.
    ///
    /// # Errors
    /// [`VfError::Mailbox`].
    pub fn set_multicast<H: Hal>(&mut self, hal: &mut H, groups: &[MacAddress]) -> Result<(), VfError> {
        if groups.len() > MAX_MULTICAST {
            return self.set_all_multicast(hal, true);
        }
        for (hash, group) in self.wishes.multicast.iter_mut().zip(groups) {
            *hash = multicast_hash(*group);
        }
        self.wishes.groups = groups.len();
        self.send_multicast(hal)
    }

    fn send_multicast<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        let hashes = &self.wishes.multicast[..self.wishes.groups];
        let mut message = [0; WORDS];
        message[0] = id::SET_MULTICAST | (hashes.len() as u32) << INFO_SHIFT;
        for (word, pair) in message[1..].iter_mut().zip(hashes.chunks(2)) {
            *word = u32::from(pair[0]) | u32::from(pair.get(1).copied().unwrap_or(0)) << 16;
        }
        Ok(self.mailbox.request(hal, &message)?)
    }

    /// Requests that the VF receive every multicast frame, or, if `all` is false, only frames to the requested groups.
    ///
    /// # Errors
    /// [`VfError::Mailbox`].
    pub fn set_all_multicast<H: Hal>(&mut self, hal: &mut H, all: bool) -> Result<(), VfError> {
        let info = if all { promisc::MULTICAST } else { 0 };
        self.mailbox.request(hal, &[id::SET_PROMISC | info << INFO_SHIFT])?;
        self.wishes.all_multicast = all;
        Ok(())
    }

    /// Requests promiscuous reception from the PF. The 82576 has no such mode for a VF, so the PF refuses.
    ///
    /// # Errors
    /// [`VfError::Mailbox`].
    pub fn set_promiscuous<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        let info = promisc::UNICAST | promisc::MULTICAST;
        Ok(self.mailbox.request(hal, &[id::SET_PROMISC | info << INFO_SHIFT])?)
    }

    /// Requests that the PF add the VF to a VLAN, or remove it from the VLAN.
    ///
    /// # Errors
    /// [`VfError::Vlan`] above 4095; [`VfError::Mailbox`]: refused if the administrator has put the VF on one VLAN.
    pub fn set_vlan<H: Hal>(&mut self, hal: &mut H, vlan: u16, member: bool) -> Result<(), VfError> {
        if vlan >= VLAN_IDS {
            return Err(VfError::Vlan(vlan));
        }
        let first = id::SET_VLAN | u32::from(member) << INFO_SHIFT;
        self.mailbox.request(hal, &[first, u32::from(vlan)])?;
        self.wishes.note_vlan(vlan, member);
        Ok(())
    }

    /// Requests that the VF may receive frames of up to `bytes`, without FCS and one VLAN tag.
    ///
    /// # Errors
    /// [`VfError::FrameLength`] above 9.5 KB; [`VfError::Mailbox`].
    pub fn set_max_frame<H: Hal>(&mut self, hal: &mut H, bytes: usize) -> Result<(), VfError> {
        let with_tag = bytes.saturating_add(FCS + VLAN_TAG);
        if with_tag > MAX_FRAME {
            return Err(VfError::FrameLength(bytes));
        }
        self.mailbox.request(hal, &[id::SET_LPE, with_tag as u32])?;
        self.wishes.max_frame = bytes;
        Ok(())
    }

    /// Repeats the granted requests, which the PF has forgotten with the reset. A refused address becomes the permanent
    /// one, and the VF leaves a refused VLAN.
    pub(super) fn repeat_wishes<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        match self.set_mac(hal, self.mac) {
            Err(VfError::Mailbox(MailboxError::Refused(_))) => self.mac = self.permanent,
            other => other?,
        }
        self.send_multicast(hal)?;
        if self.wishes.all_multicast {
            self.set_all_multicast(hal, true)?;
        }
        for vlan in self.wishes.vlan_ids() {
            match self.set_vlan(hal, vlan, true) {
                Err(VfError::Mailbox(MailboxError::Refused(_))) => self.wishes.note_vlan(vlan, false),
                other => other?,
            }
        }
        self.set_max_frame(hal, self.wishes.max_frame)
    }
}
