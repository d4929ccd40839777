//! The uplink: the seam to whatever carries frames beyond the plane and to who watches them, how it is at the moment, and
//! what crosses it (`tally`). Left out: what a MAC does to frames before the plane sees them.

mod tally;
mod uncut;

use crate::frame::Sealed;
use crate::watch::Seen;
pub use tally::{Good, Pair, Tally};
pub use uncut::Uncut;

/// Frames in, frames out. A frame starts at its destination address and carries no frame check sequence.
pub trait Wire {
    /// Takes a frame; `false` if it was dropped.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Puts the next frame into `into` and answers its length; `None` if there is none. A frame longer than
    /// `into` is dropped, or cut to its length: more fits in there than the longest frame a plane takes.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;

    /// What is known of the transport's checksum of the frame that was received last.
    fn sealed(&self) -> Option<Sealed> {
        None
    }

    /// Whether it takes packets that are not cut into segments yet.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Takes such a packet, which starts at its destination address; `false` if all of it was dropped.
    fn transmit_uncut(&mut self, _packet: &[u8], _uncut: &Uncut) -> bool {
        false
    }

    /// Whether somebody watches what becomes of frames on the plane.
    fn is_watched(&self) -> bool {
        false
    }

    /// Tells whoever watches of a frame, which starts at its destination address.
    fn watch(&mut self, _seen: Seen, _frame: &[u8]) {}
}

/// No wire: what is sent is dropped, nothing comes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unplugged;

impl Wire for Unplugged {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

/// How the uplink is, from one poll to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uplink {
    /// It has a partner: without one, what goes there is lost.
    pub link: bool,
    /// Frames from it are taken.
    pub receives: bool,
    /// What goes there comes back.
    pub loops_back: bool,
    /// Frames whose length field says more than there is are passed on, though they are counted.
    pub passes_truncated: bool,
}

/// Whether the length field of a frame without tags says more than there is, if it has one.
#[must_use]
pub fn is_truncated(frame: &[u8]) -> bool {
    let Some((head, payload)) = frame.split_first_chunk::<14>() else { return false };
    let length = u16::from_be_bytes([head[12], head[13]]);
    length <= LONGEST_PAYLOAD && usize::from(length) > payload.len()
}

/// The largest number that is a length and not a type (IEEE 802.3, 3.2.6).
const LONGEST_PAYLOAD: u16 = 1500;
