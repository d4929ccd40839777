//! A program that takes part: stopped while others have their slices, and gone when it is dropped.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a program may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// A child of ours, with its log.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// `child` writes what it has to say to `log`.
    #[must_use]
    pub fn new(child: Child, log: PathBuf) -> Self {
        Self { child, log }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it runs no more.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Takes its processor away from it, or gives it back.
    ///
    /// # Errors
    /// It is gone.
    pub fn stop(&self, stopped: bool) -> io::Result<()> {
        Ok(kill_process(self.pid(), if stopped { Signal::STOP } else { Signal::CONT })?)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The kernel gives the number to no other process before this one has waited for its child.
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
