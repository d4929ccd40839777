//! Frames that wait, as they are saved. Left out: everything else of a port's state.

use super::{BYTES, PacketBuffer, Waiting};
use crate::damaged::Damaged;
use crate::queue::receive::Description;
use alloc::vec::Vec;
use i82576::Queue;
use i82576::ids::{FCS, MAX_FRAME};
use plane::frame::HEADER;
use serde::{Deserialize, Serialize};

/// A frame that waits, as it is saved.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "WaitingFrame")]
pub(crate) struct SavedFrame {
    queue: Queue,
    from_uplink: bool,
    urgent: bool,
    /// Bytes at the end that are the check sequence.
    trailer: u8,
    description: Description,
    bytes: Vec<u8>,
}

impl PacketBuffer {
    /// The frames, in the order in which they came.
    pub(crate) fn save(&self) -> Vec<SavedFrame> {
        let mut from = 0;
        let saved = self.frames[..self.count].iter().flatten().map(|frame| {
            let bytes = self.bytes[from..from + frame.length].to_vec();
            from += frame.size();
            let Waiting { queue, trailer, from_uplink, urgent, description, .. } = *frame;
            SavedFrame { queue, from_uplink, urgent, trailer: trailer as u8, description, bytes }
        });
        saved.collect()
    }

    /// A buffer with these frames.
    pub(crate) fn restore(frames: &[SavedFrame]) -> Result<Self, Damaged> {
        let mut buffer = Self::new();
        for SavedFrame { queue, from_uplink, urgent, trailer, description, bytes } in frames {
            let (queue, trailer, from_uplink, urgent) =
                (*queue, usize::from(*trailer), *from_uplink, *urgent);
            let frame = Waiting {
                queue,
                length: bytes.len(),
                trailer,
                from_uplink,
                urgent,
                description: *description,
            };
            if trailer > FCS || !(HEADER + trailer..=MAX_FRAME).contains(&frame.length) {
                return Err(Damaged("a frame that waits is shorter or longer than any frame"));
            }
            if buffer.used + frame.size() > BYTES {
                return Err(Damaged("more frames wait than there is room for"));
            }
            buffer.push(frame, bytes);
        }
        Ok(buffer)
    }
}
