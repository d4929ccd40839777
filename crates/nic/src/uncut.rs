//! A packet of a transmit queue that may leave without being cut into segments. Left out: whether the plane lets it
//! (`plane::Plane::forward_uncut`), and what its headers are (crate `offload`).

use crate::offload::segment::flag_masks;
use crate::offload::transmit::request;
use crate::queue::packet::Packet;
use crate::work::Work;
use i82576::ids::MIN_FRAME;
use i82576::register as r;
use offload::uncut;
use plane::Lane;
use plane::frame::{Frame, HEADROOM};

impl<B> Work<'_, B> {
    /// Sends a packet that is at the start of the staging buffer, behind the headroom, as it is; answers how many segments
    /// it has, which is what it costs of the budget: somebody has to cut it. `None` if that is the card; then the packet is
    /// unchanged.
    pub(crate) fn send_uncut<L: Lane>(
        &mut self,
        packet: &Packet,
        staging: &mut [u8],
        lane: &mut L,
    ) -> Option<usize> {
        let file = &self.file;
        let masks = flag_masks(file.get(r::DTXTCPFLGL), file.get(r::DTXTCPFLGH));
        let bytes = &staging[HEADROOM..HEADROOM + packet.length];
        let request = request(packet.orders, &packet.context);
        let found = uncut::sent(bytes, &request, packet.context.mss, masks);
        let usual = !packet.orders.time_stamp();
        let uncut = found.filter(|uncut| usual && packet.fits(uncut.longest()))?;
        let mut frame = Frame::new(&mut staging[..HEADROOM + packet.length])?;
        frame.tag = lane.tag(packet.tag());
        let complete = |bytes: &mut [u8]| uncut::complete(&uncut, bytes);
        let sent = lane.send_uncut(&mut frame, &uncut, MIN_FRAME, complete);
        self.file.count(r::TSCTC, u32::from(sent.is_some()));
        sent.map(|_| uncut.frames(packet.length) as usize)
    }
}
