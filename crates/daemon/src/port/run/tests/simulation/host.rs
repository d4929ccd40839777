//! Host of a simulation: a port with its vault, in the simulation's thread and time. It dies at moments that the seed
//! chooses, and its successor continues from what a killed process leaves: the vault's descriptors.

mod administrator;
mod clients;
mod earlier;
mod files;
mod removal;
mod sleep;
mod stations;
mod stuck;

pub(super) use administrator::PolicyChange;
use earlier::EarlierProcesses;
pub(super) use removal::check_new;
use sleep::has_event;

use super::super::*;
use super::clock::SimulatedClock;
use super::kernel::SimulatedKernel;
use super::policies::PolicyModel;
use super::policy::SimulatedPolicy;
use super::uplink::{STATION_VLANS, SimulatedUplink};
use crate::clock::SharedClock;
use crate::control::status::PortStatus;
use crate::file_calls::FileCalls;
use crate::port::clients::slot::OfferedFunction;
use crate::port::moments::death::{self, ProcessDeath};
use crate::store::StateFile;
use host::worker::ThreadlessWorkers;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc;

/// Sleep of a port at rest: longer than any interval between interrupts (8,191 us).
const REST: Duration = Duration::from_millis(10);
/// Steps within which a port comes to rest when no client asks anything of it.
const REST_STEPS: usize = 5_000;

/// Longest wait of a port while workers have jobs, which end meanwhile.
const JOB: Duration = Duration::from_micros(20);
/// Time that a paused port waits for its successor.
const PAUSE: Duration = Duration::from_secs(1);
/// Steps within which the port pauses.
const PAUSE_STEPS: usize = 2_000;
/// Processes in a row that may die before they complete a turn. After more a port disconnects its clients (`succession::trust`).
const EARLY_DEATHS: usize = 2;
/// Moments of a successor that opens a port and begins its first turns.
const OPENING_MOMENTS: usize = 40;

/// Returns the index of the slot of a VF.
fn slot_of_vf(slots: &[OfferedFunction], vf: usize) -> Option<usize> {
    slots.iter().position(|slot| slot.function.vf().is_some_and(|of| of.index() == vf))
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
    state_file: StateFile,
    pub(super) policies: PolicyModel,
    /// Refused changes of VFs' policies that the state file may hold. A successor applies them.
    unsure: Vec<(usize, SimulatedPolicy)>,
    /// Stations at the uplink; `None` if the port has no uplink.
    pub(super) uplink: Option<SimulatedUplink>,
    /// Last life of each guest in which it was hostile; 0 for none. Stations come after the guests.
    pub(super) hostile_lives: Vec<u32>,
    pub(super) random: fastrand::Rng,
    pub(super) kernel: SimulatedKernel,
    pub(super) deaths: u64,
    /// True if the keeper loses the clients' descriptors in each hand-over.
    pub(super) is_keeper_broken: bool,
    pub(super) earlier: EarlierProcesses,
    /// Hand-over after a number of steps in which a driver waits, and true if it succeeds.
    upgrade: Option<(usize, bool)>,
    pub(super) rounds: u64,
    /// Time that the port would sleep; `None` without a deadline.
    sleep: Option<Duration>,
    /// Time until which the port sleeps unless an event wakes it, `None` in it for no limit; `None` for a port that is awake.
    asleep_until: Option<Option<Time>>,
    /// Number of processes in a row that have not completed a turn.
    attempts: usize,
    /// True while successors may die before they have completed a turn.
    dies_early: bool,
    /// Longest time in which a request of a guest was answered, beside hostile guests too, without a death.
    pub(super) longest_answer: Duration,
    /// Longest time to an answer of a guest that attaches while its function has a former client.
    pub(super) longest_start: Duration,
    /// True if a hostile VMM was ever attached.
    pub(super) has_intruders: bool,
    /// Largest number of pending jobs that one worker has had.
    pub(super) most_jobs: usize,
    /// Number of stations that successors knew from the process before a hand-over.
    pub(super) kept_stations: u64,
    stuck: Option<stuck::StuckWorker>,
    _folder: TempDir,
}

impl SimulatedHost {
    pub(super) fn open(config: &str, has_uplink: bool) -> Self {
        let folder = files::folder();
        let config = files::configuration(config, &folder, has_uplink);
        let workers = ThreadlessWorkers::default();
        let mut threads = ThreadSandboxes::prepare(&config).unwrap();
        threads.helper = threads.helper.without_threads(&workers);
        threads.control = threads.control.without_threads(&workers);
        let clock = Arc::new(SimulatedClock::default());
        clock.advance(Duration::from_secs(1));
        let shared: SharedClock = clock.clone();
        let common = SharedPortResources {
            wires: WireRegistry::default(),
            parents: ParentAddressRegistry::default(),
            programs: XdpPrograms::default(),
            files: FileCalls::default(),
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
            state_file: StateFile::default(),
            policies: PolicyModel::new(config.ports[0].vfs.len()),
            unsure: Vec::new(),
            uplink: None,
            hostile_lives: vec![0; config.ports[0].vfs.len() + STATION_VLANS.len()],
            settings: config.clone(),
            file: config,
            random: fastrand::Rng::with_seed(0),
            kernel: SimulatedKernel::new(),
            deaths: 0,
            is_keeper_broken: false,
            earlier: EarlierProcesses::default(),
            upgrade: None,
            rounds: 0,
            sleep: None,
            asleep_until: None,
            attempts: 0,
            dies_early: true,
            longest_answer: Duration::ZERO,
            longest_start: Duration::ZERO,
            has_intruders: false,
            most_jobs: 0,
            kept_stations: 0,
            stuck: None,
            _folder: folder,
        };
        if has_uplink {
            host.uplink = Some(SimulatedUplink::new(&host.common.wires, &host.file.ports[0]));
        }
        host.start();
        host
    }

    pub(super) fn socket(&self, vf: usize) -> PathBuf {
        self.settings.ports[0].vfs[vf].socket.clone()
    }

    /// Chooses the moment at which the port or its successor dies, counted from now. A port lives on if three processes in a row
    /// have died before they completed a turn: the successor of a fourth would disconnect its clients.
    pub(super) fn die_after(&self, moments: usize) {
        if self.attempts <= EARLY_DEATHS + 1 {
            death::set(Some(moments));
        }
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
        self.take_unsure_changes();
        self.common.wires = WireRegistry::default();
        if let Some(uplink) = &mut self.uplink {
            uplink.reconnect(&self.common.wires);
        }
        loop {
            self.attempts += 1;
            (self.sleep, self.asleep_until) = (Some(Duration::ZERO), None);
            death::set(None);
            if self.dies_early && self.attempts <= EARLY_DEATHS && self.random.u32(0..6) == 0 {
                let moments = self.random.usize(0..OPENING_MOMENTS);
                self.die_after(moments);
            }
            match catch_unwind(AssertUnwindSafe(|| self.open_port())) {
                Ok(port) => {
                    self.port = Some(port);
                    return self.announce_stations();
                }
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
        self.end_workers();
        self.inbox.commands.try_iter().for_each(drop);
        if let Some(mut port) = self.port.take() {
            // A killed process removes no file.
            port.clients.leave_socket_files();
        }
        self.leave_earlier_states();
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
        let deaths = self.deaths;
        self.step(Duration::ZERO);
        for _ in 0..PAUSE_STEPS {
            match saved.try_recv() {
                Ok(is_saved) => return Some(is_saved),
                Err(_) if self.deaths > deaths => return None,
                Err(_) => self.step(JOB),
            }
        }
        Some(false)
    }

    /// Chooses a hand-over after this number of steps in which a driver waits.
    pub(super) fn hand_over_after(&mut self, waits: usize, succeeds: bool) {
        self.upgrade = Some((waits, succeeds));
    }

    /// Forgets the hand-over that has not come. Returns false if one has.
    pub(super) fn forget_hand_over(&mut self) -> bool {
        self.upgrade.take().is_some()
    }

    /// Runs a step of the host in which a driver waits.
    pub(super) fn step_of_driver(&mut self, most: Duration) {
        match self.upgrade.take() {
            Some((0, succeeds)) => {
                assert_ne!(self.hand_over(succeeds), Some(false), "the port refuses to hand over");
            }
            Some((waits, succeeds)) => self.upgrade = Some((waits - 1, succeeds)),
            None => {}
        }
        self.count_wait_for_worker();
        self.step(most);
    }

    /// Runs pending jobs of workers and one turn of the port, which waits for at most `most`.
    pub(super) fn step(&mut self, most: Duration) {
        let jobs = self.random.usize(0..3);
        for _ in 0..jobs {
            let busy = self.runnable_workers();
            if busy.is_empty() {
                break;
            }
            match self.workers.run_next(busy[self.random.usize(0..busy.len())]) {
                Ok(()) => {}
                Err(reason) if reason.is::<ProcessDeath>() => return self.kill(),
                Err(defect) => resume_unwind(defect),
            }
        }
        let most = if self.runnable_workers().is_empty() { most } else { most.min(JOB) };
        if self.sleeps_on(most) {
            return;
        }
        self.rounds += 1;
        let mut port = self.port.take().expect("a port runs between two steps");
        let turn = catch_unwind(AssertUnwindSafe(|| self.turn(&mut port, most)));
        self.port = Some(port);
        self.take_departed_frames();
        self.most_jobs = self.most_jobs.max(self.workers.backlog());
        match turn {
            Ok(None) => {}
            Ok(Some(PortTurn::Continues(sleep))) => {
                self.sleep = sleep;
                self.attempts = 0;
            }
            Ok(Some(PortTurn::Ended(PortThreadOutcome::HandedOver))) => {
                self.end_workers();
                let stations = self.known_stations();
                drop(self.port.take());
                self.earlier.hand_overs += u64::from(self.leave_earlier_states());
                if self.is_keeper_broken {
                    self.vault.forget_others("pf0.#", |_| false);
                }
                self.start();
                self.check_known_stations(&stations);
            }
            Ok(Some(PortTurn::Ended(outcome))) => panic!("the port has ended: {outcome:?}"),
            Err(reason) if reason.is::<ProcessDeath>() => self.kill(),
            Err(defect) => resume_unwind(defect),
        }
    }

    /// Lets the port work until only time would give it more to do.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        for _ in 0..REST_STEPS {
            self.step(REST);
            let sleeps = self.sleep.is_none_or(|sleep| sleep >= REST);
            if sleeps && self.runnable_workers().is_empty() && !self.port.as_ref().is_some_and(has_event) {
                return Ok(());
            }
        }
        Err(format!("the port does not rest within {REST_STEPS} steps"))
    }

    /// Sends the port a command as the control thread does, and lets the port work. Returns `None` if the host dies meanwhile: the
    /// control thread dies with the port, also after an answer.
    fn ask<T>(&mut self, command: impl FnOnce(mpsc::Sender<T>) -> PortThreadCommand) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        assert!(self.handle.send(command(answer)), "the port has ended");
        let deaths = self.deaths;
        self.step(Duration::ZERO);
        answered.try_recv().ok().filter(|_| self.deaths == deaths)
    }

    /// Returns the port's status.
    pub(super) fn status(&mut self) -> PortStatus {
        loop {
            if let Some(status) = self.ask(PortThreadCommand::Status) {
                return status;
            }
        }
    }
}
