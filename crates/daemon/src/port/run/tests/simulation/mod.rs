//! Simulation: a host and its guests in one thread and one clock, from one seed. The port is the live host's, with its real
//! sockets, eventfds and memory: within one thread these behave the same each time. Simulated are the clock, the
//! threads for blocking calls, and the deaths of processes.
//!
//! | module | content |
//! |---|---|
//! | `life`, `conditions` | steps and conditions of a life as data: drawn from a seed, shrunk, printed as a test |
//! | `world`, `summary` | what happens in a life with its checks, and its figures |
//! | `hostile`, `requests`, `truncation` | misdeeds of hostile guests, their requests to the PF, and truncated memory |
//! | `intruder` | hostile VMMs |
//! | `host`, `clock`, `kernel` | the port, its vault and its successors, the time, and choices of the kernel |
//! | `guest` | a guest, which checks what it receives |
//! | `families`, `function`, `vf`, `virtio` | a guest's function of each family, with its driver |
//! | `thread` | waits of a driver, in which the host works |
//! | `tcp` | TCP packets that cards segment |
//! | `frames`, `numbers` | frames that name their sender and receiver, and the order in which they come |
//! | `oracles`, `account`, `rates` | checks of a host at rest, of its frames, and of transmit rates |
//! | `uplink` | stations at the other end of the uplink |
//! | `tenants` | clients that follow each other on a VF, and guards of its frames |
//! | `guarded` | frames of hostile guests that policies keep back by their contents, and frames to all |
//! | `policy`, `policies` | policies that an administrator sets, and the frames that may pass |

mod account;
mod clock;
mod conditions;
mod families;
mod frames;
mod function;
mod guarded;
mod guest;
mod host;
mod hostile;
mod intruder;
mod kernel;
mod life;
mod numbers;
mod oracles;
mod policies;
mod policy;
mod rates;
mod recorded;
mod requests;
mod summary;
mod tcp;
mod tenants;
mod thread;
mod truncation;
mod uplink;
mod vf;
mod virtio;
mod world;

use ::host::eventfd::EventFdNotifier;
use ::host::limits::raise_open_files;
use ::host::test_support::in_own_process;
use life::SimulatedLife;
use std::io::Write;
use summary::SimulationSummary;

/// Seeds by default. In as many each figure of the summary is above 0.
const SEEDS: u64 = 200;
/// Further lives in which the steps of a failing one are shrunk.
const SHRINKING_LIVES: usize = 150;
/// Failing lives of a process that are shrunk.
const SHRUNK: usize = 3;

/// Returns a number from the environment, or `default` if the variable is not set.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`; set it to a number, or leave it out"))
}

/// Runs the body of a test in a process of its own: the simulation counts the process's descriptors. `test` is the test's path.
fn simulate(test: &str, body: impl FnOnce()) {
    let body = || {
        // 64 guests need more than the usual 1,024.
        raise_open_files().expect("the limit of open files can be raised");
        // The kernel would wait for each port that ends.
        EventFdNotifier::keep_context_on_this_thread();
        body();
    };
    let Some(output) = in_own_process(test, body).unwrap() else { return };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(text.contains("simulated: "), "no life was simulated: is {test:?} the name of the test?");
    assert!(output.status.success(), "the simulation has failed");
}

#[test]
fn simulated_hosts_keep_their_promises() {
    simulate("port::run::tests::simulation::simulated_hosts_keep_their_promises", run_seeds);
}

/// A failing seed can be repeated only if nothing but the seed decides.
#[test]
fn seed_gives_the_same_life_each_time() {
    simulate("port::run::tests::simulation::seed_gives_the_same_life_each_time", || {
        let lives = (0..6).map(SimulatedLife::draw);
        let [once, again] =
            [lives.clone(), lives].map(|lives| lives.map(|life| life.run()).collect::<Vec<_>>());
        assert_eq!(once, again);
        print_report(&format!("{} lives twice", once.len()));
    });
}

/// Runs the seeds that the environment names, and prints what happened.
fn run_seeds() {
    let (first, count) = (number("SOFTIOV_SEED", 0), number("SOFTIOV_SEEDS", SEEDS));
    let shrunk = if number("SOFTIOV_SHRINK", 1) == 0 { 0 } else { SHRUNK };
    let (mut total, mut failed, mut tests) = (SimulationSummary::default(), Vec::new(), Vec::new());
    for seed in first..first + count {
        let life = SimulatedLife::draw(seed);
        match life.run() {
            Ok(one) => total.add(one),
            Err(fault) => {
                failed.push(format!("seed {seed}: {fault}"));
                if tests.len() < shrunk {
                    let life = life.shrink(&fault, SHRINKING_LIVES);
                    let fault = life.run().map_or_else(|fault| fault, |_| "it succeeds".to_owned());
                    tests.push(format!(
                        "the body of a test that fails as seed {seed}, by \"{fault}\":\n{life}\n"
                    ));
                }
            }
        }
    }
    print_report(&format!("{count} seeds, {total}\n{}\n{}", failed.join("\n"), tests.concat()));
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
    if count >= SEEDS {
        let absent = total.absent();
        assert!(absent.is_empty(), "nothing of this has happened in {count} seeds: {}", absent.join(", "));
    }
}

/// Prints past the capture of the test harness, which drops the output of a test that succeeds.
fn print_report(report: &str) {
    writeln!(std::io::stderr(), "\nsimulated: {report}\nthe end of the report").unwrap();
}
