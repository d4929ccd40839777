//! The driver's side of split and packed rings: chains of buffers go to the device, used chains come back.
//!
//! A chain has an id from [`DriverRing::add`] until [`DriverRing::collect`] returns it. Ids are below the ring's size,
//! so that a driver can index its own tables by them. Chains that were added reach the device together, by one write
//! of [`DriverRing::publish`].

mod chains;
mod packed;
mod split;
mod types;

use crate::descriptor::flag;
use crate::layout::{LayoutError, RingAddresses, RingFeatures};
use crate::memory::{MemoryFault, RingMemory};
use crate::packed::PackedPosition;
use chains::ChainTable;
use packed::PackedDriver;
use split::SplitDriver;
pub use types::{DriverBuffer, DriverRingError, InterruptRequest, ReturnedChain};
use types::{USED_BURST, UsedEntry};

#[derive(Debug, Clone)]
enum RingFormat {
    Split(SplitDriver),
    Packed(PackedDriver),
}

/// Driver's side of a split or packed ring.
#[derive(Debug, Clone)]
pub struct DriverRing {
    format: RingFormat,
    features: RingFeatures,
    chains: ChainTable,
    /// Last chain of a batch whose first chains the driver has collected.
    batch: Option<UsedEntry>,
}

impl DriverRing {
    /// Creates the driver's side of a new ring, whose memory is zero.
    ///
    /// # Errors
    /// [`LayoutError`] if the size or an address is not allowed for the format.
    pub fn new(
        is_packed: bool,
        size: u16,
        addresses: RingAddresses,
        features: RingFeatures,
    ) -> Result<Self, LayoutError> {
        Self::with_ids(is_packed, size, addresses, features, |nth| nth)
    }

    /// Creates the driver's side of a new ring that uses ids in this order at first: `id` maps the numbers below the
    /// size to each other. In order, the standard prescribes ascending ids, and `id` is not used.
    ///
    /// # Errors
    /// [`LayoutError`] if the size or an address is not allowed for the format.
    pub fn with_ids(
        is_packed: bool,
        size: u16,
        addresses: RingAddresses,
        features: RingFeatures,
        id: impl Fn(u16) -> u16,
    ) -> Result<Self, LayoutError> {
        let format = if is_packed {
            RingFormat::Packed(PackedDriver::new(size, addresses)?)
        } else {
            RingFormat::Split(SplitDriver::new(size, addresses)?)
        };
        let chains = ChainTable::new(size, |nth| if features.in_order { nth } else { id(nth) });
        Ok(Self { format, features, chains, batch: None })
    }

    /// Returns the addresses of the driver's ring.
    #[must_use]
    pub fn addresses(&self) -> RingAddresses {
        match &self.format {
            RingFormat::Split(ring) => ring.layout.addresses,
            RingFormat::Packed(ring) => ring.layout.addresses,
        }
    }

    /// Returns vhost-user's ring base of a new ring of this format.
    #[must_use]
    pub fn first_base(&self) -> u32 {
        if matches!(self.format, RingFormat::Packed(_)) { PackedPosition::START.vhost_base() } else { 0 }
    }

    /// Returns the number of entries of the driver's ring.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u16 {
        self.chains.size()
    }

    /// Returns the number of descriptors that the driver may still use.
    #[must_use]
    #[inline]
    pub fn free(&self) -> u16 {
        self.chains.free()
    }

    /// Returns the id that the next chain gets, or `None` if no descriptor is free. A driver with a buffer for each id
    /// finds the chain's buffer by it.
    #[must_use]
    #[inline]
    pub fn next_id(&self) -> Option<u16> {
        (self.chains.free() > 0).then(|| self.chains.next_id())
    }

    /// Returns the number of chains that were added and not collected.
    #[must_use]
    #[inline]
    pub fn outstanding(&self) -> u16 {
        self.chains.outstanding()
    }

    /// Adds a chain of buffers to the ring, those that the device reads before those that it writes. Returns the id of
    /// the chain, or `None` if too few descriptors are free or the chain is empty.
    ///
    /// # Errors
    /// [`MemoryFault`] if the ring is not in memory.
    #[inline]
    pub fn add<M: RingMemory>(
        &mut self,
        memory: &mut M,
        buffers: &[DriverBuffer],
    ) -> Result<Option<u16>, MemoryFault> {
        self.add_list(memory, buffers, 0)
    }

    /// Adds a chain whose `entries` descriptors are in an indirect table, which the driver has written before. Returns
    /// the id of the chain, or `None` if no descriptor is free.
    ///
    /// # Errors
    /// [`MemoryFault`] if the ring is not in memory.
    pub fn add_table<M: RingMemory>(
        &mut self,
        memory: &mut M,
        table: u64,
        entries: u32,
    ) -> Result<Option<u16>, MemoryFault> {
        let buffer = DriverBuffer { address: table, length: 16 * entries, writable: false };
        self.add_list(memory, &[buffer], flag::INDIRECT)
    }

    #[inline]
    fn add_list<M: RingMemory>(
        &mut self,
        memory: &mut M,
        buffers: &[DriverBuffer],
        extra: u16,
    ) -> Result<Option<u16>, MemoryFault> {
        if buffers.is_empty() || buffers.len() > self.chains.free().into() {
            return Ok(None);
        }
        let id = match &mut self.format {
            RingFormat::Split(ring) => ring.add(memory, &mut self.chains, buffers, extra)?,
            RingFormat::Packed(ring) => ring.add(memory, &mut self.chains, buffers, extra)?,
        };
        Ok(Some(id))
    }

    /// Makes all chains that were added available to the device, by one write.
    ///
    /// # Errors
    /// [`MemoryFault`] if the ring is not in memory.
    #[inline]
    pub fn publish<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), MemoryFault> {
        match &mut self.format {
            RingFormat::Split(ring) => ring.publish(memory),
            RingFormat::Packed(ring) => ring.publish(memory),
        }
    }

    /// Returns true if the device requests a notification of the chains that were published since the last call.
    ///
    /// # Errors
    /// [`MemoryFault`] if the ring is not in memory.
    #[inline]
    pub fn needs_kick<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, MemoryFault> {
        match &mut self.format {
            RingFormat::Split(ring) => ring.needs_kick(memory, self.features.event_index),
            RingFormat::Packed(ring) => ring.needs_kick(memory),
        }
    }

    /// Collects chains that the device has returned into the front of `into`. Returns their number. Fewer than `into`
    /// holds are no sign that the device has returned no more.
    ///
    /// # Errors
    /// [`DriverRingError`] if the ring is not in memory, or the device has returned a chain that it did not have.
    #[inline]
    pub fn collect<M: RingMemory>(
        &mut self,
        memory: &mut M,
        into: &mut [ReturnedChain],
    ) -> Result<usize, DriverRingError> {
        let mut count = 0;
        while count < into.len() {
            if let Some(last) = self.batch {
                into[count] = self.take(last)?;
                count += 1;
                continue;
            }
            let mut used = [UsedEntry::default(); USED_BURST];
            let most = USED_BURST.min(into.len() - count);
            let found = match &mut self.format {
                RingFormat::Split(ring) => ring.look(memory, &self.chains, &mut used[..most])?,
                RingFormat::Packed(ring) => ring.look(memory, &self.chains, &mut used[..most])?,
            };
            if found == 0 {
                break;
            }
            for last in &used[..found] {
                if count == into.len() {
                    break;
                }
                into[count] = self.take(*last)?;
                count += 1;
                if self.batch.is_some() {
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Takes the next chain of a used entry back from the device.
    #[inline]
    fn take(&mut self, last: UsedEntry) -> Result<ReturnedChain, DriverRingError> {
        if !self.chains.is_outstanding(last.id) {
            return Err(DriverRingError::UnknownChain { id: last.id.into() });
        }
        // In order, chains before the last one of a batch are written completely (sections 2.7.9 and 2.8.8).
        let id = if self.features.in_order { self.chains.oldest() } else { last.id };
        let writable = match &mut self.format {
            RingFormat::Split(ring) => ring.take(&mut self.chains, id),
            RingFormat::Packed(ring) => ring.take(&mut self.chains, id),
        };
        let is_last = id == last.id;
        self.batch = if is_last { None } else { Some(last) };
        Ok(ReturnedChain { id, written: if is_last { last.written } else { writable } })
    }

    /// Requests interrupts of the device. A driver then looks for used chains once more, since an earlier return causes
    /// no interrupt.
    ///
    /// # Errors
    /// [`MemoryFault`] if the ring is not in memory.
    pub fn request_interrupts<M: RingMemory>(
        &self,
        memory: &mut M,
        request: InterruptRequest,
    ) -> Result<(), MemoryFault> {
        let events = self.features.event_index;
        let request = match request {
            InterruptRequest::After(_) if !events => InterruptRequest::Next,
            request => request,
        };
        match &self.format {
            RingFormat::Split(ring) => ring.request_interrupts(memory, request, events)?,
            RingFormat::Packed(ring) => ring.request_interrupts(memory, request)?,
        }
        memory.fence();
        Ok(())
    }
}
