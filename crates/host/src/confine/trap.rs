//! Reports the system call for which seccomp ends the host or its keeper process.
//!
//! A debugger or `--seccomp log` shows where the call came from.

#![expect(unsafe_code, reason = "a signal handler")]

use std::io::{self, Cursor, Write};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

/// Exit status after a forbidden system call: 128 and the number of SIGSYS, as shells report a process that a signal
/// ended.
pub const EXIT_STATUS: i32 = 128 + libc::SIGSYS;

/// Fields of the kernel's `siginfo_t` for a SIGSYS signal.
#[repr(C)]
struct SigSysInfo {
    number: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    call_address: *mut libc::c_void,
    call: libc::c_int,
    architecture: libc::c_uint,
}

/// Installs the SIGSYS handler, once per process.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let failure = *INSTALLED.get_or_init(|| {
        // SAFETY: all-zero is a valid `sigaction`: default handler, no flags, empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_sigsys as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `on_sigsys` has the signature SA_SIGINFO asks for and is async-signal-safe.
        let installed = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) } == 0;
        if installed { None } else { io::Error::last_os_error().raw_os_error() }
    });
    failure.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
}

extern "C" fn on_sigsys(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, which for SIGSYS begins as `SigSysInfo` does.
    let call = unsafe { (*info.cast::<SigSysInfo>()).call };
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes 16 bytes at the most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let mut line = [0_u8; 256];
    let length = format_report(&mut line, &name, call);
    let mut output = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid `pollfd`. The poll keeps a reader that does not read the log from delaying the end.
    let ready = unsafe { libc::poll(&raw mut output, 1, 0) } == 1 && output.revents & libc::POLLOUT != 0;
    if ready {
        // SAFETY: the bytes are ours and initialised.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
    }
    // SAFETY: async-signal-safe.
    unsafe { libc::_exit(EXIT_STATUS) }
}

/// Formats the report of a forbidden system call without allocating. Returns the report's length in bytes.
fn format_report(line: &mut [u8], thread: &[u8], call: i32) -> usize {
    let thread = thread.split(|byte| *byte == 0).next().unwrap_or_default();
    let thread = str::from_utf8(thread).unwrap_or("?");
    let mut line = Cursor::new(line);
    // A report longer than the buffer is cut off.
    let _ = writeln!(
        line,
        "softiov: thread {thread} made system call {call}, which its seccomp list does not allow, so the \
         process ends. Start with --seccomp log to continue at such calls, and please report the call"
    );
    line.position() as usize
}

#[cfg(test)]
mod tests {
    use super::format_report;

    #[test]
    fn seccomp_report_names_the_thread_and_the_system_call() {
        let mut line = [0; 256];
        let length = format_report(&mut line, b"pf0\0\0\0", 59);
        let said = str::from_utf8(&line[..length]).unwrap();
        assert!(
            said.starts_with("softiov: thread pf0 made system call 59,") && said.ends_with('\n'),
            "{said}"
        );
        assert_eq!(format_report(&mut [0; 10], b"pf0\0", 59), 10);
        assert!(format_report(&mut line, &[0xff; 16], -1) > 0);
    }
}
