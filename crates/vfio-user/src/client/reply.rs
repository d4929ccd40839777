//! Parses the replies of a vfio-user server, without trusting their lengths or offsets.

use alloc::vec::Vec;

use zerocopy::FromBytes;

use super::ServerViolation;
use crate::decoder::{MessageBody, ReceivedMessage};
use crate::types::{DeviceInfo, IrqInfo, SparseArea};
use crate::wire::{
    Command, DeviceInfoBody, Errno, IrqInfoBody, RegionAccessBody, RegionCapabilityHeader, RegionInfoBody,
    SparseAreaBody, SparseMmapBody, VersionBody, VersionCapabilities, region_flags,
};

/// Server's reply to one request of the client.
#[derive(Debug)]
pub struct ServerReply<'a, F> {
    /// Message id of the answered request, as the client's function returned it.
    pub id: u16,
    /// Command of the answered request.
    pub command: Command,
    /// Contents of the reply, or the server's error number (0 if the server gave none).
    pub answer: Result<ReplyContents<'a>, Errno>,
    /// Descriptors that came with the reply: one for a mappable region.
    pub fds: Vec<F>,
}

/// Contents of a reply to a successful request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyContents<'a> {
    /// The request succeeded, and the reply has no data.
    Done,
    /// Reply to `version`, the proposal of a protocol version.
    Version {
        /// Major version of the protocol that the server accepted.
        major: u16,
        /// Minor version of the protocol that the server accepted.
        minor: u16,
        /// Capabilities that the server accepted.
        capabilities: VersionCapabilities,
    },
    /// Reply to `device_info`: the properties of the device.
    DeviceInfo(DeviceInfo),
    /// Reply to `region_info`: the properties of a region.
    Region(RegionLayout),
    /// Reply to `irq_info`: the properties of an interrupt type.
    Irq(IrqInfo),
    /// Reply to `read`: the bytes of the region.
    Data(&'a [u8]),
}

/// Properties of a region, as the server describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionLayout {
    /// Size of the full reply about the region in bytes. If it exceeds the requested maximum, the client repeats the
    /// request with this size.
    pub argsz: u32,
    /// Flags of the device's region, see [`region_flags`].
    pub flags: u32,
    /// Size of the device's region in bytes.
    pub size: u64,
    /// Offset of the region in the file that holds it.
    pub offset: u64,
    /// Mappable areas of the region. With flag `MMAP` and an empty list, the whole region is mappable.
    pub sparse: Vec<SparseArea>,
}

pub(super) fn parse<F>(
    id: u16,
    command: Command,
    message: ReceivedMessage<'_, F>,
) -> Result<ServerReply<'_, F>, ServerViolation> {
    let ReceivedMessage { header, body, fds } = message;
    let answer = match body {
        _ if header.is_error() => Err(Errno(header.error.get())),
        MessageBody::Whole(body) => {
            Ok(success(command, body).ok_or(ServerViolation::MalformedReply(command))?)
        }
        MessageBody::Discarded => return Err(ServerViolation::MalformedReply(command)),
    };
    Ok(ServerReply { id, command, answer, fds })
}

fn success(command: Command, body: &[u8]) -> Option<ReplyContents<'_>> {
    Some(match command {
        Command::Version => {
            let (version, text) = VersionBody::read_from_prefix(body).ok()?;
            let capabilities = VersionCapabilities::parse(text).ok()?;
            ReplyContents::Version { major: version.major.get(), minor: version.minor.get(), capabilities }
        }
        Command::DeviceGetInfo => {
            let (info, _) = DeviceInfoBody::read_from_prefix(body).ok()?;
            let (regions, irqs) = (info.num_regions.get(), info.num_irqs.get());
            ReplyContents::DeviceInfo(DeviceInfo { flags: info.flags.get(), regions, irqs })
        }
        Command::DeviceGetRegionInfo => ReplyContents::Region(region(body)?),
        Command::DeviceGetIrqInfo => {
            let (info, _) = IrqInfoBody::read_from_prefix(body).ok()?;
            ReplyContents::Irq(IrqInfo { count: info.count.get(), flags: info.flags.get() })
        }
        Command::RegionRead => {
            let (access, data) = RegionAccessBody::read_from_prefix(body).ok()?;
            ReplyContents::Data(data.get(..access.count.get() as usize)?)
        }
        _ => ReplyContents::Done,
    })
}

fn region(body: &[u8]) -> Option<RegionLayout> {
    let (info, _) = RegionInfoBody::read_from_prefix(body).ok()?;
    let complete = info.argsz.get() as usize <= body.len();
    let has_capabilities = info.flags.get() & region_flags::CAPS != 0;
    let sparse = if complete && has_capabilities {
        sparse_areas(body, info.cap_offset.get() as usize)?
    } else {
        Vec::new()
    };
    Some(RegionLayout {
        argsz: info.argsz.get(),
        flags: info.flags.get(),
        size: info.size.get(),
        offset: info.offset.get(),
        sparse,
    })
}

/// Returns the mappable areas from a region's capability list. Offsets in the list must increase, which bounds the
/// walk.
fn sparse_areas(body: &[u8], first: usize) -> Option<Vec<SparseArea>> {
    let mut areas = Vec::new();
    let (mut at, mut previous) = (first, 0);
    while at != 0 {
        if at <= previous {
            return None;
        }
        let (header, rest) = RegionCapabilityHeader::read_from_prefix(body.get(at..)?).ok()?;
        if header.id.get() == RegionCapabilityHeader::SPARSE_MMAP {
            let (list, rest) = SparseMmapBody::read_from_prefix(rest).ok()?;
            let count = list.nr_areas.get() as usize;
            let (list, _) = <[SparseAreaBody]>::ref_from_prefix_with_elems(rest, count).ok()?;
            areas.extend(list.iter().map(|a| SparseArea { offset: a.offset.get(), size: a.size.get() }));
        }
        previous = at;
        at = header.next.get() as usize;
    }
    Some(areas)
}
