//! List of a packet's buffers in its sender's memory, taken from the packet's descriptors.

use core::ops::Range;
use pcie::{AnnouncedAccess, Bus, DmaFault, Function, Iova};

/// Maximum number of buffers that a packet has.
pub const MAX_BUFFERS: usize = 128;

/// Addresses and lengths of a packet's buffers, in the order of its bytes.
#[derive(Debug, Clone)]
pub struct BufferChain {
    addresses: [Iova; MAX_BUFFERS],
    lengths: [u32; MAX_BUFFERS],
    count: usize,
    /// Number of bytes in all buffers of the packet.
    bytes: usize,
}

impl Default for BufferChain {
    fn default() -> Self {
        Self { addresses: [0; MAX_BUFFERS], lengths: [0; MAX_BUFFERS], count: 0, bytes: 0 }
    }
}

impl BufferChain {
    /// Removes all buffers from the packet's list.
    #[inline]
    pub fn clear(&mut self) {
        (self.count, self.bytes) = (0, 0);
    }

    /// Adds a buffer to the packet. Does nothing if the buffer is empty, or if there are [`MAX_BUFFERS`].
    #[inline]
    pub fn push(&mut self, address: Iova, length: u32) {
        if length > 0 && self.count < MAX_BUFFERS {
            (self.addresses[self.count], self.lengths[self.count]) = (address, length);
            (self.count, self.bytes) = (self.count + 1, self.bytes + length as usize);
        }
    }

    /// Removes the packet's first `bytes` bytes, such as a header that is no part of the frame.
    pub fn skip(&mut self, bytes: usize) {
        let (mut left, mut kept) = (bytes, 0);
        for at in 0..self.count {
            let (address, length) = (self.addresses[at], self.lengths[at]);
            let skipped = u32::try_from(left).unwrap_or(u32::MAX).min(length);
            left -= skipped as usize;
            if skipped < length {
                self.addresses[kept] = address.wrapping_add(skipped.into());
                self.lengths[kept] = length - skipped;
                kept += 1;
            }
        }
        (self.count, self.bytes) = (kept, self.bytes.saturating_sub(bytes));
    }

    /// Returns the number of bytes in all buffers of the packet.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the addresses and the lengths of the packet's buffers.
    pub(crate) fn all(&self) -> (&[Iova], &[u32]) {
        (&self.addresses[..self.count], &self.lengths[..self.count])
    }

    /// Copies the packet's first bytes, as many as `into` has.
    ///
    /// # Errors
    /// [`DmaFault`] if a buffer cannot be read.
    pub fn read<B: Bus>(&self, function: Function, bus: &mut B, mut into: &mut [u8]) -> Result<(), DmaFault> {
        let (addresses, lengths) = self.all();
        // Most packets have one buffer.
        if let ([address], true) = (addresses, into.len() == self.bytes) {
            return bus.dma_read(function, *address, into);
        }
        for (at, (address, length)) in addresses.iter().zip(lengths).enumerate() {
            if into.is_empty() {
                break;
            }
            if let (Some(ahead), Some(length)) = (addresses.get(at + 1), lengths.get(at + 1)) {
                bus.prefetch(function, (*ahead, *length as usize), AnnouncedAccess::Read);
            }
            let (place, rest) = into.split_at_mut(into.len().min(*length as usize));
            bus.dma_read(function, *address, place)?;
            into = rest;
        }
        Ok(())
    }
}

/// Position of a byte within the buffers of a packet. The position only moves forward.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BufferCursor {
    /// Index of the buffer that holds the byte.
    at: usize,
    /// Number of the packet's bytes before that buffer.
    before: usize,
}

impl BufferCursor {
    /// Moves forward to the buffer that holds byte `byte` of the packet. Returns the byte's address, and the number of
    /// bytes from there to the buffer's end. `None` if the packet ends before.
    pub(crate) fn seek(&mut self, buffers: &BufferChain, byte: usize) -> Option<(Iova, usize)> {
        let (addresses, lengths) = buffers.all();
        loop {
            let length = *lengths.get(self.at)? as usize;
            let within = byte.checked_sub(self.before)?;
            if within < length {
                return Some((addresses[self.at].wrapping_add(within as u64), length - within));
            }
            (self.at, self.before) = (self.at + 1, self.before + length);
        }
    }

    /// Copies a range of bytes of the packet out of its sender's buffers.
    ///
    /// # Errors
    /// [`DmaFault`] if a buffer cannot be read, or if the packet ends before.
    pub(crate) fn read<B: Bus>(
        &mut self,
        buffers: &BufferChain,
        range: Range<usize>,
        (function, bus): (Function, &mut B),
        into: &mut [u8],
    ) -> Result<(), DmaFault> {
        let mut place = into;
        let mut byte = range.start;
        while byte < range.end {
            let Some((address, left)) = self.seek(buffers, byte) else { break };
            let (now, rest) = place.split_at_mut(place.len().min(left).min(range.end - byte));
            if now.is_empty() {
                break;
            }
            bus.dma_read(function, address, now)?;
            (byte, place) = (byte + now.len(), rest);
        }
        if byte < range.end { Err(DmaFault { function, iova: 0 }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferChain, BufferCursor};

    #[test]
    fn packet_offset_maps_to_the_right_buffer_and_address() {
        let mut buffers = BufferChain::default();
        for (address, length) in [(0x1000, 66), (0x3000, 0), (0x2000, 100), (0x9000, 1)] {
            buffers.push(address, length);
        }
        assert_eq!(buffers.bytes(), 167);
        let mut cursor = BufferCursor::default();
        for (byte, expected) in
            [(0, (0x1000, 66)), (65, (0x1041, 1)), (66, (0x2000, 100)), (166, (0x9000, 1))]
        {
            assert_eq!(cursor.seek(&buffers, byte), Some(expected), "byte {byte}");
        }
        assert_eq!(cursor.seek(&buffers, 167), None);
    }

    #[test]
    fn skipped_bytes_shorten_the_buffer_chain_at_its_start() {
        let mut buffers = BufferChain::default();
        for (address, length) in [(0x1000, 10), (0x2000, 2), (0x3000, 100)] {
            buffers.push(address, length);
        }
        buffers.skip(12);
        assert_eq!((buffers.bytes(), buffers.all()), (100, (&[0x3000][..], &[100][..])));
        buffers.skip(1);
        assert_eq!((buffers.bytes(), buffers.all()), (99, (&[0x3001][..], &[99][..])));
    }

    #[test]
    fn skipped_bytes_are_the_first_of_any_three_buffers() {
        for case in 0..6_usize.pow(3) * 20 {
            let (lengths, skipped) = ([case % 6, case / 6 % 6, case / 36 % 6], case / 216);
            let mut buffers = BufferChain::default();
            for (at, length) in lengths.into_iter().enumerate() {
                buffers.push(100 * at as u64, length as u32);
            }
            let bytes = |buffers: &BufferChain| -> alloc::vec::Vec<u64> {
                let (addresses, lengths) = buffers.all();
                let buffers = addresses.iter().zip(lengths);
                buffers
                    .flat_map(|(first, length)| (0..u64::from(*length)).map(move |at| first + at))
                    .collect()
            };
            let expected: alloc::vec::Vec<_> = bytes(&buffers).into_iter().skip(skipped).collect();
            buffers.skip(skipped);
            assert_eq!(
                (bytes(&buffers), buffers.bytes()),
                (expected.clone(), expected.len()),
                "{lengths:?} {skipped}"
            );
        }
    }
}
