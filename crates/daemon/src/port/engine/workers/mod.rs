//! Workers of a port: threads that share the port's VFs. Each worker serves the rings of some VFs, on a plane of its
//! own. Frames for a VF of another worker cross in a trunk.
//!
//! | module | content |
//! |---|---|
//! | `dispatcher` | decides which worker serves a VF |
//! | `divisible` | the card of a family that can be divided |
//! | `division` | moves VFs between the whole card and its parts |
//! | `exchange` | exchange of a worker's shard with the port's own thread |
//! | `load` | work of a worker |
//! | `shard` | the part of the card that a worker runs |
//! | `sync` | locks and atomics of the exchange |
//! | `thread` | a worker's thread |
//! | `waiting` | waiting of a worker |
//! | `trunk` | rings of frames between workers, and to the uplink |
//!
//! Worker 0 is the port's own thread. It alone serves clients, carries out commands and changes policy. For that it first
//! gathers the whole card ([`FrameWorkers::gather`]): it takes each shard after the worker's round, and empties the trunks.
//! Then it divides the card again ([`FrameWorkers::divide`]). So a VF moves only while no frame is in a trunk: no frame is
//! lost, and none overtakes another. A worker waits for its shard; the frame path takes no lock.

mod dispatcher;
mod divisible;
mod division;
mod exchange;
mod load;
mod shard;
mod sync;
#[cfg(test)]
mod tests;
mod thread;
mod trunk;
mod waiting;

use super::uplink::PortUplink;
use crate::config::PortConfig;
use crate::control::status::WorkerStatus;
use dispatcher::{BalancedDispatcher, LoadWindow, VfHomes, WINDOW};
use divisible::all_vfs;
pub(in crate::port) use divisible::{CardPlane, DivisibleCard, ShardRoundOutcome};
pub(in crate::port) use division::DividedCard;
use division::{OtherWorker, join, part, take_shards, take_to_uplink};
use exchange::ShardExchange;
pub(in crate::port) use exchange::WorkerFailure;
use host::confine::PreparedSandbox;
use host::cpus::CpuList;
use host::poll::{Poller, ThreadWaker};
use i82576::Time;
use load::{WorkerLoad, frames_of, load_of};
use pcie::MAX_VFS;
use plane::{PortIndex, UplinkWire};
pub(in crate::port) use shard::BUDGET;
use shard::CardShard;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use thread::Worker;
use trunk::{SharedTrunkState, TrunkReceiver, VfVisits, VisitedVf};

/// Workers of a port, with the trunks of its own thread.
#[derive(Debug)]
pub(in crate::port) struct FrameWorkers<C> {
    others: Vec<OtherWorker<C>>,
    shared: Arc<SharedTrunkState>,
    receiver: TrunkReceiver,
    to_uplink: TrunkReceiver,
    /// VF whose rings the port's own thread visits.
    visited: VisitedVf,
    dispatcher: BalancedDispatcher,
    /// Workers of the VFs, as the dispatcher has decided.
    homes: VfHomes,
    /// True while workers have shards.
    divided: bool,
    /// Version of the switch's tables.
    tables: u64,
    /// Begin of the present window of load.
    window: Time,
    /// Work of each worker. The port's own thread is the first.
    work: Vec<WorkerLoad>,
    /// Frames of each VF at the begin of this window.
    frames: [u64; MAX_VFS],
    /// Frames in the counters of the card's plane whose worker is known.
    counted: u64,
}

impl<C: DivisibleCard> FrameWorkers<C> {
    /// Starts the threads of a port's workers but the first, which is the port's own thread.
    ///
    /// # Errors
    /// The process is out of file descriptors or threads.
    pub(in crate::port) fn start(
        config: &PortConfig,
        threads: &PreparedSandbox,
        card: &mut C,
    ) -> io::Result<Self> {
        let (count, port) = (config.workers, &config.name);
        let (mut trunks, to_uplink) = trunk::connect(count)?;
        let own = trunks.remove(0);
        let shared = own.shared().clone();
        let mut others = Vec::new();
        for (number, trunks) in (1..).zip(trunks) {
            let exchange = Arc::new(ShardExchange::new());
            let (worker, poller) = Worker::new(number, config.wait, exchange.clone(), shared.clone())?;
            let thread = threads.spawn(&format!("{port} {number}"), move || worker.run());
            let thread = Some(thread.map_err(io::Error::other)?);
            let shard = CardShard::new(trunks).map(Box::new);
            others.push(OtherWorker { exchange, shard, poller: Arc::new(poller), thread });
        }
        card.set_trunk(Box::new(own.sender));
        Ok(Self {
            others,
            shared,
            receiver: own.receiver,
            to_uplink,
            visited: own.visited,
            dispatcher: BalancedDispatcher::new(config.dispatcher, count),
            homes: [0; MAX_VFS],
            divided: false,
            tables: 1,
            window: Time::ZERO,
            work: vec![WorkerLoad::default(); count],
            frames: [0; MAX_VFS],
            counted: 0,
        })
    }

    /// Returns true while other workers have parts of the card.
    pub(in crate::port) fn are_divided(&self) -> bool {
        self.divided
    }

    /// Begins a round of the card that the port's own thread has: of the VFs' shares of time, and of the visits to their rings. Returns
    /// a function to call after the visit to each VF. The visits end when the function is dropped.
    pub(super) fn begin_visits<'a, P, B>(
        workers: Option<&'a Self>,
        plane: &mut CardPlane,
    ) -> impl FnMut(&mut P, &mut B) + use<'a, C, P, B> {
        plane.shares.begin_round();
        let visits = workers.map(|workers| workers.visited.begin());
        move |_, _| visits.iter().for_each(VfVisits::advance)
    }

    /// Records that the switch's tables have changed.
    pub(super) fn change_tables(&mut self) {
        self.tables += 1;
    }

    /// Delivers the frames of other workers to VFs and to the uplink. Returns true if there may be more.
    pub(super) fn receive(&mut self, card: &mut DividedCard<'_, C>, uplink: &mut impl UplinkWire) -> bool {
        let DividedCard { card, plane, bus } = card;
        let delivered = self.receiver.take(|batch| card.leave_trunk(plane, batch, *bus));
        take_to_uplink(&mut self.to_uplink, uplink) || delivered
    }

    /// Takes all shards from the workers, and puts their VFs and the frames in all trunks back into the card.
    ///
    /// # Errors
    /// A worker has failed, and the VFs of its shard are lost.
    pub(super) fn gather(
        &mut self,
        card: &mut DividedCard<'_, C>,
        uplink: &mut PortUplink,
    ) -> Result<(), WorkerFailure> {
        if !std::mem::take(&mut self.divided) {
            return Ok(());
        }
        take_shards(&mut self.others)?;
        self.count_own_frames(card.plane);
        for (worker, work) in self.others.iter_mut().zip(&mut self.work[1..]) {
            let Some(shard) = &mut worker.shard else { continue };
            work.busy += std::mem::take(&mut shard.busy);
            let frames = join(shard, card);
            work.frames += frames;
            self.counted += frames;
        }
        // Guests may have posted buffers for the frames in the trunks.
        card.card.read_doorbells();
        // All devices are here now, so that the frames of each trunk reach them in their order.
        loop {
            let mut stayed = card.card.flush_trunk();
            for shard in self.others.iter_mut().filter_map(|worker| worker.shard.as_mut()) {
                stayed |= shard.card.flush_trunk() | shard.uplink.flush();
            }
            while self.receive(card, uplink) {}
            let DividedCard { card, plane, bus } = card;
            for shard in self.others.iter_mut().filter_map(|worker| worker.shard.as_mut()) {
                while shard.receiver.take(|batch| card.leave_trunk(plane, batch, *bus)) {}
            }
            // Each ring is empty now, so the next flush hands over what has stayed.
            if !stayed {
                break;
            }
        }
        let DividedCard { card, plane, bus } = card;
        card.give_back(plane, *bus);
        Ok(())
    }

    /// Decides which worker serves each VF, at the end of a window of load. `alone` is true while all frames are needed on
    /// the port's own thread.
    pub(super) fn decide(&mut self, card: &DividedCard<'_, C>, alone: bool, now: Time) {
        let length = now.since(self.window);
        let movable = std::array::from_fn(|vf| card.card.may_detach(vf as u8));
        if length < WINDOW && !(alone && self.dispatcher.is_spread()) {
            // A VF whose rings have stopped learns its next guest's address on the port's own thread.
            let homes = self.dispatcher.fold_all_but(&movable);
            return self.set_homes(homes);
        }
        self.window = now;
        self.work.iter_mut().for_each(|work| work.end_window(length));
        let busy = self.work.iter().map(|work| work.share).collect();
        let mut window = LoadWindow { busy, frames: [0; MAX_VFS], movable };
        for vf in 0..MAX_VFS {
            let frames = load_of(&card.plane.ledger.total(PortIndex::of_field(vf as u32)));
            window.frames[vf] = frames.saturating_sub(self.frames[vf]);
            self.frames[vf] = frames;
        }
        let homes = self.dispatcher.decide(&window, alone);
        self.set_homes(homes);
    }

    fn set_homes(&mut self, homes: VfHomes) {
        self.homes = homes;
        for (shared, home) in self.shared.homes.iter().zip(homes) {
            shared.store(home, Ordering::Relaxed);
        }
    }

    /// Gives each worker its VFs, as the dispatcher has decided.
    ///
    /// # Errors
    /// A worker has failed, and the VFs of its shard are lost.
    pub(super) fn divide(
        &mut self,
        card: &mut DividedCard<'_, C>,
        takes_uncut: bool,
    ) -> Result<(), WorkerFailure> {
        for (number, worker) in (1_u8..).zip(&mut self.others) {
            let Some(mut shard) = worker.shard.take_if(|_| self.homes.contains(&number)) else { continue };
            shard.uplink.takes_uncut = takes_uncut;
            if std::mem::replace(&mut shard.tables, self.tables) != self.tables {
                shard.plane.follow_tables(card.plane);
            }
            shard.plane.pacing = card.plane.pacing.clone();
            shard.plane.shares = card.plane.shares.clone();
            shard.plane.uplink = card.plane.uplink;
            shard.card.follow(card.card);
            for vf in (0..MAX_VFS as u8).filter(|vf| self.homes[usize::from(*vf)] == number) {
                part(&mut shard, vf, card);
            }
            worker.exchange.put(shard)?;
            self.shared.bells[usize::from(number)].waker().wake();
            self.divided = true;
        }
        Ok(())
    }

    /// Returns the VFs whose kicks wake another worker, although the port's own thread has the whole card.
    pub(super) fn kicked_elsewhere(&self) -> impl Iterator<Item = u8> {
        let homes = if self.divided { &[][..] } else { &self.homes[..] };
        homes.iter().zip(0..).filter(|(home, _)| **home != 0).map(|(_, vf)| vf)
    }

    /// Counts the frames of the port's own thread since the last call.
    fn count_own_frames(&mut self, plane: &CardPlane) {
        let of = |port: PortIndex| frames_of(&plane.ledger.total(port));
        let frames: u64 = all_vfs().iter().map(of).sum();
        self.work[0].frames += frames.saturating_sub(std::mem::replace(&mut self.counted, frames));
    }

    /// Returns the status of each worker: its work, and its part of the port's `vfs` VFs. `plane` is that of the whole card.
    pub(super) fn status(&mut self, vfs: usize, plane: &CardPlane) -> Vec<WorkerStatus> {
        self.count_own_frames(plane);
        let of = |(worker, work): (usize, &WorkerLoad)| {
            let own = |vf: &u8| usize::from(self.homes[usize::from(*vf)]) == worker;
            WorkerStatus {
                busy_permille: work.share,
                busy_ns: work.busy.as_nanos() as u64,
                frames: work.frames,
                vfs: (0..vfs as u8).filter(own).collect(),
            }
        };
        self.work.iter().enumerate().map(of).collect()
    }
}

/// Workers of a port, whatever the family of its card is.
pub(in crate::port) trait PortWorkers {
    /// Changes the processors that the workers run on. An empty set means any.
    fn set_cpus(&mut self, cpus: &CpuList);

    /// Returns the waker by which other workers wake the port's own thread.
    fn waker(&self) -> &ThreadWaker;

    /// Returns the poller of the worker that serves a VF, or `None` for the port's own.
    fn poller(&self, vf: u8) -> Option<&Arc<Poller>>;

    /// Records for how long the port's own thread was busy.
    fn note_busy(&mut self, busy: Duration);

    /// Returns the time at which the present window of load ends, while the card is divided.
    fn deadline(&self) -> Option<Time>;

    /// Returns true if other workers have frames for the port's own thread.
    fn have_frames(&self) -> bool;

    /// Prepares the port's own thread for sleep. Returns false if other workers have frames for it.
    fn may_sleep(&self) -> bool;
}

impl<C: DivisibleCard> PortWorkers for FrameWorkers<C> {
    fn set_cpus(&mut self, cpus: &CpuList) {
        for worker in &self.others {
            // A failed worker is found when the card is gathered.
            let _ = worker.exchange.set_cpus(cpus.clone());
        }
    }

    fn waker(&self) -> &ThreadWaker {
        self.shared.bells[0].waker()
    }

    fn poller(&self, vf: u8) -> Option<&Arc<Poller>> {
        let home = usize::from(*self.homes.get(usize::from(vf))?);
        Some(&self.others.get(home.checked_sub(1)?)?.poller)
    }

    fn note_busy(&mut self, busy: Duration) {
        self.work[0].busy += busy;
    }

    fn deadline(&self) -> Option<Time> {
        self.divided.then(|| self.window + self.dispatcher.period())
    }

    fn have_frames(&self) -> bool {
        self.divided && !(self.receiver.are_empty() && self.to_uplink.are_empty())
    }

    fn may_sleep(&self) -> bool {
        !self.divided || self.receiver.may_sleep() && self.to_uplink.are_empty()
    }
}

impl<C> Drop for FrameWorkers<C> {
    /// Ends the workers, and waits until their threads have ended: at most one round.
    fn drop(&mut self) {
        for worker in &self.others {
            worker.exchange.end();
        }
        for (number, worker) in (1..).zip(&mut self.others) {
            self.shared.bells[number].waker().wake();
            // A worker that has panicked has reported that.
            let _ = worker.thread.take().map(JoinHandle::join);
        }
    }
}
