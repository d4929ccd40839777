//! Host of a simulation: a port with its vault, in the simulation's thread and time. It dies at moments that the seed
//! chooses, and its successor continues from what a killed process leaves: the vault's descriptors.

use super::super::*;
use super::policies::{PolicyModel, SimulatedPolicy};
use crate::clock::SharedClock;
use crate::control::status::PortStatus;
use crate::port::clients::slot::OfferedFunction;
use crate::port::moments::death::{self, ProcessDeath};
use crate::port::policy_update::{PortPolicyUpdate, VfPolicyUpdate};
use host::worker::ThreadlessWorkers;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// Longest time between two readings of the clock, in ns.
const TICK_NS: u64 = 300;
/// Sleep of a port at rest: longer than any interval between interrupts (8,191 us).
const REST: Duration = Duration::from_millis(10);
/// Steps within which a port comes to rest when no client asks anything of it.
const REST_STEPS: usize = 5_000;

/// Longest wait of a port while workers have jobs, which end meanwhile.
const JOB: Duration = Duration::from_micros(20);
/// Time that a paused port waits for its successor.
const PAUSE: Duration = Duration::from_secs(1);
/// Processes in a row that may die before they complete a turn. After more a port disconnects its clients (`succession::trust`).
const EARLY_DEATHS: usize = 2;
/// Moments of a successor that opens a port and begins its first turns.
const OPENING_MOMENTS: usize = 40;

/// Clock of the simulation. Each reading by the port is a moment at which the port may die.
#[derive(Debug, Default)]
pub(super) struct SimulatedClock {
    now_ns: AtomicU64,
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
        death::pass();
        self.now_ns.fetch_add(TICK_NS, Ordering::Relaxed);
        self.time()
    }

    fn blocking_time(&self, time: Option<Duration>) -> Option<Duration> {
        self.advance(time.expect("a step of the simulation bounds each wait"));
        Some(Duration::ZERO)
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
    /// Configuration of the host's file.
    file: HostConfig,
    /// Configuration in force, with the changes by command.
    settings: HostConfig,
    pub(super) policies: PolicyModel,
    /// Last life of each guest in which it was hostile; 0 for none.
    pub(super) hostile_lives: Vec<u32>,
    pub(super) random: fastrand::Rng,
    pub(super) deaths: u64,
    /// True if the keeper loses the clients' descriptors in each hand-over.
    pub(super) is_keeper_broken: bool,
    pub(super) rounds: u64,
    /// Time that the port would sleep; `None` without a deadline.
    sleep: Option<Duration>,
    /// Number of processes in a row that have not completed a turn.
    attempts: usize,
    /// True while successors may die before they have completed a turn.
    dies_early: bool,
    /// Largest number of pending jobs that one worker has had.
    pub(super) most_jobs: usize,
    _folder: TempDir,
}

impl SimulatedHost {
    pub(super) fn open(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut keys = HostConfig::parse(config).unwrap();
        keys.state_dir = Some(folder.path().join("state"));
        let config = HostConfig::check(keys, folder.path()).unwrap();
        let workers = ThreadlessWorkers::default();
        let mut threads = ThreadSandboxes::prepare(&config).unwrap();
        threads.helper = threads.helper.without_threads(&workers);
        threads.control = threads.control.without_threads(&workers);
        let clock = Arc::new(SimulatedClock::default());
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
            policies: PolicyModel::new(config.ports[0].vfs.len()),
            hostile_lives: vec![0; config.ports[0].vfs.len()],
            settings: config.clone(),
            file: config,
            random: fastrand::Rng::with_seed(0),
            deaths: 0,
            is_keeper_broken: false,
            rounds: 0,
            sleep: None,
            attempts: 0,
            dies_early: true,
            most_jobs: 0,
            _folder: folder,
        };
        host.start();
        host
    }

    pub(super) fn socket(&self, vf: usize) -> PathBuf {
        self.settings.ports[0].vfs[vf].socket.clone()
    }

    /// Chooses the moment at which the port or its successor dies, counted from now.
    pub(super) fn die_after(moments: usize) {
        death::set(Some(moments));
    }

    /// Lets the port and its successors live on.
    pub(super) fn spare(&mut self) {
        self.dies_early = false;
        death::set(None);
    }

    /// Opens the port from what the vault has, as the successor of a dead or a leaving process does. The successor may die while it
    /// opens the port, and in its first turns.
    fn start(&mut self) {
        self.settings = self.file.clone().restore().expect("a successor reads the state file");
        loop {
            self.attempts += 1;
            self.sleep = Some(Duration::ZERO);
            death::set(None);
            if self.dies_early && self.attempts <= EARLY_DEATHS && self.random.u32(0..6) == 0 {
                let moments = self.random.usize(0..OPENING_MOMENTS);
                Self::die_after(moments);
            }
            match catch_unwind(AssertUnwindSafe(|| self.open_port())) {
                Ok(port) => return self.port = Some(port),
                Err(reason) if reason.is::<ProcessDeath>() => self.clear_process(),
                Err(defect) => resume_unwind(defect),
            }
        }
    }

    fn open_port(&self) -> OpenPort {
        let config = &self.settings.ports[0];
        let prepared = PreparedPort::open(config, &self.vault, &self.inbox, &self.threads, &self.common);
        let mut port = prepared.expect("a successor can open the port").inherit(config);
        port.succession.note_software(port.engine.card_mut());
        port
    }

    /// Drops what ends with a killed process: jobs and commands.
    fn clear_process(&mut self) {
        self.deaths += 1;
        self.workers.kill();
        self.inbox.commands.try_iter().for_each(drop);
        drop(self.port.take());
    }

    /// Ends the process without a pause, and starts its successor.
    pub(super) fn kill(&mut self) {
        self.clear_process();
        self.start();
    }

    /// Pauses the port for a successor, which takes over if `succeeds`. Returns false if the port refuses, and `None` if it dies
    /// meanwhile.
    pub(super) fn hand_over(&mut self, succeeds: bool) -> Option<bool> {
        let (answer, saved) = mpsc::channel();
        let end = if succeeds { PortThreadCommand::Leave } else { PortThreadCommand::Resume };
        for command in [PortThreadCommand::Pause(PAUSE, answer), end] {
            assert!(self.handle.send(command), "the port has ended");
        }
        self.step(Duration::ZERO);
        saved.try_recv().ok()
    }

    /// Runs pending jobs of workers and one turn of the port, which waits for at most `most`.
    pub(super) fn step(&mut self, most: Duration) {
        let jobs = self.random.usize(0..3);
        for _ in 0..jobs {
            let busy = self.workers.busy();
            if busy.is_empty() {
                break;
            }
            self.workers.run_next(busy[self.random.usize(0..busy.len())]);
        }
        self.rounds += 1;
        let most = if self.workers.busy().is_empty() { most } else { most.min(JOB) };
        let timeout = self.sleep.map_or(most, |sleep| sleep.min(most));
        let mut port = self.port.take().expect("a port runs between two steps");
        let (inbox, clock) = (&self.inbox, &*self.clock);
        let turn = catch_unwind(AssertUnwindSafe(|| port.turn(inbox, Some(timeout), clock)));
        self.port = Some(port);
        self.most_jobs = self.most_jobs.max(self.workers.backlog());
        match turn {
            Ok(PortTurn::Continues(sleep)) => {
                self.sleep = sleep;
                self.attempts = 0;
            }
            Ok(PortTurn::Ended(PortThreadOutcome::HandedOver)) => {
                self.workers.kill();
                drop(self.port.take());
                if self.is_keeper_broken {
                    self.vault.forget_others("pf0.#", |_| false);
                }
                self.start();
            }
            Ok(PortTurn::Ended(outcome)) => panic!("the port has ended: {outcome:?}"),
            Err(reason) if reason.is::<ProcessDeath>() => self.kill(),
            Err(defect) => resume_unwind(defect),
        }
    }

    /// Lets the port work until only time would give it more to do.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        for _ in 0..REST_STEPS {
            self.step(REST);
            if self.workers.busy().is_empty() && self.sleep.is_none_or(|sleep| sleep >= REST) {
                return Ok(());
            }
        }
        Err(format!("the port does not rest within {REST_STEPS} steps"))
    }

    /// Sends the port a command as the control thread does, and lets the port work. Returns `None` if the port dies before it
    /// answers, and takes the command with it.
    fn ask<T>(&mut self, command: impl FnOnce(mpsc::Sender<T>) -> PortThreadCommand) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        assert!(self.handle.send(command(answer)), "the port has ended");
        self.step(Duration::ZERO);
        answered.try_recv().ok()
    }

    /// Returns the port's status.
    pub(super) fn status(&mut self) -> PortStatus {
        loop {
            if let Some(status) = self.ask(PortThreadCommand::Status) {
                return status;
            }
        }
    }

    /// Changes the policy of a VF as `management` does: the port checks the change, the state file keeps it, and then the port
    /// applies it. A host that dies meanwhile has done a part of this.
    pub(super) fn set_policy(&mut self, vf: usize, policy: SimulatedPolicy) -> Result<(), String> {
        let old = self.policies.of(vf);
        self.policies.begin(vf, policy);
        let kept = self.change_settings(vf, policy)?;
        self.policies.end(vf, if kept { policy } else { old });
        Ok(())
    }

    /// Changes the settings of a VF. Returns false if the host has died before the state file keeps them: then the old ones are in
    /// force, and else the new ones, also in a successor.
    fn change_settings(&mut self, vf: usize, policy: SimulatedPolicy) -> Result<bool, String> {
        let mut next = self.settings.clone();
        next.ports[0].vfs[vf].layers.change(policy.settings(), false);
        next.resolve().unwrap();
        let port = &next.ports[0];
        let vfs = port.vfs.iter().map(|vf| VfPolicyUpdate { policy: vf.policy, quarantine: None });
        let update = PortPolicyUpdate { policy: port.policy, vfs: vfs.collect() };
        let refused = |why| format!("the port refuses {policy:?} of VF {vf}: {why}");
        let Some(checked) = self.ask(|answer| PortThreadCommand::Check(update.clone(), answer)) else {
            return Ok(false);
        };
        checked.map_err(refused)?;
        next.keep(&self.settings).map_err(|error| error.to_string())?;
        // A port that dies from here on has a successor that reads the new state file.
        match self.ask(|answer| PortThreadCommand::ApplyPolicies(update, Vec::new(), answer)) {
            Some(applied) => {
                self.settings = next;
                applied.map_err(refused).map(|()| true)
            }
            None => Ok(true),
        }
    }

    /// Returns the first VF with a message that the port has not handled, or a reply that it has not sent.
    pub(super) fn first_unanswered(&self) -> Option<usize> {
        let port = self.port.as_ref().expect("a port runs between two steps");
        let is_busy = |slot: &OfferedFunction| slot.connection().is_some_and(|client| !client.is_idle());
        port.clients.slots().iter().position(is_busy)
    }
}
