//! Decodes and serves the virtchnl requests of VFs. Every request but RESET_VF gets exactly one reply of the same
//! operation, unknown ones too: drivers wait for ever. Queues and filters have their own modules.

use super::counters::Refusal;
use super::limits::longest_frame;
use super::{Card, OFFERED, Pf, Stage, vsi};
use ::avf::control::{HashFunction, Order};
use ::avf::descriptor::rx::SUPPORTED;
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE};
use ::avf::packet_type::HASH_TYPES;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{Capabilities, Request, Resources, Status, Version, VlanCapabilities};
use alloc::vec::Vec;
use i82576::MacAddress;

/// Reply of the PF to a granted request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The reply is a success status only.
    Done,
    /// The reply is a success status and this body.
    Body(Vec<u8>),
    /// The reply is a success status, though the request has no effect.
    Pretended(Refusal),
    /// There is no reply: the VF is reset.
    Reset,
    /// There is no reply: the VF is notified of a reset, and reset.
    ResetWithNotice,
}

pub(super) type Outcome = Result<Answer, Refusal>;

/// VLAN filters announced to a VF.
const VLAN_FILTERS: u16 = 64;
/// Hash functions of CONFIG_RSS_HFUNC: Toeplitz, plain and symmetric.
const TOEPLITZ: u16 = 0;
const SYMMETRIC: u16 = 2;

impl Pf {
    /// Serves one request of a VF.
    pub(super) fn serve<H: Card>(&mut self, hal: &mut H, vf: u8, number: u32, body: &[u8]) {
        self.state_mut(vf).counters.count_request(number);
        let request = Request::decode(number, body);
        let outcome = request.map_err(Refusal::from).and_then(|request| self.dispatch(hal, vf, &request));
        let (status, body) = match outcome {
            Ok(Answer::Done) => (Status::Success, Vec::new()),
            Ok(Answer::Body(body)) => (Status::Success, body),
            Ok(Answer::Pretended(refusal)) => {
                self.state_mut(vf).counters.count_refusal(refusal);
                (Status::Success, Vec::new())
            }
            Ok(Answer::Reset) => return self.reset_now(hal, vf),
            Ok(Answer::ResetWithNotice) => return self.reset_with_notice(hal, vf),
            Err(refusal) => {
                self.state_mut(vf).counters.count_refusal(refusal);
                (refusal.status(), Vec::new())
            }
        };
        self.send(hal, vf, number, status, &body);
        if status == Status::Success
            && matches!(
                request,
                Ok(Request::Resources(_) | Request::SwitchQueues(true, _) | Request::SwitchRanges(true, ..))
            )
        {
            self.send_link(hal, vf);
        }
    }

    fn dispatch<H: Card>(&mut self, hal: &mut H, vf: u8, request: &Request<'_>) -> Outcome {
        match *request {
            Request::Version(version) => return Ok(self.settle_version(vf, version)),
            Request::Reset => return Ok(Answer::Reset),
            Request::Resources(asked) => return Ok(self.settle_resources(vf, asked)),
            _ if self.state(vf).stage != Stage::Active => return Err(Refusal::NotReady),
            _ => {}
        }
        self.check_vsi(vf, request)?;
        match *request {
            Request::ConfigureQueues(_, pairs) => self.configure_queues(hal, vf, pairs),
            Request::MapVectors(maps) => self.map_vectors(hal, vf, maps),
            Request::SwitchQueues(on, queues) => self.switch_queues(hal, vf, on, queues.rx, queues.tx),
            Request::SwitchRanges(on, _, chunks) => self.switch_ranges(hal, vf, on, chunks),
            Request::Addresses(true, _, list) => self.add_addresses(hal, vf, list),
            Request::Addresses(false, _, list) => self.delete_addresses(hal, vf, list),
            Request::Vlans(on, _, list) => self.change_vlans(hal, vf, on, list.iter().map(Ok)),
            Request::VlanFilters(on, _, list) => self.change_vlan_filters(hal, vf, on, list),
            Request::Promiscuity(_, flags) => Ok(self.set_promiscuity(hal, vf, flags)),
            Request::Strip(on) => self.set_stripping(hal, vf, on),
            Request::VlanOffload(what, on, setting) => self.set_vlan_offload(hal, vf, what, on, setting),
            Request::VlanCapabilities => self.vlan_capabilities(vf),
            Request::Statistics(_) => Ok(Answer::Body(encode(&hal.statistics(vf)))),
            Request::Queues(pairs) => Ok(self.request_queues(vf, pairs)),
            Request::RxDescriptors => {
                self.agreed(vf, Capabilities::RX_FLEX_DESC)?;
                Ok(Answer::Body(SUPPORTED.to_le_bytes().to_vec()))
            }
            _ => self.set_hash(hal, vf, request),
        }
    }

    /// Checks that a request names the VF's own VSI.
    fn check_vsi(&self, vf: u8, request: &Request<'_>) -> Result<(), Refusal> {
        let named = match *request {
            Request::ConfigureQueues(named, _)
            | Request::SwitchRanges(_, named, _)
            | Request::Addresses(_, named, _)
            | Request::Vlans(_, named, _)
            | Request::VlanFilters(_, named, _)
            | Request::Promiscuity(named, _)
            | Request::HashFunction(named, _)
            | Request::HashKey(named, _)
            | Request::LookupTable(named, _) => named,
            Request::SwitchQueues(_, queues) | Request::Statistics(queues) => queues.vsi,
            Request::VlanOffload(_, _, setting) => setting.vsi,
            _ => vsi(vf),
        };
        if named == vsi(vf) { Ok(()) } else { Err(Refusal::NotItsVsi) }
    }

    pub(super) fn agreed(&self, vf: u8, capability: Capabilities) -> Result<(), Refusal> {
        if self.state(vf).has(capability) { Ok(()) } else { Err(Refusal::NotAgreed) }
    }

    /// Negotiates the older of both versions. A VF of an unknown version gets a reply all the same, and gives up by
    /// itself.
    fn settle_version(&mut self, vf: u8, asked: Version) -> Answer {
        let version = if asked == Version::V1_0 { Version::V1_0 } else { Version::V1_1 };
        self.state_mut(vf).version = version;
        Answer::Body(encode(&version))
    }

    /// Returns the VF's resources. It may request them again: Linux does so when the reply was late.
    fn settle_resources(&mut self, vf: u8, asked: Option<Capabilities>) -> Answer {
        let state = self.state_mut(vf);
        let asked = match asked {
            Some(asked) if state.version != Version::V1_0 => asked,
            _ => Capabilities::OF_VERSION_1_0,
        };
        let either =
            if asked.has(Capabilities::VLAN_V2) { Capabilities::VLAN } else { Capabilities::VLAN_V2 };
        let fixed =
            if state.decided.policy.vlan.is_some() { Capabilities::VLAN } else { Capabilities::default() };
        state.agreed = asked.common(OFFERED).without(either).without(fixed).and(Capabilities::L2);
        state.stage = Stage::Active;
        let resources = Resources {
            pairs: state.pairs,
            vectors: state.vectors(),
            max_frame: longest_frame(&state.decided.policy),
            capabilities: state.agreed,
            vsi: vsi(vf),
            mac: state.mac.map_or([0; 6], |MacAddress(mac)| mac),
        };
        Answer::Body(encode(&resources))
    }

    /// Serves a request for another number of queue pairs: granted by a reset, refused with the maximum.
    fn request_queues(&mut self, vf: u8, pairs: u16) -> Answer {
        let state = self.state_mut(vf);
        if state.has(Capabilities::REQ_QUEUES) && (1..=state.decided.most_pairs).contains(&pairs) {
            state.pairs = pairs;
            return Answer::ResetWithNotice;
        }
        state.counters.count_refusal(Refusal::TooManyQueues);
        Answer::Body(state.decided.most_pairs.to_le_bytes().to_vec())
    }

    fn vlan_capabilities(&self, vf: u8) -> Outcome {
        self.agreed(vf, Capabilities::VLAN_V2)?;
        let offered = match self.state(vf).decided.policy.vlan {
            Some(_) => VlanCapabilities::default(),
            None => VlanCapabilities::one_tag(VLAN_FILTERS),
        };
        Ok(Answer::Body(encode(&offered)))
    }

    fn set_hash<H: Card>(&mut self, hal: &mut H, vf: u8, request: &Request<'_>) -> Outcome {
        if *request == Request::GetHashTypes {
            return Ok(Answer::Body(HASH_TYPES.to_le_bytes().to_vec()));
        }
        self.agreed(vf, Capabilities::RSS_PF)?;
        let pairs = self.state(vf).pairs;
        match *request {
            Request::HashKey(_, key) if key.len() == HASH_KEY => hal.order(vf, Order::HashKey(key)),
            Request::LookupTable(_, table)
                if table.len() == LOOKUP_TABLE && table.iter().all(|queue| u16::from(*queue) < pairs) =>
            {
                hal.order(vf, Order::LookupTable(table));
            }
            Request::SetHashTypes(types) => hal.order(vf, Order::HashTypes(types & HASH_TYPES)),
            Request::HashFunction(_, TOEPLITZ) => hal.order(vf, Order::HashFunction(HashFunction::Toeplitz)),
            Request::HashFunction(_, SYMMETRIC) => {
                hal.order(vf, Order::HashFunction(HashFunction::Symmetric));
            }
            _ => return Err(Refusal::Hash),
        }
        Ok(Answer::Done)
    }
}
