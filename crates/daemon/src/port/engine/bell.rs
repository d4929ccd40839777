//! Wake-up flag (bell) of a ring of frames between two threads: by it the sender wakes the receiver, but only while
//! the receiver sleeps.
//!
//! The receiver, before it sleeps, sets a flag and checks its rings once more. The sender, after it has put frames
//! in, checks the flag. Each side has a fence between its two steps, so at least one of them sees the other's first
//! step. No frame stays in a ring whose receiver sleeps. The test runs both sides through every order of their
//! steps, and the proofs run the flag under weak memory.

mod atomic;
mod wanted;

use host::poll::ThreadWaker;
use wanted::WakeWanted;
pub(super) use wanted::{RingWakeReceiver, RingWakeSender, announce, may_sleep};

/// Flag and waker by which the senders of a ring wake its receiver.
#[derive(Debug)]
pub(super) struct RingWakeFlag {
    wanted: WakeWanted,
    waker: ThreadWaker,
}

impl RingWakeFlag {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { wanted: WakeWanted::new(), waker: ThreadWaker::new()? })
    }

    /// Returns the waker that the receiver waits on.
    pub(super) fn waker(&self) -> &ThreadWaker {
        &self.waker
    }

    pub(super) fn want(&self, wanted: bool) {
        self.wanted.want(wanted);
    }
}

impl RingWakeSender for RingWakeFlag {
    fn take_wanted(&self) -> bool {
        self.wanted.take()
    }

    fn ring(&self) {
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex, MutexGuard};

    /// Number of frames that the modelled sender sends, one by one or in a burst.
    const FRAMES: usize = 2;
    /// Number of first actions of sender and receiver whose order the test varies. Later actions of sender and receiver
    /// alternate.
    const STEPS: u32 = 13;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum WireSide {
        Sender,
        Receiver,
    }

    #[derive(Default)]
    struct RingWakeModelState {
        /// Number of frames in the modelled ring.
        frames: usize,
        wanted: bool,
        /// True if the model's sender has woken the sleeping receiver.
        rung: bool,
        taken: usize,
        step: u32,
        sender_done: bool,
        receiver_done: bool,
        asleep: bool,
    }

    /// Interleaving of the actions of a ring's sender and receiver, in the order given by the bits of `order`.
    struct RingWakeInterleaving {
        order: u32,
        state: Mutex<RingWakeModelState>,
        changed: Condvar,
    }

    impl RingWakeModelState {
        /// Returns the side of the wire, sender or receiver, that acts next. A side that cannot act leaves its turn to
        /// the other.
        fn next(&self, order: u32) -> WireSide {
            let sender =
                if self.step < STEPS { order >> self.step & 1 == 1 } else { self.step.is_multiple_of(2) };
            let held_up = self.receiver_done || self.asleep && !self.rung;
            if !self.sender_done && (sender || held_up) { WireSide::Sender } else { WireSide::Receiver }
        }
    }

    impl RingWakeInterleaving {
        /// Waits until a side of the modelled ring may act, and runs one action of that side.
        fn step<T>(&self, side: WireSide, act: impl FnOnce(&mut RingWakeModelState) -> T) -> T {
            let turn = |state: &mut RingWakeModelState| state.next(self.order) != side;
            let mut state: MutexGuard<'_, RingWakeModelState> =
                self.changed.wait_while(self.state.lock().unwrap(), turn).unwrap();
            state.step += 1;
            let answer = act(&mut state);
            self.changed.notify_all();
            answer
        }

        fn send(&self, burst: bool) {
            for frame in 0..FRAMES {
                self.step(WireSide::Sender, |state| state.frames += 1);
                if !burst || frame + 1 == FRAMES {
                    announce(self);
                }
            }
            self.state.lock().unwrap().sender_done = true;
            self.changed.notify_all();
        }

        /// Receives frames and sleeps by turns, as the loop `OpenPort::run` does, until all frames have arrived.
        fn receive(&self) {
            loop {
                let taken = self.step(WireSide::Receiver, |state| {
                    state.taken += std::mem::take(&mut state.frames);
                    state.taken
                });
                if taken == FRAMES {
                    break;
                }
                if may_sleep(self) {
                    self.sleep();
                }
            }
            self.state.lock().unwrap().receiver_done = true;
            self.changed.notify_all();
        }

        fn sleep(&self) {
            self.state.lock().unwrap().asleep = true;
            self.changed.notify_all();
            self.step(WireSide::Receiver, |state| {
                assert!(state.rung, "asleep for ever, with {} frames in the ring", state.frames);
                (state.rung, state.asleep) = (false, false);
            });
        }
    }

    impl RingWakeReceiver for RingWakeInterleaving {
        fn want(&self, wanted: bool) {
            self.step(WireSide::Receiver, |state| state.wanted = wanted);
        }

        fn is_empty(&self) -> bool {
            self.step(WireSide::Receiver, |state| state.frames == 0)
        }
    }

    impl RingWakeSender for RingWakeInterleaving {
        fn take_wanted(&self) -> bool {
            self.step(WireSide::Sender, |state| std::mem::take(&mut state.wanted))
        }

        fn ring(&self) {
            self.step(WireSide::Sender, |state| state.rung = true);
        }
    }

    #[test]
    fn sleeping_ring_receiver_misses_no_frame_in_any_thread_order() {
        for burst in [false, true] {
            for order in 0..1 << STEPS {
                let play = RingWakeInterleaving { order, state: Mutex::default(), changed: Condvar::new() };
                std::thread::scope(|scope| {
                    scope.spawn(|| play.send(burst));
                    play.receive();
                });
                assert_eq!(play.state.into_inner().unwrap().taken, FRAMES);
            }
        }
    }

    #[test]
    fn ring_receiver_is_woken_once_per_sleep() {
        let bell = RingWakeFlag::new().unwrap();
        let rung = |bell: &RingWakeFlag| {
            let mut poller = host::poll::Poller::new().unwrap();
            poller.add(bell.waker(), 0, host::poll::PollInterest::READ).unwrap();
            let rung = poller.wait(Some(std::time::Duration::ZERO)).unwrap().count() == 1;
            bell.waker().drain();
            rung
        };
        announce(&bell);
        assert!(!rung(&bell), "no thread sleeps");
        bell.want(true);
        announce(&bell);
        assert!(rung(&bell));
        announce(&bell);
        assert!(!rung(&bell), "the receiver was woken already");
    }
}
