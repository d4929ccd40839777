//! Bell of a ring of frames: a receiver that sleeps, and a sender.

/// Defines the model of a sender and a receiver that share the bell's flag of the module.
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

        /// Sends frames one by one to a receiver that sleeps while it has none. loom ends with an error if the receiver
        /// sleeps for ever.
        pub(super) fn send_frames(frames: usize) {
            let ring =
                BelledRing { sent: AtomicUsize::new(0), wanted: WakeWanted::new(), waker: Notify::new() };
            let ring = Arc::new(ring);
            let sender = ring.clone();
            let sender = loom::thread::spawn(move || {
                for frame in 1..=frames {
                    sender.sent.store(frame, atomic::Ordering::Release);
                    announce(&*sender);
                }
            });
            let mut taken = 0;
            while taken < frames {
                if may_sleep(&(&*ring, taken)) {
                    ring.waker.wait();
                }
                taken = ring.sent.load(atomic::Ordering::Acquire);
            }
            sender.join().unwrap();
        }
    };
}

mod product;
mod unfenced;

#[test]
fn sleeping_receiver_is_woken_for_each_of_two_frames() {
    loom::model(|| product::send_frames(2));
}

#[test]
#[should_panic(expected = "deadlock")]
fn control_bell_without_fences() {
    loom::model(|| unfenced::send_frames(1));
}
