//! Pages of 2 MiB, which DPDK is faster with: reserved for the run where that is allowed, given back after it.

use std::fs;

const TOTAL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
const MOUNTS: &str = "/proc/mounts";
/// For four pairs of programs with 256 MiB each, and Open vSwitch with 512 and its generator.
const WANTED: u64 = 1500;

/// Huge pages, or the knowledge that there are none. Dropping it gives back what was reserved.
#[derive(Debug)]
pub struct HugePages {
    there: bool,
    before: Option<u64>,
}

impl HugePages {
    /// Whether there are enough.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.there
    }
}

/// Reserves them if they are `wanted` and this process may.
#[must_use]
pub fn reserve(wanted: bool) -> HugePages {
    let mut pages = HugePages { there: false, before: None };
    let mounted = fs::read_to_string(MOUNTS).is_ok_and(|mounts| mounts.contains(" hugetlbfs "));
    let (Some(total), Some(free)) = (number(TOTAL), number(FREE)) else { return pages };
    if !wanted || !mounted {
        return pages;
    }
    if free < WANTED && fs::write(TOTAL, (total + WANTED - free).to_string()).is_ok() {
        pages.before = Some(total);
    }
    pages.there = number(FREE).is_some_and(|free| free >= WANTED);
    pages
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Nobody is left to tell of a failure.
            let _ = fs::write(TOTAL, before.to_string());
        }
    }
}
