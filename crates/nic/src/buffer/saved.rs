//! Saved form of the frames in the receive packet buffer. The rest of a port's state is in `crate::saved`.

use super::{BYTES, PacketBuffer, WaitingFrame};
use crate::damaged::InvalidStateError;
use crate::queue::receive::RxDescriptorFields;
use alloc::vec::Vec;
use i82576::QueueIndex;
use i82576::ids::{FCS, MAX_FRAME};
use plane::frame::HEADER;
use serde::{Deserialize, Serialize};

/// Saved form of a frame in the receive packet buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "WaitingFrame")]
pub(crate) struct SavedFrame {
    queue: QueueIndex,
    from_uplink: bool,
    urgent: bool,
    /// Number of bytes of the frame check sequence at the frame's end.
    trailer: u8,
    description: RxDescriptorFields,
    bytes: Vec<u8>,
}

impl PacketBuffer {
    /// Saves the frames of the packet buffer, in the order of their arrival.
    pub(crate) fn save(&self) -> Vec<SavedFrame> {
        let mut from = 0;
        let saved = self.frames[..self.count].iter().flatten().map(|frame| {
            let bytes = self.bytes[from..from + frame.length].to_vec();
            from += frame.size();
            let WaitingFrame { queue, trailer, from_uplink, urgent, description, .. } = *frame;
            SavedFrame { queue, from_uplink, urgent, trailer: trailer as u8, description, bytes }
        });
        saved.collect()
    }

    /// Creates a packet buffer with saved frames.
    ///
    /// # Errors
    /// [`InvalidStateError`] if a frame has an impossible length or the frames do not fit.
    pub(crate) fn restore(frames: &[SavedFrame]) -> Result<Self, InvalidStateError> {
        let mut buffer = Self::new();
        for SavedFrame { queue, from_uplink, urgent, trailer, description, bytes } in frames {
            let (queue, trailer, from_uplink, urgent) =
                (*queue, usize::from(*trailer), *from_uplink, *urgent);
            let frame = WaitingFrame {
                queue,
                length: bytes.len(),
                trailer,
                from_uplink,
                urgent,
                description: *description,
            };
            if trailer > FCS || !(HEADER + trailer..=MAX_FRAME).contains(&frame.length) {
                return Err(InvalidStateError("the length of a frame in the packet buffer is out of range"));
            }
            if buffer.used + frame.size() > BYTES {
                return Err(InvalidStateError("the saved frames exceed the packet buffer"));
            }
            buffer.push(frame, bytes);
        }
        Ok(buffer)
    }
}
