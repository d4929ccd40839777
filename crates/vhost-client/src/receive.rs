//! Receive ring of a driver, with a buffer for each descriptor. A frame is in one buffer.

use crate::VhostClientError;
use crate::frame::ReceivedVirtioFrame;
use crate::memory::{BUFFER, FrontendMemory};
use virtio::driver::{DriverBuffer, DriverRing, DriverRingError, ReturnedChain};

/// Maximum number of frames that a driver collects at once.
pub(super) const BURST: usize = 32;
/// Distance in frames at which a buffer is prefetched.
const AHEAD: usize = 4;

/// Receive ring and its buffers.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    pub(super) ring: DriverRing,
    /// Guest address of the buffers, one for each chain id.
    buffers: u64,
    /// Bytes of the virtio header in front of each frame.
    header: usize,
}

impl ReceiveRing {
    /// Returns the bytes of guest memory that a receive ring's buffers take.
    pub(super) fn bytes(size: u16) -> u64 {
        u64::from(size) * BUFFER
    }

    pub(super) fn new(
        ring: DriverRing,
        memory: &mut FrontendMemory,
        header: usize,
    ) -> Result<Self, VhostClientError> {
        let buffers = memory.allocate(Self::bytes(ring.size()))?;
        Ok(Self { ring, buffers, header })
    }

    fn buffer(&self, id: u16) -> u64 {
        self.buffers + u64::from(id) * BUFFER
    }

    /// Posts all free buffers, and publishes them.
    #[inline]
    pub(super) fn post(&mut self, mut memory: &FrontendMemory) -> Result<(), DriverRingError> {
        while let Some(id) = self.ring.next_id() {
            let address = self.buffer(id);
            let buffer = DriverBuffer { address, length: BUFFER as u32, writable: true };
            self.ring.add(&mut memory, &[buffer])?;
        }
        Ok(self.ring.publish(&mut memory)?)
    }

    /// Passes up to `most` received frames, at most a burst, to `take`. Returns their number.
    #[inline]
    pub(super) fn take(
        &mut self,
        mut memory: &FrontendMemory,
        most: usize,
        mut take: impl FnMut(ReceivedVirtioFrame<'_>),
    ) -> Result<usize, DriverRingError> {
        let mut returned = [ReturnedChain::default(); BURST];
        let count = self.ring.collect(&mut memory, &mut returned[..most.min(BURST)])?;
        let address = |chain: &ReturnedChain| self.buffer(chain.id);
        let prefetch = |chain: &ReturnedChain| memory.prefetch(address(chain), chain.written as usize, false);
        returned[..count].iter().take(AHEAD).for_each(prefetch);
        for (at, chain) in returned[..count].iter().enumerate() {
            if let Some(next) = returned[..count].get(at + AHEAD) {
                prefetch(next);
            }
            // The device may state any number of bytes.
            let written = (chain.written as usize).min(BUFFER as usize);
            let length = written.saturating_sub(self.header);
            take(ReceivedVirtioFrame { memory, address: address(chain), header: self.header, length });
        }
        Ok(count)
    }
}
