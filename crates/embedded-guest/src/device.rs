//! The VF driver as the TCP/IP stack's network device: tokens over fixed buffers, without allocation per frame. The
//! device receives frames in bursts, which the stack takes one by one; the guest's loop publishes the sent frames
//! together.
//!
//! The card computes checksums and segments packets; [`checksum`] handles those that it does not. The guest's loop
//! ([`crate::guest`]) decides when to poll, and handles interrupts.

use crate::checksum;
use driver::AnyVf;
use driver::vf::{TxOffload, VfReceivedFrame};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, PacketMeta, RxToken, TxToken};
use smoltcp::time::Instant;
use std::num::NonZeroUsize;
use vfio_client::VfDriverHal;

/// Longest frame on the wire in bytes, FCS excluded.
pub(crate) const MAX_FRAME: usize = 1514;
/// Longest frame before segmentation in bytes: the longest IPv4 packet with its Ethernet header.
const MAX_SEGMENTED: usize = 14 + 65_535;
/// Maximum number of received frames that one call examines to find one with correct checksums.
const CHECKED_FRAMES: usize = 64;
/// Maximum number of frames that the device receives from the VF in one burst.
const BURST: usize = 32;
/// Number of transmit descriptors of an ordinary frame: a context and its data.
const FRAME_SLOTS: usize = 2;
/// Number of transmit descriptors of the longest frame before segmentation: a context, and its data in buffers of 2 KB.
const SEGMENTED_SLOTS: usize = MAX_SEGMENTED.div_ceil(2048) + 1;

/// Numbers of frames that the guest's network device dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedFrameCounts {
    /// Number of received frames that were dropped for a wrong checksum.
    pub bad_checksum: u64,
    /// Number of frames that the VF driver refused to send.
    pub transmit: u64,
}

/// Network device of the TCP/IP stack: a VF's driver and bus, and buffers for each direction.
#[derive(Debug)]
pub(crate) struct VfNetworkDevice<H> {
    pub(crate) hal: H,
    pub(crate) vf: AnyVf,
    rx: RxBurst,
    tx: Box<[u8]>,
    /// True if the last poll of the VF found no frame.
    pub(crate) drained: bool,
    pub(crate) refused: DroppedFrameCounts,
}

/// Burst of received frames, which the stack takes one by one.
#[derive(Debug)]
struct RxBurst {
    buffers: Box<[[u8; MAX_FRAME]]>,
    /// Descriptions of the burst's frames, in the order of their buffers.
    received: Vec<VfReceivedFrame>,
    /// Number of the burst's frames that the stack took.
    taken: usize,
}

impl Default for RxBurst {
    fn default() -> Self {
        let buffers = vec![[0; MAX_FRAME]; BURST].into();
        Self { buffers, received: Vec::with_capacity(BURST), taken: 0 }
    }
}

impl RxBurst {
    fn is_empty(&self) -> bool {
        self.taken == self.received.len()
    }

    /// Receives a burst of frames, which replaces the previous burst. Returns true if a frame arrived. Frames too long
    /// for a buffer are lost.
    fn fill<H: VfDriverHal>(&mut self, hal: &mut H, vf: &mut AnyVf) -> bool {
        let Self { buffers, received, taken } = self;
        received.clear();
        *taken = 0;
        let found = vf.receive_burst(hal, BURST, |mut frame| {
            if frame.copy_to(&mut buffers[received.len()]).is_ok() {
                received.push(frame.received());
            }
        });
        found > 0
    }

    /// Takes the next frame of the burst. Returns the index of the frame's buffer, and the frame's description.
    fn next(&mut self) -> Option<(usize, VfReceivedFrame)> {
        let received = *self.received.get(self.taken)?;
        self.taken += 1;
        Some((self.taken - 1, received))
    }
}

impl<H: VfDriverHal> VfNetworkDevice<H> {
    pub(crate) fn new(hal: H, vf: AnyVf) -> Self {
        Self {
            hal,
            vf,
            rx: RxBurst::default(),
            tx: vec![0; MAX_SEGMENTED].into(),
            drained: false,
            refused: DroppedFrameCounts::default(),
        }
    }

    /// Returns true if the stack cannot send because the VF's transmit descriptors are used up.
    pub(crate) fn is_full(&mut self) -> bool {
        !self.vf.has_room(&mut self.hal, SEGMENTED_SLOTS)
    }

    /// Takes the next received frame with correct checksums. Returns the index of the frame's buffer, and the frame's
    /// length.
    fn next_frame(&mut self) -> Option<(usize, usize)> {
        for _ in 0..CHECKED_FRAMES {
            if self.rx.is_empty() && !self.rx.fill(&mut self.hal, &mut self.vf) {
                self.drained = true;
                return None;
            }
            let Some((frame, received)) = self.rx.next() else { continue };
            if checksum::is_intact(&self.rx.buffers[frame][..received.length], &received) {
                return Some((frame, received.length));
            }
            self.refused.bad_checksum += 1;
        }
        None
    }
}

impl<H: VfDriverHal> Device for VfNetworkDevice<H> {
    type RxToken<'a>
        = RxFrameToken<'a>
    where
        H: 'a;
    type TxToken<'a>
        = TxFrameToken<'a, H>
    where
        H: 'a;

    fn receive(&mut self, _now: Instant) -> Option<(RxFrameToken<'_>, TxFrameToken<'_, H>)> {
        // The stack may answer at once, which needs descriptors.
        if !self.vf.has_room(&mut self.hal, FRAME_SLOTS) {
            return None;
        }
        let (frame, length) = self.next_frame()?;
        let Self { hal, vf, rx, tx, refused, .. } = self;
        Some((
            RxFrameToken(&rx.buffers[frame][..length]),
            TxFrameToken { hal, vf, buffer: tx, refused, segment: None },
        ))
    }

    fn transmit(&mut self, _now: Instant) -> Option<TxFrameToken<'_, H>> {
        if self.is_full() {
            return None;
        }
        let Self { hal, vf, tx, refused, .. } = self;
        Some(TxFrameToken { hal, vf, buffer: tx, refused, segment: None })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME;
        // The card computes these, or the checksum module.
        capabilities.checksum.ipv4 = Checksum::None;
        capabilities.checksum.tcp = Checksum::None;
        capabilities.checksum.udp = Checksum::None;
        capabilities.segmentation.tcpv4 = NonZeroUsize::new(MAX_SEGMENTED);
        capabilities
    }
}

/// Token by which the stack takes a received frame.
#[derive(Debug)]
pub(crate) struct RxFrameToken<'a>(&'a [u8]);

impl RxToken for RxFrameToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// Token by which the stack sends a frame.
#[derive(Debug)]
pub(crate) struct TxFrameToken<'a, H> {
    hal: &'a mut H,
    vf: &'a mut AnyVf,
    buffer: &'a mut [u8],
    refused: &'a mut DroppedFrameCounts,
    /// Payload of each TCP segment in bytes, if the card has to segment the frame.
    segment: Option<u16>,
}

impl<H: VfDriverHal> TxToken for TxFrameToken<'_, H> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let frame = &mut self.buffer[..len];
        let result = f(frame);
        let offload = match self.segment {
            Some(mss) => TxOffload { tso: Some(mss), ..TxOffload::default() },
            None => checksum::choose_offload(frame),
        };
        if self.vf.transmit(self.hal, frame, &offload).is_err() {
            self.refused.transmit += 1;
        }
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment = meta.segmentation_offload_size.map(std::num::NonZeroU16::get);
    }
}
