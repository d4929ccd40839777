//! System calls that each kind of thread may make. A system call that the table does not permit ends the host, which
//! reports the call.
//!
//! To add a call: put it into the row list of the threads that need it, with a condition where only some of its
//! uses are needed. To find a missing call: the last line of the host's log has thread and number of the call
//! (`ausyscall NUMBER` names it); with `--seccomp log` the host continues and the kernel's log has a line for each
//! such call. A new kind of thread gets a [`ThreadRole`]. A thread inherits the filter of the thread that started it,
//! so `CONTROL` and `MAIN`, which start threads, hold every row of the other roles.
//!
//! Calls without a condition cost nothing to allow: the kernel keeps them in a bitmap (Linux 5.11). So calls that a
//! port makes for each frame have none. [`super::landlock`] restricts files.

use libc::c_long;

/// Purpose of a thread, which decides its system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    /// Thread that starts the other threads, and waits for signals.
    Main,
    /// Thread that carries out commands of the control socket.
    Control,
    /// Thread that serves clients of the control interface, and reads their requests.
    Api,
    /// Thread that runs a port's card, and reads data of guests and clients.
    Port,
    /// Thread for slow work: unmapping memory, closing files, writing the log.
    Helper,
    /// Process that keeps file descriptors for a host.
    Keeper,
}

/// Condition on a system call's arguments, which count from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum SyscallArgumentCondition {
    /// Matches a system call with any arguments.
    Always,
    /// Matches a system call whose argument of this number is one of the values.
    Is(u8, &'static [u32]),
    /// Matches a system call whose argument of this number is none of the values.
    IsNot(u8, &'static [u32]),
    /// Matches a system call whose argument of this number has all of the bits.
    Has(u8, u32),
    /// Matches a system call whose argument of this number is this process's id.
    IsThisProcess(u8),
}

use SyscallArgumentCondition::{Always, Has, Is, IsNot, IsThisProcess};

pub(super) type PermittedSystemCall = (c_long, SyscallArgumentCondition);

/// System calls that the system call filter permits to every thread: memory, time, locks, the end of a thread, signals,
/// and messages on standard error.
const EVERY: &[PermittedSystemCall] = &[
    (libc::SYS_brk, Always),
    (libc::SYS_clock_gettime, Always),
    (libc::SYS_clock_nanosleep, Always),
    (libc::SYS_close, Always),
    (libc::SYS_exit, Always),
    (libc::SYS_exit_group, Always),
    (libc::SYS_fcntl, Always),
    (libc::SYS_futex, Always),
    (libc::SYS_getpid, Always),
    (libc::SYS_getrandom, Always),
    (libc::SYS_gettid, Always),
    (libc::SYS_madvise, Always),
    (libc::SYS_mmap, Always),
    (libc::SYS_mprotect, Always),
    (libc::SYS_mremap, Always),
    (libc::SYS_munmap, Always),
    (libc::SYS_ppoll, Always),
    (libc::SYS_prctl, Is(0, &[libc::PR_SET_NAME as u32, libc::PR_GET_NAME as u32, PR_SET_VMA])),
    (libc::SYS_restart_syscall, Always),
    (libc::SYS_rseq, Always),
    (libc::SYS_rt_sigaction, Is(0, &[libc::SIGABRT as u32, libc::SIGBUS as u32, libc::SIGSEGV as u32])),
    (libc::SYS_rt_sigprocmask, Always),
    (libc::SYS_rt_sigreturn, Always),
    (libc::SYS_sched_getaffinity, Always),
    (libc::SYS_sched_yield, Always),
    (libc::SYS_set_robust_list, Always),
    (libc::SYS_sigaltstack, Always),
    (libc::SYS_tgkill, IsThisProcess(0)),
    (libc::SYS_write, Always),
    (libc::SYS_writev, Always),
];
/// `PR_SET_VMA` (linux/prctl.h): `prctl` operation by which the C library's allocator names its memory.
const PR_SET_VMA: u32 = 0x5356_4d41;

/// System calls that the system call filter permits to a port's thread, for clients, interrupts, the uplink and guest
/// memory.
const CARD: &[PermittedSystemCall] = &[
    (libc::SYS_accept4, Always),
    (libc::SYS_epoll_create1, Always),
    (libc::SYS_epoll_ctl, Always),
    (libc::SYS_epoll_pwait, Always),
    (libc::SYS_epoll_pwait2, Always),
    (libc::SYS_eventfd2, Always),
    (libc::SYS_fallocate, Always),
    (libc::SYS_fstat, Always),
    (libc::SYS_fstatfs, Always),
    (libc::SYS_ftruncate, Always),
    (libc::SYS_getsockopt, Always),
    (libc::SYS_io_destroy, Always),
    (libc::SYS_io_getevents, Always),
    (libc::SYS_io_setup, Always),
    (libc::SYS_io_submit, Always),
    (libc::SYS_ioctl, Is(1, &[libc::FIONREAD as u32])),
    (libc::SYS_lseek, Always),
    (libc::SYS_memfd_create, Always),
    // A port sets its timer slack for precise wake-ups.
    (libc::SYS_prctl, Is(0, &[libc::PR_SET_TIMERSLACK as u32])),
    (libc::SYS_pwrite64, Always),
    (libc::SYS_read, Always),
    (libc::SYS_readlinkat, Always),
    (libc::SYS_readv, Always),
    (libc::SYS_recvfrom, Always),
    // Bursts of frames.
    (libc::SYS_recvmmsg, Always),
    (libc::SYS_sendmmsg, Always),
    (libc::SYS_recvmsg, Always),
    // A port pins itself to its configured processors.
    (libc::SYS_sched_setaffinity, Is(0, &[0])),
    (libc::SYS_sendfile, Always),
    (libc::SYS_sendmsg, Always),
    (libc::SYS_setsockopt, Is(2, &[libc::SO_PEEK_OFF as u32, libc::SO_OOBINLINE as u32])),
    (libc::SYS_shutdown, Always),
    // Dropping a listener removes the socket's file.
    (libc::SYS_newfstatat, Always),
    (libc::SYS_statx, Always),
    (libc::SYS_unlinkat, Always),
];

/// System calls that the system call filter permits to threads for slow work, because the calls may block: mapping and
/// examining memory and files of clients.
const SLOW: &[PermittedSystemCall] = &[
    (libc::SYS_fstat, Always),
    (libc::SYS_fstatfs, Always),
    (libc::SYS_lseek, Always),
    (libc::SYS_read, Always),
    (libc::SYS_readlinkat, Always),
    (libc::SYS_fallocate, Always),
    (libc::SYS_fdatasync, Always),
    (libc::SYS_fsync, Always),
    (libc::SYS_ftruncate, Always),
    (libc::SYS_mincore, Always),
    (libc::SYS_pread64, Always),
    (libc::SYS_pwrite64, Always),
    // Descriptors are sent to the keeper.
    (libc::SYS_sendmsg, Always),
];

/// System calls that the system call filter permits to the control thread: for commands, configuration, sockets and
/// folders, the tap, and starting threads.
const MANAGE: &[PermittedSystemCall] = &[
    (libc::SYS_bind, Always),
    // When an interface returns, a program that was loaded before is attached to it.
    (libc::SYS_bpf, Is(0, crate::xdp::LATER)),
    (libc::SYS_capget, Always),
    (libc::SYS_capset, Always),
    (libc::SYS_clone, Has(0, THREAD)),
    (libc::SYS_connect, Always),
    (libc::SYS_faccessat2, Always),
    (libc::SYS_fchmod, Always),
    (libc::SYS_fchmodat, Always),
    (libc::SYS_fchown, Always),
    (libc::SYS_fchownat, Always),
    (libc::SYS_flock, Always),
    (libc::SYS_getcwd, Always),
    (libc::SYS_getdents64, Always),
    (libc::SYS_getegid, Always),
    (libc::SYS_geteuid, Always),
    (libc::SYS_getpeername, Always),
    (libc::SYS_getsockname, Always),
    (libc::SYS_getuid, Always),
    (libc::SYS_ioctl, Is(1, IOCTLS)),
    (libc::SYS_listen, Always),
    (libc::SYS_mkdirat, Always),
    (libc::SYS_openat, Always),
    (libc::SYS_pidfd_open, Always),
    (libc::SYS_prctl, Is(0, &[libc::PR_SET_NO_NEW_PRIVS as u32, libc::PR_GET_SECCOMP as u32])),
    (libc::SYS_prlimit64, Always),
    (libc::SYS_recvfrom, Always),
    (libc::SYS_renameat, Always),
    (libc::SYS_renameat2, Always),
    (libc::SYS_rt_sigaction, Is(0, SIGNALS)),
    (libc::SYS_seccomp, Always),
    (libc::SYS_sendto, Always),
    (libc::SYS_setsockopt, Always),
    (libc::SYS_socket, Is(0, FAMILIES)),
    (libc::SYS_socketpair, Is(0, FAMILIES)),
    (libc::SYS_statfs, Always),
    (libc::SYS_sysinfo, Always),
    (libc::SYS_timerfd_create, Always),
    (libc::SYS_timerfd_settime, Always),
    (libc::SYS_uname, Always),
    (libc::SYS_wait4, Always),
    (libc::SYS_waitid, Always),
];
/// System calls that the system call filter permits to the thread that reads requests of the control interface: only on
/// sockets that other threads have opened. The thread opens no file, guest memory, socket or thread.
const SERVE: &[PermittedSystemCall] = &[
    (libc::SYS_accept4, Always),
    (libc::SYS_epoll_ctl, Always),
    (libc::SYS_epoll_pwait, Always),
    (libc::SYS_getsockname, Always),
    (libc::SYS_getsockopt, Always),
    (libc::SYS_read, Always),
    (libc::SYS_recvfrom, Always),
    (libc::SYS_sendmsg, Always),
    (libc::SYS_sendto, Always),
    (libc::SYS_shutdown, Always),
    // Dropping a listener removes the socket's file.
    (libc::SYS_newfstatat, Always),
    (libc::SYS_statx, Always),
    (libc::SYS_unlinkat, Always),
];
/// System calls that the system call filter permits to the keeper: messages with file descriptors, waiting for
/// processes, and forwarding signals. The keeper opens no file, program, process or thread.
const KEEP: &[PermittedSystemCall] = &[
    (libc::SYS_epoll_create1, Always),
    (libc::SYS_epoll_ctl, Always),
    (libc::SYS_epoll_pwait2, Always),
    // Finds descriptors of the same open file.
    (libc::SYS_kcmp, IsThisProcess(0)),
    (libc::SYS_pidfd_send_signal, Always),
    (libc::SYS_read, Always),
    (libc::SYS_recvmsg, Always),
    // Dropping the signal handlers restores the defaults.
    (libc::SYS_rt_sigaction, Is(0, SIGNALS)),
    (libc::SYS_sendmsg, Always),
    (libc::SYS_setsockopt, Is(2, &[libc::SO_SNDTIMEO as u32, SO_SNDTIMEO_NEW])),
    (libc::SYS_socketpair, Is(0, &[libc::AF_UNIX as u32])),
    (libc::SYS_waitid, Is(0, &[libc::P_PIDFD])),
];
/// `SO_SNDTIMEO` with a 64-bit time (asm-generic/socket.h), which rustix tries first.
const SO_SNDTIMEO_NEW: u32 = 67;
/// Signals by which an administrator controls a process, and SIGXFSZ, which is ignored; the system call filter permits a thread
/// to set their handlers.
const SIGNALS: &[u32] = &[
    libc::SIGHUP as u32,
    libc::SIGINT as u32,
    libc::SIGTERM as u32,
    libc::SIGUSR2 as u32,
    libc::SIGXFSZ as u32,
];

/// `clone` flags that make a thread rather than a process.
const THREAD: u32 = (libc::CLONE_THREAD | libc::CLONE_VM) as u32;
/// Socket families that a host may use. None is a network above Ethernet: links are watched by netlink, frames of an
/// interface come by a packet socket or AF_XDP, and all other sockets are Unix sockets.
const FAMILIES: &[u32] =
    &[libc::AF_UNIX as u32, libc::AF_NETLINK as u32, libc::AF_PACKET as u32, libc::AF_XDP as u32];
/// ioctls that the system call filter permits: on a socket, on the log's terminal, on a tap and on an interface.
const IOCTLS: &[u32] = &[
    libc::FIONBIO as u32,
    libc::FIONREAD as u32,
    libc::TCGETS as u32,
    libc::TIOCGWINSZ as u32,
    libc::TUNSETIFF as u32,
    libc::TUNGETIFF as u32,
    libc::TUNSETOFFLOAD as u32,
    libc::TUNSETVNETHDRSZ as u32,
    libc::TUNSETVNETLE as u32,
    libc::SIOCGIFFLAGS as u32,
    libc::SIOCSIFFLAGS as u32,
    libc::SIOCGIFHWADDR as u32,
    libc::SIOCGIFMTU as u32,
    libc::SIOCSIFMTU as u32,
    libc::SIOCGIFINDEX as u32,
    libc::SIOCGIFNAME as u32,
];

/// Older system calls that the system call filter permits to every thread on x86-64, since libraries still use them in
/// place of permitted newer calls.
#[cfg(target_arch = "x86_64")]
const OLDER_EVERY: &[PermittedSystemCall] = &[(libc::SYS_poll, Always)];
#[cfg(target_arch = "x86_64")]
const OLDER_CARD: &[PermittedSystemCall] = &[
    (libc::SYS_epoll_wait, Always),
    (libc::SYS_lstat, Always),
    (libc::SYS_stat, Always),
    (libc::SYS_unlink, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_SERVE: &[PermittedSystemCall] = &[
    (libc::SYS_epoll_wait, Always),
    (libc::SYS_lstat, Always),
    (libc::SYS_stat, Always),
    (libc::SYS_unlink, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_MANAGE: &[PermittedSystemCall] = &[
    (libc::SYS_access, Always),
    (libc::SYS_chmod, Always),
    (libc::SYS_mkdir, Always),
    (libc::SYS_open, Always),
    (libc::SYS_readlink, Always),
    (libc::SYS_rename, Always),
    (libc::SYS_rmdir, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_NO_FILES: &[PermittedSystemCall] = &[(libc::SYS_open, Always), (libc::SYS_readlink, Always)];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_EVERY: &[PermittedSystemCall] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CARD: &[PermittedSystemCall] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_SERVE: &[PermittedSystemCall] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_MANAGE: &[PermittedSystemCall] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NO_FILES: &[PermittedSystemCall] = &[];

/// System calls that make memory executable, which fail with ENOSYS. A user database would load code; libraries work
/// without it.
const NO_CODE: &[PermittedSystemCall] =
    &[(libc::SYS_mmap, Has(2, libc::PROT_EXEC as u32)), (libc::SYS_mprotect, Has(2, libc::PROT_EXEC as u32))];
/// System calls that load BPF programs, which fail with ENOSYS. Their callers work without BPF.
const NO_PROGRAM: &[PermittedSystemCall] = &[(libc::SYS_bpf, IsNot(0, crate::xdp::LATER))];
/// System calls that open files, which fail with ENOSYS. A panic's report tries to open files for the names of
/// functions.
const NO_FILES: &[PermittedSystemCall] = &[(libc::SYS_openat, Always), (libc::SYS_getcwd, Always)];
/// System call by which musl's `raise` and `abort` send a signal, which fails with ENOSYS. Its arguments name a thread of any
/// process, which a filter cannot check. `abort` then ends the process by SIGSEGV, and its message is the last of the log.
const NO_SIGNAL: &[PermittedSystemCall] = &[(libc::SYS_tkill, Always)];
/// System calls that start processes or open network sockets, which fail with ENOSYS. `clone3` hides its flags from
/// filters, and libraries then use `clone`; a user database may be behind the network.
const NO_PROCESS: &[PermittedSystemCall] =
    &[(libc::SYS_clone3, Always), (libc::SYS_socket, IsNot(0, FAMILIES))];

impl ThreadRole {
    /// Returns the lists of system calls that the role may make.
    pub(super) fn allowed(self) -> &'static [&'static [PermittedSystemCall]] {
        match self {
            Self::Port => &[EVERY, OLDER_EVERY, CARD, OLDER_CARD],
            Self::Helper => &[EVERY, OLDER_EVERY, SLOW],
            Self::Api => &[EVERY, OLDER_EVERY, SERVE, OLDER_SERVE],
            Self::Keeper => &[EVERY, OLDER_EVERY, KEEP],
            Self::Control | Self::Main => &[EVERY, OLDER_EVERY, CARD, OLDER_CARD, SLOW, MANAGE, OLDER_MANAGE],
        }
    }

    /// Returns the lists of system calls that fail with ENOSYS for the role. These lists take precedence over the
    /// permitted calls.
    pub(super) fn refused(self) -> &'static [&'static [PermittedSystemCall]] {
        match self {
            Self::Port | Self::Helper | Self::Api | Self::Keeper => {
                &[NO_CODE, NO_SIGNAL, NO_FILES, OLDER_NO_FILES]
            }
            Self::Control | Self::Main => &[NO_CODE, NO_SIGNAL, NO_PROCESS, NO_PROGRAM],
        }
    }
}
