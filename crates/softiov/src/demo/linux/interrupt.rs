//! Kills the guests of the Linux demo on SIGINT or SIGTERM: the demo then fails and cleans up as after any error.

use crate::demo::print_progress;
use anyhow::Result;
use host::poll::{PollInterest, Poller, SignalHandlers, ThreadWaker};
use std::process::Command;
use std::thread::JoinHandle;

const SIGNALS: u64 = 0;
const OVER: u64 = 1;

/// Thread that waits for signals and then kills the demo's guests, until this value is dropped.
#[derive(Debug)]
pub(super) struct DemoSignalThread {
    over: ThreadWaker,
    thread: Option<JoinHandle<()>>,
}

impl DemoSignalThread {
    /// Kills the processes `pids` on SIGINT or SIGTERM. They must live longer than this value.
    ///
    /// # Errors
    /// Signals are caught already, or the process is out of descriptors or threads.
    pub(super) fn kill_on_signal(pids: Vec<u32>) -> Result<Self> {
        let signals = SignalHandlers::install()?;
        let over = ThreadWaker::new()?;
        let mut poller = Poller::new()?;
        poller.add(&signals, SIGNALS, PollInterest::READ)?;
        poller.add(&over, OVER, PollInterest::READ)?;
        let wait = move || {
            let is_over = poller.wait(None).is_ok_and(|mut events| events.any(|event| event.token == OVER));
            if !is_over && signals.take().asks_to_end() {
                print_progress("interrupted: ending the guests");
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                // If this fails, nothing else can be tried.
                let _ = Command::new("sh").args(["-c", &format!("kill -KILL {}", pids.join(" "))]).status();
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(wait)?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for DemoSignalThread {
    fn drop(&mut self) {
        self.over.wake();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported the thread's panic.
            let _ = thread.join();
        }
    }
}
