//! By what a VF receives, by i40e's rules and one more: an address that another function has is refused unless the VF is
//! trusted. What is deleted is never refused for not being there: Linux resets the VF again and again when it is.
//!
//! Left out: what the switch makes of filters.

use super::counters::Refusal;
use super::requests::{Answer, Outcome};
use super::{Card, Pf};
use ::avf::control::{Order, Tags};
use ::avf::virtchnl::filters::promiscuity;
use ::avf::virtchnl::vlan_offload::support;
use ::avf::virtchnl::{Address, AddressUse, Capabilities, List, VlanFilter, VlanSetting, VlanWhat};
use i82576::MacAddress;

/// Addresses of a VF that is not trusted: 16 groups, its own, and broadcast.
const ADDRESSES: usize = 18;
/// Addresses of a trusted one.
pub(super) const MORE_ADDRESSES: usize = 128;
/// VLANs of a VF that is not trusted.
const VLANS: usize = 16;
pub(super) const LAST_VLAN: u16 = 4095;
const TPID: u16 = 0x8100;
/// The VLAN's id in a tag.
const ID: u16 = 0xfff;

impl Pf {
    pub(super) fn add_addresses<H: Card>(&mut self, hal: &mut H, vf: u8, list: List<'_, Address>) -> Outcome {
        let state = self.state(vf);
        let (trust, fixed) = (state.policy.trust, state.policy.admin_mac.then_some(state.mac).flatten());
        let most = if trust { MORE_ADDRESSES } else { ADDRESSES };
        let mut more = 0;
        for Address { mac, .. } in list.iter() {
            let mac = MacAddress(mac);
            if mac.is_broadcast() || mac == MacAddress::ZERO {
                return Err(Refusal::AddressInvalid);
            }
            if !trust && !mac.is_group() && fixed.is_some_and(|fixed| fixed != mac) {
                return Err(Refusal::AddressFixed);
            }
            if !trust && !mac.is_group() && self.owner_of(mac, vf).is_some() {
                return Err(Refusal::AddressInUse);
            }
            more += usize::from(!state.addresses.contains(&mac));
        }
        if state.addresses.len() + more > most {
            return Err(Refusal::TooManyAddresses);
        }
        for Address { mac, usage } in list.iter() {
            let mac = MacAddress(mac);
            self.add_address(hal, vf, mac);
            let state = self.state_mut(vf);
            let own = usage == AddressUse::Primary || usage == AddressUse::Legacy && state.mac.is_none();
            if own && mac.is_valid_unicast() && (fixed.is_none() || trust) {
                state.mac = Some(mac);
            }
        }
        Ok(Answer::Done)
    }

    pub(super) fn delete_addresses<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        list: List<'_, Address>,
    ) -> Outcome {
        let given = |mac: [u8; 6]| MacAddress(mac).is_broadcast() || mac == [0; 6];
        if list.iter().any(|address| given(address.mac)) {
            return Err(Refusal::AddressInvalid);
        }
        for Address { mac, .. } in list.iter() {
            let state = self.state_mut(vf);
            let mac = MacAddress(mac);
            if state.policy.admin_mac && state.mac == Some(mac) {
                continue;
            }
            if let Some(place) = state.addresses.iter().position(|own| *own == mac) {
                state.addresses.swap_remove(place);
                hal.order(vf, Order::Address { mac: mac.0, on: false });
            }
        }
        Ok(Answer::Done)
    }

    pub(super) fn add_address<H: Card>(&mut self, hal: &mut H, vf: u8, mac: MacAddress) {
        let addresses = &mut self.state_mut(vf).addresses;
        if !addresses.contains(&mac) {
            addresses.push(mac);
            hal.order(vf, Order::Address { mac: mac.0, on: true });
        }
    }

    /// Takes every address and VLAN back but what every VF has: frames without a tag, or those of its port VLAN.
    pub(super) fn forget_filters<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state_mut(vf);
        let (addresses, vlans) = (core::mem::take(&mut state.addresses), core::mem::take(&mut state.vlans));
        addresses.into_iter().for_each(|mac| hal.order(vf, Order::Address { mac: mac.0, on: false }));
        vlans.into_iter().for_each(|vlan| hal.order(vf, Order::Vlan { vlan, on: false }));
        let fixed = self.state(vf).policy.vlan.map_or(0, |vlan| vlan.id);
        self.state_mut(vf).vlans.push(fixed);
        hal.order(vf, Order::Vlan { vlan: fixed, on: true });
    }

    pub(super) fn change_vlans<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        vlans: impl Iterator<Item = Result<u16, Refusal>> + Clone,
    ) -> Outcome {
        let state = self.state(vf);
        if on && state.policy.vlan.is_some() {
            return Err(Refusal::VlanFixed);
        }
        for vlan in vlans.clone() {
            let vlan = vlan?;
            if vlan > LAST_VLAN {
                return Err(Refusal::VlanInvalid);
            }
            if on && vlan != 0 && !state.policy.allows_vlan(vlan) {
                return Err(Refusal::VlanNotAllowed);
            }
        }
        if on { Ok(self.join(hal, vf, vlans)) } else { Ok(self.leave(hal, vf, vlans)) }
    }

    fn join<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        vlans: impl Iterator<Item = Result<u16, Refusal>>,
    ) -> Answer {
        let mut answer = Answer::Done;
        for vlan in vlans.flatten() {
            let state = self.state_mut(vf);
            // VLAN 0, which is always there, is none of the sixteen.
            let full = !state.policy.trust && state.vlans.len() > VLANS;
            match (state.vlans.contains(&vlan), full) {
                (true, _) => {}
                (false, true) => answer = Answer::Pretended(Refusal::TooManyVlans),
                (false, false) => {
                    state.vlans.push(vlan);
                    hal.order(vf, Order::Vlan { vlan, on: true });
                }
            }
        }
        // Without V2 there is no other moment to say that tags are taken out.
        if !self.state(vf).has(Capabilities::VLAN_V2) {
            self.state_mut(vf).strip = true;
            self.apply_tags(hal, vf);
        }
        answer
    }

    fn leave<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        vlans: impl Iterator<Item = Result<u16, Refusal>>,
    ) -> Answer {
        let fixed = self.state(vf).policy.vlan.map_or(0, |vlan| vlan.id);
        for vlan in vlans.flatten().filter(|vlan| *vlan != fixed) {
            let own = &mut self.state_mut(vf).vlans;
            if let Some(place) = own.iter().position(|own| *own == vlan) {
                own.swap_remove(place);
                hal.order(vf, Order::Vlan { vlan, on: false });
            }
        }
        Answer::Done
    }

    pub(super) fn change_vlan_filters<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        list: List<'_, VlanFilter>,
    ) -> Outcome {
        self.agreed(vf, Capabilities::VLAN_V2)?;
        let one_tag = |filter: VlanFilter| match (filter.outer.tpid, filter.inner.tpid) {
            (TPID, 0) => Ok(filter.outer.tci & ID),
            _ => Err(Refusal::VlanInvalid),
        };
        self.change_vlans(hal, vf, on, list.iter().map(one_tag))
    }

    /// A VF that may not is told that it receives everything, and does not.
    pub(super) fn set_promiscuity<H: Card>(&mut self, hal: &mut H, vf: u8, flags: u16) -> Answer {
        let (unicast, multicast) = (flags & promiscuity::UNICAST != 0, flags & promiscuity::MULTICAST != 0);
        let policy = &self.state(vf).policy;
        let granted = (unicast && policy.trust, multicast && policy.trust && policy.allmulti);
        hal.order(vf, Order::Promiscuity { unicast: granted.0, multicast: granted.1 });
        if granted == (unicast, multicast) { Answer::Done } else { Answer::Pretended(Refusal::Promiscuity) }
    }

    pub(super) fn set_stripping<H: Card>(&mut self, hal: &mut H, vf: u8, on: bool) -> Outcome {
        self.agreed(vf, Capabilities::VLAN)?;
        self.state_mut(vf).strip = on;
        self.apply_tags(hal, vf);
        Ok(Answer::Done)
    }

    pub(super) fn set_vlan_offload<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        what: VlanWhat,
        on: bool,
        setting: VlanSetting,
    ) -> Outcome {
        self.agreed(vf, Capabilities::VLAN_V2)?;
        let state = self.state_mut(vf);
        if state.policy.vlan.is_some() {
            return Err(Refusal::VlanFixed);
        }
        if setting.outer != support::ETHERTYPE_8100 || setting.inner != 0 {
            return Err(Refusal::VlanInvalid);
        }
        match what {
            VlanWhat::Strip => state.strip = on,
            VlanWhat::Insert => state.insert = on,
        }
        self.apply_tags(hal, vf);
        Ok(Answer::Done)
    }

    pub(super) fn apply_tags<H: Card>(&self, hal: &mut H, vf: u8) {
        let state = self.state(vf);
        let port_vlan = state.policy.vlan.map(|vlan| u16::from(vlan.qos) << 13 | vlan.id);
        let insert = port_vlan.is_none() && state.insert;
        hal.order(vf, Order::Tags(Tags { strip: state.strip, insert, port_vlan }));
    }
}
