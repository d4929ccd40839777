//! Exchange of a worker's shard: the port's own thread puts the shard in and takes it out, and the worker runs its rounds.

/// Defines the models of a port's own thread and of a worker, which exchange a shard by the locks of the module.
macro_rules! exchange_model {
    () => {
        mod shard {
            /// Shard with the number of its division.
            #[derive(Debug)]
            pub(super) struct CardShard<C>(pub(super) C);
        }
        #[path = "../../../../crates/daemon/src/port/engine/workers/exchange.rs"]
        mod exchange;

        use exchange::ShardExchange;
        use loom::sync::Notify;
        use loom::sync::atomic::AtomicUsize;
        use shard::CardShard;
        use std::sync::Arc;
        use sync::{CpuList, Ordering};

        /// Exchange, and the bells at which the worker sleeps between its rounds and the port's own thread in the model.
        struct BelledExchange {
            exchange: ShardExchange<usize>,
            bell: Notify,
            /// Number of divisions that had a round.
            rounds: AtomicUsize,
            round_ended: Notify,
        }

        fn belled_exchange() -> Arc<BelledExchange> {
            let (bell, round_ended) = (Notify::new(), Notify::new());
            let exchange = ShardExchange::new();
            Arc::new(BelledExchange { exchange, bell, rounds: AtomicUsize::new(0), round_ended })
        }

        impl BelledExchange {
            fn put(&self, division: usize) {
                self.exchange.put(Box::new(CardShard(division))).unwrap();
                self.bell.notify();
            }

            /// Takes the shard of a division.
            fn gather(&self, division: usize) {
                self.exchange.want();
                let taken = self.exchange.take().unwrap().expect("a wanted shard is in the exchange");
                assert_eq!(taken.0, division);
            }
        }

        /// Divides the port's card several times, and gathers it after each division. loom ends with an error if a thread
        /// waits for ever. With `awaited`, the port's own thread waits for a round of each shard.
        pub(super) fn divide_and_gather(divisions: usize, awaited: bool) {
            let port = belled_exchange();
            let other = port.clone();
            let worker = loom::thread::spawn(move || {
                while let Some(state) = other.exchange.wait() {
                    let division = state.shard.as_ref().expect("a worker is woken for a shard").0;
                    drop(state);
                    other.rounds.store(division + 1, Ordering::Release);
                    other.round_ended.notify();
                    other.bell.wait();
                }
            });
            for division in 0..divisions {
                port.put(division);
                while awaited && port.rounds.load(Ordering::Acquire) <= division {
                    port.round_ended.wait();
                }
                port.gather(division);
            }
            port.exchange.end();
            port.bell.notify();
            worker.join().unwrap();
        }

        /// Gathers the card, changes the worker's processors, and divides the card again.
        pub(super) fn change_processors() {
            let (port, cpus) = (belled_exchange(), CpuList::new());
            let (other, pinned) = (port.clone(), cpus.clone());
            let worker = loom::thread::spawn(move || {
                loop {
                    let state = other.exchange.wait().expect("the worker has not ended");
                    if state.shard.as_ref().expect("a worker is woken for a shard").0 == 1 {
                        return assert!(pinned.is_pinned());
                    }
                    drop(state);
                    other.bell.wait();
                }
            });
            port.put(0);
            port.gather(0);
            port.exchange.set_cpus(cpus).unwrap();
            port.put(1);
            worker.join().unwrap();
        }

        /// Has a worker fail after its round, while the port's own thread gathers the card.
        pub(super) fn fail_after_a_round() {
            let port = belled_exchange();
            let other = port.clone();
            let worker = loom::thread::spawn(move || {
                let has_run = other.exchange.wait().is_some();
                assert!(other.exchange.visit(|shard| shard.0).is_none_or(|division| division == 0));
                if has_run {
                    other.exchange.fail();
                }
                has_run
            });
            port.put(0);
            port.exchange.want();
            assert!(!matches!(port.exchange.take(), Ok(None)), "the shard is lost without a failure");
            port.exchange.end();
            let has_failed = worker.join().unwrap();
            port.exchange.want();
            assert_eq!(port.exchange.take().is_err(), has_failed);
        }
    };
}

mod cpus;
mod product;
mod uncleared;
mod unnotified;

/// Runs the orders with at most two preemptions: all orders of two divisions take more than ten minutes.
fn check_two_preemptions(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

#[test]
fn shard_that_is_put_in_has_a_round_and_is_returned() {
    check_two_preemptions(|| product::divide_and_gather(2, true));
}

#[test]
fn shard_is_returned_whether_or_not_it_had_a_round() {
    loom::model(|| product::divide_and_gather(1, false));
    check_two_preemptions(|| product::divide_and_gather(2, false));
}

#[test]
fn processors_of_a_worker_change_before_its_next_round() {
    loom::model(product::change_processors);
}

#[test]
fn failure_of_a_worker_is_found_by_the_next_gathering() {
    loom::model(product::fail_after_a_round);
}

#[test]
#[should_panic(expected = "deadlock")]
fn control_round_without_notification() {
    loom::model(|| unnotified::divide_and_gather(1, true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn control_processors_without_notification() {
    loom::model(unnotified::change_processors);
}

#[test]
#[should_panic(expected = "deadlock")]
fn control_failure_without_notification() {
    loom::model(unnotified::fail_after_a_round);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn control_shard_that_stays_wanted() {
    loom::model(|| uncleared::divide_and_gather(2, true));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn control_processors_of_a_shard_that_stays_wanted() {
    loom::model(uncleared::change_processors);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn control_failure_of_a_shard_that_stays_wanted() {
    loom::model(uncleared::fail_after_a_round);
}
