//! Map of the machine's physical addresses, and the cases that name addresses outside their memory.

use anyhow::{Context, Result, ensure};

/// Map of physical addresses, complete for root (proc_iomem(5)).
const MEMORY_MAP: &str = "/proc/iomem";
/// First physical address at which the machine has no memory: a device that breaks the rules would write there.
const FOREIGN: u64 = 1 << 32;

/// Addresses that cases take to be no memory: case, first and last address.
const NAMED: &[(&str, u64, u64)] = &[
    ("transmit-buffer-outside-memory", 0xdead_0000_0000, 0xdead_0000_ffff),
    ("avf-buffer-outside-memory", 0xdead_0000_0000, 0xdead_0000_ffff),
    ("transmit-ring-outside-memory", 0x1234_0000_0000, 0x1235_000f_ffff),
    ("receive-buffers-outside-memory", 0x1234_0000_0000, 0x1235_000f_ffff),
];

/// Cases whose addresses have their meaning over a socket only, with the reason.
const SOCKET_ONLY: &[(&str, &str)] = &[
    ("frame-beyond-its-memory", BEYOND),
    ("avf-frame-beyond-its-memory", BEYOND),
    ("frame-in-the-registers", REGISTERS),
    ("avf-frame-in-the-registers", REGISTERS),
    ("ring-beyond-its-memory", "the memory behind the ring is the machine's own"),
];
const BEYOND: &str = "the machine's memory does not end where a socket's window does";
const REGISTERS: &str = "the address may be another device's registers, which this device may read";

/// Physical addresses that the kernel has assigned: first address, last address, and user.
#[derive(Debug, Default)]
pub struct MemoryMap(Vec<(u64, u64, String)>);

impl MemoryMap {
    /// Map of a machine without any memory, for tests.
    #[cfg(test)]
    pub(super) const NOTHING: Self = Self(Vec::new());

    /// Reads the map of this machine.
    ///
    /// # Errors
    /// The kernel hides the map, or the machine has memory where cases take it to have none.
    pub fn read() -> Result<Self> {
        Self::parse(&std::fs::read_to_string(MEMORY_MAP).context(MEMORY_MAP)?)
    }

    fn parse(text: &str) -> Result<Self> {
        let line = |line: &str| {
            let (range, user) = line.split_once(" : ")?;
            let (first, last) = range.trim().split_once('-')?;
            let number = |digits| u64::from_str_radix(digits, 16).ok();
            Some((number(first)?, number(last)?, user.to_owned()))
        };
        let lines: Vec<_> = text.lines().filter_map(line).collect();
        let memory = lines.iter().filter(|(_, _, user)| user == "System RAM").map(|(_, last, _)| *last);
        let last = memory.max().filter(|last| *last > 0);
        let last = last.context("the kernel's memory map has no memory: become root")?;
        ensure!(
            last < FOREIGN,
            "memory reaches to {last:#x}, and cases name addresses from {FOREIGN:#x} on as no memory; start the machine \
             with at most 2 GiB"
        );
        Ok(Self(lines))
    }

    /// Returns the reason why a case's addresses do not mean in this machine what its rule says, or `None` if they do.
    #[must_use]
    pub fn objection(&self, case: &str) -> Option<String> {
        if let Some((_, reason)) = SOCKET_ONLY.iter().find(|(name, _)| *name == case) {
            return Some((*reason).to_owned());
        }
        let (_, first, last) = NAMED.iter().find(|(name, ..)| *name == case)?;
        let (_, _, user) = self.0.iter().find(|(start, end, _)| start <= last && first <= end)?;
        Some(format!("{first:#x} is not free in this machine: {user}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::GROUPS;

    const LOW: &str =
        "00001000-0009fbff : System RAM\n00100000-7ffdffff : System RAM\n  01000000-01ffffff : Kernel code\n";

    #[test]
    fn memory_above_four_gib_is_refused_with_the_remedy() {
        let high = format!("{LOW}100000000-17fffffff : System RAM\n");
        let error = MemoryMap::parse(&high).unwrap_err().to_string();
        assert!(error.contains("0x17fffffff") && error.contains("at most 2 GiB"), "{error}");
    }

    #[test]
    fn hidden_memory_map_needs_root() {
        // The kernel shows zeros to a process without CAP_SYS_ADMIN.
        for hidden in ["00000000-00000000 : System RAM\n00000000-00000000 : PCI Bus 0000:00\n", ""] {
            let error = MemoryMap::parse(hidden).unwrap_err().to_string();
            assert!(error.contains("become root"), "{error}");
        }
    }

    #[test]
    fn address_in_a_devices_window_leaves_its_case_out() {
        let case = "transmit-ring-outside-memory";
        assert_eq!(MemoryMap::parse(LOW).unwrap().objection(case), None);
        let window = format!("{LOW}123400000000-1234ffffffff : PCI Bus 0000:00\n");
        let objection = MemoryMap::parse(&window).unwrap().objection(case);
        assert_eq!(objection.as_deref(), Some("0x123400000000 is not free in this machine: PCI Bus 0000:00"));
        assert_eq!(MemoryMap::parse(&window).unwrap().objection("transmit-buffer-outside-memory"), None);
    }

    #[test]
    fn addresses_of_the_socket_attack_do_not_apply_in_a_guest() {
        let map = MemoryMap::parse(LOW).unwrap();
        assert!(
            map.objection("frame-in-the-registers").is_some() && map.objection("frame-of-no-bytes").is_none()
        );
    }

    #[test]
    fn cases_with_named_addresses_exist() {
        let exists = |name: &str| GROUPS.iter().flat_map(|group| group.cases).any(|case| case.name == name);
        for name in NAMED.iter().map(|named| named.0).chain(SOCKET_ONLY.iter().map(|case| case.0)) {
            assert!(exists(name), "{name}");
        }
    }
}
