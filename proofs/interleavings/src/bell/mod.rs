//! Bell of a ring of frames: a receiver that sleeps, and one or two senders.

/// Defines the model of senders and a receiver that share the bell's flag of the module.
macro_rules! bell_model {
    () => {
        use loom::sync::atomic::AtomicUsize;
        use loom::sync::{Arc, Notify};
        use wanted::{RingWakeReceiver, RingWakeSender, WakeWanted, announce, may_sleep};

        /// Ring with its bell.
        struct BelledRing {
            /// Number of frames that were sent.
            sent: AtomicUsize,
            wanted: WakeWanted,
            waker: Notify,
        }

        impl RingWakeReceiver for (&BelledRing, usize) {
            fn want(&self, wanted: bool) {
                self.0.wanted.want(wanted);
            }

            fn is_empty(&self) -> bool {
                self.0.sent.load(atomic::Ordering::Acquire) == self.1
            }
        }

        impl RingWakeSender for BelledRing {
            fn take_wanted(&self) -> bool {
                self.wanted.take()
            }

            fn ring(&self) {
                self.waker.notify();
            }
        }

        /// Sends frames one by one from each of several threads to a receiver that sleeps while it has none. loom ends with
        /// an error if the receiver sleeps for ever.
        pub(super) fn send_frames(senders: usize, frames: usize) {
            let ring =
                BelledRing { sent: AtomicUsize::new(0), wanted: WakeWanted::new(), waker: Notify::new() };
            let ring = Arc::new(ring);
            let start = |sender: Arc<BelledRing>| {
                loom::thread::spawn(move || {
                    for _ in 0..frames {
                        sender.sent.fetch_add(1, atomic::Ordering::Release);
                        announce(&*sender);
                    }
                })
            };
            let threads: Vec<_> = (0..senders).map(|_| start(ring.clone())).collect();
            let mut taken = 0;
            while taken < senders * frames {
                if may_sleep(&(&*ring, taken)) {
                    ring.waker.wait();
                }
                taken = ring.sent.load(atomic::Ordering::Acquire);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
}

mod product;
mod unfenced;

#[test]
fn sleeping_receiver_is_woken_for_each_of_two_frames() {
    loom::model(|| product::send_frames(1, 2));
}

/// Runs the orders with at most two preemptions: all orders of three threads take more than ten minutes.
#[test]
fn sleeping_receiver_is_woken_by_either_of_two_senders() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| product::send_frames(2, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn control_bell_without_fences() {
    loom::model(|| unfenced::send_frames(1, 1));
}
