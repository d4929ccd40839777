//! Moves VFs between the whole card, on the port's own thread, and the shards of workers.

use super::divisible::{CardPlane, DivisibleCard, all_vfs};
use super::exchange::{ShardExchange, WorkerFailure};
use super::load::frames_of;
use super::shard::CardShard;
use super::trunk::TrunkReceiver;
use crate::port::engine::bus::GuestBus;
use host::poll::Poller;
use pcie::Function;
use plane::{PortIndex, UplinkWire};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Card of a port as its own thread has it, when it gathers or divides the card.
pub(in crate::port) struct DividedCard<'a, C> {
    pub(in crate::port) card: &'a mut C,
    pub(in crate::port) plane: &'a mut CardPlane,
    pub(in crate::port) bus: &'a mut GuestBus,
}

/// Worker other than the port's own thread, as that thread knows it.
#[derive(Debug)]
pub(super) struct OtherWorker<C> {
    pub(super) exchange: Arc<ShardExchange<C>>,
    /// Shard of the worker, while the port's own thread has it.
    pub(super) shard: Option<Box<CardShard<C>>>,
    /// Poller of the worker, to which the kick eventfds of its VFs belong.
    pub(super) poller: Arc<Poller>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// Takes the shards of all workers that have one. The workers end their rounds at the same time.
///
/// # Errors
/// A worker has failed, and the VFs of its shard are lost.
pub(super) fn take_shards<C>(workers: &mut [OtherWorker<C>]) -> Result<(), WorkerFailure> {
    workers.iter().filter(|worker| worker.shard.is_none()).for_each(|worker| worker.exchange.want());
    let mut outcome = Ok(());
    for worker in workers.iter_mut().filter(|worker| worker.shard.is_none()) {
        // A wanted shard has to be taken, also after another worker's failure: its worker waits until then.
        match worker.exchange.take() {
            Ok(shard) => worker.shard = shard,
            Err(failure) => outcome = Err(failure),
        }
    }
    outcome
}

/// Sends the frames of other workers to the uplink. Returns true if there may be more.
pub(super) fn take_to_uplink(receiver: &mut TrunkReceiver, uplink: &mut impl UplinkWire) -> bool {
    receiver.take(|batch| {
        for run in (0..).map_while(|at| batch.run(at)) {
            for bytes in run.frames().filter_map(|number| batch.frame_bytes(number)) {
                match &run.header.uncut {
                    Some(layout) => uplink.transmit_uncut(bytes, layout),
                    None => uplink.transmit(bytes),
                };
            }
        }
    })
}

/// Moves a VF from the card to a shard.
pub(super) fn part<C: DivisibleCard>(shard: &mut CardShard<C>, vf: u8, card: &mut DividedCard<'_, C>) {
    let Some(device) = card.card.detach(vf) else { return };
    shard.card.attach(device);
    shard.vfs |= PortIndex::of_field(vf.into()).only();
    if let Some(access) = card.bus.access_mut(Function::Vf(vf)) {
        shard.exchange_access(vf, access);
    }
}

/// Moves all VFs of a shard, with their counters and transmit accounts, to the card. Returns the number of frames that the VFs
/// have sent and received in the shard.
pub(super) fn join<C: DivisibleCard>(shard: &mut CardShard<C>, card: &mut DividedCard<'_, C>) -> u64 {
    for port in std::mem::take(&mut shard.vfs).iter() {
        let vf = port.get();
        if let Some(device) = shard.card.detach(vf) {
            card.card.attach(device);
        }
        if let Some(access) = card.bus.access_mut(Function::Vf(vf)) {
            shard.exchange_access(vf, access);
        }
        card.bus.interrupted |= port.only();
        card.plane.pacing.continue_port(port, &shard.plane.pacing);
        card.plane.shares.continue_port(port, &shard.plane.shares);
    }
    let mut frames = 0;
    for port in all_vfs().iter() {
        let moved = shard.plane.ledger.take(port);
        let counters = card.plane.ledger.of(port);
        *counters = *counters + moved;
        frames += frames_of(&moved);
        let guarded = std::mem::take(shard.plane.ledger.guarded(port));
        card.plane.ledger.guarded(port).iter_mut().zip(guarded).for_each(|(sum, count)| *sum += count);
    }
    frames
}
