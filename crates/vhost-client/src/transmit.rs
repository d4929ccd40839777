//! Transmit ring of a driver, with its buffers. A packet is in one buffer with its header in front. A packet that the
//! device segments is in a large buffer, in pieces.

use crate::VhostClientError;
use crate::memory::{BUFFER, FrontendMemory};
use virtio::driver::{DriverBuffer, DriverRing, DriverRingError, ReturnedChain};

/// Number of large buffers, for packets that the device segments: as many as packets of two pieces fill most of a ring of
/// 256 descriptors. Memory that no packet has reached takes no pages.
const LARGE_BUFFERS: u16 = 96;
/// Longest packet with its header: the longest IPv4 packet, an Ethernet header and a virtio header.
const LONGEST: u64 = 65_535 + 14 + 12;
/// Pieces of the longest packet, each in a descriptor.
const PIECES: usize = LONGEST.div_ceil(BUFFER) as usize;

/// Transmit ring, its buffers, and its large buffers if the device segments.
#[derive(Debug)]
pub(super) struct TransmitRing {
    pub(super) ring: DriverRing,
    /// Guest address of the buffers, one for each chain id.
    buffers: u64,
    /// Guest addresses of the large buffers that are free. The one that was freed last is used first, because it is in the
    /// cache.
    large: Vec<u64>,
    /// Large buffer of each chain id; 0 if the chain has none.
    large_of: Vec<u64>,
}

impl TransmitRing {
    /// Returns the bytes of guest memory that a transmit ring's buffers take.
    pub(super) fn bytes(size: u16, segments: bool) -> u64 {
        let large = if segments { u64::from(LARGE_BUFFERS) * large_bytes() } else { 0 };
        u64::from(size) * BUFFER + large
    }

    pub(super) fn new(
        ring: DriverRing,
        memory: &mut FrontendMemory,
        segments: bool,
    ) -> Result<Self, VhostClientError> {
        let buffers = memory.allocate(u64::from(ring.size()) * BUFFER)?;
        let count = if segments { LARGE_BUFFERS } else { 0 };
        let large = (0..count).map(|_| memory.allocate(large_bytes())).collect::<Result<_, _>>()?;
        let large_of = vec![0; ring.size().into()];
        Ok(Self { ring, buffers, large, large_of })
    }

    /// Adds a packet with its header to the ring. Returns false if no descriptors or buffers are free.
    #[inline]
    pub(super) fn add(
        &mut self,
        mut memory: &FrontendMemory,
        header: &[u8],
        packet: &[u8],
    ) -> Result<bool, DriverRingError> {
        let length = (header.len() + packet.len()) as u64;
        if self.ring.free() == 0 {
            self.reclaim(memory)?;
        }
        if length > BUFFER {
            return self.add_large(memory, header, packet);
        }
        let Some(id) = self.ring.next_id() else { return Ok(false) };
        let address = self.buffers + u64::from(id) * BUFFER;
        memory.store(address, header)?;
        memory.store(address + header.len() as u64, packet)?;
        let buffer = DriverBuffer { address, length: length as u32, writable: false };
        Ok(self.ring.add(&mut memory, &[buffer])?.is_some())
    }

    #[inline(never)]
    fn add_large(
        &mut self,
        mut memory: &FrontendMemory,
        header: &[u8],
        packet: &[u8],
    ) -> Result<bool, DriverRingError> {
        let length = (header.len() + packet.len()) as u64;
        let pieces = length.div_ceil(BUFFER) as usize;
        if usize::from(self.ring.free()) < pieces || self.large.is_empty() {
            self.reclaim(memory)?;
        }
        let fits = length <= LONGEST && usize::from(self.ring.free()) >= pieces;
        let Some(address) = self.large.last().copied().filter(|_| fits) else { return Ok(false) };
        memory.store(address, header)?;
        memory.store(address + header.len() as u64, packet)?;
        let mut list = [DriverBuffer { address, length: 0, writable: false }; PIECES];
        for (at, piece) in (0..).step_by(BUFFER as usize).zip(&mut list[..pieces]) {
            (piece.address, piece.length) = (address + at, (length - at).min(BUFFER) as u32);
        }
        let Some(id) = self.ring.add(&mut memory, &list[..pieces])? else { return Ok(false) };
        self.large.pop();
        self.large_of[usize::from(id)] = address;
        Ok(true)
    }

    /// Collects the packets that the device has sent, and frees their buffers.
    #[inline]
    pub(super) fn reclaim(&mut self, mut memory: &FrontendMemory) -> Result<(), DriverRingError> {
        loop {
            let mut returned = [ReturnedChain::default(); 32];
            let count = self.ring.collect(&mut memory, &mut returned)?;
            for chain in &returned[..count] {
                let large = std::mem::take(&mut self.large_of[usize::from(chain.id)]);
                if large != 0 {
                    self.large.push(large);
                }
            }
            if count == 0 {
                return Ok(());
            }
        }
    }
}

fn large_bytes() -> u64 {
    LONGEST.next_multiple_of(BUFFER)
}
