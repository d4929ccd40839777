//! Sends and receives frames in bursts. A sender names a queue, or the frame's flow selects it, so that frames of a
//! flow stay in order; a receiver names a queue, or takes frames of all queues in turn.
//!
//! `ring` has the rings, and `rings` the descriptors.

use super::rings::{AvfReceivedFrame, AvfRxFrame};
use super::{AvfDriver, TxOffload};
use crate::hal::DmaHal;
use crate::ring::receive::RxCounters;
use crate::ring::transmit::burst::FamilyTxQueue;
use crate::ring::transmit::{TxCounters, TxError, TxRing};

/// EtherType of IPv4, followed by the first byte of an IPv4 packet with a header of 20 bytes.
const IPV4: [u8; 3] = [0x08, 0x00, 0x45];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// IP protocol numbers of TCP and UDP, whose headers begin with two ports.
const PORTED: [u8; 2] = [6, 17];

/// Returns the FNV-1a hash of bytes, for a frame's flow.
pub(super) fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Returns a hash that is equal for all frames of a flow: a hash of IP addresses and ports, or of Ethernet addresses in
/// other frames.
fn flow(frame: &[u8]) -> u32 {
    let is = |at: usize, expected: &[u8]| frame.get(at..at + expected.len()) == Some(expected);
    let ported = |at: usize| frame.get(at).is_some_and(|protocol| PORTED.contains(protocol));
    let ends = if is(12, &IPV4) {
        // Only the first fragment has ports.
        let whole = frame.get(20..22).is_some_and(|word| word[0] & 0x3f == 0 && word[1] == 0);
        frame.get(26..if whole && ported(23) { 38 } else { 34 })
    } else if is(12, &IPV6) {
        frame.get(22..if ported(20) { 58 } else { 54 })
    } else {
        frame.get(..12)
    };
    fold(ends.unwrap_or(frame))
}

impl AvfDriver {
    /// Adds a frame to a transmit queue. Returns `false` if the frame is refused.
    pub fn transmit<H: DmaHal>(&mut self, hal: &mut H, queue: u8, frame: &[u8]) -> bool {
        self.transmit_with(hal, queue, frame, &TxOffload::default())
    }

    /// Adds a packet to a transmit queue, with an offload. Returns `false` if the packet is refused.
    pub fn transmit_with<H: DmaHal>(
        &mut self,
        hal: &mut H,
        queue: u8,
        packet: &[u8],
        offload: &TxOffload,
    ) -> bool {
        let ring = self.tx.get_mut(usize::from(queue));
        ring.is_some_and(|ring| ring.transmit_burst(hal, &[packet], offload, usize::MAX).0 == 1)
    }

    /// Queues packets on the transmit queues of their flows, up to the first refused one. Returns their number.
    /// [`AvfDriver::flush`] rings their doorbells at the latest.
    #[inline]
    pub fn transmit_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packets: &[&[u8]],
        offload: &TxOffload,
    ) -> usize {
        let mut left = packets;
        while let Some(first) = left.first() {
            let queue = self.queue_of(first);
            let run = match self.pairs() {
                0 | 1 => left,
                _ => &left[..left.iter().take_while(|packet| self.queue_of(packet) == queue).count()],
            };
            let Some(ring) = self.tx.get_mut(queue) else { break };
            let (queued, refused) = ring.transmit_burst(hal, run, offload, usize::MAX);
            left = &left[queued..];
            if refused.is_err() {
                break;
            }
        }
        packets.len() - left.len()
    }

    /// Queues one packet on the transmit queue of its flow.
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit_flow<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packet: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        let queue = self.queue_of(packet);
        let ring = self.tx.get_mut(queue).ok_or(TxError::Stopped)?;
        ring.transmit_burst(hal, &[packet], offload, usize::MAX).1
    }

    /// Returns the transmit queue that a packet's flow selects.
    fn queue_of(&self, packet: &[u8]) -> usize {
        // Most owners of one queue have many flows.
        if self.pairs() > 1 { (flow(packet) % u32::from(self.pairs())) as usize } else { 0 }
    }

    /// Rings the doorbells of the transmit queues for queued packets.
    pub fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.tx.iter_mut().for_each(|ring| ring.flush(hal));
    }

    /// Reclaims the descriptors of sent packets. Returns the number of reclaimed descriptors.
    pub fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        self.tx.iter_mut().map(|ring| ring.clean(hal)).sum()
    }

    /// Returns the number of a transmit queue's descriptors that are not reclaimed.
    #[must_use]
    pub fn tx_pending(&self, queue: u8) -> usize {
        self.tx.get(usize::from(queue)).map_or(0, TxRing::pending)
    }

    /// Returns the number of descriptors that are free for a packet of any flow.
    #[must_use]
    pub fn tx_free(&self) -> usize {
        let rings = self.tx.iter().take(self.pairs().into());
        rings.map(TxRing::free).min().unwrap_or(0)
    }

    /// Copies the next frame of a queue to the front of `into`. Skips and counts lost frames.
    pub fn receive<H: DmaHal>(
        &mut self,
        hal: &mut H,
        queue: u8,
        into: &mut [u8],
    ) -> Option<AvfReceivedFrame> {
        let ring = self.rx.get_mut(usize::from(queue))?;
        let (_, slots) = ring.place();
        for _ in 0..slots {
            if let Ok(received) = ring.receive(hal, into) {
                return received;
            }
        }
        None
    }

    /// Passes received frames of all queues to `take`, at most `most`. Each frame is in its ring's buffers until `take`
    /// returns, and is lost unless `take` copies it. Free buffers are returned to the card in batches. Returns the
    /// number of frames.
    ///
    /// A queue is emptied before the next one's turn.
    #[inline]
    pub fn receive_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        most: usize,
        mut take: impl FnMut(&mut AvfRxFrame<'_, H>),
    ) -> usize {
        let (queues, first, mut taken) = (self.rx.len(), self.turn, 0);
        for step in 0..queues {
            let queue = if first + step < queues { first + step } else { first + step - queues };
            let found = self.rx[queue].receive_burst(hal, most - taken, &mut take);
            taken += found;
            if found > 0 {
                self.turn = queue;
            }
            if taken == most {
                return taken;
            }
        }
        self.turn = if self.turn + 1 < queues { self.turn + 1 } else { 0 };
        taken
    }

    /// Returns the counters of each queue pair, kept across resets.
    pub fn queue_counters(&self) -> impl Iterator<Item = (RxCounters, TxCounters)> {
        self.rx.iter().zip(&self.tx).map(|(rx, tx)| (rx.counters(), tx.counters()))
    }
}

#[cfg(test)]
mod tests {
    use super::flow;

    /// Builds an IPv4 frame between two fixed hosts with these transport ports, IP protocol and fragment bits.
    fn frame(ports: [u8; 4], protocol: u8, fragment: u8) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        (frame[20], frame[23]) = (fragment, protocol);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&ports);
        frame
    }

    #[test]
    fn flow_hash_uses_the_ports_of_tcp_and_udp() {
        let [one, other] = [[0, 1, 0, 2], [0, 3, 0, 2]];
        assert_ne!(flow(&frame(one, 6, 0)), flow(&frame(other, 6, 0)));
        for (protocol, fragment) in [(1, 0), (6, 0x20)] {
            assert_eq!(flow(&frame(one, protocol, fragment)), flow(&frame(other, protocol, fragment)));
        }
    }

    #[test]
    fn flow_hash_ignores_the_payload() {
        let mut frame = frame([1; 4], 17, 0);
        let before = flow(&frame);
        frame[38..].fill(9);
        assert_eq!(flow(&frame), before);
        assert_eq!(flow(&[1, 2, 3]), flow(&[1, 2, 3]), "any bytes have a hash");
    }
}
