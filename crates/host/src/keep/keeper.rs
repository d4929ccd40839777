//! The keeper: a process that starts the host, holds copies of its descriptors, and starts it again with all of them
//! when it dies. It does nothing else: it reads no guest's data and opens no file.
//!
//! ```text
//!   softiov serve (keeper) ---- starts, gives descriptors ----> softiov serve (host)
//!                          <--- FDSTORE, READY, MAINPID -------
//! ```
//!
//! A host that ends by itself is the end of the keeper too, with the same exit status. One that is killed, panics or
//! asks for it ([`RESTART`]) is started again; if that happens often in a short time, ever later. Signals are passed
//! on. A successor that the host has started itself (`MAINPID=`) takes its place.
//!
//! Left out: keeping anything over the death of the keeper. A host whose keeper dies goes on without.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal as Kill, WaitId, WaitIdOptions, kill_process, pidfd_open, set_child_subreaper,
    waitid,
};

use super::heritage::{Line, Successor, number};
use super::message::{self, Shelf, value};
use super::store::Store;
use crate::poll::{Interest, Poller, Signal, Signals};

/// The exit status by which a host asks to be started again with its descriptors (sysexits.h, EX_TEMPFAIL).
pub const RESTART: u8 = 75;
/// The exit status of a panic.
const PANIC: i32 = 101;
/// So many deaths within so long, and the next start waits: a second, and each time twice as long, up to the longest.
const DEATHS: usize = 5;
const PERIOD: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

const SOCKET: u64 = 0;
const SIGNALS: u64 = 1;
const PROCESS: u64 = 2;

/// How a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// A keeper and its host.
struct Keeper<'a> {
    command: &'a mut dyn FnMut() -> Command,
    shelf: Shelf,
    signals: Signals,
    /// Whoever has started the keeper and wants to know when the host is ready.
    notify: Option<Store>,
    /// The host has been ready once.
    ready: bool,
    /// It was asked to end.
    ending: bool,
    deaths: VecDeque<Instant>,
    /// Hosts that have handed over and may not have ended yet.
    former: Vec<Process>,
}

/// Keeps a host until it ends; its exit status. `command` makes the host's command line; `notify` hears READY.
///
/// # Errors
/// The host cannot be started, or the keeper is out of descriptors.
pub fn keep(command: &mut dyn FnMut() -> Command, notify: Option<Store>) -> io::Result<u8> {
    let signals = Signals::install()?;
    // Successors that the host starts become ours when it ends.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let (shelf, deaths) = (Shelf::default(), VecDeque::new());
    let mut keeper =
        Keeper { command, shelf, signals, notify, ready: false, ending: false, deaths, former: Vec::new() };
    loop {
        let death = keeper.serve()?;
        if let Some(status) = keeper.judge(death) {
            return Ok(status);
        }
        if !keeper.wait() {
            return Ok(0);
        }
    }
}

impl Keeper<'_> {
    /// Starts a host and keeps what it wants kept until it dies.
    fn serve(&mut self) -> io::Result<Death> {
        let Successor { child, line } = {
            let host = Successor::start(&mut (self.command)(), "keeper")?;
            // One that has died already is heard of below.
            let _ = host.give(self.shelf.iter());
            host
        };
        let mut host = Process::of(child.id() as i32)?;
        let mut poller = Poller::new()?;
        poller.add(&line, SOCKET, Interest::READ)?;
        poller.add(&self.signals, SIGNALS, Interest::READ)?;
        poller.add(&host.handle, PROCESS, Interest::READ)?;
        loop {
            let events: Vec<u64> = poller.wait(None)?.map(|event| event.token).collect();
            if events.contains(&SOCKET) && !self.hear(&line, &mut host, &poller)? {
                // The host has closed it, and will end; or is gone.
                let _ = poller.remove(&line);
            }
            self.former.retain(|process| matches!(process.death(), Ok(None)));
            if events.contains(&SIGNALS) {
                self.pass_on(&host);
            }
            if events.contains(&PROCESS)
                && let Some(death) = host.death()?
            {
                while is_readable(&line) && self.hear(&line, &mut host, &poller)? {}
                return Ok(death);
            }
        }
    }

    /// Takes one message; false at the end of them.
    fn hear(&mut self, line: &Line, host: &mut Process, poller: &Poller) -> io::Result<bool> {
        let Some(message) = message::receive(line)? else { return Ok(false) };
        if let Some(pid) = number(&message.text, "MAINPID").filter(|pid| *pid != host.pid) {
            let successor = Process::of(pid)?;
            poller.add(&successor.handle, PROCESS, Interest::READ)?;
            let before = std::mem::replace(host, successor);
            poller.remove(&before.handle)?;
            self.former.push(before);
        }
        self.ready |= value(&message.text, "READY").is_some();
        if message.fd.is_none() && value(&message.text, "FDNAME").is_none() {
            if let Some(notify) = self.notify.as_ref().filter(|_| value(&message.text, "MAINPID").is_none()) {
                // Whoever wanted to know may be gone.
                let _ = notify.say(&message.text);
            }
        } else {
            self.shelf.apply(message);
        }
        Ok(true)
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
            if signals.contains(signal)
                && let Some(pid) = Pid::from_raw(host.pid)
            {
                // A host that has just died is heard of as such.
                let _ = kill_process(pid, number);
            }
        }
    }

    /// The status to end with, if the host is not to be started again.
    fn judge(&mut self, death: Death) -> Option<u8> {
        match death {
            Death::Exit(status) if status == i32::from(RESTART) => return None,
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
        let wait = Duration::from_secs(1 << excess.min(5)).min(LONGEST_WAIT);
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

/// A process that is watched.
struct Process {
    pid: i32,
    handle: OwnedFd,
}

impl Process {
    fn of(pid: i32) -> io::Result<Self> {
        let process = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { pid, handle: pidfd_open(process, PidfdFlags::empty())? })
    }

    fn death(&self) -> io::Result<Option<Death>> {
        let status =
            waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Death::Exit(status),
            (_, signal) => Death::Signal(signal.unwrap_or_default()),
        }))
    }
}

fn is_readable(fd: impl AsFd) -> bool {
    ready(fd, PollFlags::IN)
}

/// Says something on standard error, if that takes it now: the keeper waits for no reader.
fn say(text: &str) {
    if ready(io::stderr(), PollFlags::OUT) {
        let _ = writeln!(io::stderr(), "softiov keeper: {text}");
    }
}

fn ready(fd: impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(&fd, what)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok() && asked[0].revents().contains(what)
}
