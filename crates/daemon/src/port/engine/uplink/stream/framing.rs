//! Frames in the byte stream of a stream uplink. Each is preceded by its length in four bytes, big-endian, as for
//! QEMU's `-netdev stream` and passt.
//!
//! The peer is not trusted. A length that it sends decides only how many bytes the inbox waits for, up to a bound.

/// Bytes of the length field before a frame in the stream.
const LENGTH: usize = 4;
/// Longest frame that a peer may send, in bytes (QEMU's `NET_BUFSIZE`).
pub(super) const LONGEST: usize = 4096 + 65536;
/// Shortest frame in bytes: the Ethernet header.
const SHORTEST: usize = 14;
/// Bytes of each of the stream's two buffers: received bytes from which no frame was taken yet, and bytes to send.
const ROOM: usize = 256 * 1024;

/// Next item in the bytes that a stream uplink has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamUplinkItem {
    /// Frame of this length in bytes, received from the stream.
    Frame(usize),
    /// Bytes of the stream that were skipped, because they are no valid frame for this port.
    Malformed,
    /// The next frame in the stream is incomplete.
    Wait,
    /// Invalid frame length: the stream cannot be parsed any more.
    OutOfStep,
}

/// Received bytes of the stream from which no frame was taken yet.
#[derive(Debug)]
pub(super) struct StreamReceiveBuffer {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Default for StreamReceiveBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; ROOM].into(), begin: 0, end: 0 }
    }
}

impl StreamReceiveBuffer {
    /// Returns the free part of the buffer for more received bytes, at least one if [`StreamReceiveBuffer::next`]
    /// returns [`StreamUplinkItem::Wait`].
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        &mut self.bytes[self.end..]
    }

    /// Adds `count` bytes that were received into [`Self::room`].
    pub(super) fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Returns true if the buffer holds an incomplete frame.
    pub(super) fn has_part(&self) -> bool {
        self.begin < self.end
    }

    /// Drops all received bytes, before another peer begins.
    pub(super) fn clear(&mut self) {
        (self.begin, self.end) = (0, 0);
    }

    /// Takes the next frame from the received bytes.
    pub(super) fn next(&mut self, into: &mut [u8]) -> StreamUplinkItem {
        let bytes = &self.bytes[self.begin..self.end];
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return StreamUplinkItem::Wait };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return StreamUplinkItem::OutOfStep;
        }
        let Some(frame) = rest.get(..length) else { return StreamUplinkItem::Wait };
        let fits = into.get_mut(..length).filter(|_| length >= SHORTEST);
        let next = fits.map_or(StreamUplinkItem::Malformed, |into| {
            into.copy_from_slice(frame);
            StreamUplinkItem::Frame(length)
        });
        self.begin += LENGTH + length;
        next
    }
}

/// Queued bytes to send to the stream's peer.
#[derive(Debug)]
pub(super) struct StreamSendBuffer {
    bytes: Vec<u8>,
    begin: usize,
}

impl Default for StreamSendBuffer {
    fn default() -> Self {
        Self { bytes: Vec::with_capacity(ROOM), begin: 0 }
    }
}

impl StreamSendBuffer {
    /// Adds a frame to the bytes to send. Returns `false` if there is no room for all of the frame.
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        let needed = LENGTH + frame.len();
        if self.bytes.capacity() - self.bytes.len() < needed && self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        if self.bytes.capacity() - self.bytes.len() < needed {
            return false;
        }
        self.bytes.extend_from_slice(&(frame.len() as u32).to_be_bytes());
        self.bytes.extend_from_slice(frame);
        true
    }

    /// Returns the queued bytes that are to be sent.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Removes the first `count` queued bytes, which were sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.begin += count;
        if self.begin >= self.bytes.len() {
            self.clear();
        }
    }

    /// Drops all bytes of the stream that were not sent.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }
}

/// Passes the bytes of a stream to a receive buffer in pieces. Returns the frames of at most `room` bytes, the number of
/// malformed ones, and true if the stream got out of step. The fuzz target of stream uplinks calls it.
#[must_use]
pub fn frames_of_stream(bytes: &[u8], pieces: &[usize], room: usize) -> (Vec<Vec<u8>>, u64, bool) {
    let (mut inbox, mut frames, mut malformed) = (StreamReceiveBuffer::default(), Vec::new(), 0);
    let mut pieces = pieces.iter().copied().cycle();
    let mut rest = bytes;
    let mut into = vec![0; room];
    loop {
        match inbox.next(&mut into) {
            StreamUplinkItem::Frame(length) => frames.push(into[..length].to_vec()),
            StreamUplinkItem::Malformed => malformed += 1,
            StreamUplinkItem::OutOfStep => return (frames, malformed, true),
            StreamUplinkItem::Wait if rest.is_empty() => return (frames, malformed, false),
            StreamUplinkItem::Wait => {
                let place = inbox.room();
                let count = pieces.next().unwrap_or(1).clamp(1, rest.len()).min(place.len());
                place[..count].copy_from_slice(&rest[..count]);
                inbox.received(count);
                rest = &rest[count..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{frames_of_stream as read, *};
    use proptest::prelude::*;

    #[test]
    fn stream_frame_length_is_four_bytes_big_endian() {
        let mut outbox = StreamSendBuffer::default();
        assert!(outbox.push(&[7; 300]));
        assert_eq!(outbox.pending()[..5], [0, 0, 1, 44, 7]);
        assert_eq!(outbox.pending().len(), 304);
    }

    #[test]
    fn stream_frames_outside_the_length_bounds_are_refused() {
        let frame = |length: usize| [&(length as u32).to_be_bytes()[..], &vec![1; length]].concat();
        let bytes = [frame(0), frame(13), frame(14), frame(2000), frame(LONGEST), frame(60)].concat();
        let (frames, malformed, broken) = read(&bytes, &[4096], 1600);
        let lengths: Vec<_> = frames.iter().map(Vec::len).collect();
        assert_eq!((lengths, malformed, broken), (vec![14, 60], 4, false));
        for length in [LONGEST as u32 + 1, u32::MAX] {
            let bytes = [&frame(60)[..], &length.to_be_bytes()].concat();
            assert_eq!(read(&bytes, &[7], 1600), (vec![vec![1; 60]], 0, true), "{length}");
        }
    }

    #[test]
    fn full_stream_send_buffer_accepts_no_part_of_a_frame() {
        let mut outbox = StreamSendBuffer::default();
        let fits = ROOM / 1504;
        assert_eq!((0..fits + 3).filter(|_| outbox.push(&[1; 1500])).count(), fits);
        outbox.sent(1000);
        assert!(!outbox.push(&[2; 1500]), "a part of a frame makes no room for another");
        outbox.sent(504);
        assert!(outbox.push(&[2; 1500]));
        assert_eq!(outbox.pending().len(), fits * 1504);
        outbox.sent(outbox.pending().len());
        assert!(outbox.pending().is_empty());
    }

    proptest! {
        #[test]
        fn frames_arrive_whole_from_stream_pieces_of_any_size(
            frames in proptest::collection::vec((14..3000_usize, any::<u8>()), 0..100),
            pieces in proptest::collection::vec(1..5000_usize, 1..20),
        ) {
            let frames: Vec<Vec<u8>> = frames.into_iter().map(|(length, byte)| vec![byte; length]).collect();
            let (mut outbox, mut bytes) = (StreamSendBuffer::default(), Vec::new());
            for frame in &frames {
                prop_assert!(outbox.push(frame));
                let half = outbox.pending().len() / 2 + 1;
                bytes.extend_from_slice(&outbox.pending()[..half]);
                outbox.sent(half);
            }
            bytes.extend_from_slice(outbox.pending());
            prop_assert_eq!(read(&bytes, &pieces, 9800), (frames, 0, false));
        }

        #[test]
        fn any_stream_bytes_cause_no_panic(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..5000),
            pieces in proptest::collection::vec(1..500_usize, 1..5),
        ) {
            let _ = read(&bytes, &pieces, 9800);
        }
    }
}
