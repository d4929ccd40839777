//! A datagram's way down: whole, or in fragments if it is longer than a frame. Each fragment goes down the stack by
//! itself. Left out: checksums, which senders of bulk data leave to the card or leave out.

use super::Sender;
use crate::device::Device;
use crate::kernel::Kernel;
use crate::packet::{self, IP_HEADER, IP_HEADERS, Packet, UDP_HEADER, UDP_HEADERS};
use crate::platform::Platform;
use driver::vf::TxOffload;
use hypervisor::account::Category;
use hypervisor::cost::Cost;

/// No network may ask for less (RFC 791).
const LEAST_MTU: u16 = 68;

impl<D> Kernel<D> {
    /// One message as a datagram.
    pub(super) fn send_datagram<P: Platform>(&mut self, platform: &mut P, sender: &mut Sender)
    where
        D: Device<P>,
    {
        let bytes = sender.what.message_bytes as usize;
        let room = usize::from(sender.what.mtu.max(LEAST_MTU)) - IP_HEADER;
        if bytes + UDP_HEADER <= room {
            return self.send_piece(platform, sender, UDP_HEADERS + bytes, Packet::Udp(bytes));
        }
        let (id, total) = (sender.next_id, bytes + UDP_HEADER);
        sender.next_id = id.wrapping_add(1);
        // Fragments begin at multiples of eight.
        let longest = room & !7;
        for offset in (0..total).step_by(longest) {
            let payload = (total - offset).min(longest);
            let more = offset + payload < total;
            let fragment = Packet::Fragment { id, offset: offset as u16, more, payload };
            self.send_piece(platform, sender, IP_HEADERS + payload, fragment);
        }
    }

    /// One frame; what the device has no room for is lost, as in a queue that is full.
    fn send_piece<P: Platform>(
        &mut self,
        platform: &mut P,
        sender: &mut Sender,
        length: usize,
        packet: Packet,
    ) where
        D: Device<P>,
    {
        platform.charge(Category::Kernel, platform.cost(Cost::TxStack));
        let frame = &mut sender.frame[..length];
        packet::fill(frame, self.device.mac(), sender.what.to, packet);
        match self.device.transmit(platform, frame, &TxOffload::default()) {
            Ok(()) => {
                self.counters.sent_frames += 1;
                self.device.flush(platform);
            }
            Err(_) => self.counters.send_drops += 1,
        }
    }
}
