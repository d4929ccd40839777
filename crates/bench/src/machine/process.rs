//! Starts and stops a program that takes part in the benchmark: stopped during other contenders' slices, and
//! ended when dropped.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

/// Longest time for a program to end after an interrupt signal.
const PATIENCE: Duration = Duration::from_secs(3);

/// Child process of the benchmark with its log.
#[derive(Debug)]
pub struct LoggedProcess {
    child: Child,
    log: PathBuf,
}

impl LoggedProcess {
    /// Takes over a child process that writes to `log`.
    #[must_use]
    pub fn new(child: Child, log: PathBuf) -> Self {
        Self { child, log }
    }

    /// Returns the process id of the child process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the text of the child process's log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns true if the child process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops the process (SIGSTOP), or continues it (SIGCONT).
    ///
    /// # Errors
    /// The process has ended.
    pub fn stop(&self, stopped: bool) -> io::Result<()> {
        Ok(kill_process(self.pid(), if stopped { Signal::STOP } else { Signal::CONT })?)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        // The process id cannot be reused before this process has waited for its child.
        let _ = kill_process(self.pid(), Signal::INT);
        let _ = kill_process(self.pid(), Signal::CONT);
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
