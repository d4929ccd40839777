//! The keeper: a process that has the host started, holds copies of its file descriptors, and has a new host started
//! with all descriptors when the host dies. The keeper reads no guest's data, opens no file and starts no program, and
//! a seccomp filter enforces this.
//!
//! ```text
//!   keeper ---- gives descriptors -------> host
//!    |  ^  <--- FDSTORE, READY, SUCCEED --  ^
//!    v  |                                   |
//!   starter ----------- starts -------------+
//! ```
//!
//! When a host exits, the keeper exits with the same status. A host that is killed, panics or asks for it
//! ([`RESTART`]) is started again; after several deaths in a short time the start is delayed, until a hand-over has
//! brought another program. Signals are forwarded. For a planned hand-over the host asks the keeper to start a
//! successor (`SUCCEED=1`), speaks to it directly, and reports that it takes over (`MAINPID=`) or that it does not
//! (`ABANDON=1`). Neither host nor keeper starts a program: the starter does, which was forked before
//! (`starter`). Without a starter the host continues, but cannot be replaced.
//!
//! Where systemd has a file descriptor store for the unit, it stores the keeper's descriptors too, so that guests
//! survive a restart of the unit. Elsewhere the descriptors are lost with the keeper, and its host continues
//! without one.

use std::io;
use std::process::Command;
use std::time::Instant;

use host::confine::{SeccompMode, ThreadCapabilities, ThreadRole, ThreadSandbox};
use host::poll::{PollInterest, Poller, ProcessSignal, SignalHandlers};
use host::worker::BlockingWorker;
use rustix::event::PollFlags;
use rustix::process::Signal as Kill;

use crate::backing::{self, BackedChange};
use crate::channel::{self, HandOverChannel};
use crate::connection::{ABANDON, KeeperConnection, SUCCEED};
use crate::deaths::{PERIOD, RecentDeaths};
use crate::heritage::{self, KEEPER, PREDECESSOR};
use crate::log::{becomes_ready, is_ready, say};
use crate::message::{self, KeepFailure, KeptFileDescriptors, number, value};
use crate::process::{ChildProcess, ProcessExitCause};
use crate::starter::StarterProcessConnection;

/// Settings of a keeper process.
#[derive(Debug, Clone, Copy)]
pub struct KeeperConfig<'a> {
    /// Name of the service, in the keeper's messages (`NAME keeper: ...`) and of the starter process (`NAME-starter`,
    /// cut to 15 bytes).
    pub service: &'a str,
    /// Action on system calls that the keeper process should not make.
    pub seccomp: SeccompMode,
}

/// Exit status by which a host asks to be started again with its file descriptors (sysexits.h, EX_TEMPFAIL).
pub const RESTART: u8 = 75;
/// Exit status of a Rust program that panicked (Rust runtime).
const PANIC: i32 = 101;
/// Maximum number of the keeper's messages that wait to be written, while a disk stalls.
const MESSAGES: usize = 100;

const SOCKET: u64 = 0;
const SIGNALS: u64 = 1;
const PROCESS: u64 = 2;
/// Poller token of processes other than the host and the starter: a replacement of the host, and former hosts.
const OTHERS: u64 = 3;
const STARTER: u64 = 4;

/// State of the keeper: the process that starts hosts and holds their file descriptors.
struct FileDescriptorKeeper {
    /// Name of the service whose hosts the keeper process starts.
    service: String,
    starter: StarterProcessConnection,
    shelf: KeptFileDescriptors,
    signals: SignalHandlers,
    /// Connection to the service manager, such as systemd, that waits for the host's readiness.
    notify: Option<KeeperConnection>,
    /// True if systemd stores the kept file descriptors too.
    backed: bool,
    /// True once a host has sent READY=1.
    ready: bool,
    /// True once a signal has asked the keeper process to end.
    ending: bool,
    deaths: RecentDeaths,
    /// Number of file descriptors that hosts have sent and that were not kept, or not stored by systemd.
    lost: u64,
    closer: BlockingWorker,
    /// Thread that writes the keeper's messages. A disk that stalls blocks a write, and must not delay the next host.
    writer: BlockingWorker,
    /// Started replacement of the host that has not taken over yet.
    successor: Option<ChildProcess>,
    /// Signals that the host was sent since `successor` was started. A host that hands over reads no signal any more.
    unread: Vec<Kill>,
    /// Host processes that have handed over to a successor, or were abandoned, and may still run.
    former: Vec<ChildProcess>,
}

/// Starts hosts and holds their file descriptors until a host ends for good. Returns the exit status. `command` builds
/// the host's command line. The process must have one thread and no open file; afterwards its system calls are restricted.
///
/// # Errors
/// The keeper cannot start: a second thread or an open file, out of descriptors or processes, or it cannot be confined. Later errors go to standard
/// error, and the status is 1.
pub fn keep(config: &KeeperConfig<'_>, command: &mut dyn FnMut() -> Command) -> io::Result<u8> {
    let KeeperConfig { service, seccomp } = *config;
    let mut shelf = heritage::of_systemd().map_err(io::Error::other)?;
    let starter = StarterProcessConnection::fork(service, &mut shelf, command)?;
    let confinement = ThreadSandbox { seccomp, capabilities: ThreadCapabilities::Unchanged };
    let gives_up = confinement.prepare(ThreadRole::Keeper).map_err(io::Error::other)?;
    let mut keeper = FileDescriptorKeeper {
        service: service.to_owned(),
        starter,
        shelf,
        signals: SignalHandlers::install()?,
        notify: KeeperConnection::notify()?,
        backed: KeeperConnection::of_systemd()?.is_some(),
        ready: false,
        ending: false,
        deaths: RecentDeaths::default(),
        lost: 0,
        closer: BlockingWorker::start_confined("closer", &gives_up).map_err(io::Error::other)?,
        writer: BlockingWorker::start_confined("writer", &gives_up).map_err(io::Error::other)?,
        successor: None,
        unread: Vec::new(),
        former: Vec::new(),
    };
    gives_up.apply().map_err(io::Error::other)?;
    Ok(keeper.run().unwrap_or_else(|error| {
        // Reported here: confined as it is now, the process may not make the caller's system calls.
        say(service, &format!("cannot start the host: {error}"));
        1
    }))
}

impl FileDescriptorKeeper {
    /// Starts hosts, each after the end of the previous host. Returns the exit status with which the keeper process
    /// ends.
    fn run(&mut self) -> io::Result<u8> {
        loop {
            let death = match self.start_host() {
                Ok((line, host, poller)) => self.serve(&line, host, poller)?,
                // A lack of processes or memory may end, and until then the keeper holds the descriptors.
                Err(error) if self.ready && self.starter.is_alive() => {
                    self.say(format!("cannot start a host: {error}; trying again"));
                    self.deaths.add(Instant::now());
                    match self.wait() {
                        _ if self.ending => return Ok(1),
                        Some(status) => return Ok(status),
                        None => continue,
                    }
                }
                Err(error) => return Err(error),
            };
            if let Some(status) = self.status_to_end_with(death) {
                return Ok(status);
            }
            if let Some(status) = self.wait() {
                return Ok(status);
            }
        }
    }

    /// Starts a host, and gives it the kept file descriptors. Returns its socket, its process, and a poller of both.
    fn start_host(&mut self) -> io::Result<(HandOverChannel, ChildProcess, Poller)> {
        let (ours, theirs) = channel::pair()?;
        let (line, poller) = (HandOverChannel::over(ours)?, Poller::new()?);
        poller.add(&line, SOCKET, PollInterest::READ)?;
        poller.add(&self.signals, SIGNALS, PollInterest::READ)?;
        poller.add(self.starter.process(), STARTER, PollInterest::READ)?;
        let host = self.starter.start(KEEPER, theirs)?;
        if let Err(error) = poller.add(&host, PROCESS, PollInterest::READ) {
            host.signal(Kill::KILL);
            return Err(error);
        }
        // The loop below notices the end of a host that was killed or has died already.
        host.give(&line, &self.shelf).unwrap_or_else(|error| {
            self.say(format!("the host did not receive its file descriptors, and is killed: {error}"));
        });
        Ok((line, host, poller))
    }

    /// Keeps the file descriptors of a host until it ends.
    fn serve(
        &mut self,
        line: &HandOverChannel,
        mut host: ChildProcess,
        mut poller: Poller,
    ) -> io::Result<ProcessExitCause> {
        loop {
            let events: Vec<u64> = poller.wait(None)?.map(|event| event.token).collect();
            if events.contains(&SOCKET) && !self.hear(line, &mut host, &poller)? {
                // The host has closed the socket and will end, or has ended.
                let _ = poller.remove(line);
            }
            if events.contains(&OTHERS) {
                self.reap(&poller);
            }
            if events.contains(&STARTER) {
                self.drop_starter(&poller);
            }
            if events.contains(&SIGNALS) {
                self.forward_signals(&host);
            }
            if events.contains(&PROCESS) {
                // Reads the host's last messages; one may name a successor as the new host.
                while is_ready(line, PollFlags::IN) && self.hear(line, &mut host, &poller)? {}
                if let Some(death) = host.death()? {
                    self.abandon();
                    return Ok(death);
                }
            }
        }
    }

    /// Carries out one message that a host sent to the keeper process. Returns false if the host has closed the socket.
    fn hear(&mut self, line: &HandOverChannel, host: &mut ChildProcess, poller: &Poller) -> io::Result<bool> {
        let Some(message) = message::receive(line)? else { return Ok(false) };
        let text = &message.text;
        if let Some(name) = value(text, "FDNAME").map(str::to_owned) {
            let refusal = self.shelf.refusal(&message);
            let BackedChange { done, unstored } = match &self.notify {
                Some(systemd) if self.backed => backing::apply(&mut self.shelf, message, |text, fd| {
                    // systemd may be restarting itself, and then misses this message.
                    let _ = message::send(systemd, text, fd);
                }),
                _ => BackedChange { done: self.shelf.apply(message), unstored: None },
            };
            // The last close of a guest's memory takes seconds.
            self.closer.discard(done);
            if let Some(failure) = refusal.or(unstored) {
                self.report_lost(&name, failure);
            }
        } else if text == SUCCEED {
            self.abandon();
            if let Some(socket) = message.fd {
                // The closed socket tells the host that no successor started.
                let started = self.starter.start(PREDECESSOR, socket);
                self.successor =
                    started.inspect_err(|error| self.say(format!("cannot start a successor: {error}"))).ok();
            }
            if let Some(successor) = &self.successor {
                poller.add(successor, OTHERS, PollInterest::READ)?;
            }
        } else if text == ABANDON {
            self.abandon();
        } else if number(text, "MAINPID").is_some() {
            if let Some(successor) = self.successor.take() {
                poller.modify(&successor, PROCESS, PollInterest::READ)?;
                let before = std::mem::replace(host, successor);
                poller.modify(&before, OTHERS, PollInterest::READ)?;
                self.former.push(before);
                self.unread.drain(..).for_each(|signal| host.signal(signal));
                // The deaths were those of another program.
                self.deaths = RecentDeaths::default();
            }
        } else {
            self.ready |= value(text, "READY").is_some();
            self.relay(text);
        }
        Ok(true)
    }

    /// Counts and reports a file descriptor that the next host, or the next keeper, will lack. A guest can cause many of
    /// them, so the reports become rarer.
    fn report_lost(&mut self, name: &str, failure: KeepFailure) {
        self.lost += 1;
        if self.lost.is_power_of_two() {
            let number = self.lost;
            self.say(format!(
                "cannot keep file descriptor {name:?}: {failure}; number of such descriptors: {number}"
            ));
        }
    }

    /// Forwards a host's message to the service manager, if there is one. The manager may have ended.
    fn relay(&self, text: &str) {
        if let Some(notify) = &self.notify {
            let _ = message::send(notify, text, None);
        }
    }

    /// Reaps ended child processes of the keeper process.
    fn reap(&mut self, poller: &Poller) {
        self.former.extend(self.successor.take_if(|process| !matches!(process.death(), Ok(None))));
        self.former.retain(|process| {
            let lives = matches!(process.death(), Ok(None));
            if !lives {
                // An earlier call may have reaped the process already.
                let _ = poller.remove(process);
            }
            lives
        });
    }

    /// Forgets the starter process after it has ended, and reports its end.
    fn drop_starter(&mut self, poller: &Poller) {
        let _ = poller.remove(self.starter.process());
        self.starter.reap();
        let remedy = if self.backed {
            "restart the unit; clients stay connected"
        } else {
            "restart the service when its clients can do without it"
        };
        self.say(format!(
            "the process that starts hosts, {}, has ended. The host continues, but this keeper can no longer \
             replace the host; {remedy}",
            self.starter.name()
        ));
    }

    /// Kills the started replacement of the host if it has not taken over. The host reads its signals itself.
    fn abandon(&mut self) {
        self.unread.clear();
        if let Some(successor) = self.successor.take() {
            successor.signal(Kill::KILL);
            self.former.push(successor);
        }
    }

    /// Queues a line for the keeper's log, unless too many lines wait already.
    fn say(&self, text: String) {
        if self.writer.backlog() < MESSAGES {
            let service = self.service.clone();
            self.writer.run(move || say(&service, &text));
        }
    }

    fn forward_signals(&mut self, host: &ChildProcess) {
        let signals = self.signals.take();
        self.ending |= signals.asks_to_end();
        for (signal, number) in [
            (ProcessSignal::Terminate, Kill::TERM),
            (ProcessSignal::Interrupt, Kill::INT),
            (ProcessSignal::HangUp, Kill::HUP),
            (ProcessSignal::HandOver, Kill::USR2),
        ] {
            if !signals.contains(signal) {
                continue;
            }
            if signal == ProcessSignal::HandOver && !self.backed && !self.starter.is_alive() {
                self.say(format!(
                    "SIGUSR2 ignored: {} and a systemd store are missing, so no other host can start; this host \
                     continues",
                    self.starter.name()
                ));
                continue;
            }
            host.signal(number);
            if self.successor.is_some() && !self.unread.contains(&number) {
                self.unread.push(number);
            }
        }
    }

    /// Returns the keeper's exit status, or `None` if another host is to be started.
    fn status_to_end_with(&mut self, death: ProcessExitCause) -> Option<u8> {
        match death {
            // systemd stores the descriptors, and starts the next keeper with them.
            ProcessExitCause::Exit(status) if status == i32::from(RESTART) && self.backed => {
                return Some(RESTART);
            }
            ProcessExitCause::Exit(status)
                if status != PANIC && (!self.ready || self.ending || status == 0) =>
            {
                return Some(status as u8);
            }
            ProcessExitCause::Signal(_) | ProcessExitCause::Exit(_) if self.ending => return Some(1),
            ProcessExitCause::Signal(number) => {
                self.say(format!("the host was killed by signal {number}; starting the host again"));
            }
            ProcessExitCause::Exit(status) => {
                self.say(format!("the host failed with status {status}; starting the host again"));
            }
        }
        self.deaths.add(Instant::now());
        None
    }

    /// Delays the next start of a host if hosts end too often. Returns the exit status if a signal asks the keeper process
    /// to end meanwhile: for good, or for a restart by systemd, which stores the descriptors.
    fn wait(&mut self) -> Option<u8> {
        let now = Instant::now();
        let wait = self.deaths.pause(now)?;
        self.say(format!(
            "the host ended {} times within {PERIOD:?}: the next start is in {wait:?}",
            self.deaths.count()
        ));
        let end = now + wait;
        loop {
            let signals = self.signals.take();
            self.ending |= signals.asks_to_end();
            if self.ending {
                return Some(0);
            }
            if self.backed && signals.contains(ProcessSignal::HandOver) {
                return Some(RESTART);
            }
            becomes_ready(&self.signals, PollFlags::IN, end.checked_duration_since(Instant::now())?);
        }
    }
}
