//! Trunk between the cards of a port: a ring of frames, in this process's own memory. Both ends are on the port's thread,
//! which empties the ring after the visit to each VF's queues.

use crate::ring;
use plane::frame::{Frame, HEADROOM};
use plane::{FrameTrunk, TRUNK_HEADER, TrunkFrameHeader};
use rtrb::{Consumer, Producer, RingBuffer};

/// Bytes of a trunk. A visit to a queue sends at most 64 frames, or some 100 KB of standard length, so that all 16 queues of
/// a VF may send to the other card in one visit. A VF that sends longer frames, or broadcasts to many VFs, may fill it.
const CAPACITY: usize = 2 * 1024 * 1024;
/// Bytes of the longest packet that is not segmented, with its Ethernet header.
const LONGEST: usize = 65_536 + 18;

/// Sending end of a trunk.
#[derive(Debug)]
pub(super) struct CardTrunk(Producer<u8>);

impl FrameTrunk for CardTrunk {
    fn put(&mut self, header: &TrunkFrameHeader, frame: &[u8]) -> bool {
        ring::put(&mut self.0, [&header.to_bytes(), frame])
    }

    /// Does nothing: the port's thread empties the trunk in the same poll.
    fn flush(&mut self) {}
}

/// Receiving end of a trunk.
#[derive(Debug)]
pub(super) struct CardTrunkReceiver {
    ring: Consumer<u8>,
    /// Memory for one header and its frame.
    place: Box<[u8]>,
}

impl CardTrunkReceiver {
    /// Takes all frames out of the trunk.
    pub(super) fn empty(&mut self, mut deliver: impl FnMut(&TrunkFrameHeader, &mut Frame<'_>)) {
        let Self { ring, place } = self;
        while let Some(length) = ring::take(ring, place) {
            let Some(header) = place.first_chunk().map(TrunkFrameHeader::from_bytes) else { continue };
            if let Some(mut frame) = Frame::new(&mut place[TRUNK_HEADER - HEADROOM..length]) {
                deliver(&header, &mut frame);
            }
        }
    }
}

/// Creates a trunk.
pub(super) fn connect() -> (Box<dyn FrameTrunk>, CardTrunkReceiver) {
    let (sender, ring) = RingBuffer::new(CAPACITY);
    (Box::new(CardTrunk(sender)), CardTrunkReceiver { ring, place: vec![0; TRUNK_HEADER + LONGEST].into() })
}
