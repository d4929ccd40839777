//! Ctrl-C and SIGTERM during the Linux demo: the virtual machines are killed, the demo fails for want of them, and
//! cleans up behind itself on the way out as after any failure.

use crate::demo::say;
use anyhow::Result;
use host::poll::{Interest, Poller, Signals, Waker};
use std::process::Command;
use std::thread::JoinHandle;

const SIGNALS: u64 = 0;
const OVER: u64 = 1;

/// Waits for signals as long as it lives.
#[derive(Debug)]
pub(super) struct Interrupt {
    over: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Interrupt {
    /// A signal kills these processes, which must live longer than this.
    ///
    /// # Errors
    /// Signals are caught by somebody else, or a descriptor or a thread cannot be had.
    pub(super) fn kills(pids: Vec<u32>) -> Result<Self> {
        let signals = Signals::install()?;
        let over = Waker::new()?;
        let mut poller = Poller::new()?;
        poller.add(&signals, SIGNALS, Interest::READ)?;
        poller.add(&over, OVER, Interest::READ)?;
        let wait = move || {
            let is_over = poller.wait(None).is_ok_and(|mut events| events.any(|event| event.token == OVER));
            if !is_over && signals.take().asks_to_end() {
                say("interrupted: ending the guests");
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                // Nothing is left to do if that fails.
                let _ = Command::new("sh").args(["-c", &format!("kill -KILL {}", pids.join(" "))]).status();
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(wait)?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.over.wake();
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}
