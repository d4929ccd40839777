//! Sends a large TCP packet to the uplink unsegmented, if only the uplink gets it and takes it as it is. The switch is asked
//! about it as about its segments, and they are counted one by one, so that counters tell no difference.
//!
//! Left to the family to cut, as ever: what a port of the plane gets too (a mirror, another port), what its sender may not
//! send, and what a rate spreads over time.

use crate::forward::Plane;
use crate::frame::Frame;
use crate::ports::Port;
use crate::switch::Origin;
use crate::tag::{self, TAG};
use crate::uplink::{Uncut, Wire};
use crate::watch::{Loss, Seen, Way};

impl<const N: usize> Plane<N> {
    /// Sends a packet of a port without a tag in its bytes as it is, once `complete` has made its headers ready. No segment
    /// counts as shorter than `shortest`. `None` if it has to be cut; then it is unchanged. Else whether the uplink has it.
    pub fn forward_uncut<W: Wire>(
        &mut self,
        port: Port,
        packet: &mut Frame<'_>,
        uncut: &Uncut,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
        wire: &mut W,
    ) -> Option<bool> {
        let usual = self.uplink.link && !self.uplink.loops_back && !self.pacing.limits(port);
        if !usual || self.tables.outer.is_some() || self.tables.inner != tag::TYPE {
            return None;
        }
        let (ends, more) = (packet.ends(), if packet.tag.is_some() { TAG } else { 0 });
        let (origin, length) = (Origin::Port(port), uncut.longest() + more);
        let decision = self.flows.decide(&self.tables, ends, packet.tag, length, origin);
        if decision.dropped.is_some() || !decision.ports.is_empty() || !decision.uplink {
            return None;
        }
        let bytes = packet.untagged_mut();
        let length = bytes.len();
        complete(bytes);
        let sent = wire.transmit_uncut(packet.tagged(), &uncut.behind(more));
        for length in uncut.lengths(length).map(|length| length.max(shortest) + more) {
            if sent {
                self.tally.sent(ends.destination(), length);
            }
            self.count_sent(port, ends, length, false, sent);
        }
        if wire.is_watched() {
            let lost = (!sent).then_some(Loss::Uplink);
            wire.watch(Seen { at: origin, way: Way::In, lost: None }, packet.tagged());
            wire.watch(Seen { at: Origin::Uplink, way: Way::Out, lost }, packet.tagged());
        }
        Some(sent)
    }
}
