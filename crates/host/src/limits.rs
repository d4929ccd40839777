//! How much of the system this process may use, and how much there is. Left out: asking for more than the administrator
//! allows.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of descriptors that this process may have open as far as it may itself; answers how many
/// that is, `None` for any number. The usual soft limit of 1,024 is there for programs that use `select`.
///
/// # Errors
/// What the kernel says; nothing has changed then.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// Bytes of memory that this machine has, swap space included.
#[must_use]
pub fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    // The kernel's `unsigned long` is as wide as `u64` on some machines only.
    let (ram, swap) = (info.totalram as u64, info.totalswap as u64);
    ram.saturating_add(swap).saturating_mul(info.mem_unit.into())
}

/// What helps where an error of the kernel speaks of a limit.
#[must_use]
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("raise LimitNOFILE= of the host's unit, or ulimit -Hn"),
        Errno::NFILE => Some("raise the machine's limit with sysctl fs.file-max"),
        Errno::NOMEM => Some("raise MemoryMax= of the host's unit, or give the machine more memory"),
        _ => None,
    }
}

/// The same error with what could not be done before it and what helps behind it.
pub(crate) fn told(what: &str, errno: Errno) -> io::Error {
    let error = io::Error::from(errno);
    let remedy = remedy(&error).map_or(String::new(), |remedy| format!("; {remedy}"));
    io::Error::new(error.kind(), format!("{what}: {error}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_thing_and_the_remedy() {
        let told = |errno| told("no eventfd can be made", errno).to_string();
        assert_eq!(
            told(Errno::MFILE),
            "no eventfd can be made: Too many open files (os error 24); raise LimitNOFILE= of the host's unit, or ulimit -Hn"
        );
        assert!(told(Errno::NFILE).ends_with("; raise the machine's limit with sysctl fs.file-max"));
        assert_eq!(told(Errno::PERM), "no eventfd can be made: Operation not permitted (os error 1)");
    }

    #[test]
    fn the_machines_memory_is_what_the_kernel_tells_elsewhere() {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        let kib = |name| line(name).split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        let told = (kib("MemTotal:") + kib("SwapTotal:")) << 10;
        assert!(machine_memory().abs_diff(told) < told / 10, "{} and {told}", machine_memory());
    }

    #[test]
    fn afterwards_the_soft_limit_is_the_hard_one() {
        let raised = raise_open_files().unwrap();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (raised, raised));
        assert_eq!(raise_open_files().unwrap(), raised);
    }
}
