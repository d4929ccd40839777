//! Reads and writes of the device's regions by the client.
//!
//! **An access to a region never gets an error reply.** The `vfio_user` crate, and with it Cloud Hypervisor, waits
//! for the data that an error reply lacks, and a vCPU hangs. So bytes outside a region read as all ones and ignore
//! writes, like a bus address without a device.
//!
//! The only exception is a transfer longer than the negotiated maximum: `EINVAL`. A full reply would need too much
//! memory, a short one would hang the same client, and neither QEMU (which checks its length against the maximum)
//! nor Cloud Hypervisor (which requests 8 bytes at most) can send it.

use alloc::vec::Vec;
use core::mem::size_of;

use zerocopy::{FromBytes, IntoBytes};

use super::answer::ReplyWriter;
use super::{ServedDevice, SessionCounters};
use crate::wire::{Errno, MAX_DATA_XFER, MultiWriteBody, MultiWriteEntry, RegionAccessBody, region_flags};

/// Bytes of a reply to a read that the device has suspended.
#[derive(Debug)]
pub(super) struct SuspendedRead {
    /// Data of the reply.
    data: Vec<u8>,
    /// Number of the data's bytes that are read.
    bytes: usize,
}

pub(super) fn read<F, D: ServedDevice<F>>(
    (counters, suspended): (&mut SessionCounters, &mut Option<SuspendedRead>),
    body: &[u8],
    device: &mut D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (access, _) = RegionAccessBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    if access.count.get() > MAX_DATA_XFER {
        return Err(Errno::EINVAL);
    }
    let (region, offset) = (access.region.get(), access.offset.get());
    if let Some(SuspendedRead { mut data, bytes }) = suspended.take() {
        let bytes = bytes + device.read(region, offset + bytes as u64, &mut data[bytes..]);
        match bytes < data.len() {
            true => *suspended = Some(SuspendedRead { data, bytes }),
            false => answer.send(&[access.as_bytes(), &data]),
        }
        return Ok(());
    }
    counters.reads += 1;
    // A read without a reply has no purpose, and reads of device registers have side effects.
    if !answer.wanted() {
        return Ok(());
    }
    let data = answer.send_data(access.as_bytes(), access.count.get() as usize);
    if !allowed(device, region, offset, data.len(), region_flags::READ) {
        counters.out_of_range += 1;
        data.fill(0xff);
    } else if !data.is_empty() {
        let bytes = device.read(region, offset, data);
        if bytes < data.len() {
            *suspended = Some(SuspendedRead { data: data.to_vec(), bytes });
            answer.withdraw(access.as_bytes().len() + access.count.get() as usize);
        }
    }
    Ok(())
}

/// Finished part of a message of writes that the device has suspended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SuspendedWrites {
    /// Number of the message's writes that are finished.
    writes: usize,
    /// Number of written bytes of the next write.
    bytes: usize,
}

/// Counters of the session, and the finished part of the message if the device has suspended it.
type WriteProgress<'a> = (&'a mut SessionCounters, &'a mut Option<SuspendedWrites>);

pub(super) fn write<F, D: ServedDevice<F>>(
    (counters, suspended): WriteProgress<'_>,
    body: &[u8],
    device: &mut D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (access, data) = RegionAccessBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    let before = suspended.take();
    if before.is_none() {
        count_writes(counters, answer.wanted(), 1);
    }
    // With another length than announced, the intended write is unknown.
    if data.len() == access.count.get() as usize {
        let (place, from) = ((access.region.get(), access.offset.get()), before.unwrap_or_default().bytes);
        if let Some(bytes) = store(counters, device, place, data, from) {
            *suspended = Some(SuspendedWrites { writes: 0, bytes });
            return Ok(());
        }
    } else {
        counters.malformed_writes += 1;
    }
    answer.send(&[access.as_bytes()]);
    Ok(())
}

/// Serves a `REGION_WRITE_MULTI` request, which writes several values of up to 8 bytes, in order.
pub(super) fn write_multi<F, D: ServedDevice<F>>(
    (counters, suspended): WriteProgress<'_>,
    body: &[u8],
    device: &mut D,
    answer: &mut ReplyWriter<'_, F>,
) -> Result<(), Errno> {
    let (head, rest) = MultiWriteBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    let present = (rest.len() / size_of::<MultiWriteEntry>()) as u64;
    if head.wr_cnt.get() > present {
        return Err(Errno::EINVAL);
    }
    let entries = rest.chunks_exact(size_of::<MultiWriteEntry>()).take(head.wr_cnt.get() as usize);
    let before = suspended.take();
    if before.is_none() {
        count_writes(counters, answer.wanted(), head.wr_cnt.get());
    }
    let SuspendedWrites { writes: finished, bytes: mut from } = before.unwrap_or_default();
    for (writes, bytes) in entries.enumerate().skip(finished) {
        let Ok(entry) = MultiWriteEntry::read_from_bytes(bytes) else { continue };
        let Some(data) = entry.data.get(..entry.count.get() as usize) else {
            counters.malformed_writes += 1;
            continue;
        };
        let place = (entry.region.get(), entry.offset.get());
        if let Some(bytes) = store(counters, device, place, data, core::mem::take(&mut from)) {
            *suspended = Some(SuspendedWrites { writes, bytes });
            return Ok(());
        }
    }
    answer.send(&[head.as_bytes()]);
    Ok(())
}

fn count_writes(counters: &mut SessionCounters, synchronous: bool, writes: u64) {
    if synchronous {
        counters.synchronous_writes += writes;
    } else {
        counters.posted_writes += writes;
    }
}

/// Has the device write the bytes of `data` from index `from` on. Returns the number of written bytes of `data` if the
/// device suspends the write, and `None` once the write is finished.
fn store<F, D: ServedDevice<F>>(
    counters: &mut SessionCounters,
    device: &mut D,
    (region, offset): (u32, u64),
    data: &[u8],
    from: usize,
) -> Option<usize> {
    if !allowed(device, region, offset, data.len(), region_flags::WRITE) {
        counters.out_of_range += 1;
        return None;
    }
    let rest = data.get(from..).filter(|rest| !rest.is_empty())?;
    let written = device.write(region, offset + from as u64, rest);
    (written < rest.len()).then_some(from + written)
}

/// Returns true if the whole access lies in a region that has `flag` (readable or writable).
fn allowed<F, D: ServedDevice<F>>(device: &D, region: u32, offset: u64, count: usize, flag: u32) -> bool {
    device.region(region).is_some_and(|info| info.allows(offset, count, flag))
}
