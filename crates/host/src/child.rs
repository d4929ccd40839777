//! Child processes that must not outlive this process.

#![expect(
    unsafe_code,
    reason = "a child's code between fork and exec, which the standard library cannot check"
)]

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel kill a command's process when the thread that started it ends, even if that thread is killed while
/// the child is stopped. The setting is lost if the child changes its user.
pub fn kill_with_parent(command: &mut Command) -> &mut Command {
    let parent = getpid();
    let arrange = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before that call sends no signal any more.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(rustix::io::Errno::SRCH)) }
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(arrange) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, kill_process};
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn stopped_child_is_killed_when_its_parent_ends() {
        let spawn = || {
            let child = kill_with_parent(Command::new("sleep").arg("60")).spawn().unwrap();
            kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
            child
        };
        let mut child = std::thread::spawn(spawn).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }
}
