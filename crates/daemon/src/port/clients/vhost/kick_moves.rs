//! Test of a kick while the VF moves between the port's own thread and a worker, in every order of the steps of the guest and of
//! both threads. Pollers and eventfds are real; the VF and its shard are modelled.

use super::kicks::KickEventfds;
use crate::port::tokens::WakeSource;
use host::eventfd::EventFd;
use host::poll::Poller;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Index of the moved function, and its ring that the guest kicks.
const PLACE: usize = 3;
const RING: u32 = 1;

/// Thread with a poller, as the place of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingThread {
    /// The port's own thread.
    Own,
    /// A worker.
    Worker,
}

/// Step of the guest or of a thread.
#[derive(Debug, Clone, Copy)]
enum MoveStep {
    /// The guest puts a packet into the ring.
    Put,
    /// The guest kicks the ring.
    Kick,
    /// A thread takes the events of its poller.
    Wait(RingThread),
    /// A thread looks at the ring if it has the VF and knows of a kick.
    Visit(RingThread),
    /// The port's own thread takes the VF from the worker.
    Gather,
    /// The port's own thread moves the eventfd to the poller of a thread.
    MoveEventfd(RingThread),
    /// The port's own thread gives the VF to a thread.
    Give(RingThread),
    /// The port's own thread keeps the VF that it has gathered, such as for a client's messages, and leaves the eventfd where it is.
    Keep,
}

use MoveStep::{Gather, Give, Keep, Kick, MoveEventfd, Put, Visit, Wait};
use RingThread::{Own, Worker};

/// Model of a VF with one ring that moves between two threads.
struct MovedRingModel {
    pollers: [Poller; 2],
    /// The worker's poller, as the port's own thread has it.
    shared: Arc<Poller>,
    kicks: KickEventfds,
    guest: EventFd,
    /// Thread that has the VF.
    home: Option<RingThread>,
    /// Thread whose poller has the eventfd.
    kicked: RingThread,
    /// True if the ring has a packet that no thread has taken.
    has_packet: bool,
    /// True for each thread whose poller has reported a kick that the thread has not handled.
    reported: [bool; 2],
    /// True if the VF's next visit looks at the ring.
    is_ready: bool,
}

impl MovedRingModel {
    /// Creates a VF that `home` serves.
    fn new(home: RingThread) -> Self {
        let pollers = [Poller::new().unwrap(), Poller::new().unwrap()];
        let shared = Arc::new(pollers[Worker as usize].same().unwrap());
        let eventfd = EventFd::new().unwrap();
        let guest = EventFd::adopt(eventfd.as_fd().try_clone_to_owned().unwrap()).unwrap();
        let mut kicks = KickEventfds::new();
        kicks.set(RING, Some(eventfd));
        kicks.watch(&pollers[Own as usize], PLACE).unwrap();
        let (has_packet, reported, is_ready) = (false, [false; 2], false);
        let mut model = Self {
            pollers,
            shared,
            kicks,
            guest,
            home: Some(home),
            kicked: Own,
            has_packet,
            reported,
            is_ready,
        };
        model.step(MoveEventfd(home));
        model
    }

    fn step(&mut self, step: MoveStep) {
        match step {
            Put => self.has_packet = true,
            Kick => self.guest.signal(),
            Wait(thread) => {
                let events = self.pollers[thread as usize].wait(Some(Duration::ZERO)).unwrap();
                let mut kicks = events.map(|event| WakeSource::of(event.token));
                self.reported[thread as usize] |=
                    kicks.any(|kick| kick == WakeSource::Kick { place: PLACE, ring: RING });
            }
            Visit(thread) => {
                // A worker forgets the kicks of a VF that it does not have.
                let reported = std::mem::take(&mut self.reported[thread as usize]);
                if self.home == Some(thread) {
                    // A visit looks at the rings whose kicks wake another thread (`FrameWorkers::kicked_elsewhere`).
                    self.is_ready |= reported || self.kicked != thread;
                    self.has_packet &= !std::mem::take(&mut self.is_ready);
                }
            }
            Gather => self.home = None,
            MoveEventfd(thread) => {
                let worker = (thread == Worker).then_some(&self.shared);
                self.kicks.move_to(worker, &self.pollers[Own as usize], PLACE).unwrap();
                self.kicked = thread;
            }
            Give(thread) => {
                self.home = Some(thread);
                // A device that enters a part of the card is looked at once.
                self.is_ready = true;
            }
            Keep => self.home = Some(Own),
        }
    }

    /// Lets both threads run until neither has an event.
    fn settle(&mut self) {
        for _ in 0..2 {
            for step in [Wait(Own), Visit(Own), Wait(Worker), Visit(Worker)] {
                self.step(step);
            }
        }
    }
}

/// Calls `run` with each order of the steps of all sequences that keeps the order within a sequence.
fn merge(sequences: &[&[MoveStep]], order: &mut Vec<MoveStep>, run: &mut impl FnMut(&[MoveStep])) {
    if sequences.iter().all(|sequence| sequence.is_empty()) {
        run(order);
    }
    for (index, sequence) in sequences.iter().enumerate() {
        let Some((first, rest)) = sequence.split_first() else { continue };
        let mut others = sequences.to_vec();
        others[index] = rest;
        order.push(*first);
        merge(&others, order, run);
        order.pop();
    }
}

#[test]
fn no_packet_waits_whose_kick_meets_a_move_of_its_vf() {
    let guest = [Put, Kick];
    let to_worker: [&[MoveStep]; 3] = [
        &guest,
        &[Wait(Own), Visit(Own), Gather, MoveEventfd(Worker), Give(Worker)],
        &[Wait(Worker), Visit(Worker), Wait(Worker), Visit(Worker)],
    ];
    let to_own: [&[MoveStep]; 3] = [
        &guest,
        &[Gather, MoveEventfd(Own), Give(Own), Wait(Own), Visit(Own)],
        &[Wait(Worker), Visit(Worker), Wait(Worker), Visit(Worker)],
    ];
    let kept: [&[MoveStep]; 3] = [
        &guest,
        &[Gather, Keep, Visit(Own), Wait(Own), Visit(Own)],
        &[Wait(Worker), Visit(Worker), Wait(Worker), Visit(Worker)],
    ];
    for (home, sequences) in [(Own, to_worker), (Worker, to_own), (Worker, kept)] {
        let mut orders = 0;
        merge(&sequences, &mut Vec::new(), &mut |order| {
            let mut model = MovedRingModel::new(home);
            order.iter().for_each(|step| model.step(*step));
            model.settle();
            assert!(!model.has_packet, "from {home:?}: {order:?}");
            orders += 1;
        });
        assert_eq!(orders, 6_930, "orders of 2, 5 and 4 steps");
    }
}
