//! Received frame of a VF (82576 or AVF), with the card's description of the frame.

use crate::avf::vf as adaptive;
use crate::hal::DmaHal;
use crate::vf::{self, ChecksumStatus, RxError, VfReceivedFrame};

/// Received frame of a VF (82576 or AVF), in its ring's buffers.
#[derive(Debug)]
pub enum AnyRxFrame<'a, 'b, H> {
    /// Received frame of an 82576's VF.
    I82576(&'a mut vf::VfRxFrame<'b, H>),
    /// Received frame of an Adaptive Virtual Function.
    Avf(&'a mut adaptive::AvfRxFrame<'b, H>),
}

impl<H: DmaHal> AnyRxFrame<'_, '_, H> {
    /// Returns the card's description of the received frame, without a hash.
    #[must_use]
    pub fn received(&self) -> VfReceivedFrame {
        match self {
            Self::I82576(frame) => frame.received(),
            Self::Avf(frame) => describe(&frame.received()),
        }
    }

    /// Copies the frame to the front of `into`. Returns the frame's length.
    ///
    /// # Errors
    /// [`RxError`]: the frame is lost, and counted.
    #[inline(always)]
    pub fn copy_to(&mut self, into: &mut [u8]) -> Result<usize, RxError> {
        match self {
            Self::I82576(frame) => frame.copy_to(into),
            Self::Avf(frame) => frame.copy_to(into),
        }
    }
}

/// Converts the description of a frame that an Adaptive Virtual Function received.
fn describe(received: &adaptive::AvfReceivedFrame) -> VfReceivedFrame {
    let checksum = |wrong: Option<bool>| match wrong {
        None => ChecksumStatus::Unknown,
        Some(false) => ChecksumStatus::Good,
        Some(true) => ChecksumStatus::Bad,
    };
    VfReceivedFrame {
        length: received.length,
        ip_checksum: checksum(received.said.checksums.map(|found| found.ip_wrong)),
        l4_checksum: checksum(received.said.checksums.map(|found| found.l4_wrong)),
        vlan: received.said.tag,
        rss: None,
    }
}
