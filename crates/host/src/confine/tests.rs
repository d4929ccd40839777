//! Tests forbidden operations of each thread role, which must fail, and permitted operations, which must
//! work.

#![expect(unsafe_code, reason = "a thread that was taken over makes system calls as it likes")]

use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{geteuid, getgroups};
use rustix::thread::{CapabilitySet, capabilities, no_new_privs};

use super::*;
use crate::eventfd::EventFd;
use crate::eventfd::EventFdNotifier;
use crate::poll::{PollInterest, Poller};
use crate::socket::{ReceivedFds, SocketFilePermissions, SocketListener, SocketReceiveResult, StreamSocket};
use crate::test_support::{in_own_process, skipped};
use crate::user::ProcessUser;

/// Runs `body` on a thread under the seccomp filter of a role.
fn confined<T: Send>(role: ThreadRole, body: impl FnOnce() -> T + Send) -> T {
    let confinement = ThreadSandbox { seccomp: SeccompMode::On, capabilities: ThreadCapabilities::Unchanged };
    let prepared = confinement.prepare(role).unwrap();
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("taken-over".into());
        let body = move || {
            prepared.apply().unwrap();
            body()
        };
        thread.spawn_scoped(scope, body).unwrap().join().unwrap()
    })
}

/// System calls that a role may not make. A call that is carried out by mistake is harmless, since the test passes
/// invalid arguments.
const FORBIDDEN: &[(ThreadRole, &[libc::c_long])] = &[
    (
        ThreadRole::Port,
        &[
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_ioctl,
            libc::SYS_mkdirat,
            libc::SYS_bpf,
            libc::SYS_ptrace,
            libc::SYS_setresuid,
        ],
    ),
    (
        ThreadRole::Helper,
        &[libc::SYS_execve, libc::SYS_clone, libc::SYS_socket, libc::SYS_recvmsg, libc::SYS_accept4],
    ),
    (
        ThreadRole::Api,
        &[
            libc::SYS_execve,
            libc::SYS_clone,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_recvmsg,
            libc::SYS_ioctl,
            libc::SYS_memfd_create,
            libc::SYS_mkdirat,
            libc::SYS_ptrace,
            libc::SYS_setresuid,
        ],
    ),
    (
        ThreadRole::Control,
        &[libc::SYS_execve, libc::SYS_clone, libc::SYS_ptrace, libc::SYS_setresuid, libc::SYS_mount],
    ),
    (
        ThreadRole::Main,
        &[libc::SYS_execve, libc::SYS_clone, libc::SYS_ptrace, libc::SYS_setresuid, libc::SYS_mount],
    ),
    (
        ThreadRole::Keeper,
        &[
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_accept4,
            libc::SYS_pread64,
            libc::SYS_memfd_create,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_kill,
            libc::SYS_ioctl,
            libc::SYS_unlinkat,
            libc::SYS_ptrace,
            libc::SYS_setresuid,
        ],
    ),
];
/// Environment variable for a child process of this test: the index in [`FORBIDDEN`] of the forbidden system call to
/// try.
const TRY: &str = "SOFTIOV_TEST_TRY";

#[test]
fn call_outside_the_seccomp_list_is_logged_and_ends_the_host() {
    let pairs = FORBIDDEN.iter().flat_map(|(role, calls)| calls.iter().map(move |call| (*role, *call)));
    if let Ok(wanted) = std::env::var(TRY) {
        let (role, call) = pairs.clone().nth(wanted.parse().unwrap()).unwrap();
        // This flag is valid for a new thread only, so no process is made.
        let first = if call == libc::SYS_clone { libc::CLONE_SIGHAND } else { -1 };
        // SAFETY: no call does anything with these arguments.
        return confined(role, || unsafe {
            libc::syscall(call, first, -1, -1, -1, -1, -1);
        });
    }
    let test = "confine::tests::call_outside_the_seccomp_list_is_logged_and_ends_the_host";
    for (number, (role, call)) in pairs.enumerate() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", test]).env(TRY, number.to_string()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(EXIT_STATUS), "{role:?} {call}: {said}");
        let words = format!("thread taken-over made system call {call}, ");
        assert!(said.contains(&words) && said.contains("--seccomp log"), "{said}");
    }
}

#[test]
fn optional_system_calls_fail_with_enosys_under_seccomp() {
    for role in [ThreadRole::Port, ThreadRole::Helper, ThreadRole::Api, ThreadRole::Keeper] {
        confined(role, || {
            let file = fs::File::open("/etc/passwd").unwrap_err();
            assert_eq!(file.raw_os_error(), Some(libc::ENOSYS), "{role:?}");
        });
    }
    for role in [ThreadRole::Main, ThreadRole::Control] {
        confined(role, || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap_err();
            assert_eq!(socket.raw_os_error(), Some(libc::ENOSYS), "{role:?}");
            thread::spawn(|| ()).join().unwrap();
            let program = crate::xdp::XdpProgram::load().unwrap_err();
            assert_eq!(program.raw_os_error(), Some(libc::ENOSYS), "{role:?}");
        });
    }
    for role in [
        ThreadRole::Main,
        ThreadRole::Control,
        ThreadRole::Api,
        ThreadRole::Port,
        ThreadRole::Helper,
        ThreadRole::Keeper,
    ] {
        let code = || {
            let protection = ProtFlags::READ | ProtFlags::EXEC;
            // SAFETY: a new mapping wherever the kernel likes.
            unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, protection, MapFlags::PRIVATE) }.map(drop)
        };
        assert_eq!(confined(role, code), Err(Errno::NOSYS), "{role:?}");
        // As musl's `abort` does. No thread has this id.
        // SAFETY: the call takes numbers.
        let signal = || unsafe { libc::syscall(libc::SYS_tkill, i32::MAX, libc::SIGABRT) };
        let error = confined(role, || (signal(), std::io::Error::last_os_error().raw_os_error()));
        assert_eq!(error, (-1, Some(libc::ENOSYS)), "{role:?}");
    }
}

#[test]
fn port_thread_under_seccomp_serves_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vf.sock");
    let mut listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    let client = StreamSocket::connect(&path).unwrap();
    confined(ThreadRole::Port, move || {
        let mut poller = Poller::new().unwrap();
        poller.add(&listener, 0, PollInterest::READ).unwrap();
        let stream = listener.accept().unwrap().unwrap();
        poller.wait(Some(std::time::Duration::ZERO)).unwrap().for_each(drop);
        let event = EventFd::new().unwrap();
        EventFdNotifier::new().signal(&event);
        client.send(b"x", &[]).unwrap();
        let received = stream.recv(&mut [0; 8], &mut ReceivedFds::new()).unwrap();
        assert_eq!(received, SocketReceiveResult::Bytes(1));
        let memory = vec![1_u8; 64 << 20];
        assert_eq!(memory.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 64 << 20);
        drop(listener);
    });
    assert!(!path.exists());
}

#[test]
fn control_thread_starts_a_port_with_a_stricter_seccomp_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vf.sock");
    confined(ThreadRole::Control, || {
        let listener =
            SocketListener::bind(&path, SocketFilePermissions { owner: None, group: None, mode: 0o666 })
                .unwrap();
        let client = StreamSocket::connect(&path).unwrap();
        confined(ThreadRole::Port, move || {
            let mut listener = listener;
            assert!(listener.accept().unwrap().is_some());
            assert!(fs::read("/etc/passwd").is_err());
        });
        drop(client);
        assert!(fs::read("/etc/passwd").is_ok(), "the starting thread keeps its rights");
    });
}

/// The thread that opens failed ports again takes their sockets over, and so does that of a stream uplink.
#[test]
fn control_thread_may_set_the_access_of_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vf.sock");
    let access = |mode| SocketFilePermissions { owner: None, group: None, mode };
    let listener = SocketListener::bind(&path, access(0o600)).unwrap();
    confined(ThreadRole::Control, || {
        for mode in [0o660, 0o666, 0o600] {
            listener.set_access(access(mode)).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
        }
    });
}

#[test]
fn landlock_permits_access_to_listed_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let (work, read, other) = (folder.path().join("w"), folder.path().join("r"), folder.path().join("o"));
    for path in [&work, &read, &other] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "text").unwrap();
    }
    let reach = LandlockRules {
        work: vec![work.clone(), folder.path().join("missing")],
        read: vec![read.clone()],
        devices: vec!["/dev/null".into()],
        listen: Vec::new(),
    };
    let body = || {
        if restrict_files(&reach).unwrap() == LandlockEnforcement::Not {
            return skipped("landlock_permits_access_to_listed_files_only", "this kernel has no Landlock");
        }
        let denied = |result: std::io::Result<()>| {
            assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
        };
        denied(fs::read(other.join("file")).map(drop));
        denied(fs::read("/etc/passwd").map(drop));
        denied(fs::write(read.join("file"), "other"));
        denied(fs::write(read.join("new"), "other"));
        denied(fs::create_dir(other.join("new")));
        denied(UnixDatagram::bind(read.join("socket")).map(drop));
        denied(fs::rename(work.join("file"), other.join("moved")));
        denied(Command::new("/bin/true").status().map(drop));
        assert_eq!(fs::read(read.join("file")).unwrap(), b"text");
        fs::write(work.join("file"), "other").unwrap();
        fs::create_dir(work.join("new")).unwrap();
        fs::rename(work.join("file"), work.join("new/file")).unwrap();
        drop(
            SocketListener::bind(
                &work.join("new/socket"),
                SocketFilePermissions { owner: None, group: None, mode: 0o666 },
            )
            .unwrap(),
        );
        fs::remove_dir_all(work.join("new")).unwrap();
        fs::write("/dev/null", "nothing").unwrap();
    };
    // Restricts this thread alone, which ends with the test.
    thread::scope(|scope| scope.spawn(body).join().unwrap());
}

#[test]
fn host_as_unprivileged_user_has_no_linux_capability() {
    let test = "confine::tests::host_as_unprivileged_user_has_no_linux_capability";
    if !geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let body = || {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "").unwrap();
        fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let account: ProcessUser = "65533:65532".parse().unwrap();
        // A thread that existed before also switches to the user.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let early = thread::spawn(move || wait.recv().map(|()| geteuid().as_raw()));
        become_user(&account).unwrap();
        go.send(()).unwrap();
        assert_eq!(early.join().unwrap(), Ok(65_533));
        assert_eq!((geteuid().as_raw(), getgroups().unwrap().len()), (65_533, 1));
        let held = capabilities(None).unwrap();
        assert!(held.permitted.contains(CapabilitySet::CHOWN), "the start of a host needs CAP_CHOWN");
        assert!(!held.permitted.intersects(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID));
        assert!(held.inheritable.is_empty() && no_new_privs().unwrap());
        let none = ThreadSandbox {
            seccomp: SeccompMode::Off,
            capabilities: ThreadCapabilities::Only { net_admin: true, net_raw: false },
        };
        none.prepare(ThreadRole::Port).unwrap().apply().unwrap();
        let held = capabilities(None).unwrap();
        assert!(CapabilitySet::NET_ADMIN.contains(held.permitted) && held.effective == held.permitted);
        assert_eq!(fs::read(&secret).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(chown(&secret, Some(65_533), None).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert!(
            nix::unistd::setresuid(0.into(), 0.into(), 0.into()).is_err(),
            "setresuid back to root must fail"
        );
        // Programs that it starts have no capability either.
        let status = Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        for line in ["CapPrm:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line} in {status}");
        }
    };
    let Some(output) = in_own_process(test, body).unwrap() else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn seccomp_modes_off_and_log_block_no_system_call() {
    for (word, mode) in [("true", SeccompMode::On), ("false", SeccompMode::Off), ("log", SeccompMode::Log)] {
        assert_eq!((word.parse(), mode.to_string().as_str()), (Ok(mode), word));
    }
    assert_eq!("yes".parse::<SeccompMode>(), Err(UnknownSeccompMode));
    let off = ThreadSandbox { seccomp: SeccompMode::Off, capabilities: ThreadCapabilities::Unchanged };
    off.prepare(ThreadRole::Port).unwrap().apply().unwrap();
    assert!(fs::read("/etc/passwd").is_ok());
    // The kernel logs the calls and carries them out.
    let log = ThreadSandbox { seccomp: SeccompMode::Log, capabilities: ThreadCapabilities::Unchanged };
    let log = log.prepare(ThreadRole::Port).unwrap();
    let body = || {
        log.apply().unwrap();
        fs::read("/etc/passwd").is_ok() && UdpSocket::bind("127.0.0.1:0").is_ok()
    };
    assert!(thread::scope(|scope| scope.spawn(body).join().unwrap()));
}
