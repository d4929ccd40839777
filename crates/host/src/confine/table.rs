//! Which system calls each thread may make. A call that is in no row of its thread ends the host, and says so.
//!
//! To add a call: put it into the row list of the threads that need it, with a condition where only some of its uses
//! are needed. To find out which is missing: the last line of the host's log has thread and number of the call
//! (`ausyscall NUMBER` names it), and with `--seccomp log` the host goes on while the kernel's log has a line for each
//! such call. A new kind of thread gets a [`Role`]. A thread has the rows of the one that started it as well, so
//! `CONTROL` and `MAIN`, which start threads, hold everything that the others do.
//!
//! Calls without a condition cost nothing to allow: the kernel keeps them in a bitmap (Linux 5.11). So what a port
//! calls for each frame has none. Left out: files and what is behind them ([`super::landlock`]).

use libc::c_long;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It starts the others, and waits for signals.
    Main,
    /// It carries out commands.
    Control,
    /// It serves clients of the control interface, and reads what they write.
    Api,
    /// It runs a card, and reads what guests and clients write.
    Port,
    /// It does what takes time: unmapping memory, closing files, writing the log.
    Helper,
    /// It keeps descriptors for a host, in a process of its own.
    Keeper,
}

/// Under which condition on its arguments, counted from 0, a call is meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// Whatever they are.
    Always,
    /// The argument is one of these.
    Is(u8, &'static [u32]),
    /// The argument is none of these.
    IsNot(u8, &'static [u32]),
    /// The argument has all of these bits.
    Has(u8, u32),
    /// The argument is the number of this process.
    IsThisProcess(u8),
}

use When::{Always, Has, Is, IsNot, IsThisProcess};

pub(super) type Row = (c_long, When);

/// Memory, time, locks, the end of a thread, signals, and words of farewell.
const EVERY: &[Row] = &[
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
/// `PR_SET_VMA`: the allocator names its memory.
const PR_SET_VMA: u32 = 0x5356_4d41;

/// What a port does: clients, interrupts, the uplink, guest memory.
const CARD: &[Row] = &[
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
    // It wants to be woken in time.
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
    // Its own processors, where it is told to.
    (libc::SYS_sched_setaffinity, Is(0, &[0])),
    (libc::SYS_sendfile, Always),
    (libc::SYS_sendmsg, Always),
    (libc::SYS_setsockopt, Is(2, &[libc::SO_PEEK_OFF as u32, libc::SO_OOBINLINE as u32])),
    (libc::SYS_shutdown, Always),
    // The socket's file goes with its listener.
    (libc::SYS_newfstatat, Always),
    (libc::SYS_statx, Always),
    (libc::SYS_unlinkat, Always),
];

/// What may take time: memory and files that others hold, which are looked at before they are mapped.
const SLOW: &[Row] = &[
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
    // Descriptors go to the keeper.
    (libc::SYS_sendmsg, Always),
];

/// Commands, configuration, sockets and folders, the tap, and further threads, which confine themselves.
const MANAGE: &[Row] = &[
    (libc::SYS_bind, Always),
    // An interface comes back, and a program that was loaded before is attached to it.
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
/// What the thread does that reads requests of the control interface: sockets that others have opened, and nothing else. No
/// file, no memory of guests, no new socket or thread.
const SERVE: &[Row] = &[
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
    // The socket's file goes with its listener.
    (libc::SYS_newfstatat, Always),
    (libc::SYS_statx, Always),
    (libc::SYS_unlinkat, Always),
];
/// What the keeper does: messages with descriptors, the end of processes, and signals passed on. No new file, program,
/// process or thread.
const KEEP: &[Row] = &[
    (libc::SYS_epoll_create1, Always),
    (libc::SYS_epoll_ctl, Always),
    (libc::SYS_epoll_pwait2, Always),
    // Which of its own descriptors are of one open file.
    (libc::SYS_kcmp, IsThisProcess(0)),
    (libc::SYS_pidfd_send_signal, Always),
    (libc::SYS_read, Always),
    (libc::SYS_recvmsg, Always),
    // When it ends.
    (libc::SYS_rt_sigaction, Is(0, SIGNALS)),
    (libc::SYS_sendmsg, Always),
    (libc::SYS_setsockopt, Is(2, &[libc::SO_SNDTIMEO as u32, SO_SNDTIMEO_NEW])),
    (libc::SYS_socketpair, Is(0, &[libc::AF_UNIX as u32])),
    (libc::SYS_waitid, Is(0, &[libc::P_PIDFD])),
];
/// `SO_SNDTIMEO` with a time of 64 bits, which rustix tries first.
const SO_SNDTIMEO_NEW: u32 = 67;
/// Those that a process is told what to do by.
const SIGNALS: &[u32] =
    &[libc::SIGHUP as u32, libc::SIGINT as u32, libc::SIGTERM as u32, libc::SIGUSR2 as u32];

/// The flags of a new thread, as against a new process.
const THREAD: u32 = (libc::CLONE_THREAD | libc::CLONE_VM) as u32;
/// No network above Ethernet: links are watched by netlink, frames of an interface come by a packet socket or by AF_XDP, and
/// any other socket is a file.
const FAMILIES: &[u32] =
    &[libc::AF_UNIX as u32, libc::AF_NETLINK as u32, libc::AF_PACKET as u32, libc::AF_XDP as u32];
/// Of a socket, of the log's terminal, of a tap, of an interface.
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

/// Calls that this architecture has under older names too, which the libraries use.
#[cfg(target_arch = "x86_64")]
const OLDER_EVERY: &[Row] = &[(libc::SYS_poll, Always)];
#[cfg(target_arch = "x86_64")]
const OLDER_CARD: &[Row] = &[
    (libc::SYS_epoll_wait, Always),
    (libc::SYS_lstat, Always),
    (libc::SYS_stat, Always),
    (libc::SYS_unlink, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_SERVE: &[Row] = &[
    (libc::SYS_epoll_wait, Always),
    (libc::SYS_lstat, Always),
    (libc::SYS_stat, Always),
    (libc::SYS_unlink, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_MANAGE: &[Row] = &[
    (libc::SYS_access, Always),
    (libc::SYS_chmod, Always),
    (libc::SYS_mkdir, Always),
    (libc::SYS_open, Always),
    (libc::SYS_readlink, Always),
    (libc::SYS_rename, Always),
    (libc::SYS_rmdir, Always),
];
#[cfg(target_arch = "x86_64")]
const OLDER_NO_FILES: &[Row] = &[(libc::SYS_open, Always), (libc::SYS_readlink, Always)];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_EVERY: &[Row] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CARD: &[Row] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_SERVE: &[Row] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_MANAGE: &[Row] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NO_FILES: &[Row] = &[];

/// Answered as by a kernel that does not know the call, because libraries ask and can do without: memory with code in
/// it, for what a user database would load.
const NO_CODE: &[Row] =
    &[(libc::SYS_mmap, Has(2, libc::PROT_EXEC as u32)), (libc::SYS_mprotect, Has(2, libc::PROT_EXEC as u32))];
/// As above: no program is loaded any more, and whoever asks for one does without.
const NO_PROGRAM: &[Row] = &[(libc::SYS_bpf, IsNot(0, crate::xdp::LATER))];
/// As above: where a panic looks up the names of functions.
const NO_FILES: &[Row] = &[(libc::SYS_openat, Always), (libc::SYS_getcwd, Always)];
/// As above: `clone3` hides its flags from any filter, and libraries then take `clone`; a user database may lie
/// behind the network.
const NO_PROCESS: &[Row] = &[(libc::SYS_clone3, Always), (libc::SYS_socket, IsNot(0, FAMILIES))];

impl Role {
    /// The lists whose rows are allowed.
    pub(super) fn allowed(self) -> &'static [&'static [Row]] {
        match self {
            Self::Port => &[EVERY, OLDER_EVERY, CARD, OLDER_CARD],
            Self::Helper => &[EVERY, OLDER_EVERY, SLOW],
            Self::Api => &[EVERY, OLDER_EVERY, SERVE, OLDER_SERVE],
            Self::Keeper => &[EVERY, OLDER_EVERY, KEEP],
            Self::Control | Self::Main => &[EVERY, OLDER_EVERY, CARD, OLDER_CARD, SLOW, MANAGE, OLDER_MANAGE],
        }
    }

    /// The lists whose rows are refused without ending the host. They come before those that are allowed.
    pub(super) fn refused(self) -> &'static [&'static [Row]] {
        match self {
            Self::Port | Self::Helper | Self::Api | Self::Keeper => &[NO_CODE, NO_FILES, OLDER_NO_FILES],
            Self::Control | Self::Main => &[NO_CODE, NO_PROCESS, NO_PROGRAM],
        }
    }
}
