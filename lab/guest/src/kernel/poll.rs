//! Polls the receive ring (NAPI) and passes received frames through the protocols to the socket.

use super::KernelModel;
use super::spec::ProgramWorkload;
use crate::device::NetworkDevice;
use crate::packet::{self, ReceivedPacket, TCP_HEADERS, TCP_PAYLOAD};
use crate::platform::KernelPlatform;
use driver::vf::TxOffload;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use i82576::MacAddress;

/// Receiving end of a TCP stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TcpReceiveStream {
    /// Sequence number of the next byte expected in the TCP stream.
    expected: u32,
    /// TCP segments received since the last acknowledgement was sent.
    unacknowledged: u32,
    /// Receive window that the last TCP acknowledgement announced, in packets.
    pub(super) window: u32,
}

/// Bytes of a driver's receive buffer; a socket accounts for each buffer a frame occupies.
const BUFFER: usize = 2_048;

impl<D> KernelModel<D> {
    /// Polls the receive ring once, up to the budget of packets. If the ring is then empty, the receive interrupt is
    /// enabled; otherwise the next step polls again.
    pub(super) fn poll<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        self.counters.polls += 1;
        platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::Softirq));
        platform.charge(CycleCategory::Driver, platform.cost(CostConstant::NapiEntry));
        let mut buffer = core::mem::take(&mut self.buffer);
        let mut taken = 0;
        while taken < self.spec.budget {
            let Some(length) = self.device.receive(platform, &mut buffer) else { break };
            taken += 1;
            self.counters.frames += 1;
            self.take(platform, &buffer[..length]);
        }
        self.buffer = buffer;
        if self.stream.unacknowledged > 0 {
            self.acknowledge(platform);
        }
        if taken < self.spec.budget {
            self.poll = self.device.receive_done(platform);
        }
        if !self.socket.is_empty() && !self.runnable {
            self.runnable = true;
            platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::ContextSwitch));
            self.start_tick(platform);
        }
    }

    /// Passes a received frame to the program's socket or sender.
    fn take<P: KernelPlatform>(&mut self, platform: &mut P, frame: &[u8])
    where
        D: NetworkDevice<P>,
    {
        platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxSkb));
        platform.packet(frame.len() as u64);
        match (packet::parse(frame), self.spec.load) {
            (ReceivedPacket::Udp(payload), ProgramWorkload::Udp | ProgramWorkload::RequestResponse) => {
                self.record_peer(frame);
                self.note_order(frame, payload);
                let accounting =
                    if self.spec.accounts { platform.cost(CostConstant::RxUdpAccounting) } else { 0 };
                platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxUdp) + accounting);
                self.socket.push(payload as u64, frame.len().div_ceil(BUFFER) as u32);
            }
            // A fragment costs as much as a datagram: finding its datagram replaces finding a socket.
            (ReceivedPacket::Fragment { id, offset, more, payload }, ProgramWorkload::Udp) => {
                platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxUdp));
                if let Some((bytes, pieces)) = self.reassembly.add(id, offset, more, payload) {
                    self.socket.push(bytes as u64, pieces);
                }
            }
            (ReceivedPacket::Tcp { acknowledgement, window, .. }, _) if self.sender.is_some() => {
                platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxTcp));
                self.acknowledged(platform, acknowledgement, window);
            }
            (ReceivedPacket::Tcp { sequence, payload, .. }, ProgramWorkload::Tcp) => {
                platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxTcp));
                self.record_peer(frame);
                self.receive_segment(platform, sequence, payload);
            }
            _ => {}
        }
    }

    /// Counts a datagram as reordered if a datagram with a higher sequence number arrived before. Sequence numbers are
    /// modulo 2^32.
    fn note_order(&mut self, datagram: &[u8], payload: usize) {
        let Some(number) = packet::number(datagram, payload) else { return };
        let ahead = self.newest.map_or(0, |newest| number.wrapping_sub(newest));
        if ahead < 1 << 31 {
            self.newest = Some(number);
        } else {
            self.counters.reordered += 1;
        }
    }

    /// Records the sender of a frame, to which acknowledgements and responses are addressed.
    fn record_peer(&mut self, frame: &[u8]) {
        self.peer = frame.get(6..).and_then(MacAddress::from_slice).unwrap_or_default();
    }

    /// Stores a TCP segment if it is in order and the socket has room. Acknowledges every second segment, stored or
    /// not.
    fn receive_segment<P: KernelPlatform>(&mut self, platform: &mut P, sequence: u32, payload: usize)
    where
        D: NetworkDevice<P>,
    {
        // A front end may deliver an unsegmented packet, which occupies and counts as all its segments.
        let segments = payload.div_ceil(TCP_PAYLOAD).max(1) as u32;
        if sequence == self.stream.expected && self.socket.push(payload as u64, segments) {
            self.stream.expected = sequence.wrapping_add(payload as u32);
        }
        self.stream.unacknowledged += segments;
        if self.stream.unacknowledged >= 2 {
            self.acknowledge(platform);
        }
    }

    /// Sends a TCP acknowledgement of the received stream. If the transmit ring has no room, the acknowledgement is
    /// dropped; the next one supersedes it.
    pub(super) fn acknowledge<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        self.stream.unacknowledged = 0;
        platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::RxAck));
        self.stream.window = self.socket.room();
        let mut frame = [0; TCP_HEADERS];
        let window = self.stream.window.min(u16::MAX.into()) as u16;
        let ack =
            ReceivedPacket::Tcp { sequence: 0, acknowledgement: self.stream.expected, window, payload: 0 };
        packet::fill(&mut frame, self.device.mac(), self.peer, ack);
        if self.device.transmit(platform, &frame, &TxOffload::default()).is_ok() {
            self.counters.acknowledgements += 1;
            self.device.flush(platform);
        }
    }
}
