//! Processors that a thread may run on, and pinning it to some of them.
//!
//! Only the calling thread is pinned. Which memory is near which processor is not considered.

use std::fmt;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Set of processor numbers, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(Vec<u32>);

/// Error: the calling thread may not run on a processor that was requested for it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "CPU {cpu} is not available to this host (allowed: {allowed}): choose among these, or allow the host that CPU, if \
     the machine does (taskset, CPUAffinity= and AllowedCPUs= of a systemd unit, a container's cpuset)"
)]
pub struct DisallowedCpu {
    /// Number of the requested processor, on which the calling thread may not run.
    pub cpu: u32,
    /// Processors that the thread may run on.
    pub allowed: CpuList,
}

impl CpuList {
    /// Largest processor number in the kernel's set of permitted processors (`CPU_SETSIZE` - 1).
    pub const LAST: u32 = CpuSet::MAX_CPU as u32 - 1;

    /// Returns the processors that the calling thread, and threads that it starts, may run on.
    ///
    /// # Errors
    /// The machine has a processor above [`CpuList::LAST`].
    pub fn allowed() -> io::Result<Self> {
        let set = sched_getaffinity(None)?;
        Ok(Self((0..=Self::LAST).filter(|cpu| set.is_set(*cpu as usize)).collect()))
    }

    /// Returns true if the set has no processor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the set's processor numbers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Checks that all of the set's processors are in `allowed`.
    ///
    /// # Errors
    /// [`DisallowedCpu`] with the first processor that is not allowed.
    pub fn check(&self, allowed: &Self) -> Result<(), DisallowedCpu> {
        match self.iter().find(|cpu| !allowed.0.contains(cpu)) {
            Some(cpu) => Err(DisallowedCpu { cpu, allowed: allowed.clone() }),
            None => Ok(()),
        }
    }

    /// Pins the calling thread to the set's processors.
    ///
    /// # Errors
    /// The thread may run on none of the set's processors.
    pub fn pin(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.iter().filter(|cpu| *cpu <= Self::LAST).for_each(|cpu| set.set(cpu as usize));
        Ok(sched_setaffinity(None, &set)?)
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

/// Formats the processor set like `taskset`: "0-3,6".
impl fmt::Display for CpuList {
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

    fn cpus(numbers: &[u32]) -> CpuList {
        numbers.iter().copied().collect()
    }

    #[test]
    fn cpu_set_is_formatted_like_taskset() {
        assert_eq!(cpus(&[6, 2, 0, 1, 3, 2]).to_string(), "0-3,6");
        assert_eq!((cpus(&[4]).to_string(), cpus(&[]).to_string()), ("4".to_owned(), String::new()));
    }

    #[test]
    fn pinned_thread_runs_only_on_its_cpus() {
        let run = || {
            let allowed = CpuList::allowed().unwrap();
            let last = allowed.iter().last().unwrap();
            cpus(&[last]).pin().unwrap();
            assert_eq!(CpuList::allowed().unwrap(), cpus(&[last]));
            allowed.pin().unwrap();
            assert_eq!(CpuList::allowed().unwrap(), allowed);
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn unavailable_cpu_is_refused_naming_the_allowed_cpus() {
        let refused = cpus(&[0, CpuList::LAST]).check(&cpus(&[0, 1])).unwrap_err();
        assert_eq!(refused, DisallowedCpu { cpu: CpuList::LAST, allowed: cpus(&[0, 1]) });
        assert!(refused.to_string().contains("(allowed: 0-1)"), "{refused}");
        assert_eq!(cpus(&[1]).check(&cpus(&[0, 1])), Ok(()));
    }
}
