//! Replies, taken apart. The server is not trusted with lengths or offsets either.

use alloc::vec::Vec;

use zerocopy::FromBytes;

use super::ClientError;
use crate::decoder::{Body, Message};
use crate::types::{DeviceInfo, IrqInfo, SparseArea};
use crate::wire::{
    Capabilities, CapabilityHeader, Command, DeviceInfoBody, Errno, IrqInfoBody, RegionAccessBody,
    RegionInfoBody, SparseAreaBody, SparseMmapBody, VersionBody, region_flags,
};

/// The reply to one request.
#[derive(Debug)]
pub struct Reply<'a, F> {
    /// The id that the request returned.
    pub id: u16,
    /// What was asked.
    pub command: Command,
    /// The answer, or the error number the server gave; 0 if it gave none.
    pub answer: Result<Answer<'a>, Errno>,
    /// Descriptors that came along: one, for a mappable region.
    pub fds: Vec<F>,
}

/// What a successful reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// It is done; nothing more to say.
    Done,
    /// To `version`.
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
        /// What the server agreed to.
        capabilities: Capabilities,
    },
    /// To `device_info`.
    DeviceInfo(DeviceInfo),
    /// To `region_info`.
    Region(RegionLayout),
    /// To `irq_info`.
    Irq(IrqInfo),
    /// To `read`.
    Data(&'a [u8]),
}

/// A region as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionLayout {
    /// Bytes of the full reply; ask again with that much room if it was less.
    pub argsz: u32,
    /// [`region_flags`].
    pub flags: u32,
    /// Bytes.
    pub size: u64,
    /// Where the region starts in the file that came along.
    pub offset: u64,
    /// Areas that may be mapped; with `MMAP` and none, the whole region may.
    pub sparse: Vec<SparseArea>,
}

pub(super) fn parse<F>(
    id: u16,
    command: Command,
    message: Message<'_, F>,
) -> Result<Reply<'_, F>, ClientError> {
    let Message { header, body, fds } = message;
    let answer = match body {
        _ if header.is_error() => Err(Errno(header.error.get())),
        Body::Whole(body) => Ok(success(command, body).ok_or(ClientError::MalformedReply(command))?),
        Body::Discarded => return Err(ClientError::MalformedReply(command)),
    };
    Ok(Reply { id, command, answer, fds })
}

fn success(command: Command, body: &[u8]) -> Option<Answer<'_>> {
    Some(match command {
        Command::Version => {
            let (version, text) = VersionBody::read_from_prefix(body).ok()?;
            let capabilities = Capabilities::parse(text).ok()?;
            Answer::Version { major: version.major.get(), minor: version.minor.get(), capabilities }
        }
        Command::DeviceGetInfo => {
            let (info, _) = DeviceInfoBody::read_from_prefix(body).ok()?;
            let (regions, irqs) = (info.num_regions.get(), info.num_irqs.get());
            Answer::DeviceInfo(DeviceInfo { flags: info.flags.get(), regions, irqs })
        }
        Command::DeviceGetRegionInfo => Answer::Region(region(body)?),
        Command::DeviceGetIrqInfo => {
            let (info, _) = IrqInfoBody::read_from_prefix(body).ok()?;
            Answer::Irq(IrqInfo { count: info.count.get(), flags: info.flags.get() })
        }
        Command::RegionRead => {
            let (access, data) = RegionAccessBody::read_from_prefix(body).ok()?;
            Answer::Data(data.get(..access.count.get() as usize)?)
        }
        _ => Answer::Done,
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

/// Walks the capability list. It has to go forwards, so it ends.
fn sparse_areas(body: &[u8], first: usize) -> Option<Vec<SparseArea>> {
    let mut areas = Vec::new();
    let (mut at, mut previous) = (first, 0);
    while at != 0 {
        if at <= previous {
            return None;
        }
        let (header, rest) = CapabilityHeader::read_from_prefix(body.get(at..)?).ok()?;
        if header.id.get() == CapabilityHeader::SPARSE_MMAP {
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
