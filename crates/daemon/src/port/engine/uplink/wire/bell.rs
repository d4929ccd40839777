//! Waking the port at the other end of a wire, only while it sleeps.
//!
//! Who is about to sleep says so, and looks once more whether something has come. Who has put something in looks whether
//! somebody sleeps. Between its two steps each has a fence, so at least one of the two sees what the other has done: no
//! frame lies in a wire whose receiver sleeps. The test takes both sides through every order of their steps.

use host::poll::Waker;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The steps of the port that receives, each of which the other side may come between.
pub(super) trait Sleeper {
    /// Says whether it wants to be woken. The steps behind come after it for the other side, too.
    fn want(&self, wanted: bool);

    /// Whether there is nothing to be received.
    fn is_empty(&self) -> bool;
}

/// The steps of the port that sends.
pub(super) trait Caller {
    /// Whether the other side wants to be woken, and does so no more. It comes behind all that was put in.
    fn take_wanted(&self) -> bool;

    /// Wakes it.
    fn ring(&self);
}

/// Before sleeping: `false` if there is something to be received. What comes later rings.
pub(super) fn may_sleep(side: &impl Sleeper) -> bool {
    side.want(true);
    if side.is_empty() {
        return true;
    }
    side.want(false);
    false
}

/// After something was put in.
pub(super) fn announce(side: &impl Caller) {
    if side.take_wanted() {
        side.ring();
    }
}

/// What wakes one port.
#[derive(Debug)]
pub(super) struct Bell {
    wanted: AtomicBool,
    waker: Waker,
}

impl Bell {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { wanted: AtomicBool::new(false), waker: Waker::new()? })
    }

    /// What the port waits on.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(super) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl Caller for Bell {
    fn take_wanted(&self) -> bool {
        fence(Ordering::SeqCst);
        // Looked at first: while nobody sleeps, both sides only read the line that it is in.
        self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::Relaxed)
    }

    fn ring(&self) {
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex, MutexGuard};

    /// Frames that the sender puts in, one by one or in a burst.
    const FRAMES: usize = 2;
    /// So many steps are taken in every order; the few that may be left take turns.
    const STEPS: u32 = 13;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Side {
        Sender,
        Receiver,
    }

    #[derive(Default)]
    struct State {
        /// In the wire.
        frames: usize,
        wanted: bool,
        /// The eventfd.
        rung: bool,
        taken: usize,
        step: u32,
        sender_done: bool,
        receiver_done: bool,
        asleep: bool,
    }

    /// The two sides, one step at a time, in the order that the bits of `order` say.
    struct Play {
        order: u32,
        state: Mutex<State>,
        changed: Condvar,
    }

    impl State {
        /// Whose step is next. One that cannot go on leaves its turn to the other.
        fn next(&self, order: u32) -> Side {
            let sender =
                if self.step < STEPS { order >> self.step & 1 == 1 } else { self.step.is_multiple_of(2) };
            let held_up = self.receiver_done || self.asleep && !self.rung;
            if !self.sender_done && (sender || held_up) { Side::Sender } else { Side::Receiver }
        }
    }

    impl Play {
        /// Waits for the turn of a side, and has it do one step.
        fn step<T>(&self, side: Side, act: impl FnOnce(&mut State) -> T) -> T {
            let turn = |state: &mut State| state.next(self.order) != side;
            let mut state: MutexGuard<'_, State> =
                self.changed.wait_while(self.state.lock().unwrap(), turn).unwrap();
            state.step += 1;
            let answer = act(&mut state);
            self.changed.notify_all();
            answer
        }

        fn send(&self, burst: bool) {
            for frame in 0..FRAMES {
                self.step(Side::Sender, |state| state.frames += 1);
                if !burst || frame + 1 == FRAMES {
                    announce(self);
                }
            }
            self.state.lock().unwrap().sender_done = true;
            self.changed.notify_all();
        }

        /// Rounds of the port, as `Port::run` has them.
        fn receive(&self) {
            loop {
                let taken = self.step(Side::Receiver, |state| {
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
            self.step(Side::Receiver, |state| {
                assert!(state.rung, "asleep for ever, with {} frames in the wire", state.frames);
                (state.rung, state.asleep) = (false, false);
            });
        }
    }

    impl Sleeper for Play {
        fn want(&self, wanted: bool) {
            self.step(Side::Receiver, |state| state.wanted = wanted);
        }

        fn is_empty(&self) -> bool {
            self.step(Side::Receiver, |state| state.frames == 0)
        }
    }

    impl Caller for Play {
        fn take_wanted(&self) -> bool {
            self.step(Side::Sender, |state| std::mem::take(&mut state.wanted))
        }

        fn ring(&self) {
            self.step(Side::Sender, |state| state.rung = true);
        }
    }

    #[test]
    fn no_frame_is_left_to_a_sleeper_in_any_order_of_steps() {
        for burst in [false, true] {
            for order in 0..1 << STEPS {
                let play = Play { order, state: Mutex::default(), changed: Condvar::new() };
                std::thread::scope(|scope| {
                    scope.spawn(|| play.send(burst));
                    play.receive();
                });
                assert_eq!(play.state.into_inner().unwrap().taken, FRAMES);
            }
        }
    }

    #[test]
    fn a_bell_rings_once_for_each_sleep_and_never_for_who_is_awake() {
        let bell = Bell::new().unwrap();
        let rung = |bell: &Bell| {
            let mut poller = host::poll::Poller::new().unwrap();
            poller.add(bell.waker(), 0, host::poll::Interest::READ).unwrap();
            let rung = poller.wait(Some(std::time::Duration::ZERO)).unwrap().count() == 1;
            bell.waker().drain();
            rung
        };
        announce(&bell);
        assert!(!rung(&bell), "nobody sleeps");
        bell.want(true);
        announce(&bell);
        assert!(rung(&bell));
        announce(&bell);
        assert!(!rung(&bell), "it was woken");
    }
}
