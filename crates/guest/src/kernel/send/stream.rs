//! The sending end of a stream: messages are merged into packets of up to 64 KB, which the card cuts, as far as the
//! receiver's window goes; acknowledgements make room. Left out: slow start and congestion, which two ends of one card
//! do not have, and timers: something always follows a loss here.

use super::Sender;
use crate::device::Device;
use crate::kernel::Kernel;
use crate::packet::{self, Packet, TCP_HEADERS, TCP_PAYLOAD};
use crate::platform::Platform;
use driver::vf::TxOffload;
use hypervisor::account::Category;
use hypervisor::cost::Cost;

/// Segments that a packet is cut into at the most: with headers, 64 KB hold no more.
const SEGMENTS: u32 = 44;
/// Payload of the largest packet.
pub(super) const LARGEST: usize = SEGMENTS as usize * TCP_PAYLOAD;
/// Segments that the receiver is trusted to take before it has said what it takes.
const INITIAL_ROOM: u16 = 3;
/// A packet waits until this part of the window is open (tcp_tso_win_divisor), or nothing is under way.
const DEFERRED: u32 = 3;
/// Acknowledgements that repeat the last before everything since is sent again.
const DUPLICATES: u32 = 3;

/// A socket's send buffer in bytes of a stream.
pub(super) fn bytes(buffers: u32) -> u32 {
    buffers * TCP_PAYLOAD as u32
}

/// Where the stream stands. Numbers are modulo 2^32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing {
    /// Number of the byte that is written next, sent next, and of the first that is not acknowledged.
    written: u32,
    next: u32,
    acknowledged: u32,
    /// Segments that the receiver has room for from there on.
    room: u16,
    duplicates: u32,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self { written: 0, next: 0, acknowledged: 0, room: INITIAL_ROOM, duplicates: 0 }
    }
}

impl Outgoing {
    /// Bytes that are kept because they are not acknowledged.
    pub(super) fn kept(&self) -> u32 {
        self.written.wrapping_sub(self.acknowledged)
    }

    /// Segments to send now: whole ones as far as window and data go, and not in dribs.
    fn segments(&self) -> u32 {
        let segment = TCP_PAYLOAD as u32;
        let under_way = self.next.wrapping_sub(self.acknowledged).div_ceil(segment);
        let window = u32::from(self.room);
        let open = window.saturating_sub(under_way);
        let whole = (self.written.wrapping_sub(self.next) / segment).min(open).min(SEGMENTS);
        let deferred = under_way > 0 && whole < SEGMENTS && open < window.div_ceil(DEFERRED);
        if deferred { 0 } else { whole }
    }

    /// The receiver has everything before `number`, and room for so many segments. `true` if it is to be sent what
    /// came after that again.
    fn acknowledge(&mut self, number: u32, room: u16) -> bool {
        let repeated = number == self.acknowledged && room == self.room;
        self.room = room;
        if repeated {
            self.duplicates += 1;
            return self.duplicates == DUPLICATES;
        }
        let advance = number.wrapping_sub(self.acknowledged);
        if advance <= self.kept() {
            self.acknowledged = number;
            self.duplicates = 0;
            // After going back, the receiver may already have more than was sent again.
            if self.next.wrapping_sub(number) > u32::MAX / 2 {
                self.next = number;
            }
        }
        false
    }
}

impl<D> Kernel<D> {
    /// A message joins the stream.
    pub(super) fn write_stream<P: Platform>(&mut self, platform: &mut P, sender: &mut Sender)
    where
        D: Device<P>,
    {
        sender.stream.written = sender.stream.written.wrapping_add(sender.what.message_bytes);
        self.push(platform, sender);
    }

    /// The peer acknowledges.
    pub(in crate::kernel) fn acknowledged<P: Platform>(&mut self, platform: &mut P, number: u32, room: u16)
    where
        D: Device<P>,
    {
        let Some(mut sender) = self.sender.take() else { return };
        if sender.stream.acknowledge(number, room) {
            sender.stream.next = number;
        }
        self.push(platform, &mut sender);
        self.sender = Some(sender);
        self.room_again(platform);
    }

    /// The device has room again for what waits.
    pub(in crate::kernel) fn push_again<P: Platform>(&mut self, platform: &mut P)
    where
        D: Device<P>,
    {
        if let Some(mut sender) = self.sender.take() {
            self.push(platform, &mut sender);
            self.sender = Some(sender);
        }
    }

    /// Sends what may be sent. What the device has no room for waits until it has.
    fn push<P: Platform>(&mut self, platform: &mut P, sender: &mut Sender)
    where
        D: Device<P>,
    {
        loop {
            let segments = sender.stream.segments();
            if segments == 0 {
                return;
            }
            let payload = segments as usize * TCP_PAYLOAD;
            let frame = &mut sender.frame[..TCP_HEADERS + payload];
            let packet = Packet::Tcp { sequence: sender.stream.next, acknowledgement: 0, window: 0, payload };
            packet::fill(frame, self.device.mac(), sender.what.to, packet);
            let offload = TxOffload { tso: Some(TCP_PAYLOAD as u16), ..TxOffload::default() };
            platform.charge(Category::Kernel, platform.cost(Cost::TxStack));
            if self.device.transmit(platform, frame, &offload).is_err() {
                return;
            }
            self.device.flush(platform);
            self.counters.sent_frames += u64::from(segments);
            sender.stream.next = sender.stream.next.wrapping_add(payload as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DUPLICATES, Outgoing};

    const SEGMENT: u32 = 1_448;

    #[test]
    fn a_stream_sends_what_the_window_allows_and_not_in_dribs() {
        let mut stream = Outgoing { written: 200 * SEGMENT, room: 64, ..Outgoing::default() };
        assert_eq!(stream.segments(), 44);
        stream.next = 44 * SEGMENT;
        assert_eq!(stream.segments(), 0, "less than a third of the window is open");
        stream.acknowledge(2 * SEGMENT, 64);
        assert_eq!(stream.segments(), 22, "a third is");
        stream.acknowledge(44 * SEGMENT, 10);
        assert_eq!(stream.segments(), 10, "nothing is under way");
    }

    #[test]
    fn a_part_of_a_segment_waits_for_the_rest() {
        let stream = Outgoing { written: SEGMENT - 1, ..Outgoing::default() };
        assert_eq!((stream.segments(), stream.kept()), (0, SEGMENT - 1));
    }

    #[test]
    fn repeated_acknowledgements_ask_for_everything_since() {
        let mut stream = Outgoing { written: 64 * SEGMENT, next: 64 * SEGMENT, ..Outgoing::default() };
        stream.acknowledge(10 * SEGMENT, 64);
        let again: u32 = (0..DUPLICATES).map(|_| u32::from(stream.acknowledge(10 * SEGMENT, 64))).sum();
        assert_eq!((again, stream.kept()), (1, 54 * SEGMENT));
    }

    #[test]
    fn what_was_never_written_cannot_be_acknowledged() {
        let mut stream = Outgoing { written: 5 * SEGMENT, next: 5 * SEGMENT, ..Outgoing::default() };
        stream.acknowledge(6 * SEGMENT, 64);
        assert_eq!(stream.kept(), 5 * SEGMENT);
    }
}
