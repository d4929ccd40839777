//! Numbers of received frames: each frame comes once, in order.

use super::frames::{FrameStamp, STREAM};
use super::tcp::LONGEST_PAYLOAD;

/// Maximum number of frames or packets of a ring that a host sends again after a death of its predecessor (decision 37).
const REPEATED: u64 = 64;

/// Numbers of the frames, or of the segments of a stream, that a guest has received from another.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReceivedNumbers {
    /// Number of times that the sender had attached when it sent the frames.
    pub(super) life: u32,
    last: u64,
    highest: u64,
    /// Number of times that the numbers went back.
    turns: u64,
}

impl ReceivedNumbers {
    /// Adds a frame. Returns false if it is repeated. A card of a virtio device whose host has died sends again what it had not
    /// returned: that may leave by the uplink. It never reaches a guest, since the card returns the receiver's buffers later than
    /// the sender's.
    pub(super) fn add(&mut self, stamp: FrameStamp, may_repeat: bool, deaths: u64) -> Result<bool, String> {
        if stamp.life > self.life {
            *self = Self { life: stamp.life, ..Self::default() };
        }
        let most = if stamp.number & STREAM == 0 { REPEATED } else { REPEATED * LONGEST_PAYLOAD as u64 };
        let goes_back = stamp.number <= self.last;
        self.turns += u64::from(goes_back);
        let allowed = may_repeat && self.turns <= deaths && stamp.number + most > self.highest;
        if stamp.life < self.life || (goes_back && !allowed) {
            return Err(format!("received {stamp:?} twice or late, after {self:?}"));
        }
        self.last = stamp.number;
        let is_new = stamp.number > self.highest;
        self.highest = self.highest.max(stamp.number);
        Ok(is_new)
    }
}
