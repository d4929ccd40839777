//! Shorthands for common steps of the tests: guests with one queue pair, whole polls, and the frames of the first pair.

use crate::machine::{GuestDriverConfig, Received, SIZE, TestMachine};
use virtio::VirtioFeatures;
use virtio::net::NetHeader;

impl TestMachine {
    /// Starts a card whose guests have these ring formats and features. VF n has the address of [`address`].
    pub(crate) fn new(guests: &[(bool, VirtioFeatures)]) -> Self {
        let kinds = guests.iter().map(|(packed, features)| GuestDriverConfig::of(*packed, *features, 1));
        Self::with(&kinds.collect::<Vec<_>>())
    }

    /// Sends a packet of a guest with its header, in pieces of these lengths. An additional last piece holds the
    /// remaining bytes.
    pub(crate) fn send(&mut self, vf: u8, header: NetHeader, frame: &[u8], pieces: &[usize]) -> bool {
        let buffers = self.place(vf, header, frame, pieces);
        self.make_available(vf, 1, &buffers)
    }

    /// Posts receive buffers of a guest, each a chain of pieces with these lengths.
    pub(crate) fn post(&mut self, vf: u8, buffers: &[&[u32]]) {
        buffers.iter().for_each(|pieces| assert!(self.post_one(vf, 0, pieces)));
    }

    /// Polls the card until it has no more work.
    pub(crate) fn poll(&mut self, now_ns: u64) {
        while self.poll_once(now_ns, 64) {}
    }

    /// Collects the frames that a guest has received in its first queue pair.
    pub(crate) fn received(&mut self, vf: u8) -> Vec<Received> {
        self.received_by(vf, 0)
    }

    /// Collects the chains of a guest's transmit ring that the card has returned. Returns their number.
    pub(crate) fn finished(&mut self, vf: u8) -> usize {
        self.collect(vf, 1).len()
    }
}

impl GuestDriverConfig {
    pub(crate) fn of(packed: bool, features: VirtioFeatures, pairs: u8) -> Self {
        Self { packed, features, pairs, size: SIZE }
    }
}
