//! Requests of a VF, with the length rules by which a PF refuses malformed ones.
//!
//! Messages that carry lists were once declared with an array of one element, so every driver sends one element
//! more than it counts, and i40e requires exactly that. Here a list must be complete, and excess bytes are ignored;
//! all other lengths must be exact.
//!
//! The PF checks the contents of a request.

use super::filters::{Address, VlanFilter};
use super::list::{Item, List};
use super::op::Op;
use super::queues::{Chunk, QueuePair, QueueSet, VectorMap};
use super::resources::{Capabilities, Version};
use super::status::Status;
use super::vlan_offload::{VlanSetting, VlanWhat};
use crate::bytes::{Put, Reader};
use alloc::vec::Vec;

/// Request of a VF to its PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// VERSION: the newest message version that the VF supports.
    Version(Version),
    /// RESET_VF: resets the VF.
    Reset,
    /// GET_VF_RESOURCES: the VF's capabilities; a VF of version 1.0 gives none.
    Resources(Option<Capabilities>),
    /// CONFIG_VSI_QUEUES: sets up a VSI's queue pairs.
    ConfigureQueues(u16, List<'a, QueuePair>),
    /// CONFIG_IRQ_MAP: maps queues to interrupt vectors.
    MapVectors(List<'a, VectorMap>),
    /// ENABLE_QUEUES (`true`) and DISABLE_QUEUES.
    SwitchQueues(bool, QueueSet),
    /// ENABLE_QUEUES_V2 (`true`) and DISABLE_QUEUES_V2, of a VSI.
    SwitchRanges(bool, u16, List<'a, Chunk>),
    /// ADD_ETH_ADDR (`true`) and DEL_ETH_ADDR, of a VSI.
    Addresses(bool, u16, List<'a, Address>),
    /// ADD_VLAN (`true`) and DEL_VLAN, of a VSI.
    Vlans(bool, u16, List<'a, u16>),
    /// ADD_VLAN_V2 (`true`) and DEL_VLAN_V2, of a VSI.
    VlanFilters(bool, u16, List<'a, VlanFilter>),
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
    VlanOffload(VlanWhat, bool, VlanSetting),
}

/// Reason why a request's body is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The request's operation is unknown, or only a PF sends it.
    #[error("unknown virtchnl operation {0}")]
    Unknown(u32),
    /// The request's body is too short, or too long.
    #[error("a body of {1} bytes is invalid for message {name}", name = .0.name())]
    Length(Op, usize),
    /// The virtchnl request's list is empty.
    #[error("the list in message {name} is empty", name = .0.name())]
    Empty(Op),
}

impl Malformed {
    /// Returns the status that refuses the request. An unknown operation needs a status of its own: drivers take
    /// -64 for "not supported".
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Unknown(_) => Status::NotSupported,
            Self::Length(..) | Self::Empty(_) => Status::Param,
        }
    }
}

/// End of a list in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// The list ends with its last element.
    Exact,
    /// The list may have excess bytes after it.
    Anything,
}

/// Reads a list behind a header: `count` elements from byte `header` on.
fn list<T: Item>(
    op: Op,
    body: &[u8],
    header: usize,
    count: u16,
    tail: Tail,
) -> Result<List<'_, T>, Malformed> {
    if count == 0 {
        return Err(Malformed::Empty(op));
    }
    let wrong = Malformed::Length(op, body.len());
    let elements = body.get(header..).ok_or(wrong)?;
    let wanted = usize::from(count) * T::SIZE;
    let fits = if tail == Tail::Exact { elements.len() == wanted } else { elements.len() >= wanted };
    if fits { Ok(List::new(elements, count.into())) } else { Err(wrong) }
}

/// Reads a request's body of one exact size.
fn fixed<T: Item>(op: Op, body: &[u8]) -> Result<T, Malformed> {
    exactly(op, body, T::SIZE).map(|mut fields| T::read(&mut fields))
}

fn exactly(op: Op, body: &[u8], length: usize) -> Result<Reader<'_>, Malformed> {
    if body.len() == length { Ok(Reader::new(body)) } else { Err(Malformed::Length(op, body.len())) }
}

/// Reads the two numbers before a list: the VSI and the count. A message without them is too short.
fn pair(op: Op, body: &[u8]) -> Result<(u16, u16), Malformed> {
    if body.len() < 4 {
        return Err(Malformed::Length(op, body.len()));
    }
    let mut fields = Reader::new(body);
    Ok((fields.u16(), fields.u16()))
}

/// Reads bytes that follow their count.
fn counted_bytes(op: Op, body: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    let (vsi, count) = pair(op, body)?;
    match (count, body.get(4..4 + usize::from(count))) {
        (0, _) => Err(Malformed::Empty(op)),
        (_, Some(bytes)) => Ok((vsi, bytes)),
        (_, None) => Err(Malformed::Length(op, body.len())),
    }
}

impl<'a> Request<'a> {
    /// Reads a request from its operation and body.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(number: u32, body: &'a [u8]) -> Result<Self, Malformed> {
        let op = Op::of(number).ok_or(Malformed::Unknown(number))?;
        Ok(match op {
            Op::Version => Self::Version(fixed(op, body)?),
            Op::ResetVf => exactly(op, body, 0).map(|_| Self::Reset)?,
            Op::GetVfResources if body.is_empty() => Self::Resources(None),
            Op::GetVfResources => Self::Resources(Some(Capabilities(exactly(op, body, 4)?.u32()))),
            Op::EnableQueues | Op::DisableQueues => {
                Self::SwitchQueues(op == Op::EnableQueues, fixed(op, body)?)
            }
            Op::GetStats => Self::Statistics(fixed(op, body)?),
            Op::ConfigPromiscuousMode => {
                let mut fields = exactly(op, body, 4)?;
                Self::Promiscuity(fields.u16(), fields.u16())
            }
            Op::ConfigRssHfunc => {
                let mut fields = exactly(op, body, 8)?;
                Self::HashFunction(fields.u16(), fields.u16())
            }
            Op::ConfigRssKey => counted_bytes(op, body).map(|(vsi, key)| Self::HashKey(vsi, key))?,
            Op::ConfigRssLut => counted_bytes(op, body).map(|(vsi, table)| Self::LookupTable(vsi, table))?,
            Op::GetRssHenaCaps => exactly(op, body, 0).map(|_| Self::GetHashTypes)?,
            Op::SetRssHena => Self::SetHashTypes(exactly(op, body, 8)?.u64()),
            Op::EnableVlanStripping | Op::DisableVlanStripping => {
                exactly(op, body, 0).map(|_| Self::Strip(op == Op::EnableVlanStripping))?
            }
            Op::RequestQueues => Self::Queues(exactly(op, body, 2)?.u16()),
            Op::GetSupportedRxdids => exactly(op, body, 0).map(|_| Self::RxDescriptors)?,
            Op::GetOffloadVlanV2Caps => exactly(op, body, 0).map(|_| Self::VlanCapabilities)?,
            Op::EnableVlanStrippingV2 => Self::VlanOffload(VlanWhat::Strip, true, fixed(op, body)?),
            Op::DisableVlanStrippingV2 => Self::VlanOffload(VlanWhat::Strip, false, fixed(op, body)?),
            Op::EnableVlanInsertionV2 => Self::VlanOffload(VlanWhat::Insert, true, fixed(op, body)?),
            Op::DisableVlanInsertionV2 => Self::VlanOffload(VlanWhat::Insert, false, fixed(op, body)?),
            Op::Event => return Err(Malformed::Unknown(number)),
            _ => return Self::decode_list(op, body),
        })
    }

    /// Reads a request that carries a list.
    fn decode_list(op: Op, body: &'a [u8]) -> Result<Self, Malformed> {
        let (first, second) = pair(op, body)?;
        Ok(match op {
            Op::ConfigVsiQueues => Self::ConfigureQueues(first, list(op, body, 8, second, Tail::Anything)?),
            Op::ConfigIrqMap => Self::MapVectors(list(op, body, 2, first, Tail::Anything)?),
            Op::AddEthAddr | Op::DelEthAddr => {
                Self::Addresses(op == Op::AddEthAddr, first, list(op, body, 4, second, Tail::Anything)?)
            }
            Op::AddVlan | Op::DelVlan => {
                Self::Vlans(op == Op::AddVlan, first, list(op, body, 4, second, Tail::Anything)?)
            }
            Op::AddVlanV2 | Op::DelVlanV2 => {
                Self::VlanFilters(op == Op::AddVlanV2, first, list(op, body, 8, second, Tail::Exact)?)
            }
            Op::EnableQueuesV2 | Op::DisableQueuesV2 => {
                let count = Reader::new(body.get(4..).unwrap_or_default()).u16();
                Self::SwitchRanges(op == Op::EnableQueuesV2, first, list(op, body, 8, count, Tail::Anything)?)
            }
            _ => return Err(Malformed::Unknown(op.number())),
        })
    }

    /// Returns the operation of the request.
    #[must_use]
    pub const fn op(&self) -> Op {
        match self {
            Self::Version(_) => Op::Version,
            Self::Reset => Op::ResetVf,
            Self::Resources(_) => Op::GetVfResources,
            Self::ConfigureQueues(..) => Op::ConfigVsiQueues,
            Self::MapVectors(_) => Op::ConfigIrqMap,
            Self::SwitchQueues(true, _) => Op::EnableQueues,
            Self::SwitchQueues(false, _) => Op::DisableQueues,
            Self::SwitchRanges(true, ..) => Op::EnableQueuesV2,
            Self::SwitchRanges(false, ..) => Op::DisableQueuesV2,
            Self::Addresses(true, ..) => Op::AddEthAddr,
            Self::Addresses(false, ..) => Op::DelEthAddr,
            Self::Vlans(true, ..) => Op::AddVlan,
            Self::Vlans(false, ..) => Op::DelVlan,
            Self::VlanFilters(true, ..) => Op::AddVlanV2,
            Self::VlanFilters(false, ..) => Op::DelVlanV2,
            Self::Promiscuity(..) => Op::ConfigPromiscuousMode,
            Self::Statistics(_) => Op::GetStats,
            Self::HashFunction(..) => Op::ConfigRssHfunc,
            Self::HashKey(..) => Op::ConfigRssKey,
            Self::LookupTable(..) => Op::ConfigRssLut,
            Self::GetHashTypes => Op::GetRssHenaCaps,
            Self::SetHashTypes(_) => Op::SetRssHena,
            Self::Strip(true) => Op::EnableVlanStripping,
            Self::Strip(false) => Op::DisableVlanStripping,
            Self::Queues(_) => Op::RequestQueues,
            Self::RxDescriptors => Op::GetSupportedRxdids,
            Self::VlanCapabilities => Op::GetOffloadVlanV2Caps,
            Self::VlanOffload(VlanWhat::Strip, true, _) => Op::EnableVlanStrippingV2,
            Self::VlanOffload(VlanWhat::Strip, false, _) => Op::DisableVlanStrippingV2,
            Self::VlanOffload(VlanWhat::Insert, true, _) => Op::EnableVlanInsertionV2,
            Self::VlanOffload(VlanWhat::Insert, false, _) => Op::DisableVlanInsertionV2,
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
                write_padded_list(body.u16(vsi).u16(pairs.len() as u16).u32(0), pairs);
            }
            Self::MapVectors(maps) => write_padded_list(body.u16(maps.len() as u16), maps),
            Self::SwitchQueues(_, queues) | Self::Statistics(queues) => queues.write(&mut body),
            Self::SwitchRanges(_, vsi, chunks) => {
                write_padded_list(body.u16(vsi).u16(0).u16(chunks.len() as u16).u16(0), chunks);
            }
            Self::Addresses(_, vsi, list) => write_padded_list(body.u16(vsi).u16(list.len() as u16), list),
            Self::Vlans(_, vsi, list) => write_padded_list(body.u16(vsi).u16(list.len() as u16), list),
            Self::VlanFilters(_, vsi, list) => {
                body.u16(vsi).u16(list.len() as u16).u32(0).extend_from_slice(list.bytes());
            }
            Self::Promiscuity(vsi, flags) => _ = body.u16(vsi).u16(flags),
            Self::HashFunction(vsi, function) => _ = body.u16(vsi).u16(function).u32(0),
            Self::HashKey(vsi, bytes) | Self::LookupTable(vsi, bytes) => {
                body.u16(vsi).u16(bytes.len() as u16).extend_from_slice(bytes);
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

/// Writes a list, and one additional element.
fn write_padded_list<T: Item>(body: &mut Vec<u8>, list: List<'_, T>) {
    body.extend_from_slice(list.bytes());
    body.zeros(T::SIZE);
}
