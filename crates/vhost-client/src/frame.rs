//! Received frame in the buffer of a receive ring.

use crate::memory::FrontendMemory;
use virtio::net::NetHeader;

/// Received frame of a virtio function, in its ring's buffer.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedVirtioFrame<'a> {
    pub(crate) memory: &'a FrontendMemory,
    pub(crate) address: u64,
    pub(crate) header: usize,
    pub(crate) length: usize,
}

impl ReceivedVirtioFrame<'_> {
    /// Returns the header that the device has put before the frame, or `None` if the driver's memory cannot be read.
    #[must_use]
    pub fn header(&self) -> Option<NetHeader> {
        let mut raw = [0; NetHeader::SIZE];
        self.memory.load(self.address, &mut raw[..self.header]).ok()?;
        Some(NetHeader::parse(&raw))
    }

    /// Copies the frame to the front of `into`. Returns the frame's length, or `None` if the frame is longer than
    /// `into`.
    #[must_use]
    #[inline]
    pub fn copy_to(&self, into: &mut [u8]) -> Option<usize> {
        let into = into.get_mut(..self.length)?;
        self.memory.load(self.address + self.header as u64, into).ok().map(|()| self.length)
    }
}
