//! Trunk between the cards of a port. Both ends are on the port's thread, which empties the trunk after the visit to each VF's
//! queues. A visit to a queue sends at most 64 frames, or some 100 KB of standard length, so that all 16 queues of a VF may send to
//! the other card in one visit. A VF that sends longer frames, or broadcasts to many VFs, may fill the trunk. So all VFs use one
//! share of the trunk.

use crate::port::engine::batches::{self, BatchReceiver, BatchSender, TrunkShare};
use plane::{FrameTrunk, PortIndex, TrunkBatch};

/// Sending end of a trunk.
#[derive(Debug)]
pub(super) struct CardTrunk(BatchSender);

impl FrameTrunk for CardTrunk {
    fn batch(&mut self, _port: PortIndex, bytes: usize) -> Option<&mut TrunkBatch> {
        self.0.batch(TrunkShare::default(), bytes)
    }

    fn flush(&mut self) -> bool {
        self.0.flush();
        self.0.holds_frames()
    }
}

/// Receiving end of a trunk.
#[derive(Debug)]
pub(super) struct CardTrunkReceiver(BatchReceiver);

impl CardTrunkReceiver {
    /// Takes all batches out of the trunk.
    pub(super) fn empty(&mut self, mut deliver: impl FnMut(&mut TrunkBatch)) {
        while self.0.take(&mut deliver) {}
    }
}

/// Creates a trunk.
pub(super) fn connect() -> (Box<dyn FrameTrunk>, CardTrunkReceiver) {
    let (sender, receiver) = batches::connect();
    (Box::new(CardTrunk(sender)), CardTrunkReceiver(receiver))
}
