//! The driver's side of a packed ring (sections 2.8.21 and 2.8.22).

use super::chains::ChainTable;
use super::types::{DriverBuffer, DriverRingError, InterruptRequest, USED_BURST, UsedEntry};
use crate::descriptor::{PackedDescriptor, SIZE, flag};
use crate::layout::{LayoutError, RingAddresses};
use crate::memory::{MemoryFault, RingMemory, acquire, read_u16, release};
use crate::packed::{DESCRIPTOR, DISABLE, ENABLE, FLAGS, MASK, PackedLayout, PackedPosition};
use crate::signal::passes;

/// Position of a driver in its packed ring.
#[derive(Debug, Clone)]
pub(super) struct PackedDriver {
    pub(super) layout: PackedLayout,
    /// Position of the next descriptor to make available.
    available: PackedPosition,
    /// Position of the next used descriptor.
    used: PackedPosition,
    /// Position and flags of the first descriptor that was added since the last publication. Writing the flags
    /// publishes all descriptors behind it too, since the device passes them in order.
    held: Option<(PackedPosition, u16)>,
    /// Number of descriptors added since the last decision about a notification.
    added: u16,
}

impl PackedDriver {
    pub(super) fn new(size: u16, addresses: RingAddresses) -> Result<Self, LayoutError> {
        let layout = PackedLayout::new(size.into(), addresses)?;
        let (available, used) = (PackedPosition::START, PackedPosition::START);
        Ok(Self { layout, available, used, held: None, added: 0 })
    }

    /// Writes the descriptors of a chain. The flags of the first one since the last publication keep their old value.
    #[inline]
    pub(super) fn add<M: RingMemory>(
        &mut self,
        memory: &mut M,
        chains: &mut ChainTable,
        buffers: &[DriverBuffer],
        extra: u16,
    ) -> Result<u16, MemoryFault> {
        let (id, mut writable) = (chains.take_id(), 0_u32);
        for (at, buffer) in buffers.iter().enumerate() {
            let more = if at + 1 < buffers.len() { flag::NEXT } else { 0 };
            let write = if buffer.writable { flag::WRITE } else { 0 };
            let flags = extra | more | write | self.available.available_flags();
            writable = writable.wrapping_add(if buffer.writable { buffer.length } else { 0 });
            let DriverBuffer { address, length, .. } = *buffer;
            let raw = PackedDescriptor { address, length, id, flags }.emit();
            let slot = self.layout.slot(self.available);
            if self.held.is_none() {
                memory.write(slot, &raw[..FLAGS as usize])?;
                self.held = Some((self.available, flags));
            } else {
                memory.write(slot, &raw)?;
            }
            self.available = self.available.after(1, self.layout.size());
        }
        let slots = buffers.len() as u16;
        self.added = self.added.saturating_add(slots);
        chains.lend(id, slots, writable);
        Ok(id)
    }

    #[inline]
    pub(super) fn publish<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), MemoryFault> {
        let Some((position, flags)) = self.held.take() else { return Ok(()) };
        release();
        memory.write(self.layout.slot(position) + FLAGS, &flags.to_le_bytes())
    }

    #[inline]
    pub(super) fn needs_kick<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, MemoryFault> {
        let added = core::mem::take(&mut self.added);
        if added == 0 {
            return Ok(false);
        }
        // The device states its wish and then looks for chains; the driver has to do the opposite in this order.
        memory.fence();
        let mut event = [0; 4];
        memory.read(self.layout.addresses.device, &mut event)?;
        let event = u32::from_le_bytes(event);
        let position = PackedPosition::from_bits(event as u16);
        let same_round = position.wrap() == self.available.wrap();
        let index = position.index().wrapping_sub(if same_round { 0 } else { self.layout.size() });
        Ok(match (event >> 16) as u16 & MASK {
            ENABLE => true,
            DESCRIPTOR => passes(index, self.available.index(), added),
            _ => false,
        })
    }

    /// Reads used descriptors from the driver's position on, at most up to the ring's end. Returns their number.
    ///
    /// They are read twice: a descriptor's flags publish the rest of it, which therefore has to be read after them.
    #[inline]
    pub(super) fn look<M: RingMemory>(
        &mut self,
        memory: &mut M,
        chains: &ChainTable,
        into: &mut [UsedEntry],
    ) -> Result<usize, DriverRingError> {
        let (slot, outstanding) = (self.layout.slot(self.used), usize::from(chains.outstanding()));
        let is_used = |flags: u16| flags & (flag::AVAIL | flag::USED) == self.used.used_flags();
        if outstanding == 0 || !is_used(read_u16(memory, slot + FLAGS)?) {
            return Ok(0);
        }
        let mut raw = [[0; SIZE]; USED_BURST];
        let most = self.layout.contiguous(self.used, into.len().min(outstanding));
        let mut ready = 1;
        if most > 1 {
            memory.read(slot, raw[..most].as_flattened_mut())?;
            let later = raw[1..most].iter();
            ready += later.take_while(|raw| is_used(u16::from_le_bytes([raw[14], raw[15]]))).count();
        }
        acquire();
        memory.read(slot, raw[..ready].as_flattened_mut())?;
        let (mut count, mut at) = (0, 0);
        while at < ready {
            let PackedDescriptor { length, id, flags, .. } = PackedDescriptor::parse(&raw[at]);
            let slots = chains.slots(id).ok_or(DriverRingError::UnknownChain { id: id.into() })?;
            let written = if flags & flag::WRITE == 0 { 0 } else { length };
            into[count] = UsedEntry { id, written };
            count += 1;
            at += usize::from(slots);
        }
        Ok(count)
    }

    /// Takes a chain back, and passes its descriptors.
    #[inline]
    pub(super) fn take(&mut self, chains: &mut ChainTable, id: u16) -> u32 {
        let (slots, writable) = chains.take_back(id, |_| 1);
        self.used = self.used.after(slots, self.layout.size());
        writable
    }

    pub(super) fn request_interrupts<M: RingMemory>(
        &self,
        memory: &mut M,
        request: InterruptRequest,
    ) -> Result<(), MemoryFault> {
        let size = self.layout.size();
        let (position, flags) = match request {
            InterruptRequest::None => (PackedPosition::from_bits(0), DISABLE),
            InterruptRequest::Next => (PackedPosition::from_bits(0), ENABLE),
            InterruptRequest::After(slots) => (self.used.after(slots.min(size), size), DESCRIPTOR),
        };
        let event = u32::from(position.bits()) | u32::from(flags) << 16;
        memory.write(self.layout.addresses.driver, &event.to_le_bytes())
    }
}
