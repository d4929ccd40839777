//! Receive rings. The buffers that a driver has posted are fetched in bursts. A frame goes into one buffer, or into several if the
//! driver merges them, or is dropped as a whole. Filled buffers go back to the driver together, so that it sees all buffers of a
//! frame or none.

use crate::ring::DeviceRing;
use alloc::boxed::Box;
use offload::plain::PlainFrameKind;
use pcie::burst::{BURST, HEADERS};
use pcie::{Bus, Function};
use plane::PortIndex;
use rings::{PlainReceiver, PostedDescriptors, Ring, RxFormat};
use virtio::chain::ChainBuffer;
use virtio::net::flag;
use virtio::{Chain, ChainBurst, RingError, UsedChain};

/// Headers of the received frames of one burst, each in an array that may be longer than the header.
pub(crate) type ReceivedHeaders = [[u8; HEADERS]; BURST];

/// Maximum number of buffers that one frame is merged into. A frame of 64 KB occupies 43 of the smallest buffers that
/// Linux posts.
pub(crate) const MOST_MERGED: usize = 64;
/// Maximum number of filled buffers that are collected before they are returned to the driver.
const MOST_FILLED: usize = 2 * MOST_MERGED;
const _: () = assert!(MOST_FILLED <= virtio::packed::record::MOST_RETURNED);
/// Bytes of a page of guest memory, the smallest unit that a VMM maps.
const PAGE: u64 = 4096;
/// Bit of a descriptor's second word: the checksums of the frame are right.
const VALID: u64 = 1 << 32;

/// Format of the receive descriptors that crate `rings` writes for a burst: frame length, and a bit if the checksums
/// are right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtioRxFormat;

impl RxFormat for VirtioRxFormat {
    #[inline(always)]
    fn words(self, found: PlainFrameKind, _hash: Option<u32>, length: u32) -> [u64; 4] {
        let valid = found.is_network_right() && found.is_transport_right() == Some(true);
        [0, u64::from(length) | if valid { VALID } else { 0 }, 0, 0]
    }
}

/// Buffers that were fetched from a receive ring: the filled ones, and the ones still free.
#[derive(Debug)]
pub(crate) struct PostedBuffers {
    burst: ChainBurst,
    /// Index in the burst of the next buffer to fill.
    next: usize,
    /// Maximum number of buffers that were fetched at once since the ring's start.
    most: usize,
    /// Descriptors of the next buffers for crate `rings`, up to the first buffer that consists of several memory
    /// pieces.
    plain: PostedDescriptors,
    /// Number of bytes of the longest frame that fits each buffer offered to crate `rings`.
    longest: usize,
    /// Buffers that the frame being merged occupies.
    pub(crate) taken: [Chain; MOST_MERGED],
    /// Filled buffers, to be returned to the driver.
    used: [UsedChain; MOST_FILLED],
    filled: usize,
}

impl Default for PostedBuffers {
    fn default() -> Self {
        Self {
            burst: ChainBurst::default(),
            next: 0,
            most: 0,
            plain: PostedDescriptors::at(0),
            longest: 0,
            taken: [Chain::default(); MOST_MERGED],
            used: [Chain::default().used(0); MOST_FILLED],
            filled: 0,
        }
    }
}

impl PostedBuffers {
    /// Returns the buffers that are fetched and not filled.
    fn rest(&self) -> &[Chain] {
        self.burst.chains().get(self.next..).unwrap_or_default()
    }

    /// Returns the next free buffer, and the memory pieces that it consists of.
    pub(crate) fn first(&self) -> Option<(Chain, &[ChainBuffer])> {
        let chain = *self.rest().first()?;
        Some((chain, self.burst.writable(&chain)))
    }

    /// Forgets all buffers, filled ones too.
    pub(crate) fn clear(&mut self) {
        self.withdraw_offer();
        self.forget();
        (self.filled, self.most) = (0, 0);
    }

    /// Withdraws the buffers offered to crate `rings`, because a frame outside of a burst occupies the next ones.
    pub(crate) fn withdraw_offer(&mut self) {
        self.plain.offer_buffers(core::iter::empty());
    }

    /// Marks a fetched buffer as filled with `bytes` bytes, header included.
    pub(crate) fn fill(&mut self, bytes: usize) {
        if let (Some(chain), Some(place)) =
            (self.burst.chains().get(self.next), self.used.get_mut(self.filled))
        {
            *place = chain.used(u32::try_from(bytes).unwrap_or(u32::MAX));
            (self.next, self.filled) = (self.next + 1, self.filled + 1);
        }
    }

    /// Marks the last `count` filled buffers as not filled. Only the last `in_burst` of them belong to the current
    /// burst; returns false if `count` is larger.
    pub(crate) fn take_back(&mut self, count: usize, in_burst: usize) -> bool {
        self.filled = self.filled.saturating_sub(count);
        self.next = self.next.saturating_sub(in_burst);
        count == in_burst
    }

    /// Drops the fetched buffers that are not filled, and returns their chains.
    pub(crate) fn forget(&mut self) -> &[Chain] {
        let first = core::mem::replace(&mut self.next, self.burst.chains().len());
        self.burst.chains().get(first..).unwrap_or_default()
    }

    /// Collects the frames that crate `rings` has put into buffers. Writes their headers, of `size` bytes and with only
    /// the given `flags`, to `headers`, and the headers' guest addresses to `targets`. Returns the number of frames.
    pub(crate) fn take_filled(
        &mut self,
        (size, flags): (usize, u8),
        headers: &mut ReceivedHeaders,
        targets: &mut [u64; BURST],
    ) -> usize {
        let Self { plain, burst, next, used, filled, .. } = self;
        let chains = burst.chains().get(*next..).unwrap_or_default();
        let places = used.get_mut(*filled..).unwrap_or_default();
        let mut count = 0;
        let outputs = headers.iter_mut().zip(targets).zip(places);
        for ((words, chain), ((header, target), place)) in plain.take_filled().zip(chains).zip(outputs) {
            header[0] = if words & VALID == 0 { 0 } else { flag::DATA_VALID & flags };
            header[10] = 1;
            *target = burst.only_writable(chain).map_or(0, |buffer| buffer.address);
            *place = chain.used(words as u32 + size as u32);
            count += 1;
        }
        (*next, *filled) = (*next + count, *filled + count);
        count
    }

    /// Offers the next buffers to crate `rings`, up to the first that is not a single memory piece with room for a
    /// header. The header is written after the frames were counted, so it must be in the page of the frame's first
    /// byte: if one is in memory, so is the other.
    fn offer(&mut self, size: usize) {
        let size = size as u32;
        let Self { burst, next, plain, longest, .. } = self;
        *longest = usize::MAX;
        let chains = burst.chains().get(*next..).unwrap_or_default();
        let is_whole = |address: u64| (address ^ (address + u64::from(size))) < PAGE;
        let fits = |only: &ChainBuffer| only.length > size && is_whole(only.address);
        let buffers = chains.iter().map_while(|chain| burst.only_writable(chain).filter(fits));
        plain.offer_buffers(buffers.map(|buffer| {
            *longest = (*longest).min((buffer.length - size) as usize);
            buffer.address + u64::from(size)
        }));
    }
}

/// Receive ring, with the buffers that the device has fetched from it.
#[derive(Debug, Default)]
pub(crate) struct ReceiveRing {
    pub(crate) ring: DeviceRing,
    /// True once the driver has posted a buffer since the ring's start.
    pub(crate) is_served: bool,
    /// Fetched buffers; `None` before the first frame.
    pub(crate) posted: Option<Box<PostedBuffers>>,
}

impl ReceiveRing {
    /// Fetches buffers if no free one is left. Returns true if there is a free buffer.
    pub(crate) fn fetch<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<bool, RingError> {
        let Self { ring, is_served, posted } = self;
        if ring.queue.is_none() {
            return Ok(false);
        }
        let posted = posted.get_or_insert_with(Box::default);
        if !posted.rest().is_empty() {
            return Ok(true);
        }
        posted.next = 0;
        let count = ring.fetch(port, &mut posted.burst, BURST, bus)?;
        posted.most = posted.most.max(count);
        *is_served |= count > 0;
        Ok(count > 0)
    }

    /// Returns true if the ring has no more buffers than a flood of broadcasts has to leave free: a quarter of the most
    /// that the driver has posted, of those that a burst fetches. Some drivers post few buffers in a long ring.
    pub(crate) fn has_only_reserve<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> bool {
        // A malformed ring is stopped by the frame that goes there.
        if !self.ring.is_live() || self.fetch(port, bus) != Ok(true) {
            return false;
        }
        let short = self.posted.as_ref().is_some_and(|posted| posted.rest().len() <= posted.most / 4);
        short && self.ring.has_chain(port, bus) == Ok(false)
    }

    /// Returns the filled buffers to the driver if the list of them has no room for `more`.
    pub(crate) fn make_room<B: Bus>(
        &mut self,
        more: usize,
        port: PortIndex,
        bus: &mut B,
    ) -> Result<(), RingError> {
        let full = self.posted.as_ref().is_some_and(|posted| posted.filled + more > MOST_FILLED);
        if full { self.complete(port, bus) } else { Ok(()) }
    }

    fn complete<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<(), RingError> {
        let Self { ring, posted, .. } = self;
        let ((Some(queue), mut memory), Some(posted)) = (ring.memory(port, bus), posted) else {
            return Ok(());
        };
        // After a fault the buffers stay filled: a ring that continues would otherwise never return them.
        queue.complete(&mut memory, &posted.used[..posted.filled])?;
        posted.filled = 0;
        Ok(())
    }

    /// Returns a live receive ring in the form in which crate `rings` fills it with bursts of frames. Headers have
    /// `size` bytes.
    #[inline(always)]
    pub(crate) fn receiver<'a, B: Bus>(
        &'a mut self,
        port: PortIndex,
        size: usize,
        bus: &'a mut B,
    ) -> Option<PlainReceiver<'a, B, VirtioRxFormat>> {
        if !self.ring.is_live() {
            return None;
        }
        let ready = self.posted.as_ref().is_some_and(|posted| posted.plain.ready() > 0);
        // A malformed ring is stopped by the frame that then goes alone.
        if !ready && self.make_room(BURST, port, bus).is_ok() && self.fetch(port, bus) == Ok(true) {
            self.posted.as_mut()?.offer(size);
        }
        let posted = self.posted.as_mut()?;
        Some(PlainReceiver {
            longest: posted.longest,
            posted: &mut posted.plain,
            // The buffers are loaded above, so no descriptor is read from a ring.
            ring: Ring::new(0, 1, 16, 0)?,
            room: BURST,
            function: Function::Vf(port.get()),
            bus,
            format: VirtioRxFormat,
        })
    }

    /// Returns the filled buffers to the driver. Returns true if the driver requests an interrupt.
    pub(crate) fn give_back<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<bool, RingError> {
        self.complete(port, bus)?;
        let (Some(queue), mut memory) = self.ring.memory(port, bus) else { return Ok(false) };
        queue.needs_interrupt(&mut memory)
    }
}

/// Reason why a frame did not reach a receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameMissReason {
    /// The ring is not live.
    Disabled,
    /// Too few buffers are posted, or the next buffer is too short and the driver merges no buffers.
    NoBuffer,
    /// The ring or a buffer is not in the guest's memory; the ring is stopped.
    Fault,
}
