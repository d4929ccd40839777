//! The two processors of a run, and threads held on them.

use anyhow::{Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::process::{Child, Command};

/// Who runs where.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// Generates and takes the frames.
    pub generator: usize,
    /// Forwards them.
    pub forwarder: usize,
}

impl Processors {
    /// The first and the last that this process may use: the least likely to be two threads of one core.
    ///
    /// # Errors
    /// There is one only.
    pub fn of_process() -> Result<Self> {
        let set = sched_getaffinity(None)?;
        let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| set.is_set(at)).collect();
        match usable[..] {
            [generator, .., forwarder] => Ok(Self { generator, forwarder }),
            _ => bail!("this process may use one processor only; forwarder and generator need one each"),
        }
    }

    /// Does `work` with this thread, and what it starts, held on a processor.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn held<T>(processor: usize, work: impl FnOnce() -> T) -> io::Result<T> {
        let before = sched_getaffinity(None)?;
        let mut set = CpuSet::new();
        set.set(processor);
        sched_setaffinity(None, &set)?;
        let done = work();
        sched_setaffinity(None, &before)?;
        Ok(done)
    }

    /// Starts a program that stays on a processor.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(processor: usize, command: &mut Command) -> io::Result<Child> {
        Self::held(processor, || command.spawn())?
    }
}
