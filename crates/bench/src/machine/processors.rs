//! Chooses the two processors of a benchmark run, and restricts threads to them.

use anyhow::{Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::process::{Child, Command};

/// Numbers of the two processors that the forwarder and the generator of frames run on.
#[derive(Debug, Clone, Copy)]
pub struct ProcessorAssignment {
    /// Processor that generates and receives the frames.
    pub generator: usize,
    /// Processor whose thread forwards the frames of the contender.
    pub forwarder: usize,
}

impl ProcessorAssignment {
    /// Chooses the first and the last usable processor, which are least likely to be two threads of one core.
    ///
    /// # Errors
    /// Only one processor is usable.
    pub fn of_process() -> Result<Self> {
        let set = sched_getaffinity(None)?;
        let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| set.is_set(at)).collect();
        match usable[..] {
            [generator, .., forwarder] => Ok(Self { generator, forwarder }),
            _ => bail!(
                "only one processor is available to this process: forwarder and generator need one each"
            ),
        }
    }

    /// Runs `work` with this thread, and the threads that it starts, restricted to one processor.
    ///
    /// # Errors
    /// The kernel refuses the restriction.
    pub fn held<T>(processor: usize, work: impl FnOnce() -> T) -> io::Result<T> {
        let mut set = CpuSet::new();
        set.set(processor);
        held_to(&set, work)
    }

    /// Starts a program with several busy threads on all usable processors but the generator's, as [`Self::spawn`] does on one.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn_beside_generator(self, command: &mut Command) -> io::Result<Child> {
        let mut set = sched_getaffinity(None)?;
        set.unset(self.generator);
        held_to(&set, || host::child::kill_with_parent(command).spawn())?
    }

    /// Starts a program restricted to a processor. It is killed when the calling thread ends: a killed benchmark must
    /// not leave stopped hosts behind.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(processor: usize, command: &mut Command) -> io::Result<Child> {
        Self::held(processor, || host::child::kill_with_parent(command).spawn())?
    }
}

/// Runs `work` with this thread, and the threads that it starts, restricted to the processors of a set.
fn held_to<T>(set: &CpuSet, work: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, set)?;
    let done = work();
    sched_setaffinity(None, &before)?;
    Ok(done)
}
