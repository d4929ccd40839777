//! Addresses and promiscuity of a VF, by i40e's rules and one more: an address of another VF is refused unless both
//! may share it. Deleting a missing filter succeeds: Linux would reset the VF again and again after an error.
//!
//! `vlans` has the VLANs.

use super::counters::VirtchnlRefusal;
use super::limits::MORE_ADDRESSES;
use super::requests::{VirtchnlReply, VirtchnlResult};
use super::{AvfPf, AvfVfState, CardControlHal};
use ::avf::control::CardCommand;
use ::avf::virtchnl::filters::promiscuity;
use ::avf::virtchnl::{EtherAddress, EtherAddressType, MessageList};
use alloc::vec::Vec;
use i82576::MacAddress;
use policy::{FilterKind, FilterQuota, VfPolicy};
use units::LAST_VLAN;

/// Default address quota of an untrusted VF: 16 groups, its own, and broadcast (i40e).
const ADDRESSES: u16 = 18;
/// Default VLAN quota of an untrusted VF (i40e). A trusted VF may join all VLANs.
const VLANS: u16 = 16;

/// Returns the greatest number of filters of a kind that a VF may have by its policy. An address quota includes the VF's
/// own address and its groups.
pub(super) fn quota(policy: &VfPolicy, kind: FilterKind) -> u16 {
    let by_trust = match (kind, policy.trust) {
        (FilterKind::Mac, false) => ADDRESSES,
        (FilterKind::Mac, true) => MORE_ADDRESSES,
        (FilterKind::Vlan, false) => VLANS,
        (FilterKind::Vlan, true) => LAST_VLAN,
    };
    // A guarantee beyond the default quota raises it.
    let FilterQuota { min, max } = policy.quotas.of(kind);
    if max == 0 { by_trust.max(min) } else { max }
}

impl AvfPf {
    pub(super) fn add_addresses<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        list: MessageList<'_, EtherAddress>,
    ) -> VirtchnlResult {
        let state = self.state(vf);
        let (trust, fixed) =
            (state.decided.policy.trust, state.decided.policy.admin_mac.then_some(state.mac).flatten());
        let (most, may_choose) =
            (usize::from(quota(&state.decided.policy, FilterKind::Mac)), trust || fixed.is_none());
        // A list with that many different addresses exceeds the quota anyway. The look-ups of a message stay bounded.
        if list.len() > most {
            return Err(VirtchnlRefusal::TooManyAddresses);
        }
        let unicast = list.iter().filter(|address| !MacAddress(address.mac).is_group()).count();
        if !trust && unicast > 0 {
            hal.charge_comparisons(vf, unicast * self.comparisons_of_look_up());
        }
        let state = self.state(vf);
        let mut more = 0;
        for EtherAddress { mac, .. } in list.iter() {
            let mac = MacAddress(mac);
            if mac.is_broadcast() || mac == MacAddress::ZERO {
                return Err(VirtchnlRefusal::AddressInvalid);
            }
            if !trust && !mac.is_group() && fixed.is_some_and(|fixed| fixed != mac) {
                return Err(VirtchnlRefusal::AddressFixed);
            }
            // A trusted VF that uses an address of this VF too takes nothing away from it.
            if !mac.is_group() && (!state.uses(mac) || self.is_reserved(mac)) {
                self.may_use(vf, mac)?;
            }
            more += usize::from(!state.addresses.contains(&mac));
        }
        if state.addresses.len() + more > most {
            return Err(VirtchnlRefusal::TooManyAddresses);
        }
        let withheld = self.ask_switch(hal, vf, list)?;
        for EtherAddress { mac, usage } in list.iter() {
            let mac = MacAddress(mac);
            if withheld.contains(&mac) {
                continue;
            }
            self.add_address(hal, vf, mac);
            if usage == EtherAddressType::Primary && mac.is_valid_unicast() && may_choose {
                self.state_mut(vf).mac = Some(mac);
            }
        }
        if may_choose {
            self.follow_older_driver(vf, list);
        }
        let refused = VirtchnlReply::Pretended(VirtchnlRefusal::AddressInUse);
        Ok(if withheld.is_empty() { VirtchnlReply::Done } else { refused })
    }

    /// Asks the switch for the addresses of a list that are new to a VF. Returns those that it withholds: of another VF, of a station
    /// beyond the uplink, or of the host. An address that the VF only believes to have would count as its own, and the PF driver would
    /// refuse it to its owner.
    ///
    /// A list with the VF's main address is acknowledged without the withheld addresses: iavf sends such a list at its start and
    /// after a reset, with all of its addresses and groups. It never repeats a refused list, so one address of another station
    /// would cost the guest every group.
    fn ask_switch<H: CardControlHal>(
        &self,
        hal: &mut H,
        vf: u8,
        list: MessageList<'_, EtherAddress>,
    ) -> Result<Vec<MacAddress>, VirtchnlRefusal> {
        let AvfVfState { mac: main, addresses: own, .. } = self.state(vf);
        let addresses = || list.iter().map(|address| MacAddress(address.mac));
        let new = addresses().filter(|mac| !mac.is_group() && !own.contains(mac));
        let withheld: Vec<_> = new.filter(|mac| !hal.may_have_address(vf, *mac)).collect();
        let is_granted = withheld.is_empty() || addresses().any(|mac| *main == Some(mac));
        if is_granted { Ok(withheld) } else { Err(VirtchnlRefusal::AddressInUse) }
    }

    /// Makes the first new address of an older driver the VF's main address, if the VF does not receive by its main address. Such a
    /// driver does not state which address is the main one.
    fn follow_older_driver(&mut self, vf: u8, list: MessageList<'_, EtherAddress>) {
        let state = self.state_mut(vf);
        let own = |mac: &MacAddress| state.addresses.contains(mac);
        if !state.mac.is_some_and(|main| own(&main)) {
            let older = list.iter().filter(|address| address.usage == EtherAddressType::Legacy);
            let new =
                older.map(|address| MacAddress(address.mac)).find(|mac| mac.is_valid_unicast() && own(mac));
            state.mac = new.or(state.mac);
        }
    }

    /// Serves DEL_ETH_ADDR. The main address stays the VF's, although the VF does not receive by it: Linux deletes all addresses when
    /// the interface goes down. But if an older driver, which does not state the main address, leaves another, the newest becomes it.
    pub(super) fn delete_addresses<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        list: MessageList<'_, EtherAddress>,
    ) -> VirtchnlResult {
        let given = |mac: [u8; 6]| MacAddress(mac).is_broadcast() || mac == [0; 6];
        if list.iter().any(|address| given(address.mac)) {
            return Err(VirtchnlRefusal::AddressInvalid);
        }
        let mut is_replaced = false;
        for EtherAddress { mac, usage } in list.iter() {
            let state = self.state_mut(vf);
            let mac = MacAddress(mac);
            if state.decided.policy.admin_mac && state.mac == Some(mac) {
                continue;
            }
            if let Some(place) = state.addresses.iter().position(|own| *own == mac) {
                state.addresses.remove(place);
                is_replaced |= usage == EtherAddressType::Legacy && state.mac == Some(mac);
                hal.order(vf, CardCommand::Address { mac: mac.0, on: false });
            }
        }
        if is_replaced {
            let state = self.state_mut(vf);
            state.mac = state.addresses.iter().rfind(|mac| mac.is_valid_unicast()).copied().or(state.mac);
        }
        Ok(VirtchnlReply::Done)
    }

    pub(super) fn add_address<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, mac: MacAddress) {
        let addresses = &mut self.state_mut(vf).addresses;
        if !addresses.contains(&mac) {
            addresses.push(mac);
            hal.order(vf, CardCommand::Address { mac: mac.0, on: true });
        }
    }

    /// Serves a VF's request for promiscuity. A VF without permission gets a success reply, and only the promiscuity
    /// that its policy allows.
    pub(super) fn set_promiscuity<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        flags: u16,
    ) -> VirtchnlReply {
        let (unicast, multicast) = (flags & promiscuity::UNICAST != 0, flags & promiscuity::MULTICAST != 0);
        let policy = &self.state(vf).decided.policy;
        let granted = (unicast && policy.trust, multicast && policy.trust && policy.allmulti);
        hal.order(vf, CardCommand::Promiscuity { unicast: granted.0, multicast: granted.1 });
        if granted == (unicast, multicast) {
            VirtchnlReply::Done
        } else {
            VirtchnlReply::Pretended(VirtchnlRefusal::Promiscuity)
        }
    }
}
