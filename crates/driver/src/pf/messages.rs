//! Decides on requests of VFs by the rules of Linux igb, and one more: an address of another function is refused unless
//! both may share it.
//!
//! `mailbox` serves VF_RESET, and `vlans` the VLANs.

use super::Pf;
use super::counters::{MailboxMessageKind, MailboxRefusal};
use super::limits::LIMITS;
use crate::hal::Hal;
use i82576::bits::vlvf;
use i82576::ids::MAX_FRAME;
use i82576::mailbox::{INFO_MASK, INFO_SHIFT, MAX_MULTICAST, MULTICAST_OVERFLOW, WORDS, mac_filter, promisc};
use i82576::{MacAddress, VfIndex};
use pcie::VfSet;
use policy::FilterKind;

/// Reply to a mailbox request: the decision, and the part of the request that the reply repeats.
pub(super) struct MailboxReply {
    pub(super) echo: u32,
    pub(super) outcome: Result<(), MailboxRefusal>,
}

impl Pf {
    pub(super) fn decide<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        message: &[u32; WORDS],
    ) -> MailboxReply {
        let [first, argument, high, ..] = *message;
        let info = (first & INFO_MASK) >> INFO_SHIFT;
        let outcome = match MailboxMessageKind::of(first) {
            MailboxMessageKind::Mac => self.set_mac(hal, vf, info, MacAddress::from_words(argument, high)),
            MailboxMessageKind::Multicast => self.set_multicast(hal, vf, info, message),
            MailboxMessageKind::Vlan => {
                self.set_vlan(hal, vf, info != 0, (argument & vlvf::VLANID_MASK) as u16)
            }
            MailboxMessageKind::FrameLength => self.set_frame_length(hal, vf, argument),
            MailboxMessageKind::Promiscuity => return self.set_promiscuity(hal, vf, first),
            // VF_RESET with an info field is not VF_RESET.
            MailboxMessageKind::Reset | MailboxMessageKind::Other => Err(MailboxRefusal::Unknown),
        };
        MailboxReply { echo: first, outcome }
    }

    fn set_mac<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        info: u32,
        mac: MacAddress,
    ) -> Result<(), MailboxRefusal> {
        let state = self.state(vf);
        if info == 0 && state.mac == Some(mac) {
            return Ok(());
        }
        if state.policy.has_fixed_mac() {
            return Err(MailboxRefusal::AddressFixed);
        }
        if info == mac_filter::CLEAR {
            self.filters.clear_added(hal, vf);
            return Ok(());
        }
        if !mac.is_valid_unicast() {
            return Err(MailboxRefusal::AddressInvalid);
        }
        self.may_use(vf, mac)?;
        match info {
            0 => {
                ask_switch(hal, vf, mac)?;
                self.use_mac(hal, vf, Some(mac));
                Ok(())
            }
            mac_filter::ADD => self.add_mac(hal, vf, mac),
            _ => Err(MailboxRefusal::Unknown),
        }
    }

    /// Adds an address for the VF, if the VF's quota and the guarantees of the other VFs leave a filter for it.
    fn add_mac<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, mac: MacAddress) -> Result<(), MailboxRefusal> {
        let quota = self.state(vf).policy.quotas.mac;
        // The switch has decided on an address that the VF has.
        if !self.filters.has(vf, mac) {
            if !self.shares(FilterKind::Mac).admits(vf, quota, VfSet::NONE) {
                return Err(MailboxRefusal::NoFilter);
            }
            ask_switch(hal, vf, mac)?;
        }
        self.filters.add(hal, vf, mac, self.enabled)
    }

    fn set_multicast<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        info: u32,
        message: &[u32; WORDS],
    ) -> Result<(), MailboxRefusal> {
        let count = (info & !MULTICAST_OVERFLOW) as usize;
        let state = self.state_mut(vf);
        // A list that does not fit counts as a request for all groups, if that is allowed.
        let overflow = info & MULTICAST_OVERFLOW != 0 || count > MAX_MULTICAST;
        state.overflow = overflow && state.policy.allmulti;
        state.groups = count.min(MAX_MULTICAST);
        let hashes = message[1..].iter().flat_map(|word| [*word as u16, (*word >> 16) as u16]);
        for (slot, hash) in state.hashes.iter_mut().zip(hashes) {
            *slot = hash & 0xfff;
        }
        self.apply_groups(hal, vf);
        Ok(())
    }

    fn set_frame_length<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        bytes: u32,
    ) -> Result<(), MailboxRefusal> {
        if bytes > MAX_FRAME as u32 {
            return Err(MailboxRefusal::FrameLength);
        }
        if bytes > self.state(vf).policy.longest_frame(&LIMITS).into() {
            return Err(MailboxRefusal::MtuLimit);
        }
        self.apply_length(hal, vf, Some(bytes));
        Ok(())
    }

    /// Serves SET_PROMISC: grants multicast promiscuity if the policy allows it, and refuses requests with any other
    /// bit in the info field.
    fn set_promiscuity<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, first: u32) -> MailboxReply {
        let multicast = promisc::MULTICAST << INFO_SHIFT;
        let (asked, state) = (first & multicast != 0, self.state_mut(vf));
        let granted = asked && state.policy.allmulti;
        state.all_multicast = granted;
        self.apply_groups(hal, vf);
        if asked != granted {
            return MailboxReply { echo: first, outcome: Err(MailboxRefusal::MulticastPromiscuity) };
        }
        let echo = first & !multicast;
        let outcome = if echo & INFO_MASK == 0 { Ok(()) } else { Err(MailboxRefusal::UnicastPromiscuity) };
        MailboxReply { echo, outcome }
    }
}

/// Checks that the switch would give a VF an address that the PF driver could give it. The switch also knows the stations beyond the
/// uplink, and the addresses of VFs that reset.
fn ask_switch<H: Hal>(hal: &mut H, vf: VfIndex, mac: MacAddress) -> Result<(), MailboxRefusal> {
    if hal.may_have_address(vf.get(), mac) { Ok(()) } else { Err(MailboxRefusal::AddressInUse) }
}
