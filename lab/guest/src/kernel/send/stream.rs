//! Sending end of a TCP stream. Messages are merged into packets of up to 64 KB, limited by the receiver's
//! window, and the card segments them. Slow start and congestion control are not modelled: both ends share
//! one card. Nor are retransmission timers: a loss is always followed by later segments, whose
//! acknowledgements repeat the last.

use super::SenderProgram;
use crate::device::NetworkDevice;
use crate::kernel::KernelModel;
use crate::packet::{self, ReceivedPacket, TCP_HEADERS, TCP_PAYLOAD};
use crate::platform::KernelPlatform;
use driver::vf::TxOffload;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;

/// Maximum number of segments in a packet before segmentation: 64 KB with headers hold no more.
const SEGMENTS: u32 = 44;
/// Payload bytes of the largest packet before segmentation.
pub(super) const LARGEST: usize = SEGMENTS as usize * TCP_PAYLOAD;
/// Window in segments that the sender assumes until the receiver's first acknowledgement.
const INITIAL_WINDOW: u16 = 3;
/// Divisor of the receiver's window: a third of the window must be free before the next packet is sent (Linux
/// tcp_tso_win_divisor). A packet is always sent if no segment is unacknowledged.
const DEFERRED: u32 = 3;
/// Number of repeated TCP acknowledgements after which the stream resends everything after the acknowledged byte.
const DUPLICATES: u32 = 3;

/// Returns the number of a stream's bytes that fit into a send buffer of `buffers` kernel buffers.
pub(super) fn bytes(buffers: u32) -> u32 {
    buffers * TCP_PAYLOAD as u32
}

/// State of the sending end of a TCP stream. Sequence numbers are modulo 2^32.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpSendStream {
    /// Sequence number of the next byte that the program writes.
    written: u32,
    /// Sequence number of the next byte that the stream sends.
    next: u32,
    /// Sequence number of the first byte that is not acknowledged.
    acknowledged: u32,
    /// Window of the receiver, in segments from the first byte not acknowledged.
    room: u16,
    duplicates: u32,
}

impl Default for TcpSendStream {
    fn default() -> Self {
        Self { written: 0, next: 0, acknowledged: 0, room: INITIAL_WINDOW, duplicates: 0 }
    }
}

impl TcpSendStream {
    /// Returns the number of bytes written to the stream that the receiver has not acknowledged.
    pub(super) fn unacknowledged(&self) -> u32 {
        self.written.wrapping_sub(self.acknowledged)
    }

    /// Returns the number of whole TCP segments that written data and receiver window allow to send now. Returns 0
    /// while too little of the window is open.
    fn segments(&self) -> u32 {
        let segment = TCP_PAYLOAD as u32;
        let in_flight = self.next.wrapping_sub(self.acknowledged).div_ceil(segment);
        let window = u32::from(self.room);
        let open = window.saturating_sub(in_flight);
        let whole = (self.written.wrapping_sub(self.next) / segment).min(open).min(SEGMENTS);
        let deferred = in_flight > 0 && whole < SEGMENTS && open < window.div_ceil(DEFERRED);
        if deferred { 0 } else { whole }
    }

    /// Processes a TCP acknowledgement of everything before `number` with a window of `room` segments. Returns `true`
    /// if everything after `number` is to be retransmitted.
    fn acknowledge(&mut self, number: u32, room: u16) -> bool {
        let repeated = number == self.acknowledged && room == self.room;
        self.room = room;
        if repeated {
            self.duplicates += 1;
            return self.duplicates == DUPLICATES;
        }
        let advance = number.wrapping_sub(self.acknowledged);
        if advance <= self.unacknowledged() {
            self.acknowledged = number;
            self.duplicates = 0;
            // After a retransmission began, the receiver may already have more than was sent again.
            if self.next.wrapping_sub(number) > u32::MAX / 2 {
                self.next = number;
            }
        }
        false
    }
}

impl<D> KernelModel<D> {
    /// Appends a message to the stream, and sends the packets that window and device allow.
    pub(super) fn write_stream<P: KernelPlatform>(&mut self, platform: &mut P, sender: &mut SenderProgram)
    where
        D: NetworkDevice<P>,
    {
        sender.stream.written = sender.stream.written.wrapping_add(sender.config.message_bytes);
        self.push(platform, sender);
    }

    /// Processes a TCP acknowledgement from the receiver.
    pub(in crate::kernel) fn acknowledged<P: KernelPlatform>(
        &mut self,
        platform: &mut P,
        number: u32,
        room: u16,
    ) where
        D: NetworkDevice<P>,
    {
        let Some(mut sender) = self.sender.take() else { return };
        if sender.stream.acknowledge(number, room) {
            sender.stream.next = number;
        }
        self.push(platform, &mut sender);
        self.sender = Some(sender);
        self.wake_sender(platform);
    }

    /// Sends more packets of the stream, because the device has room again.
    pub(in crate::kernel) fn resume_sending<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        if let Some(mut sender) = self.sender.take() {
            self.push(platform, &mut sender);
            self.sender = Some(sender);
        }
    }

    /// Sends as many packets of the stream as window, data and device allow. The remaining data stays in the send
    /// buffer.
    fn push<P: KernelPlatform>(&mut self, platform: &mut P, sender: &mut SenderProgram)
    where
        D: NetworkDevice<P>,
    {
        loop {
            let segments = sender.stream.segments();
            if segments == 0 {
                return;
            }
            let payload = segments as usize * TCP_PAYLOAD;
            let frame = &mut sender.frame[..TCP_HEADERS + payload];
            let packet =
                ReceivedPacket::Tcp { sequence: sender.stream.next, acknowledgement: 0, window: 0, payload };
            packet::fill(frame, self.device.mac(), sender.config.to, packet);
            let offload = TxOffload { tso: Some(TCP_PAYLOAD as u16), ..TxOffload::default() };
            platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::TxStack));
            platform.packet(payload as u64);
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
    use super::{DUPLICATES, TcpSendStream};

    const SEGMENT: u32 = 1_448;

    #[test]
    fn tcp_sender_waits_until_a_third_of_the_window_is_open() {
        let mut stream = TcpSendStream { written: 200 * SEGMENT, room: 64, ..TcpSendStream::default() };
        assert_eq!(stream.segments(), 44);
        stream.next = 44 * SEGMENT;
        assert_eq!(stream.segments(), 0, "less than a third of the window is open");
        stream.acknowledge(2 * SEGMENT, 64);
        assert_eq!(stream.segments(), 22, "a third of the window is open");
        stream.acknowledge(44 * SEGMENT, 10);
        assert_eq!(stream.segments(), 10, "nothing is in flight");
    }

    #[test]
    fn partial_tcp_segment_waits_for_more_data() {
        let stream = TcpSendStream { written: SEGMENT - 1, ..TcpSendStream::default() };
        assert_eq!((stream.segments(), stream.unacknowledged()), (0, SEGMENT - 1));
    }

    #[test]
    fn three_duplicate_acknowledgements_trigger_retransmission() {
        let mut stream =
            TcpSendStream { written: 64 * SEGMENT, next: 64 * SEGMENT, ..TcpSendStream::default() };
        stream.acknowledge(10 * SEGMENT, 64);
        let again: u32 = (0..DUPLICATES).map(|_| u32::from(stream.acknowledge(10 * SEGMENT, 64))).sum();
        assert_eq!((again, stream.unacknowledged()), (1, 54 * SEGMENT));
    }

    #[test]
    fn tcp_acknowledgement_of_unwritten_bytes_is_ignored() {
        let mut stream =
            TcpSendStream { written: 5 * SEGMENT, next: 5 * SEGMENT, ..TcpSendStream::default() };
        stream.acknowledge(6 * SEGMENT, 64);
        assert_eq!(stream.unacknowledged(), 5 * SEGMENT);
    }
}
