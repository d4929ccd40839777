//! Host of a simulation: a port with its vault, in the simulation's thread and time. It dies at moments that the seed
//! chooses, and its successor continues from what a killed process leaves: the vault's descriptors.

use super::super::deaths::CrashingStateSaver;
use super::super::*;
use crate::clock::SharedClock;
use crate::control::status::PortStatus;
use crate::port::clients::slot::OfferedFunction;
use host::worker::ThreadlessWorkers;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Number of moments that no port reaches: the port does not die.
const NEVER: usize = usize::MAX;
/// Longest time between two readings of the clock, in ns.
const TICK_NS: u64 = 300;
/// Sleep of a port at rest: longer than any interval between interrupts (8,191 us).
const REST: Duration = Duration::from_millis(10);
/// Steps within which a port comes to rest when no client asks anything of it.
const REST_STEPS: usize = 5_000;

/// Payload of the panic by which a simulated process dies.
pub(super) struct ProcessDeath;

/// Clock of the simulation. Each reading by the port is a moment at which the port may die.
#[derive(Debug, Default)]
pub(super) struct SimulatedClock {
    now_ns: AtomicU64,
    /// Moments that the port passes before it dies. Saves of clients' states count too.
    left: Arc<AtomicUsize>,
}

impl SimulatedClock {
    pub(super) fn time(&self) -> Time {
        Time::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    pub(super) fn advance(&self, time: Duration) {
        self.now_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl TimeSource for SimulatedClock {
    fn now(&self) -> Time {
        pass_moment(&self.left);
        self.now_ns.fetch_add(TICK_NS, Ordering::Relaxed);
        self.time()
    }
}

/// Passes a moment at which the port dies if no moments are left.
pub(in super::super) fn pass_moment(left: &AtomicUsize) {
    match left.load(Ordering::Relaxed) {
        NEVER => {}
        0 => {
            left.store(NEVER, Ordering::Relaxed);
            resume_unwind(Box::new(ProcessDeath));
        }
        more => left.store(more - 1, Ordering::Relaxed),
    }
}

/// Port under simulation.
pub(super) struct SimulatedHost {
    /// `None` only while a successor takes over.
    port: Option<OpenPort>,
    inbox: PortCommandInbox,
    handle: PortHandle,
    pub(super) clock: Arc<SimulatedClock>,
    vault: FileDescriptorStore,
    workers: ThreadlessWorkers,
    threads: ThreadSandboxes,
    common: SharedPortResources,
    config: PortConfig,
    pub(super) random: fastrand::Rng,
    pub(super) deaths: u64,
    pub(super) rounds: u64,
    /// Largest number of pending jobs that one worker has had.
    pub(super) most_jobs: usize,
    _folder: TempDir,
}

impl SimulatedHost {
    pub(super) fn open(config: &str, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = HostConfig::parse(config).unwrap();
        let config = HostConfig::check(file, folder.path()).unwrap();
        let workers = ThreadlessWorkers::default();
        let mut threads = ThreadSandboxes::prepare(&config).unwrap();
        threads.helper = threads.helper.without_threads(&workers);
        let clock = Arc::new(SimulatedClock::default());
        clock.left.store(NEVER, Ordering::Relaxed);
        clock.advance(Duration::from_secs(1));
        let shared: SharedClock = clock.clone();
        let common = SharedPortResources {
            wires: WireRegistry::default(),
            programs: XdpPrograms::default(),
            flights: FlightRecordingSender::default(),
            clock: shared,
        };
        let (inbox, handle) = PortCommandInbox::new().unwrap();
        let mut host = Self {
            port: None,
            inbox,
            handle,
            clock,
            vault: FileDescriptorStore::default(),
            workers,
            threads,
            common,
            config: config.ports[0].clone(),
            random: fastrand::Rng::with_seed(seed),
            deaths: 0,
            rounds: 0,
            most_jobs: 0,
            _folder: folder,
        };
        host.start();
        host
    }

    pub(super) fn socket(&self, vf: usize) -> PathBuf {
        self.config.vfs[vf].socket.clone()
    }

    /// Chooses the moment at which the port dies, counted from now.
    pub(super) fn die_after(&self, moments: usize) {
        self.clock.left.store(moments, Ordering::Relaxed);
    }

    /// Lets the port live on.
    pub(super) fn spare(&self) {
        self.clock.left.store(NEVER, Ordering::Relaxed);
    }

    /// Opens the port from what the vault has, as the successor of a dead or a leaving process does.
    fn start(&mut self) {
        self.spare();
        let prepared =
            PreparedPort::open(&self.config, &self.vault, &self.inbox, &self.threads, &self.common);
        let mut prepared = prepared.expect("a successor can open the port");
        prepared
            .port
            .clients
            .replace_savers(|inner| Box::new(CrashingStateSaver::new(inner, Arc::clone(&self.clock.left))));
        let mut port = prepared.inherit(&self.config);
        port.succession.note_software(port.engine.card_mut());
        self.port = Some(port);
    }

    /// Ends the process without a pause, and starts its successor.
    pub(super) fn kill(&mut self) {
        self.deaths += 1;
        // Threads of a killed process run no more jobs.
        self.workers.kill();
        drop(self.port.take());
        self.start();
    }

    /// Saves the whole port for a successor, which continues without a reset. Returns false if the port refuses.
    pub(super) fn hand_over(&mut self) -> bool {
        let now = self.clock.time();
        let port = self.port.as_mut().expect("a port runs between two steps");
        if !port.save_for_successor(now) {
            return false;
        }
        self.workers.kill();
        drop(self.port.take());
        self.start();
        true
    }

    /// Runs pending jobs of workers and one round of the port. Returns the time that the port would sleep.
    pub(super) fn step(&mut self) -> Option<Duration> {
        let jobs = self.random.usize(0..3);
        for _ in 0..jobs {
            let busy = self.workers.busy();
            if busy.is_empty() {
                break;
            }
            self.workers.run_next(busy[self.random.usize(0..busy.len())]);
        }
        self.rounds += 1;
        let mut port = self.port.take().expect("a port runs between two steps");
        let (inbox, clock) = (&self.inbox, &*self.clock);
        let round = catch_unwind(AssertUnwindSafe(|| {
            port.wait(inbox, Some(Duration::ZERO), clock).unwrap();
            port.carry_out_commands(inbox, clock);
            let sleep = port.round(clock);
            port.succession.note_round();
            sleep
        }));
        self.port = Some(port);
        self.most_jobs = self.most_jobs.max(self.workers.backlog());
        match round {
            Ok(sleep) if self.workers.busy().is_empty() => sleep,
            Ok(_) => Some(Duration::ZERO),
            Err(reason) if reason.is::<ProcessDeath>() => {
                self.kill();
                Some(Duration::ZERO)
            }
            Err(defect) => resume_unwind(defect),
        }
    }

    /// Lets the port work until only time would give it more to do.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        for _ in 0..REST_STEPS {
            match self.step() {
                Some(sleep) if sleep < REST => self.clock.advance(sleep),
                _ => return Ok(()),
            }
        }
        Err(format!("the port does not rest within {REST_STEPS} steps"))
    }

    /// Returns the port's status, which a command asks for as the control thread does.
    pub(super) fn status(&mut self) -> PortStatus {
        loop {
            let (answer, status) = mpsc::channel();
            assert!(self.handle.send(PortThreadCommand::Status(answer)), "the port has ended");
            self.step();
            // A port that died has taken the command with it.
            if let Ok(status) = status.try_recv() {
                return status;
            }
        }
    }

    /// Returns the first VF with a message that the port has not handled, or a reply that it has not sent.
    pub(super) fn first_unanswered(&self) -> Option<usize> {
        let port = self.port.as_ref().expect("a port runs between two steps");
        let is_busy = |slot: &OfferedFunction| slot.connection().is_some_and(|client| !client.is_idle());
        port.clients.slots().iter().position(is_busy)
    }

    /// Runs one step, and moves the clock: to the port's next deadline, but by `most` at the most.
    pub(super) fn step_and_sleep(&mut self, most: Duration) {
        let sleep = self.step();
        self.clock.advance(sleep.unwrap_or(most).min(most));
    }
}
