//! Reserves huge pages of 2 MiB, which make DPDK faster, for the run if that is allowed, and returns them after it.

use std::fs;

const TOTAL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
const MOUNTS: &str = "/proc/mounts";
/// Wanted number of huge pages: four pairs of programs with 256 MiB each, and Open vSwitch with 512 MiB and its
/// generator.
const WANTED: u64 = 1500;

/// Reservation of huge pages, which may be empty. Dropping the reservation returns the pages to the system.
#[derive(Debug)]
pub struct HugePages {
    there: bool,
    before: Option<u64>,
}

impl HugePages {
    /// Returns true if enough huge pages are free for the benchmark's programs.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.there
    }
}

/// Reserves huge pages if they are `wanted` and this process may reserve pages.
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
            // A failure leaves more huge pages than before, and nothing else can be done at the end.
            let _ = fs::write(TOTAL, before.to_string());
        }
    }
}
