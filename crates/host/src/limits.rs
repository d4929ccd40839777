//! Limits on file descriptors and memory of this process, and how to raise them.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open file descriptors to the hard limit, and returns the limit (`None`: unlimited). The
/// usual soft limit of 1,024 protects programs that use `select`.
///
/// # Errors
/// The kernel's error; the limit is then unchanged.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// Returns the machine's memory in bytes, swap space included.
#[must_use]
pub fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    // The kernel's `unsigned long` is as wide as `u64` on some machines only.
    let (ram, swap) = (info.totalram as u64, info.totalswap as u64);
    ram.saturating_add(swap).saturating_mul(info.mem_unit.into())
}

/// Returns the remedy for an error that reports a limit on file descriptors or memory.
#[must_use]
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("raise LimitNOFILE= of the host's unit, or ulimit -Hn"),
        Errno::NFILE => Some("raise the machine's limit with sysctl fs.file-max"),
        Errno::NOMEM => Some("raise MemoryMax= of the host's unit, or give the machine more memory"),
        _ => None,
    }
}

/// Creates an I/O error from a system call's error: the failed action, the kernel's error and its remedy.
pub(crate) fn with_remedy(what: &str, errno: Errno) -> io::Error {
    let error = io::Error::from(errno);
    let remedy = remedy(&error).map_or(String::new(), |remedy| format!("; {remedy}"));
    io::Error::new(error.kind(), format!("{what}: {error}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_limit_error_names_the_failed_action_and_the_remedy() {
        let text = |errno| with_remedy("cannot create an eventfd", errno).to_string();
        assert_eq!(
            text(Errno::MFILE),
            "cannot create an eventfd: Too many open files (os error 24); raise LimitNOFILE= of the host's unit, or ulimit -Hn"
        );
        assert!(text(Errno::NFILE).ends_with("; raise the machine's limit with sysctl fs.file-max"));
        assert_eq!(text(Errno::PERM), "cannot create an eventfd: Operation not permitted (os error 1)");
    }

    #[test]
    fn machine_memory_matches_proc_meminfo() {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        let kib = |name| line(name).split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        let told = (kib("MemTotal:") + kib("SwapTotal:")) << 10;
        assert!(machine_memory().abs_diff(told) < told / 10, "{} and {told}", machine_memory());
    }

    #[test]
    fn raised_soft_limit_of_open_files_equals_the_hard_limit() {
        let raised = raise_open_files().unwrap();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (raised, raised));
        assert_eq!(raise_open_files().unwrap(), raised);
    }
}
