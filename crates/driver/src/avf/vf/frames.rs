//! Frames out and in. A sender names a queue, or has it follow from the frame's flow, so that frames of a flow stay in
//! order; a receiver names a queue, or takes what is there of all of them in turn.
//!
//! Left out: the rings (`ring`), and what descriptors say (`rings`).

use super::rings::{self, Received};
use super::{TxOffload, Vf};
use crate::hal::DmaHal;
use crate::ring::receive::{LONGEST, RxCounters};
use crate::ring::transmit::{TxCounters, TxError, TxRing};
use ::avf::descriptor::rx::WriteBack;

/// IPv4 with a header of 20 bytes.
const IPV4: [u8; 3] = [0x08, 0x00, 0x45];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Transports that begin with two ports.
const PORTED: [u8; 2] = [6, 17];

/// FNV-1a.
pub(super) fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A number that is the same for all frames of a flow: of addresses and ports where they are where one expects them, else of
/// Ethernet's addresses.
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

impl Vf {
    /// Sends a frame by a queue; `false` if there is no room.
    pub fn transmit<H: DmaHal>(&mut self, hal: &mut H, queue: u8, frame: &[u8]) -> bool {
        self.transmit_with(hal, queue, frame, &TxOffload::default())
    }

    /// The same for a packet that the card completes or cuts. `false` too if its headers do not allow what is asked.
    pub fn transmit_with<H: DmaHal>(
        &mut self,
        hal: &mut H,
        queue: u8,
        packet: &[u8],
        offload: &TxOffload,
    ) -> bool {
        let ring = self.tx.get_mut(usize::from(queue));
        ring.is_some_and(|ring| rings::transmit(ring, hal, packet, offload).is_ok())
    }

    /// Sends a packet by the queue of its flow. The card hears of it at the latest with [`Vf::flush`].
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit_flow<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packet: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        // Most owners of one queue have many flows.
        let queue = if self.pairs() > 1 { flow(packet) % u32::from(self.pairs()) } else { 0 };
        let ring = self.tx.get_mut(queue as usize).ok_or(TxError::Stopped)?;
        rings::transmit(ring, hal, packet, offload)
    }

    /// Rings the doorbells for what is queued.
    pub fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.tx.iter_mut().for_each(|ring| ring.flush(hal));
    }

    /// Takes back what has left; answers the descriptors freed.
    pub fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        self.tx.iter_mut().map(|ring| ring.clean(hal)).sum()
    }

    /// Descriptors of a queue that the card has not given back, as of the last look.
    #[must_use]
    pub fn tx_pending(&self, queue: u8) -> usize {
        self.tx.get(usize::from(queue)).map_or(0, TxRing::pending)
    }

    /// Descriptors that can be used now for a packet of whatever flow.
    #[must_use]
    pub fn tx_free(&self) -> usize {
        let rings = self.tx.iter().take(self.pairs().into());
        rings.map(TxRing::free).min().unwrap_or(0)
    }

    /// The next frame of a queue, copied to the front of `into`. One that does not fit, or is malformed, is passed over and
    /// counted.
    #[inline]
    pub fn receive<H: DmaHal>(&mut self, hal: &mut H, queue: u8, into: &mut [u8]) -> Option<Received> {
        let (form, mut last) = (self.wishes.form, [0; LONGEST]);
        let ring = self.rx.get_mut(usize::from(queue))?;
        let (_, slots) = ring.place();
        for _ in 0..slots {
            if let Ok(found) = ring.receive(hal, into, &mut last) {
                let (length, said) = found.zip(WriteBack::parse(&last, form))?;
                let received = Received { length, said };
                ring.count_bad_checksum(received.has_bad_checksum());
                return Some(received);
            }
        }
        None
    }

    /// The next frame of any queue. Queues have their turn.
    #[inline]
    pub fn receive_any<H: DmaHal>(&mut self, hal: &mut H, into: &mut [u8]) -> Option<Received> {
        let queues = self.rx.len();
        for step in 0..queues {
            let queue = (self.turn + step) % queues;
            if let Some(received) = self.receive(hal, queue as u8, into) {
                self.turn = queue;
                return Some(received);
            }
        }
        self.turn = if queues > 0 { (self.turn + 1) % queues } else { 0 };
        None
    }

    /// What was counted of each queue pair, across resets.
    pub fn queue_counters(&self) -> impl Iterator<Item = (RxCounters, TxCounters)> {
        self.rx.iter().zip(&self.tx).map(|(rx, tx)| (rx.counters(), tx.counters()))
    }
}

#[cfg(test)]
mod tests {
    use super::flow;

    /// TCP over IPv4 between two hosts.
    fn frame(ports: [u8; 4], protocol: u8, fragment: u8) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        (frame[20], frame[23]) = (fragment, protocol);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&ports);
        frame
    }

    #[test]
    fn ports_tell_flows_apart_where_there_are_ports() {
        let [one, other] = [[0, 1, 0, 2], [0, 3, 0, 2]];
        assert_ne!(flow(&frame(one, 6, 0)), flow(&frame(other, 6, 0)));
        for (protocol, fragment) in [(1, 0), (6, 0x20)] {
            assert_eq!(flow(&frame(one, protocol, fragment)), flow(&frame(other, protocol, fragment)));
        }
    }

    #[test]
    fn a_flow_does_not_depend_on_what_is_sent() {
        let mut frame = frame([1; 4], 17, 0);
        let before = flow(&frame);
        frame[38..].fill(9);
        assert_eq!(flow(&frame), before);
        assert_eq!(flow(&[1, 2, 3]), flow(&[1, 2, 3]), "what is no frame has one too");
    }
}
