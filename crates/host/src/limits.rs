//! How much of the system this process may use. Left out: asking for more than the administrator allows.

use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_the_soft_limit_is_the_hard_one() {
        let raised = raise_open_files().unwrap();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (raised, raised));
        assert_eq!(raise_open_files().unwrap(), raised);
    }
}
