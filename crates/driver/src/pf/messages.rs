//! Decides requests by the rules of Linux igb, and one more: an address of another function is refused unless both
//! may share it.
//!
//! `mailbox` serves VF_RESET, and `membership` the VLANs.

use super::Pf;
use super::counters::{Kind, Refusal};
use super::limits::LIMITS;
use crate::hal::Hal;
use i82576::bits::vlvf;
use i82576::ids::MAX_FRAME;
use i82576::mailbox::{INFO_MASK, INFO_SHIFT, MAX_MULTICAST, MULTICAST_OVERFLOW, WORDS, mac_filter, promisc};
use i82576::{MacAddress, VfIndex};

/// Decision on a request, and the part of the request that the reply repeats.
pub(super) struct Answer {
    pub(super) echo: u32,
    pub(super) outcome: Result<(), Refusal>,
}

impl Pf {
    pub(super) fn decide<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, message: &[u32; WORDS]) -> Answer {
        let [first, argument, high, ..] = *message;
        let info = (first & INFO_MASK) >> INFO_SHIFT;
        let outcome = match Kind::of(first) {
            Kind::Mac => self.set_mac(hal, vf, info, MacAddress::from_words(argument, high)),
            Kind::Multicast => self.set_multicast(hal, vf, info, message),
            Kind::Vlan => self.set_vlan(hal, vf, info != 0, (argument & vlvf::VLANID_MASK) as u16),
            Kind::FrameLength => self.set_frame_length(hal, vf, argument),
            Kind::Promiscuity => return self.set_promiscuity(hal, vf, first),
            // VF_RESET with an info field is not VF_RESET.
            Kind::Reset | Kind::Other => Err(Refusal::Unknown),
        };
        Answer { echo: first, outcome }
    }

    fn set_mac<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        info: u32,
        mac: MacAddress,
    ) -> Result<(), Refusal> {
        let state = self.state(vf);
        if info == 0 && state.mac == Some(mac) {
            return Ok(());
        }
        let (trust, fixed) = (state.policy.trust, state.policy.admin_mac);
        if fixed && !trust {
            return Err(Refusal::AddressFixed);
        }
        if info == mac_filter::CLEAR {
            self.filters.clear_added(hal, vf);
            return Ok(());
        }
        if !mac.is_valid_unicast() {
            return Err(Refusal::AddressInvalid);
        }
        self.may_use(vf, mac)?;
        match info {
            0 => {
                self.use_mac(hal, vf, Some(mac));
                Ok(())
            }
            mac_filter::ADD => self.filters.add(hal, vf, mac, self.enabled),
            _ => Err(Refusal::Unknown),
        }
    }

    fn set_multicast<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        info: u32,
        message: &[u32; WORDS],
    ) -> Result<(), Refusal> {
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

    fn set_frame_length<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, bytes: u32) -> Result<(), Refusal> {
        if bytes > MAX_FRAME as u32 {
            return Err(Refusal::FrameLength);
        }
        if bytes > self.state(vf).policy.longest_frame(&LIMITS).into() {
            return Err(Refusal::MtuLimit);
        }
        self.apply_length(hal, vf, Some(bytes));
        Ok(())
    }

    /// Serves multicast promiscuity and clears its bit in the message; remaining bits in the info field are
    /// refused.
    fn set_promiscuity<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, first: u32) -> Answer {
        let multicast = promisc::MULTICAST << INFO_SHIFT;
        let (asked, state) = (first & multicast != 0, self.state_mut(vf));
        let granted = asked && state.policy.allmulti;
        state.all_multicast = granted;
        self.apply_groups(hal, vf);
        if asked != granted {
            return Answer { echo: first, outcome: Err(Refusal::MulticastPromiscuity) };
        }
        let echo = first & !multicast;
        let outcome = if echo & INFO_MASK == 0 { Ok(()) } else { Err(Refusal::UnicastPromiscuity) };
        Answer { echo, outcome }
    }
}
