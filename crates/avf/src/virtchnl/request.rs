//! Requests of a VF, with the length rules by which a PF refuses malformed ones.
//!
//! Messages that carry lists were once declared with an array of one element, so every driver sends one element
//! more than it counts, and i40e requires exactly that. Here a list must be complete, and excess bytes are ignored;
//! all other lengths must be exact.
//!
//! The PF checks the contents of a request.

use super::filters::{EtherAddress, VlanFilter};
use super::list::{MessageList, MessageListElement};
use super::op::VirtchnlOpcode;
use super::queues::{QueueChunk, QueuePairInfo, QueueSet, VectorMap};
use super::resources::{VfCapabilities, VirtchnlVersion};
use super::status::VirtchnlStatus;
use super::vlan_offload::{VlanOffloadKind, VlanSetting};
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use alloc::vec::Vec;

/// Request of a VF to its PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtchnlRequest<'a> {
    /// VERSION: the newest message version that the VF supports.
    Version(VirtchnlVersion),
    /// RESET_VF: resets the VF.
    Reset,
    /// GET_VF_RESOURCES: the VF's capabilities; a VF of version 1.0 gives none.
    Resources(Option<VfCapabilities>),
    /// CONFIG_VSI_QUEUES: sets up a VSI's queue pairs.
    ConfigureQueues(u16, MessageList<'a, QueuePairInfo>),
    /// CONFIG_IRQ_MAP: maps queues to interrupt vectors.
    MapVectors(MessageList<'a, VectorMap>),
    /// ENABLE_QUEUES (`true`) and DISABLE_QUEUES.
    SwitchQueues(bool, QueueSet),
    /// ENABLE_QUEUES_V2 (`true`) and DISABLE_QUEUES_V2, of a VSI.
    SwitchRanges(bool, u16, MessageList<'a, QueueChunk>),
    /// ADD_ETH_ADDR (`true`) and DEL_ETH_ADDR, of a VSI.
    Addresses(bool, u16, MessageList<'a, EtherAddress>),
    /// ADD_VLAN (`true`) and DEL_VLAN, of a VSI.
    Vlans(bool, u16, MessageList<'a, u16>),
    /// ADD_VLAN_V2 (`true`) and DEL_VLAN_V2, of a VSI.
    VlanFilters(bool, u16, MessageList<'a, VlanFilter>),
    /// CONFIG_PROMISCUOUS_MODE of a VSI, see [`super::filters::promiscuity`].
    Promiscuity(u16, u16),
    /// GET_STATS: asks for the VF's counters.
    Statistics(QueueSet),
    /// CONFIG_RSS_HFUNC: selects the hash function of a VSI.
    HashFunction(u16, u16),
    /// CONFIG_RSS_KEY: sets the RSS key of a VSI.
    HashKey(u16, &'a [u8]),
    /// CONFIG_RSS_LUT: sets the RSS lookup table of a VSI.
    LookupTable(u16, &'a [u8]),
    /// GET_RSS_HENA_CAPS: asks for the packet types that can be hashed.
    GetHashTypes,
    /// SET_RSS_HENA: selects the packet types that are hashed.
    SetHashTypes(u64),
    /// ENABLE_VLAN_STRIPPING (`true`) and DISABLE_VLAN_STRIPPING.
    Strip(bool),
    /// REQUEST_QUEUES: the requested number of queue pairs.
    Queues(u16),
    /// GET_SUPPORTED_RXDIDS: asks for the receive descriptor formats.
    RxDescriptors,
    /// GET_OFFLOAD_VLAN_V2_CAPS: asks for the VLAN capabilities.
    VlanCapabilities,
    /// The four messages that set the stripping and inserting of VLAN tags; `true` enables.
    VlanOffload(VlanOffloadKind, bool, VlanSetting),
}

/// Reason why a request's body is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRequest {
    /// The request's operation is unknown, or only a PF sends it.
    #[error("unknown virtchnl operation {0}")]
    Unknown(u32),
    /// The request's body is too short, or too long.
    #[error("a body of {1} bytes is invalid for message {name}", name = .0.name())]
    Length(VirtchnlOpcode, usize),
    /// The virtchnl request's list is empty.
    #[error("the list in message {name} is empty", name = .0.name())]
    Empty(VirtchnlOpcode),
}

impl MalformedRequest {
    /// Returns the status that refuses the request. An unknown operation needs a status of its own: drivers take
    /// -64 for "not supported".
    #[must_use]
    pub const fn status(self) -> VirtchnlStatus {
        match self {
            Self::Unknown(_) => VirtchnlStatus::NotSupported,
            Self::Length(..) | Self::Empty(_) => VirtchnlStatus::Param,
        }
    }
}

/// Rule for the bytes behind the last element of a request's list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrailingBytesRule {
    /// A request's list ends with its last element.
    Exact,
    /// Excess bytes may follow a request's list.
    Anything,
}

/// Parses a request's list behind a header: `count` elements from byte `header` on.
fn list<T: MessageListElement>(
    op: VirtchnlOpcode,
    body: &[u8],
    header: usize,
    count: u16,
    tail: TrailingBytesRule,
) -> Result<MessageList<'_, T>, MalformedRequest> {
    if count == 0 {
        return Err(MalformedRequest::Empty(op));
    }
    let wrong = MalformedRequest::Length(op, body.len());
    let elements = body.get(header..).ok_or(wrong)?;
    let wanted = usize::from(count) * T::SIZE;
    let fits =
        if tail == TrailingBytesRule::Exact { elements.len() == wanted } else { elements.len() >= wanted };
    if fits { Ok(MessageList::new(elements, count.into())) } else { Err(wrong) }
}

/// Parses a request's body of one exact size.
fn fixed<T: MessageListElement>(op: VirtchnlOpcode, body: &[u8]) -> Result<T, MalformedRequest> {
    exactly(op, body, T::SIZE).map(|mut fields| T::read(&mut fields))
}

fn exactly(
    op: VirtchnlOpcode,
    body: &[u8],
    length: usize,
) -> Result<MessageFieldReader<'_>, MalformedRequest> {
    if body.len() == length {
        Ok(MessageFieldReader::new(body))
    } else {
        Err(MalformedRequest::Length(op, body.len()))
    }
}

/// Parses the two numbers before a request's list: the VSI and the count. A message without them is too short.
fn pair(op: VirtchnlOpcode, body: &[u8]) -> Result<(u16, u16), MalformedRequest> {
    if body.len() < 4 {
        return Err(MalformedRequest::Length(op, body.len()));
    }
    let mut fields = MessageFieldReader::new(body);
    Ok((fields.u16(), fields.u16()))
}

/// Parses the VSI of a request, and the bytes whose count the request gives.
fn counted_bytes(op: VirtchnlOpcode, body: &[u8]) -> Result<(u16, &[u8]), MalformedRequest> {
    let (vsi, count) = pair(op, body)?;
    match (count, body.get(4..4 + usize::from(count))) {
        (0, _) => Err(MalformedRequest::Empty(op)),
        (_, Some(bytes)) => Ok((vsi, bytes)),
        (_, None) => Err(MalformedRequest::Length(op, body.len())),
    }
}

impl<'a> VirtchnlRequest<'a> {
    /// Parses a request of a VF from its operation and body.
    ///
    /// # Errors
    /// [`MalformedRequest`].
    pub fn decode(number: u32, body: &'a [u8]) -> Result<Self, MalformedRequest> {
        let op = VirtchnlOpcode::of(number).ok_or(MalformedRequest::Unknown(number))?;
        Ok(match op {
            VirtchnlOpcode::Version => Self::Version(fixed(op, body)?),
            VirtchnlOpcode::ResetVf => exactly(op, body, 0).map(|_| Self::Reset)?,
            VirtchnlOpcode::GetVfResources if body.is_empty() => Self::Resources(None),
            VirtchnlOpcode::GetVfResources => {
                Self::Resources(Some(VfCapabilities(exactly(op, body, 4)?.u32())))
            }
            VirtchnlOpcode::EnableQueues | VirtchnlOpcode::DisableQueues => {
                Self::SwitchQueues(op == VirtchnlOpcode::EnableQueues, fixed(op, body)?)
            }
            VirtchnlOpcode::GetStats => Self::Statistics(fixed(op, body)?),
            VirtchnlOpcode::ConfigPromiscuousMode => {
                let mut fields = exactly(op, body, 4)?;
                Self::Promiscuity(fields.u16(), fields.u16())
            }
            VirtchnlOpcode::ConfigRssHfunc => {
                let mut fields = exactly(op, body, 8)?;
                Self::HashFunction(fields.u16(), fields.u16())
            }
            VirtchnlOpcode::ConfigRssKey => {
                counted_bytes(op, body).map(|(vsi, key)| Self::HashKey(vsi, key))?
            }
            VirtchnlOpcode::ConfigRssLut => {
                counted_bytes(op, body).map(|(vsi, table)| Self::LookupTable(vsi, table))?
            }
            VirtchnlOpcode::GetRssHenaCaps => exactly(op, body, 0).map(|_| Self::GetHashTypes)?,
            VirtchnlOpcode::SetRssHena => Self::SetHashTypes(exactly(op, body, 8)?.u64()),
            VirtchnlOpcode::EnableVlanStripping | VirtchnlOpcode::DisableVlanStripping => {
                exactly(op, body, 0).map(|_| Self::Strip(op == VirtchnlOpcode::EnableVlanStripping))?
            }
            VirtchnlOpcode::RequestQueues => Self::Queues(exactly(op, body, 2)?.u16()),
            VirtchnlOpcode::GetSupportedRxdids => exactly(op, body, 0).map(|_| Self::RxDescriptors)?,
            VirtchnlOpcode::GetOffloadVlanV2Caps => exactly(op, body, 0).map(|_| Self::VlanCapabilities)?,
            VirtchnlOpcode::EnableVlanStrippingV2 => {
                Self::VlanOffload(VlanOffloadKind::Strip, true, fixed(op, body)?)
            }
            VirtchnlOpcode::DisableVlanStrippingV2 => {
                Self::VlanOffload(VlanOffloadKind::Strip, false, fixed(op, body)?)
            }
            VirtchnlOpcode::EnableVlanInsertionV2 => {
                Self::VlanOffload(VlanOffloadKind::Insert, true, fixed(op, body)?)
            }
            VirtchnlOpcode::DisableVlanInsertionV2 => {
                Self::VlanOffload(VlanOffloadKind::Insert, false, fixed(op, body)?)
            }
            VirtchnlOpcode::Event => return Err(MalformedRequest::Unknown(number)),
            _ => return Self::decode_list(op, body),
        })
    }

    /// Parses a request that carries a list.
    fn decode_list(op: VirtchnlOpcode, body: &'a [u8]) -> Result<Self, MalformedRequest> {
        let (first, second) = pair(op, body)?;
        Ok(match op {
            VirtchnlOpcode::ConfigVsiQueues => {
                Self::ConfigureQueues(first, list(op, body, 8, second, TrailingBytesRule::Anything)?)
            }
            VirtchnlOpcode::ConfigIrqMap => {
                Self::MapVectors(list(op, body, 2, first, TrailingBytesRule::Anything)?)
            }
            VirtchnlOpcode::AddEthAddr | VirtchnlOpcode::DelEthAddr => Self::Addresses(
                op == VirtchnlOpcode::AddEthAddr,
                first,
                list(op, body, 4, second, TrailingBytesRule::Anything)?,
            ),
            VirtchnlOpcode::AddVlan | VirtchnlOpcode::DelVlan => Self::Vlans(
                op == VirtchnlOpcode::AddVlan,
                first,
                list(op, body, 4, second, TrailingBytesRule::Anything)?,
            ),
            VirtchnlOpcode::AddVlanV2 | VirtchnlOpcode::DelVlanV2 => Self::VlanFilters(
                op == VirtchnlOpcode::AddVlanV2,
                first,
                list(op, body, 8, second, TrailingBytesRule::Exact)?,
            ),
            VirtchnlOpcode::EnableQueuesV2 | VirtchnlOpcode::DisableQueuesV2 => {
                let count = MessageFieldReader::new(body.get(4..).unwrap_or_default()).u16();
                Self::SwitchRanges(
                    op == VirtchnlOpcode::EnableQueuesV2,
                    first,
                    list(op, body, 8, count, TrailingBytesRule::Anything)?,
                )
            }
            _ => return Err(MalformedRequest::Unknown(op.number())),
        })
    }

    /// Returns the operation of the request.
    #[must_use]
    pub const fn op(&self) -> VirtchnlOpcode {
        match self {
            Self::Version(_) => VirtchnlOpcode::Version,
            Self::Reset => VirtchnlOpcode::ResetVf,
            Self::Resources(_) => VirtchnlOpcode::GetVfResources,
            Self::ConfigureQueues(..) => VirtchnlOpcode::ConfigVsiQueues,
            Self::MapVectors(_) => VirtchnlOpcode::ConfigIrqMap,
            Self::SwitchQueues(true, _) => VirtchnlOpcode::EnableQueues,
            Self::SwitchQueues(false, _) => VirtchnlOpcode::DisableQueues,
            Self::SwitchRanges(true, ..) => VirtchnlOpcode::EnableQueuesV2,
            Self::SwitchRanges(false, ..) => VirtchnlOpcode::DisableQueuesV2,
            Self::Addresses(true, ..) => VirtchnlOpcode::AddEthAddr,
            Self::Addresses(false, ..) => VirtchnlOpcode::DelEthAddr,
            Self::Vlans(true, ..) => VirtchnlOpcode::AddVlan,
            Self::Vlans(false, ..) => VirtchnlOpcode::DelVlan,
            Self::VlanFilters(true, ..) => VirtchnlOpcode::AddVlanV2,
            Self::VlanFilters(false, ..) => VirtchnlOpcode::DelVlanV2,
            Self::Promiscuity(..) => VirtchnlOpcode::ConfigPromiscuousMode,
            Self::Statistics(_) => VirtchnlOpcode::GetStats,
            Self::HashFunction(..) => VirtchnlOpcode::ConfigRssHfunc,
            Self::HashKey(..) => VirtchnlOpcode::ConfigRssKey,
            Self::LookupTable(..) => VirtchnlOpcode::ConfigRssLut,
            Self::GetHashTypes => VirtchnlOpcode::GetRssHenaCaps,
            Self::SetHashTypes(_) => VirtchnlOpcode::SetRssHena,
            Self::Strip(true) => VirtchnlOpcode::EnableVlanStripping,
            Self::Strip(false) => VirtchnlOpcode::DisableVlanStripping,
            Self::Queues(_) => VirtchnlOpcode::RequestQueues,
            Self::RxDescriptors => VirtchnlOpcode::GetSupportedRxdids,
            Self::VlanCapabilities => VirtchnlOpcode::GetOffloadVlanV2Caps,
            Self::VlanOffload(VlanOffloadKind::Strip, true, _) => VirtchnlOpcode::EnableVlanStrippingV2,
            Self::VlanOffload(VlanOffloadKind::Strip, false, _) => VirtchnlOpcode::DisableVlanStrippingV2,
            Self::VlanOffload(VlanOffloadKind::Insert, true, _) => VirtchnlOpcode::EnableVlanInsertionV2,
            Self::VlanOffload(VlanOffloadKind::Insert, false, _) => VirtchnlOpcode::DisableVlanInsertionV2,
        }
    }

    /// Returns the request's body as every driver sends it: lists with one additional element.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match *self {
            Self::Version(version) => version.write(&mut body),
            Self::Resources(Some(capabilities)) => _ = body.u32(capabilities.0),
            Self::ConfigureQueues(vsi, pairs) => {
                write_padded_list(body.u16(vsi).count(pairs.len()).u32(0), pairs);
            }
            Self::MapVectors(maps) => write_padded_list(body.count(maps.len()), maps),
            Self::SwitchQueues(_, queues) | Self::Statistics(queues) => queues.write(&mut body),
            Self::SwitchRanges(_, vsi, chunks) => {
                write_padded_list(body.u16(vsi).u16(0).count(chunks.len()).u16(0), chunks);
            }
            Self::Addresses(_, vsi, list) => write_padded_list(body.u16(vsi).count(list.len()), list),
            Self::Vlans(_, vsi, list) => write_padded_list(body.u16(vsi).count(list.len()), list),
            Self::VlanFilters(_, vsi, list) => {
                body.u16(vsi).count(list.len()).u32(0).extend_from_slice(list.bytes());
            }
            Self::Promiscuity(vsi, flags) => _ = body.u16(vsi).u16(flags),
            Self::HashFunction(vsi, function) => _ = body.u16(vsi).u16(function).u32(0),
            Self::HashKey(vsi, bytes) | Self::LookupTable(vsi, bytes) => {
                body.u16(vsi).count(bytes.len()).extend_from_slice(bytes);
                body.u8(0);
            }
            Self::SetHashTypes(types) => _ = body.u64(types),
            Self::Queues(pairs) => _ = body.u16(pairs),
            Self::VlanOffload(.., setting) => setting.write(&mut body),
            Self::Reset
            | Self::Resources(None)
            | Self::GetHashTypes
            | Self::Strip(_)
            | Self::RxDescriptors
            | Self::VlanCapabilities => {}
        }
        body
    }
}

/// Writes a list and one additional element, as drivers do.
fn write_padded_list<T: MessageListElement>(body: &mut Vec<u8>, list: MessageList<'_, T>) {
    body.extend_from_slice(list.bytes());
    body.zeros(T::SIZE);
}
