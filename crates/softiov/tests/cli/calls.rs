//! Counts the system calls of a host whose guests have mapped doorbells: none per frame, and few per thousand frames.
//! ptrace stops the port's thread at every call, so a call that is added to the frame path is found wherever it is
//! made. Tracing slows the thread only where it makes calls.
//!
//! No number depends on the clock. Waits in which the thread may sleep are counted apart, since they depend on how
//! long guests are idle.

#![cfg(target_arch = "x86_64")]

use ::bench::contender::ContenderKind;
use ::bench::contender::served::SoftiovContender;
use ::bench::contender::work::Workload;
use ::bench::machine::processors::ProcessorAssignment;
use ::bench::options::BenchmarkOptions;
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

/// Minimum number of forwarded frames over which system calls are counted.
const FRAMES: u64 = 100_000;
/// Duration of one portion of traffic; the frame count is checked after each.
const SLICE: Duration = Duration::from_millis(5);
/// Upper bound of the port thread's system calls per 1,000 frames with mapped doorbells.
const BOUND: f64 = 10.0;

/// System calls of the port's thread, by system call number.
#[derive(Debug, Default)]
struct SystemCallCounts {
    by_number: BTreeMap<u64, u64>,
    /// Number of waits in which the port's thread may have slept. They are not in `by_number`.
    pauses: u64,
}

#[test]
fn mapped_doorbells_cost_few_system_calls_per_packet() {
    const WHAT: &str = "system calls of the host for 1,000 packets";
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped(WHAT, "the benchmark needs two processors");
    }
    let mut rates = Vec::new();
    for mode in [ContenderKind::Posted, ContenderKind::Mapped] {
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
    // Without more calls in posted mode, the count would prove nothing.
    assert!(rates[1] < rates[0], "{rates:?} for 1,000 packets, posted and mapped");
}

/// Runs traffic on a host with doorbells of the given mode. Returns the system calls of its port's thread, and the
/// frames that the port forwarded meanwhile.
fn calls(mode: ContenderKind) -> nix::Result<(SystemCallCounts, u64)> {
    let options = BenchmarkOptions::parse_from(["bench", "--softiov", env!("CARGO_BIN_EXE_softiov")]);
    let processors = ProcessorAssignment::of_process().unwrap();
    let mut served =
        SoftiovContender::start(&options, options.card(), mode, processors, Workload::Frames(64)).unwrap();
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

/// Counts a thread's system calls by ptrace until `enough` returns true. Sets `begun` when counting starts.
fn trace(thread: Pid, begun: &AtomicBool, enough: impl Fn() -> bool) -> nix::Result<SystemCallCounts> {
    ptrace::seize(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(thread)?;
    let mut calls = SystemCallCounts::default();
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

impl SystemCallCounts {
    /// Counts the system call at which ptrace has stopped a thread.
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

/// Returns true if a system call that waits may sleep: its `timespec` is not zero, or there is none.
fn may_sleep(thread: Pid, timeout: u64) -> nix::Result<bool> {
    let word = |at: u64| ptrace::read(thread, at as *mut c_void);
    Ok(timeout == 0 || word(timeout)? != 0 || word(timeout + 8)? != 0)
}

/// Returns the id of the thread that runs the port in a host's process.
fn port_of(process: u32) -> Pid {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let port = tasks
        .flatten()
        .find(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == "pf0"));
    let name = port.expect("a thread called pf0").file_name();
    Pid::from_raw(name.to_str().unwrap().parse().unwrap())
}
