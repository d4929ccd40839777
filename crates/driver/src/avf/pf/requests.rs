//! Decodes and serves the virtchnl requests of VFs. Every request except RESET_VF gets exactly one reply of the same
//! operation, even an unknown request, because drivers wait forever for a reply. Queues and filters have their own
//! modules.

use super::counters::VirtchnlRefusal;
use super::limits::longest_frame;
use super::{AvfPf, CardControlHal, OFFERED, VfDriverStage, vsi};
use ::avf::control::{CardCommand, RssHashFunction};
use ::avf::descriptor::rx::SUPPORTED;
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE};
use ::avf::packet_type::HASH_TYPES;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{
    VfCapabilities, VfResources, VirtchnlRequest, VirtchnlStatus, VirtchnlVersion, VlanCapabilities,
};
use alloc::vec::Vec;
use i82576::MacAddress;

/// Outcome of a granted request, which determines the PF's reply.
#[derive(Debug)]
pub(super) enum VirtchnlReply {
    /// The PF replies with a success status only.
    Done,
    /// The PF replies with a success status and this body.
    Body(Vec<u8>),
    /// The PF replies with a success status, though the request has no effect.
    Pretended(VirtchnlRefusal),
    /// The PF sends no reply: the VF is reset.
    Reset,
    /// The PF sends no reply: the VF is notified of a reset, and reset.
    ResetWithNotice,
}

pub(super) type VirtchnlResult = Result<VirtchnlReply, VirtchnlRefusal>;

/// Number of VLAN filters that the PF announces to a VF.
const VLAN_FILTERS: u16 = 64;
/// Number of the plain Toeplitz hash function in CONFIG_RSS_HFUNC.
const TOEPLITZ: u16 = 0;
/// Number of the symmetric Toeplitz hash function in CONFIG_RSS_HFUNC.
const SYMMETRIC: u16 = 2;

impl AvfPf {
    /// Serves one virtchnl request of a VF.
    pub(super) fn serve<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, number: u32, body: &[u8]) {
        self.state_mut(vf).counters.count_request(number);
        let request = VirtchnlRequest::decode(number, body);
        let outcome =
            request.map_err(VirtchnlRefusal::from).and_then(|request| self.dispatch(hal, vf, &request));
        let (status, body) = match outcome {
            Ok(VirtchnlReply::Done) => (VirtchnlStatus::Success, Vec::new()),
            Ok(VirtchnlReply::Body(body)) => (VirtchnlStatus::Success, body),
            Ok(VirtchnlReply::Pretended(refusal)) => {
                self.state_mut(vf).counters.count_refusal(refusal);
                (VirtchnlStatus::Success, Vec::new())
            }
            Ok(VirtchnlReply::Reset) => return self.reset_now(hal, vf),
            Ok(VirtchnlReply::ResetWithNotice) => return self.reset_with_notice(hal, vf),
            Err(refusal) => {
                self.state_mut(vf).counters.count_refusal(refusal);
                (refusal.status(), Vec::new())
            }
        };
        self.send(hal, vf, number, status, &body);
        if status == VirtchnlStatus::Success
            && matches!(
                request,
                Ok(VirtchnlRequest::Resources(_)
                    | VirtchnlRequest::SwitchQueues(true, _)
                    | VirtchnlRequest::SwitchRanges(true, ..))
            )
        {
            self.send_link(hal, vf);
        }
    }

    fn dispatch<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        request: &VirtchnlRequest<'_>,
    ) -> VirtchnlResult {
        match *request {
            VirtchnlRequest::Version(version) => return Ok(self.settle_version(vf, version)),
            VirtchnlRequest::Reset => return Ok(VirtchnlReply::Reset),
            VirtchnlRequest::Resources(asked) => return Ok(self.settle_resources(vf, asked)),
            _ if self.state(vf).stage != VfDriverStage::Active => return Err(VirtchnlRefusal::NotReady),
            _ => {}
        }
        self.check_vsi(vf, request)?;
        match *request {
            VirtchnlRequest::ConfigureQueues(_, pairs) => self.configure_queues(hal, vf, pairs),
            VirtchnlRequest::MapVectors(maps) => self.map_vectors(hal, vf, maps),
            VirtchnlRequest::SwitchQueues(on, queues) => {
                self.switch_queues(hal, vf, on, queues.rx, queues.tx)
            }
            VirtchnlRequest::SwitchRanges(on, _, chunks) => self.switch_ranges(hal, vf, on, chunks),
            VirtchnlRequest::Addresses(true, _, list) => self.add_addresses(hal, vf, list),
            VirtchnlRequest::Addresses(false, _, list) => self.delete_addresses(hal, vf, list),
            VirtchnlRequest::Vlans(on, _, list) => self.change_vlans(hal, vf, on, list.iter().map(Ok)),
            VirtchnlRequest::VlanFilters(on, _, list) => self.change_vlan_filters(hal, vf, on, list),
            VirtchnlRequest::Promiscuity(_, flags) => Ok(self.set_promiscuity(hal, vf, flags)),
            VirtchnlRequest::Strip(on) => self.set_stripping(hal, vf, on),
            VirtchnlRequest::VlanOffload(what, on, setting) => {
                self.set_vlan_offload(hal, vf, what, on, setting)
            }
            VirtchnlRequest::VlanCapabilities => self.vlan_capabilities(vf),
            VirtchnlRequest::Statistics(_) => Ok(VirtchnlReply::Body(encode(&hal.statistics(vf)))),
            VirtchnlRequest::Queues(pairs) => Ok(self.request_queues(vf, pairs)),
            VirtchnlRequest::RxDescriptors => {
                self.agreed(vf, VfCapabilities::RX_FLEX_DESC)?;
                Ok(VirtchnlReply::Body(SUPPORTED.to_le_bytes().to_vec()))
            }
            _ => self.set_hash(hal, vf, request),
        }
    }

    /// Checks that a request names the VF's own VSI.
    fn check_vsi(&self, vf: u8, request: &VirtchnlRequest<'_>) -> Result<(), VirtchnlRefusal> {
        let named = match *request {
            VirtchnlRequest::ConfigureQueues(named, _)
            | VirtchnlRequest::SwitchRanges(_, named, _)
            | VirtchnlRequest::Addresses(_, named, _)
            | VirtchnlRequest::Vlans(_, named, _)
            | VirtchnlRequest::VlanFilters(_, named, _)
            | VirtchnlRequest::Promiscuity(named, _)
            | VirtchnlRequest::HashFunction(named, _)
            | VirtchnlRequest::HashKey(named, _)
            | VirtchnlRequest::LookupTable(named, _) => named,
            VirtchnlRequest::SwitchQueues(_, queues) | VirtchnlRequest::Statistics(queues) => queues.vsi,
            VirtchnlRequest::VlanOffload(_, _, setting) => setting.vsi,
            _ => vsi(vf),
        };
        if named == vsi(vf) { Ok(()) } else { Err(VirtchnlRefusal::NotItsVsi) }
    }

    pub(super) fn agreed(&self, vf: u8, capability: VfCapabilities) -> Result<(), VirtchnlRefusal> {
        if self.state(vf).has(capability) { Ok(()) } else { Err(VirtchnlRefusal::NotAgreed) }
    }

    /// Serves VERSION: negotiates the older of the VF's version and the PF's. A VF of an unknown version gets a reply
    /// too, and its driver then gives up.
    fn settle_version(&mut self, vf: u8, asked: VirtchnlVersion) -> VirtchnlReply {
        let version =
            if asked == VirtchnlVersion::V1_0 { VirtchnlVersion::V1_0 } else { VirtchnlVersion::V1_1 };
        self.state_mut(vf).version = version;
        VirtchnlReply::Body(encode(&version))
    }

    /// Serves GET_VF_RESOURCES. The VF may request its resources again: Linux does so when the reply was late.
    fn settle_resources(&mut self, vf: u8, asked: Option<VfCapabilities>) -> VirtchnlReply {
        let state = self.state_mut(vf);
        let asked = match asked {
            Some(asked) if state.version != VirtchnlVersion::V1_0 => asked,
            _ => VfCapabilities::OF_VERSION_1_0,
        };
        let either =
            if asked.has(VfCapabilities::VLAN_V2) { VfCapabilities::VLAN } else { VfCapabilities::VLAN_V2 };
        let fixed = if state.decided.policy.vlan.is_some() {
            VfCapabilities::VLAN
        } else {
            VfCapabilities::default()
        };
        state.agreed = asked.common(OFFERED).without(either).without(fixed).and(VfCapabilities::L2);
        state.stage = VfDriverStage::Active;
        let resources = VfResources {
            pairs: state.pairs,
            vectors: state.vectors(),
            max_frame: longest_frame(&state.decided.policy),
            capabilities: state.agreed,
            vsi: vsi(vf),
            mac: state.mac.map_or([0; 6], |MacAddress(mac)| mac),
        };
        VirtchnlReply::Body(encode(&resources))
    }

    /// Serves a VF's request for another number of queue pairs: granted by a reset, refused with the maximum.
    fn request_queues(&mut self, vf: u8, pairs: u16) -> VirtchnlReply {
        let state = self.state_mut(vf);
        if state.has(VfCapabilities::REQ_QUEUES) && (1..=state.decided.most_pairs).contains(&pairs) {
            state.pairs = pairs;
            return VirtchnlReply::ResetWithNotice;
        }
        state.counters.count_refusal(VirtchnlRefusal::TooManyQueues);
        VirtchnlReply::Body(state.decided.most_pairs.to_le_bytes().to_vec())
    }

    fn vlan_capabilities(&self, vf: u8) -> VirtchnlResult {
        self.agreed(vf, VfCapabilities::VLAN_V2)?;
        let offered = match self.state(vf).decided.policy.vlan {
            Some(_) => VlanCapabilities::default(),
            None => VlanCapabilities::one_tag(VLAN_FILTERS),
        };
        Ok(VirtchnlReply::Body(encode(&offered)))
    }

    fn set_hash<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        request: &VirtchnlRequest<'_>,
    ) -> VirtchnlResult {
        if *request == VirtchnlRequest::GetHashTypes {
            return Ok(VirtchnlReply::Body(HASH_TYPES.to_le_bytes().to_vec()));
        }
        self.agreed(vf, VfCapabilities::RSS_PF)?;
        let pairs = self.state(vf).pairs;
        match *request {
            VirtchnlRequest::HashKey(_, key) if key.len() == HASH_KEY => {
                hal.order(vf, CardCommand::HashKey(key));
            }
            VirtchnlRequest::LookupTable(_, table)
                if table.len() == LOOKUP_TABLE && table.iter().all(|queue| u16::from(*queue) < pairs) =>
            {
                hal.order(vf, CardCommand::LookupTable(table));
            }
            VirtchnlRequest::SetHashTypes(types) => hal.order(vf, CardCommand::HashTypes(types & HASH_TYPES)),
            VirtchnlRequest::HashFunction(_, TOEPLITZ) => {
                hal.order(vf, CardCommand::HashFunction(RssHashFunction::Toeplitz));
            }
            VirtchnlRequest::HashFunction(_, SYMMETRIC) => {
                hal.order(vf, CardCommand::HashFunction(RssHashFunction::Symmetric));
            }
            _ => return Err(VirtchnlRefusal::Hash),
        }
        Ok(VirtchnlReply::Done)
    }
}
