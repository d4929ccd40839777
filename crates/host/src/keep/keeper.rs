//! The keeper: a process that has the host started, holds copies of its descriptors, and has it started again with all
//! of them when it dies. It does nothing else: it reads no guest's data, opens no file and starts no program, and a
//! seccomp filter holds it to that ([`Role::Keeper`]).
//!
//! ```text
//!   softiov serve (keeper) ---- gives descriptors -------> softiov serve (host)
//!        |    ^            <--- FDSTORE, READY, SUCCEED --        ^
//!        v    |                                                   |
//!     softiov-starter ----------- starts -------------------------+
//! ```
//!
//! A host that ends by itself is the end of the keeper too, with the same exit status. One that is killed, panics or
//! asks for it ([`RESTART`]) is started again; if that happens often in a short time, ever later, until a hand-over has
//! brought another program. Signals are passed on. For a planned hand-over the host has the keeper start a second one
//! (`SUCCEED=1`), speaks to it alone, and says when it takes its place (`MAINPID=`), or that it does not (`ABANDON=1`).
//! Neither host nor keeper starts a program: the starter does, which was forked before (`keep::starter`). Without a
//! starter the host goes on, and cannot be replaced.
//!
//! Where systemd has a file descriptor store for the unit, it keeps what the keeper keeps: then a unit that is restarted
//! goes on, too. Left out: keeping anything over the death of the keeper elsewhere. A host whose keeper dies goes on
//! without.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal as Kill;

use super::backing;
use super::heritage::{self, KEEPER, Line, PREDECESSOR, number};
use super::message::{self, Shelf, value};
use super::process::{Death, Process};
use super::starter::Starter;
use super::store::{ABANDON, SUCCEED, Store};
use crate::confine::{Capabilities, Confinement, Role, Seccomp};
use crate::poll::{Interest, Poller, Signal, Signals};
use crate::worker::Worker;

/// The exit status by which a host asks to be started again with its descriptors (sysexits.h, EX_TEMPFAIL).
pub const RESTART: u8 = 75;
/// The exit status of a panic.
const PANIC: i32 = 101;
/// So many deaths within so long, and the next start waits, each time twice as long, up to the longest. QEMU waits five
/// seconds for a reply and then gives its device up, so the longest wait leaves time for the start itself.
const DEATHS: usize = 5;
const PERIOD: Duration = Duration::from_secs(60);
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

const SOCKET: u64 = 0;
const SIGNALS: u64 = 1;
const PROCESS: u64 = 2;
/// Processes that are not the host: a successor, and those that were the host.
const OTHERS: u64 = 3;
const STARTER: u64 = 4;

/// A keeper and its host.
struct Keeper {
    starter: Starter,
    shelf: Shelf,
    signals: Signals,
    /// systemd, or whoever has started the keeper and wants to know when the host is ready.
    notify: Option<Store>,
    /// systemd keeps what the keeper keeps.
    backed: bool,
    /// The host has been ready once.
    ready: bool,
    /// It was asked to end.
    ending: bool,
    deaths: VecDeque<Instant>,
    closer: Worker,
    /// A successor that has not taken over yet.
    successor: Option<Process>,
    /// Processes that have handed over, or were abandoned, and may not have ended yet.
    former: Vec<Process>,
}

/// Keeps a host until it ends; its exit status. `command` makes the host's command line. To be called before the process
/// has a second thread; afterwards it can do little but end.
///
/// # Errors
/// The keeper cannot begin: out of descriptors or processes, or it cannot be confined. What goes wrong later it says
/// itself, and the status is 1.
pub fn keep(command: &mut dyn FnMut() -> Command, seccomp: Seccomp) -> io::Result<u8> {
    let shelf = heritage::of_systemd().map_err(io::Error::other)?;
    let starter = Starter::fork(command)?;
    let confinement = Confinement { seccomp, capabilities: Capabilities::Unchanged };
    let gives_up = confinement.prepare(Role::Keeper).map_err(io::Error::other)?;
    let mut keeper = Keeper {
        starter,
        shelf,
        signals: Signals::install()?,
        notify: Store::notify()?,
        backed: Store::of_systemd()?.is_some(),
        ready: false,
        ending: false,
        deaths: VecDeque::new(),
        closer: Worker::start_confined("closer", &gives_up).map_err(io::Error::other)?,
        successor: None,
        former: Vec::new(),
    };
    gives_up.apply().map_err(io::Error::other)?;
    Ok(keeper.run().unwrap_or_else(|error| {
        // Here, since the caller may make calls to say it that it may make no more.
        say(&format!("the host cannot be started: {error}"));
        1
    }))
}

impl Keeper {
    /// Has a host after the other until none is to be started again; the last one's exit status.
    fn run(&mut self) -> io::Result<u8> {
        loop {
            let death = self.serve()?;
            if let Some(status) = self.judge(death) {
                return Ok(status);
            }
            if !self.wait() {
                return Ok(0);
            }
        }
    }

    /// Has a host started and keeps what it wants kept until it dies.
    fn serve(&mut self) -> io::Result<Death> {
        let (ours, theirs) = heritage::pair()?;
        let mut host = self.starter.start(KEEPER, theirs)?;
        let line = Line::over(ours)?;
        // One that has died already is heard of below.
        let _ = line.give(self.shelf.iter());
        let mut poller = Poller::new()?;
        poller.add(&line, SOCKET, Interest::READ)?;
        poller.add(&self.signals, SIGNALS, Interest::READ)?;
        poller.add(&host, PROCESS, Interest::READ)?;
        poller.add(self.starter.process(), STARTER, Interest::READ)?;
        loop {
            let events: Vec<u64> = poller.wait(None)?.map(|event| event.token).collect();
            if events.contains(&SOCKET) && !self.hear(&line, &mut host, &poller)? {
                // The host has closed it, and will end; or is gone.
                let _ = poller.remove(&line);
            }
            if events.contains(&OTHERS) {
                self.bury(&poller);
            }
            if events.contains(&STARTER) {
                self.go_on_without_starter(&poller);
            }
            if events.contains(&SIGNALS) {
                self.pass_on(&host);
            }
            if events.contains(&PROCESS) {
                // What it has said last, perhaps that another takes its place.
                while is_readable(&line) && self.hear(&line, &mut host, &poller)? {}
                if let Some(death) = host.death()? {
                    self.abandon();
                    return Ok(death);
                }
            }
        }
    }

    /// Does what one message says; false at the end of them.
    fn hear(&mut self, line: &Line, host: &mut Process, poller: &Poller) -> io::Result<bool> {
        let Some(message) = message::receive(line)? else { return Ok(false) };
        let text = &message.text;
        if value(text, "FDNAME").is_some() {
            let done = match &self.notify {
                Some(systemd) if self.backed => backing::apply(&mut self.shelf, message, |text, fd| {
                    // It may be starting itself anew; then it has missed this.
                    let _ = message::send(systemd, text, fd);
                }),
                _ => self.shelf.apply(message),
            };
            // The last close of a guest's memory takes seconds.
            self.closer.discard(done);
        } else if text == SUCCEED {
            self.abandon();
            if let Some(socket) = message.fd {
                // A line that ends at once tells the host that there is none.
                let started = self.starter.start(PREDECESSOR, socket);
                self.successor = started.inspect_err(|error| say(&format!("no successor: {error}"))).ok();
            }
            if let Some(successor) = &self.successor {
                poller.add(successor, OTHERS, Interest::READ)?;
            }
        } else if text == ABANDON {
            self.abandon();
        } else if number(text, "MAINPID").is_some() {
            if let Some(successor) = self.successor.take() {
                poller.modify(&successor, PROCESS, Interest::READ)?;
                let before = std::mem::replace(host, successor);
                poller.modify(&before, OTHERS, Interest::READ)?;
                self.former.push(before);
                // What died was another program.
                self.deaths.clear();
            }
        } else {
            self.ready |= value(text, "READY").is_some();
            self.relay(text);
        }
        Ok(true)
    }

    /// Passes a message on to whoever has started the keeper; they may be gone.
    fn relay(&self, text: &str) {
        if let Some(notify) = &self.notify {
            let _ = message::send(notify, text, None);
        }
    }

    /// Forgets processes that have ended.
    fn bury(&mut self, poller: &Poller) {
        self.former.extend(self.successor.take_if(|process| !matches!(process.death(), Ok(None))));
        self.former.retain(|process| {
            let lives = matches!(process.death(), Ok(None));
            if !lives {
                // It may have been waited for in an earlier host's time.
                let _ = poller.remove(process);
            }
            lives
        });
    }

    /// Forgets a starter that has ended.
    fn go_on_without_starter(&mut self, poller: &Poller) {
        let _ = poller.remove(self.starter.process());
        self.starter.bury();
        let remedy = if self.backed {
            "restart the unit, which guests do not notice"
        } else {
            "start `softiov serve` anew when guests can do without it"
        };
        say(&format!(
            "the process that starts hosts, softiov-starter, is gone. The host goes on, but this keeper can replace it no \
             more; {remedy}"
        ));
    }

    /// Ends a successor that has not taken over.
    fn abandon(&mut self) {
        if let Some(successor) = self.successor.take() {
            successor.signal(Kill::KILL);
            self.former.push(successor);
        }
    }

    fn pass_on(&mut self, host: &Process) {
        let signals = self.signals.take();
        self.ending |= signals.asks_to_end();
        for (signal, number) in [
            (Signal::Terminate, Kill::TERM),
            (Signal::Interrupt, Kill::INT),
            (Signal::HangUp, Kill::HUP),
            (Signal::HandOver, Kill::USR2),
        ] {
            if !signals.contains(signal) {
                continue;
            }
            if signal == Signal::HandOver && !self.backed && !self.starter.is_there() {
                say("SIGUSR2: nobody could start the host again; this one goes on");
                continue;
            }
            host.signal(number);
        }
    }

    /// The status to end with, if the host is not to be started again.
    fn judge(&mut self, death: Death) -> Option<u8> {
        match death {
            // Who keeps what is kept here starts the next.
            Death::Exit(status) if status == i32::from(RESTART) => return self.backed.then_some(RESTART),
            Death::Exit(status) if status != PANIC && (!self.ready || self.ending || status == 0) => {
                return Some(status as u8);
            }
            Death::Signal(_) | Death::Exit(_) if self.ending => return Some(1),
            Death::Signal(number) => {
                say(&format!("the host was killed by signal {number}; starting it again"));
            }
            Death::Exit(status) => {
                say(&format!("the host has failed with status {status}; starting it again"));
            }
        }
        self.deaths.push_back(Instant::now());
        None
    }

    /// Waits before the next start if hosts die too often; false if it is asked to end meanwhile.
    fn wait(&mut self) -> bool {
        while self.deaths.front().is_some_and(|death| death.elapsed() > PERIOD) {
            self.deaths.pop_front();
        }
        let Some(excess) = self.deaths.len().checked_sub(DEATHS) else { return true };
        let wait = (FIRST_WAIT * (1 << excess.min(8))).min(LONGEST_WAIT);
        say(&format!("{} deaths within {PERIOD:?}: the next start is in {wait:?}", self.deaths.len()));
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let mut asked = [PollFd::new(&self.signals, PollFlags::IN)];
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            // A signal interrupts, and is then seen below.
            let _ = poll(&mut asked, Some(&timeout));
            if self.signals.take().asks_to_end() {
                return false;
            }
        }
    }
}

fn is_readable(fd: impl AsFd) -> bool {
    ready(fd, PollFlags::IN)
}

/// Says something on standard error, if that takes it now: the keeper waits for no reader.
pub(super) fn say(text: &str) {
    if ready(io::stderr(), PollFlags::OUT) {
        let _ = writeln!(io::stderr(), "softiov keeper: {text}");
    }
}

fn ready(fd: impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(&fd, what)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok() && asked[0].revents().contains(what)
}
