//! Requests of the front end as checked values, parsed from and encoded into message bodies.
//!
//! Parsing checks every length and every range that does not depend on a session. Descriptors are beside the request;
//! [`FrontendRequest::descriptors`] returns their number.

use alloc::vec::Vec;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use super::areas::{InflightArea, LogArea, MemoryRegion};
use super::body::{
    ConfigHead, InflightBody, LogBody, MemoryTableHead, RegionBody, SingleRegionBody, VringAddressBody,
    VringStateBody,
};
use super::code::RequestCode;
use super::error::RequestError;
use super::limits::{MAX_CONFIG, MAX_RING_SIZE};
use super::ring::{RingAddresses, RingEventfdMessage};

/// Bits of the ring's number in `SET_VRING_KICK`, `CALL` and `ERR`.
const RING_MASK: u64 = 0xff;
/// Flag of `SET_VRING_KICK`, `CALL` and `ERR`: no eventfd is attached.
const NO_DESCRIPTOR: u64 = 1 << 8;
/// Minimum MTU in bytes of IPv4 (RFC 791), and of virtio-net's `mtu` field.
const MIN_MTU: u64 = 68;

/// Access to the device's configuration space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConfigAccess {
    /// Offset of the access in the configuration space in bytes.
    pub offset: u32,
    /// Flags of the access: 0 for a write by the guest, 1 for migration.
    pub flags: u32,
    /// Bytes to write to the configuration space; in `GET_CONFIG` only their number counts.
    pub contents: Vec<u8>,
}

/// Request of the front end of a network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendRequest {
    /// Request: asks for the feature bits of the device.
    GetFeatures,
    /// Request: sets the feature bits that the driver has accepted.
    SetFeatures(u64),
    /// Request: makes the front end the owner of the session.
    SetOwner,
    /// Request: disables all rings.
    ResetOwner,
    /// Request: replaces all memory regions; each has a descriptor.
    SetMemTable(Vec<MemoryRegion>),
    /// Request: sets the migration log, with a descriptor.
    SetLogBase(LogArea),
    /// Request: sets the eventfd of the migration log, with a descriptor.
    SetLogFd,
    /// Request: sets the size of a ring.
    SetVringNum {
        /// Number of the ring whose size is set.
        ring: u32,
        /// Size of the ring in descriptors, 1 to 32,768.
        size: u32,
    },
    /// Request: sets the addresses of a ring.
    SetVringAddr(RingAddresses),
    /// Request: sets the position of a ring.
    SetVringBase {
        /// Number of the ring whose position is set.
        ring: u32,
        /// Position of the ring, see [`RingBase::from_wire`](super::RingBase::from_wire).
        base: u32,
    },
    /// Request: stops a ring, and asks for its position.
    GetVringBase {
        /// Number of the ring to stop.
        ring: u32,
    },
    /// Request: sets the eventfd by which the guest reports new descriptors of a ring.
    SetVringKick(RingEventfdMessage),
    /// Request: sets the eventfd that interrupts the guest.
    SetVringCall(RingEventfdMessage),
    /// Request: sets the eventfd that reports errors of a ring.
    SetVringErr(RingEventfdMessage),
    /// Request: asks for the offered protocol features.
    GetProtocolFeatures,
    /// Request: sets the protocol features that the front end uses.
    SetProtocolFeatures(u64),
    /// Request: asks for the number of queues: pairs or rings, depending on the front end.
    GetQueueNum,
    /// Request: enables or disables a ring.
    SetVringEnable {
        /// Number of the ring to enable or disable.
        ring: u32,
        /// True if the request enables the ring.
        enabled: bool,
    },
    /// Request: asks for a broadcast of this Ethernet address.
    SendRarp([u8; 6]),
    /// Request: reports the maximum transmission unit in bytes, 68 or more.
    NetSetMtu(u16),
    /// Request: sets the socket for requests by the back end, with a descriptor.
    SetBackendReqFd,
    /// Request: reads the configuration space.
    GetConfig(DeviceConfigAccess),
    /// Request: writes the configuration space.
    SetConfig(DeviceConfigAccess),
    /// Request: asks for memory that records unfinished descriptors.
    GetInflightFd(InflightArea),
    /// Request: gives the back end the memory that records unfinished descriptors back, with a file descriptor.
    SetInflightFd(InflightArea),
    /// Request: resets the device.
    ResetDevice,
    /// Request: asks for the maximum number of memory regions.
    GetMaxMemSlots,
    /// Request: adds a memory region, with a descriptor.
    AddMemReg(MemoryRegion),
    /// Request: removes a memory region. A descriptor is tolerated and not used.
    RemMemReg(MemoryRegion),
    /// Request: sets the device status.
    SetStatus(u8),
    /// Request: asks for the device status.
    GetStatus,
}

impl FrontendRequest {
    /// Parses the body of a front end's request.
    ///
    /// # Errors
    /// The length of the body is wrong, or a value is out of range.
    pub fn parse(code: RequestCode, body: &[u8]) -> Result<Self, RequestError> {
        use RequestCode as Code;
        Ok(match code {
            Code::SetFeatures => Self::SetFeatures(number(body)?),
            Code::SetProtocolFeatures => Self::SetProtocolFeatures(number(body)?),
            Code::SetMemTable => Self::SetMemTable(regions(body)?),
            Code::AddMemReg => Self::AddMemReg(region(body)?),
            Code::RemMemReg => Self::RemMemReg(region(body)?),
            Code::SetLogBase => {
                let area = LogArea::from(exactly::<LogBody>(body)?);
                area.check()?;
                Self::SetLogBase(area)
            }
            Code::SetVringNum | Code::SetVringBase | Code::GetVringBase | Code::SetVringEnable => {
                Self::parse_vring_state(code, body)?
            }
            Code::SetVringAddr => Self::SetVringAddr(exactly::<VringAddressBody>(body)?.into()),
            Code::SetVringKick => Self::SetVringKick(ring_descriptor(body)?),
            Code::SetVringCall => Self::SetVringCall(ring_descriptor(body)?),
            Code::SetVringErr => Self::SetVringErr(ring_descriptor(body)?),
            Code::SendRarp => {
                let [a, b, c, d, e, f, ..] = number(body)?.to_le_bytes();
                Self::SendRarp([a, b, c, d, e, f])
            }
            Code::NetSetMtu => {
                let mtu = number(body)?;
                let checked = u16::try_from(mtu).ok().filter(|_| mtu >= MIN_MTU);
                Self::NetSetMtu(checked.ok_or(RequestError::Mtu(mtu))?)
            }
            Code::GetConfig => Self::GetConfig(config(body)?),
            Code::SetConfig => Self::SetConfig(config(body)?),
            Code::GetInflightFd => Self::GetInflightFd(exactly::<InflightBody>(body)?.into()),
            Code::SetInflightFd => {
                let area = InflightArea::from(exactly::<InflightBody>(body)?);
                area.check_extent()?;
                Self::SetInflightFd(area)
            }
            Code::SetStatus => {
                let status = number(body)?;
                Self::SetStatus(u8::try_from(status).map_err(|_| RequestError::Status(status))?)
            }
            _ => {
                exactly::<[u8; 0]>(body)?;
                Self::without_body(code)
            }
        })
    }

    fn parse_vring_state(code: RequestCode, body: &[u8]) -> Result<Self, RequestError> {
        let state = exactly::<VringStateBody>(body)?;
        let (ring, number) = (state.ring.get(), state.number.get());
        Ok(match (code, number) {
            (RequestCode::SetVringNum, size @ 1..=MAX_RING_SIZE) => Self::SetVringNum { ring, size },
            (RequestCode::SetVringNum, size) => {
                return Err(RequestError::RingSize { size, limit: MAX_RING_SIZE });
            }
            (RequestCode::SetVringBase, base) => Self::SetVringBase { ring, base },
            (RequestCode::SetVringEnable, 0 | 1) => Self::SetVringEnable { ring, enabled: number == 1 },
            (RequestCode::SetVringEnable, value) => return Err(RequestError::EnableValue(value)),
            // The number is reserved here.
            _ => Self::GetVringBase { ring },
        })
    }

    /// Returns the request for a code without a body. [`parse`](Self::parse) handles all other codes.
    fn without_body(code: RequestCode) -> Self {
        match code {
            RequestCode::SetOwner => Self::SetOwner,
            RequestCode::ResetOwner => Self::ResetOwner,
            RequestCode::SetLogFd => Self::SetLogFd,
            RequestCode::GetProtocolFeatures => Self::GetProtocolFeatures,
            RequestCode::GetQueueNum => Self::GetQueueNum,
            RequestCode::SetBackendReqFd => Self::SetBackendReqFd,
            RequestCode::ResetDevice => Self::ResetDevice,
            RequestCode::GetMaxMemSlots => Self::GetMaxMemSlots,
            RequestCode::GetStatus => Self::GetStatus,
            _ => Self::GetFeatures,
        }
    }

    /// Returns the code (the kind) of the request.
    pub fn code(&self) -> RequestCode {
        match self {
            Self::GetFeatures => RequestCode::GetFeatures,
            Self::SetFeatures(_) => RequestCode::SetFeatures,
            Self::SetOwner => RequestCode::SetOwner,
            Self::ResetOwner => RequestCode::ResetOwner,
            Self::SetMemTable(_) => RequestCode::SetMemTable,
            Self::SetLogBase(_) => RequestCode::SetLogBase,
            Self::SetLogFd => RequestCode::SetLogFd,
            Self::SetVringNum { .. } => RequestCode::SetVringNum,
            Self::SetVringAddr(_) => RequestCode::SetVringAddr,
            Self::SetVringBase { .. } => RequestCode::SetVringBase,
            Self::GetVringBase { .. } => RequestCode::GetVringBase,
            Self::SetVringKick(_) => RequestCode::SetVringKick,
            Self::SetVringCall(_) => RequestCode::SetVringCall,
            Self::SetVringErr(_) => RequestCode::SetVringErr,
            Self::GetProtocolFeatures => RequestCode::GetProtocolFeatures,
            Self::SetProtocolFeatures(_) => RequestCode::SetProtocolFeatures,
            Self::GetQueueNum => RequestCode::GetQueueNum,
            Self::SetVringEnable { .. } => RequestCode::SetVringEnable,
            Self::SendRarp(_) => RequestCode::SendRarp,
            Self::NetSetMtu(_) => RequestCode::NetSetMtu,
            Self::SetBackendReqFd => RequestCode::SetBackendReqFd,
            Self::GetConfig(_) => RequestCode::GetConfig,
            Self::SetConfig(_) => RequestCode::SetConfig,
            Self::GetInflightFd(_) => RequestCode::GetInflightFd,
            Self::SetInflightFd(_) => RequestCode::SetInflightFd,
            Self::ResetDevice => RequestCode::ResetDevice,
            Self::GetMaxMemSlots => RequestCode::GetMaxMemSlots,
            Self::AddMemReg(_) => RequestCode::AddMemReg,
            Self::RemMemReg(_) => RequestCode::RemMemReg,
            Self::SetStatus(_) => RequestCode::SetStatus,
            Self::GetStatus => RequestCode::GetStatus,
        }
    }

    /// Returns the number of descriptors that the message of the request must have. (`REM_MEM_REG` may have one more.)
    pub fn descriptors(&self) -> usize {
        match self {
            Self::SetMemTable(regions) => regions.len(),
            Self::SetVringKick(ring) | Self::SetVringCall(ring) | Self::SetVringErr(ring) => {
                usize::from(ring.attached)
            }
            Self::SetLogBase(_)
            | Self::SetLogFd
            | Self::SetBackendReqFd
            | Self::SetInflightFd(_)
            | Self::AddMemReg(_) => 1,
            _ => 0,
        }
    }

    /// Returns the body of the request's message. Contents of the configuration space are truncated to 256 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let state = |ring: u32, number: u32| {
            VringStateBody { ring: U32::new(ring), number: U32::new(number) }.as_bytes().to_vec()
        };
        let long = |value: u64| value.to_le_bytes().to_vec();
        match self {
            Self::SetFeatures(bits) | Self::SetProtocolFeatures(bits) => long(*bits),
            Self::SetMemTable(regions) => encode_regions(regions),
            Self::SetLogBase(area) => LogBody::from(area).as_bytes().to_vec(),
            Self::SetVringNum { ring, size } => state(*ring, *size),
            Self::SetVringAddr(addresses) => VringAddressBody::from(addresses).as_bytes().to_vec(),
            Self::SetVringBase { ring, base } => state(*ring, *base),
            Self::GetVringBase { ring } => state(*ring, 0),
            Self::SetVringEnable { ring, enabled } => state(*ring, u32::from(*enabled)),
            Self::SetVringKick(ring) | Self::SetVringCall(ring) | Self::SetVringErr(ring) => {
                let flag = if ring.attached { 0 } else { NO_DESCRIPTOR };
                long(u64::from(ring.ring) & RING_MASK | flag)
            }
            Self::SendRarp([a, b, c, d, e, f]) => [*a, *b, *c, *d, *e, *f, 0, 0].to_vec(),
            Self::NetSetMtu(mtu) => long(u64::from(*mtu)),
            Self::GetConfig(access) | Self::SetConfig(access) => encode_config(access),
            Self::GetInflightFd(area) | Self::SetInflightFd(area) => {
                InflightBody::from(area).as_bytes().to_vec()
            }
            Self::AddMemReg(region) | Self::RemMemReg(region) => {
                SingleRegionBody { padding: U64::ZERO, region: region.into() }.as_bytes().to_vec()
            }
            Self::SetStatus(status) => long(u64::from(*status)),
            _ => Vec::new(),
        }
    }
}

/// Parses a body that must have exactly the size of the type `T`.
fn exactly<T: FromBytes>(body: &[u8]) -> Result<T, RequestError> {
    T::read_from_bytes(body)
        .map_err(|_| RequestError::BodySize { received: body.len(), expected: size_of::<T>() })
}

fn number(body: &[u8]) -> Result<u64, RequestError> {
    exactly::<U64>(body).map(U64::get)
}

fn ring_descriptor(body: &[u8]) -> Result<RingEventfdMessage, RequestError> {
    let value = number(body)?;
    Ok(RingEventfdMessage { ring: (value & RING_MASK) as u32, attached: value & NO_DESCRIPTOR == 0 })
}

fn region(body: &[u8]) -> Result<MemoryRegion, RequestError> {
    let region = MemoryRegion::from(&exactly::<SingleRegionBody>(body)?.region);
    region.check()?;
    Ok(region)
}

/// Parses the regions of `SET_MEM_TABLE`. The length of the body limits their number, regardless of the count that it
/// states.
fn regions(body: &[u8]) -> Result<Vec<MemoryRegion>, RequestError> {
    let head_size = size_of::<MemoryTableHead>();
    let short = RequestError::BodySize { received: body.len(), expected: head_size };
    let (head, rest) = MemoryTableHead::read_from_prefix(body).map_err(|_| short)?;
    let expected =
        (head.regions.get() as usize).saturating_mul(size_of::<RegionBody>()).saturating_add(head_size);
    if body.len() != expected {
        return Err(RequestError::BodySize { received: body.len(), expected });
    }
    let bodies = <[RegionBody]>::ref_from_bytes(rest)
        .map_err(|_| RequestError::BodySize { received: body.len(), expected })?;
    let regions: Vec<_> = bodies.iter().map(MemoryRegion::from).collect();
    regions.iter().try_for_each(MemoryRegion::check)?;
    Ok(regions)
}

fn encode_regions(regions: &[MemoryRegion]) -> Vec<u8> {
    let count = U32::new(regions.len() as u32);
    let mut body = MemoryTableHead { regions: count, padding: U32::ZERO }.as_bytes().to_vec();
    for region in regions {
        body.extend_from_slice(RegionBody::from(region).as_bytes());
    }
    body
}

fn config(body: &[u8]) -> Result<DeviceConfigAccess, RequestError> {
    let short = RequestError::BodySize { received: body.len(), expected: size_of::<ConfigHead>() };
    let (head, contents) = ConfigHead::read_from_prefix(body).map_err(|_| short)?;
    let (offset, size) = (head.offset.get(), head.size.get());
    if size == 0 || size as usize > MAX_CONFIG || offset.checked_add(size).is_none() {
        return Err(RequestError::ConfigRange { offset, size });
    }
    if contents.len() != size as usize {
        let expected = size_of::<ConfigHead>() + size as usize;
        return Err(RequestError::BodySize { received: body.len(), expected });
    }
    Ok(DeviceConfigAccess { offset, flags: head.flags.get(), contents: contents.to_vec() })
}

fn encode_config(access: &DeviceConfigAccess) -> Vec<u8> {
    let contents = &access.contents[..access.contents.len().min(MAX_CONFIG)];
    let head = ConfigHead {
        offset: U32::new(access.offset),
        size: U32::new(contents.len() as u32),
        flags: U32::new(access.flags),
    };
    [head.as_bytes(), contents].concat()
}

#[cfg(test)]
mod tests {
    use super::{FrontendRequest, RequestCode};

    #[test]
    fn vhost_requests_of_any_length_are_refused_or_encoded_again() {
        let mut parsed = 0;
        for (code, fill) in
            RequestCode::ALL.into_iter().flat_map(|code| [0, 1, 2, 0xff].map(|fill| (code, fill)))
        {
            for length in 0..=400 {
                let body = alloc::vec![fill; length];
                let Ok(request) = FrontendRequest::parse(code, &body) else { continue };
                assert_eq!(request.code(), code);
                assert_eq!(
                    FrontendRequest::parse(code, &request.encode()),
                    Ok(request),
                    "{code:?}, {length} bytes"
                );
                parsed += 1;
            }
        }
        assert!(parsed > 50, "{parsed}");
    }
}
