//! System calls of a host whose guests ring by memory: none for a frame, and next to none for a thousand. Every call of
//! the port's thread is counted, because the kernel stops it at each (ptrace): a call that somebody adds on a frame's way
//! is found wherever it is made. That takes nothing from the host but speed, and nothing at all where it makes no call.
//!
//! No number here depends on the clock. A wait in which the thread may sleep is counted apart: it happens when guests have
//! nothing to say, as often as the clock has it.

#![cfg(target_arch = "x86_64")]

use ::bench::contender::Mode;
use ::bench::contender::served::Served;
use ::bench::contender::work::Work;
use ::bench::machine::processors::Processors;
use ::bench::options::Options;
use clap::Parser;
use host::test_support::skipped;
use nix::errno::Errno;
use nix::libc::{self, c_void};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Frames that are counted with, at least.
const FRAMES: u64 = 100_000;
/// How long they move between two looks at what was counted.
const SLICE: Duration = Duration::from_millis(5);
/// For 1,000 packets in mapped mode, at most.
const BOUND: f64 = 10.0;

/// What a thread has called.
#[derive(Debug, Default)]
struct Calls {
    by_number: BTreeMap<u64, u64>,
    /// Waits in which it may have slept, which are not among them.
    pauses: u64,
}

#[test]
fn packets_of_guests_with_doorbells_in_memory_cost_next_to_no_system_call() {
    const WHAT: &str = "system calls of the host for 1,000 packets";
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped(WHAT, "it takes two processors");
    }
    let mut rates = Vec::new();
    for mode in [Mode::Posted, Mode::Mapped] {
        match calls(mode) {
            Ok((calls, frames)) => {
                let count: u64 = calls.by_number.values().sum();
                let rate = count as f64 * 1000.0 / frames as f64;
                println!("{mode}: {rate:.2} system calls for 1,000 packets, of {frames}: {calls:?}");
                rates.push(rate);
            }
            Err(Errno::EPERM) => return skipped(WHAT, "this process may not trace its children (ptrace)"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(rates[1] < BOUND, "{rates:?} for 1,000 packets, posted and mapped");
    // Whoever counts nothing would not notice anything.
    assert!(rates[1] < rates[0], "{rates:?} for 1,000 packets, posted and mapped");
}

/// Calls of a port's thread, and the frames that it has forwarded meanwhile.
fn calls(mode: Mode) -> nix::Result<(Calls, u64)> {
    let options = Options::parse_from(["bench", "--softiov", env!("CARGO_BIN_EXE_softiov")]);
    let processors = Processors::of_process().unwrap();
    let mut served = Served::start(&options, options.card(), mode, processors, Work::Frames(64)).unwrap();
    let port = port_of(served.process_id());
    let (frames, begun, over) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let traffic = served.running(|circle| {
        thread::scope(|scope| {
            let tracer = scope.spawn(|| {
                let calls = trace(port, &begun, || frames.load(Ordering::Relaxed) >= FRAMES);
                over.store(true, Ordering::Relaxed);
                calls
            });
            while !over.load(Ordering::Relaxed) {
                let counts = begun.load(Ordering::Relaxed);
                let arrived = circle.exchange(SLICE).arrived.iter().sum();
                frames.fetch_add(if counts { arrived } else { 0 }, Ordering::Relaxed);
            }
            tracer.join().unwrap()
        })
    });
    Ok((traffic.unwrap()?, frames.into_inner()))
}

/// Counts the calls of a thread from `begun` on until there is `enough`.
fn trace(thread: Pid, begun: &AtomicBool, enough: impl Fn() -> bool) -> nix::Result<Calls> {
    ptrace::seize(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(thread)?;
    let mut calls = Calls::default();
    let mut inside = false;
    loop {
        let signal = match waitpid(thread, Some(WaitPidFlag::__WALL))? {
            WaitStatus::PtraceSyscall(_) => {
                inside = !inside;
                if inside {
                    calls.note(thread)?;
                }
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceEvent(..) => None,
            ended => panic!("the port's thread is gone: {ended:?}"),
        };
        begun.store(true, Ordering::Relaxed);
        if enough() {
            ptrace::detach(thread, signal)?;
            return Ok(calls);
        }
        ptrace::syscall(thread, signal)?;
    }
}

impl Calls {
    /// Notes the call that a thread has stopped at.
    fn note(&mut self, thread: Pid) -> nix::Result<()> {
        let registers = ptrace::getregs(thread)?;
        let number = registers.orig_rax;
        if number == libc::SYS_epoll_pwait2 as u64 && may_sleep(thread, registers.r10)? {
            self.pauses += 1;
        } else {
            *self.by_number.entry(number).or_default() += 1;
        }
        Ok(())
    }
}

/// Whether a wait takes time: its `timespec` is another than zero, or there is none.
fn may_sleep(thread: Pid, timeout: u64) -> nix::Result<bool> {
    let word = |at: u64| ptrace::read(thread, at as *mut c_void);
    Ok(timeout == 0 || word(timeout)? != 0 || word(timeout + 8)? != 0)
}

/// The thread that is named as the port.
fn port_of(process: u32) -> Pid {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let port = tasks
        .flatten()
        .find(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == "pf0"));
    let name = port.expect("a thread called pf0").file_name();
    Pid::from_raw(name.to_str().unwrap().parse().unwrap())
}
