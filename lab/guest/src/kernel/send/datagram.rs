//! Sends a program's message as a datagram, in fragments if it exceeds a frame. Each fragment passes the
//! stack separately. UDP checksums are not computed.

use super::SenderProgram;
use crate::device::NetworkDevice;
use crate::kernel::KernelModel;
use crate::packet::{self, IP_HEADER, IP_HEADERS, ReceivedPacket, UDP_HEADER, UDP_HEADERS};
use crate::platform::KernelPlatform;
use driver::vf::TxOffload;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;

/// Smallest MTU of an IPv4 network, in bytes (RFC 791).
const MIN_MTU: u16 = 68;

impl<D> KernelModel<D> {
    /// Sends one message of the program as a datagram.
    pub(super) fn send_datagram<P: KernelPlatform>(&mut self, platform: &mut P, sender: &mut SenderProgram)
    where
        D: NetworkDevice<P>,
    {
        let bytes = sender.config.message_bytes as usize;
        let room = usize::from(sender.config.mtu.max(MIN_MTU)) - IP_HEADER;
        if bytes + UDP_HEADER <= room {
            return self.send_piece(platform, sender, UDP_HEADERS + bytes, ReceivedPacket::Udp(bytes));
        }
        let (id, total) = (sender.next_id, bytes + UDP_HEADER);
        sender.next_id = id.wrapping_add(1);
        // Fragments begin at multiples of 8 bytes (RFC 791).
        let longest = room & !7;
        for offset in (0..total).step_by(longest) {
            let payload = (total - offset).min(longest);
            let more = offset + payload < total;
            let fragment = ReceivedPacket::Fragment { id, offset: offset as u16, more, payload };
            self.send_piece(platform, sender, IP_HEADERS + payload, fragment);
        }
    }

    /// Sends one frame of a datagram, or drops the frame if the network device's queue is full.
    fn send_piece<P: KernelPlatform>(
        &mut self,
        platform: &mut P,
        sender: &mut SenderProgram,
        length: usize,
        packet: ReceivedPacket,
    ) where
        D: NetworkDevice<P>,
    {
        platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::TxStack));
        platform.packet(length as u64);
        let frame = &mut sender.frame[..length];
        packet::fill(frame, self.device.mac(), sender.config.to, packet);
        match self.device.transmit(platform, frame, &TxOffload::default()) {
            Ok(()) => {
                self.counters.sent_frames += 1;
                self.device.flush(platform);
            }
            Err(_) => self.counters.send_drops += 1,
        }
    }
}
