//! Replies to a client's requests for information: protocol version, device, regions and interrupts.

use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use super::answer::ReplyWriter;
use super::{NegotiatedVersion, ServedDevice};
use crate::decoder::ProtocolError;
use crate::types::SparseArea;
use crate::wire::{
    DMA_PAGE_SIZE, DeviceInfoBody, Errno, IrqInfoBody, MAX_DATA_XFER, MAX_MESSAGE_FDS,
    RegionCapabilityHeader, RegionInfoBody, SparseAreaBody, SparseMmapBody, VERSION_MAJOR, VERSION_MINOR,
    VersionBody, VersionCapabilities, region_flags,
};

/// Reason why client and server have not negotiated a protocol version.
pub(super) enum VersionNegotiationError {
    /// The version request is invalid; the client may try again.
    Refused(Errno),
    /// The client uses another protocol version: the connection ends.
    Fatal(ProtocolError),
}

/// Replies to a version request with the capabilities that client and server both support. The reply repeats only
/// capabilities that the client mentioned, and is no longer than the request: QEMU reads it into the request's buffer.
pub(super) fn version<F>(
    body: &[u8],
    max_dma_maps: u32,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<NegotiatedVersion, VersionNegotiationError> {
    let (version, text) =
        VersionBody::read_from_prefix(body).map_err(|_| VersionNegotiationError::Refused(Errno::EINVAL))?;
    if version.major.get() != VERSION_MAJOR {
        return Err(VersionNegotiationError::Fatal(ProtocolError::UnsupportedVersion {
            major: version.major.get(),
        }));
    }
    let client =
        VersionCapabilities::parse(text).map_err(|_| VersionNegotiationError::Refused(Errno::EINVAL))?;
    let (server, text) = ours(&client, max_dma_maps).render(text.len());
    let minor = version.minor.get().min(VERSION_MINOR);
    let reply = VersionBody { major: U16::new(VERSION_MAJOR), minor: U16::new(minor) };
    answer.send(&[reply.as_bytes(), &text]);
    Ok(NegotiatedVersion { minor, client, write_multiple: server.write_multiple == Some(true) })
}

fn ours(client: &VersionCapabilities, max_dma_maps: u32) -> VersionCapabilities {
    VersionCapabilities {
        max_msg_fds: client.max_msg_fds.map(|_| MAX_MESSAGE_FDS as u64),
        max_data_xfer_size: client.max_data_xfer_size.map(|_| u64::from(MAX_DATA_XFER)),
        max_dma_maps: client.max_dma_maps.map(|theirs| theirs.min(u64::from(max_dma_maps))),
        pgsizes: client.pgsizes.map(|_| DMA_PAGE_SIZE),
        write_multiple: client.write_multiple.filter(|&wanted| wanted),
    }
}

pub(super) fn device<F, D: ServedDevice<F>>(
    body: &[u8],
    device: &D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (request, _) = DeviceInfoBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    if (request.argsz.get() as usize) < size_of::<DeviceInfoBody>() {
        return Err(Errno::EINVAL);
    }
    let info = device.info();
    let reply = DeviceInfoBody {
        argsz: U32::new(size_of::<DeviceInfoBody>() as u32),
        flags: U32::new(info.flags),
        num_regions: U32::new(info.regions),
        num_irqs: U32::new(info.irqs),
    };
    answer.send(&[reply.as_bytes()]);
    Ok(())
}

pub(super) fn irq<F, D: ServedDevice<F>>(
    body: &[u8],
    device: &D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (request, _) = IrqInfoBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    if (request.argsz.get() as usize) < size_of::<IrqInfoBody>() {
        return Err(Errno::EINVAL);
    }
    let info = device.irq(request.index.get()).ok_or(Errno::EINVAL)?;
    let reply = IrqInfoBody {
        argsz: U32::new(size_of::<IrqInfoBody>() as u32),
        flags: U32::new(info.flags),
        index: request.index,
        count: U32::new(info.count),
    };
    answer.send(&[reply.as_bytes()]);
    Ok(())
}

/// Replies with the layout of a region. Clients request the layout twice: with room for the fixed part, which has the
/// size of the whole, and with that room. Capabilities and the region's descriptor come with the second reply only.
/// Without room for them `cap_offset` is 0 and the flag is clear: QEMU refuses capabilities without an offset.
pub(super) fn region<F, D: ServedDevice<F>>(
    body: &[u8],
    device: &mut D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (request, _) = RegionInfoBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    let index = request.index.get();
    let fixed = size_of::<RegionInfoBody>();
    let room = request.argsz.get() as usize;
    let info = device.region(index).ok_or(Errno::EINVAL)?;
    if room < fixed {
        return Err(Errno::EINVAL);
    }
    let mappable = info.flags & region_flags::MMAP != 0;
    let whole = fixed + if mappable { sparse_length(info.sparse) } else { 0 };
    let fits = room >= whole;
    let fd = if mappable && fits { device.region_fd(index) } else { None };
    let info = device.region(index).ok_or(Errno::EINVAL)?;
    let mut flags = info.flags & !region_flags::CAPS;
    let (mut argsz, mut capabilities) = (whole, Vec::new());
    if fits && fd.is_none() {
        // Cloud Hypervisor panics at a mappable region without a descriptor, so such a region is described as not
        // mappable.
        flags &= !region_flags::MMAP;
        argsz = fixed;
    } else if fits && whole > fixed {
        flags |= region_flags::CAPS;
        capabilities = sparse_mmap(info.sparse);
    }
    let reply = RegionInfoBody {
        argsz: U32::new(argsz as u32),
        flags: U32::new(flags),
        index: request.index,
        cap_offset: U32::new(if capabilities.is_empty() { 0 } else { fixed as u32 }),
        size: U64::new(info.size),
        offset: U64::new(info.offset),
    };
    answer.send_with_fds(&[reply.as_bytes(), &capabilities], fd.into_iter().collect());
    Ok(())
}

/// Returns the length in bytes of the list of mappable areas, as [`sparse_mmap`] encodes it.
fn sparse_length(areas: &[SparseArea]) -> usize {
    let fixed = size_of::<RegionCapabilityHeader>() + size_of::<SparseMmapBody>();
    if areas.is_empty() { 0 } else { fixed + areas.len() * size_of::<SparseAreaBody>() }
}

fn sparse_mmap(areas: &[SparseArea]) -> Vec<u8> {
    let header = RegionCapabilityHeader {
        id: U16::new(RegionCapabilityHeader::SPARSE_MMAP),
        version: U16::new(1),
        next: U32::ZERO,
    };
    let list = SparseMmapBody { nr_areas: U32::new(areas.len() as u32), reserved: U32::ZERO };
    let mut bytes = Vec::from(header.as_bytes());
    bytes.extend_from_slice(list.as_bytes());
    for area in areas {
        let area = SparseAreaBody { offset: U64::new(area.offset), size: U64::new(area.size) };
        bytes.extend_from_slice(area.as_bytes());
    }
    bytes
}
