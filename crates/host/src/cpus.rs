//! Processors: where a thread may run, and holding it to some of them.
//!
//! Left out: which processor is near which memory, and other threads than the calling one.

use std::fmt;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Numbers of processors, in order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus(Vec<u32>);

/// A processor that the calling thread may not run on.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "this host cannot run on CPU {cpu}, it may run on {allowed}: choose among these, or let the host have that one, if \
     the machine does (taskset, CPUAffinity= and AllowedCPUs= of a systemd unit, a container's cpuset)"
)]
pub struct ForeignCpu {
    /// Its number.
    pub cpu: u32,
    /// Those that it may run on.
    pub allowed: Cpus,
}

impl Cpus {
    /// The largest number that the kernel is asked about.
    pub const LAST: u32 = CpuSet::MAX_CPU as u32 - 1;

    /// Those that the calling thread may run on, and threads that it starts.
    ///
    /// # Errors
    /// The machine has more processors than [`Cpus::LAST`] says.
    pub fn allowed() -> io::Result<Self> {
        let set = sched_getaffinity(None)?;
        Ok(Self((0..=Self::LAST).filter(|cpu| set.is_set(*cpu as usize)).collect()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Checks that the calling thread may run on all of these.
    ///
    /// # Errors
    /// [`ForeignCpu`], with the first that it may not run on.
    pub fn check(&self, allowed: &Self) -> Result<(), ForeignCpu> {
        match self.iter().find(|cpu| !allowed.0.contains(cpu)) {
            Some(cpu) => Err(ForeignCpu { cpu, allowed: allowed.clone() }),
            None => Ok(()),
        }
    }

    /// Holds the calling thread to these.
    ///
    /// # Errors
    /// There is none of these that it may run on.
    pub fn pin(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.iter().filter(|cpu| *cpu <= Self::LAST).for_each(|cpu| set.set(cpu as usize));
        Ok(sched_setaffinity(None, &set)?)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

/// As `taskset` writes them: "0-3,6".
impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.chunk_by(|one, next| one + 1 == *next);
        for (place, range) in ranges.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match range {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(numbers: &[u32]) -> Cpus {
        numbers.iter().copied().collect()
    }

    #[test]
    fn they_are_written_as_taskset_does() {
        assert_eq!(cpus(&[6, 2, 0, 1, 3, 2]).to_string(), "0-3,6");
        assert_eq!((cpus(&[4]).to_string(), cpus(&[]).to_string()), ("4".to_owned(), String::new()));
    }

    #[test]
    fn a_pinned_thread_runs_there_and_nowhere_else() {
        let run = || {
            let allowed = Cpus::allowed().unwrap();
            let last = allowed.iter().last().unwrap();
            cpus(&[last]).pin().unwrap();
            assert_eq!(Cpus::allowed().unwrap(), cpus(&[last]));
            allowed.pin().unwrap();
            assert_eq!(Cpus::allowed().unwrap(), allowed);
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn a_processor_that_is_not_there_is_named() {
        let refused = cpus(&[0, Cpus::LAST]).check(&cpus(&[0, 1])).unwrap_err();
        assert_eq!(refused, ForeignCpu { cpu: Cpus::LAST, allowed: cpus(&[0, 1]) });
        assert!(refused.to_string().contains("may run on 0-1: choose among these"), "{refused}");
        assert_eq!(cpus(&[1]).check(&cpus(&[0, 1])), Ok(()));
    }
}
