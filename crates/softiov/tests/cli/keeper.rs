//! Tests the confinement of the keeper process and of the starter, the process that starts hosts for it. `survival`
//! tests the replacement of hosts.

use crate::process::{PATIENCE, SOFTIOV, ServeProcess, copy_program, softiov};
use crate::survival::attach;
use host::eventfd::EventFd;
use host::test_support::pass;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::tempdir;

fn proc(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

fn keeper(serve: &ServeProcess) -> PathBuf {
    PathBuf::from(format!("/proc/{}", serve.keeper()))
}

/// Returns the value of a key in a thread's status file under /proc, such as `Seccomp`.
fn status(task: &Path, key: &str) -> String {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

/// Returns the seccomp mode of each thread of the keeper process; 2 is a filter.
fn seccomp(serve: &ServeProcess) -> Vec<String> {
    let threads = fs::read_dir(keeper(serve).join("task")).unwrap();
    threads.map(|thread| status(&thread.unwrap().path(), "Seccomp")).collect()
}

/// Returns the targets of a process's open file descriptors, without the three standard ones.
fn descriptors(process: &Path) -> BTreeSet<String> {
    let open = fs::read_dir(process.join("fd")).unwrap().map(|entry| entry.unwrap());
    let open = open.filter(|entry| entry.file_name().to_str().unwrap().parse::<u32>().unwrap() > 2);
    // A descriptor may be closed meanwhile.
    open.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.display().to_string())).collect()
}

/// Waits until a host other than `former` serves, and returns its pid.
#[track_caller]
fn next_host(serve: &ServeProcess, former: Option<Pid>) -> Pid {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let serves = softiov(serve.folder(), &["vf", "list"]).status == Some(0);
        match serve.hosts()[..] {
            [host] if serves && Some(host) != former => return host,
            ref hosts => assert!(Instant::now() < deadline, "{hosts:?} after {former:?}: {}", serve.log()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hosts_do_not_inherit_the_keepers_seccomp_filter() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    assert_eq!(seccomp(&serve), ["2", "2", "2"]);
    let starter = serve.starter().unwrap();
    assert_eq!(status(&proc(starter), "Seccomp"), "0");
    // A host could do nothing under the keeper's filter, and each host would add a filter to the next one's.
    let filters = |host| status(&proc(host), "Seccomp_filters");
    let first = serve.hosts()[0];
    let before = filters(first);
    kill_process(first, Signal::KILL).unwrap();
    assert_eq!(filters(next_host(&serve, Some(first))), before);
    assert_eq!(seccomp(&serve), ["2", "2", "2"]);
}

#[test]
fn option_seccomp_false_leaves_the_keeper_without_a_filter() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &["--seccomp", "false"]);
    assert_eq!(seccomp(&serve), ["0", "0", "0"]);
}

#[test]
fn starter_process_shares_no_descriptor_with_keeper_or_hosts() {
    let folder = tempdir().unwrap();
    let mut command = Command::new(SOFTIOV);
    // As if systemd had kept a descriptor.
    pass(&mut command, &[EventFd::new().unwrap().as_fd().try_clone_to_owned().unwrap()]).unwrap();
    command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "something").arg("serve");
    let serve = ServeProcess::spawn(&folder, &mut command);
    let _guest = attach(serve.folder(), 0);
    let starter = serve.starter().unwrap();
    let mut host = next_host(&serve, None);
    for _ in 0..3 {
        let held = descriptors(&proc(starter));
        assert!(held.len() == 1 && held.iter().all(|one| one.starts_with("socket:")), "{held:?}");
        assert!(descriptors(&proc(host)).is_disjoint(&held), "the host has the starter's socket");
        assert!(descriptors(&keeper(&serve)).is_disjoint(&held), "the keeper has the starter's socket");
        kill_process(host, Signal::KILL).unwrap();
        host = next_host(&serve, Some(host));
        assert_eq!(serve.starter(), Some(starter));
    }
}

#[test]
fn hosts_standard_input_is_not_the_keepers_socket() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    // Programs that the host starts inherit its standard input.
    let input = || fs::read_link(proc(serve.hosts()[0]).join("fd/0")).unwrap().display().to_string();
    assert!(input().starts_with("pipe:"), "{}", input());
    let first = serve.hosts()[0];
    kill_process(first, Signal::KILL).unwrap();
    next_host(&serve, Some(first));
    assert!(input().starts_with("pipe:"), "{}", input());
}

#[test]
fn starter_process_survives_sigterm_sigint_sighup_and_sigusr2() {
    let folder = tempdir().unwrap();
    let mut serve = ServeProcess::start(&folder, &[]);
    let starter = serve.starter().unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR2] {
        kill_process(starter, signal).unwrap();
    }
    let first = next_host(&serve, None);
    kill_process(first, Signal::KILL).unwrap();
    let host = next_host(&serve, Some(first));
    assert_eq!(serve.starter(), Some(starter));
    assert_eq!(status(&proc(host), "SigBlk"), "0000000000000000");
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    gone(starter);
}

#[track_caller]
fn gone(process: Pid) {
    let deadline = Instant::now() + PATIENCE;
    let lives = || {
        let status = fs::read_to_string(proc(process).join("status"));
        // A process that has ended but was not waited for counts as gone.
        status.is_ok_and(|status| !status.contains("\nState:\tZ"))
    };
    while lives() {
        assert!(Instant::now() < deadline, "{process:?} lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn host_is_not_replaced_after_the_starter_process_ended() {
    let folder = tempdir().unwrap();
    let mut serve = ServeProcess::start(&folder, &[]);
    let host = next_host(&serve, None);
    let starter = serve.starter().unwrap();
    kill_process(starter, Signal::KILL).unwrap();
    serve.wait_logged("softiov-starter, has ended. The host continues");
    assert!(!proc(starter).exists(), "the keeper has reaped the starter");
    let refused = softiov(serve.folder(), &["upgrade"]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("ended at once"), "{}", refused.err);
    serve.wait_logged("cannot start a successor: the process that starts hosts, softiov-starter, has ended");
    serve.signal(Signal::USR2);
    serve.wait_logged("SIGUSR2 ignored: softiov-starter and a systemd store are missing");
    assert_eq!(next_host(&serve, None), host, "the host keeps serving");
    kill_process(host, Signal::KILL).unwrap();
    assert_eq!(serve.wait().code(), Some(1));
    serve.wait_logged("cannot start the host: the process that starts hosts, softiov-starter, has ended");
}

#[test]
fn host_survives_a_killed_keeper_and_the_starter_process_ends() {
    let folder = tempdir().unwrap();
    let mut serve = ServeProcess::start(&folder, &[]);
    let (host, starter) = (next_host(&serve, None), serve.starter().unwrap());
    serve.end(Signal::KILL);
    gone(starter);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "the host keeps serving");
    kill_process(host, Signal::KILL).unwrap();
}

#[test]
fn keeper_retries_to_start_a_missing_host_program() {
    let folder = tempdir().unwrap();
    let (program, aside) = (folder.path().join("softiov"), folder.path().join("aside"));
    copy_program(&program);
    let serve = ServeProcess::spawn(&folder, Command::new(&program).arg("serve"));
    let host = next_host(&serve, None);
    fs::rename(&program, &aside).unwrap();
    kill_process(host, Signal::KILL).unwrap();
    serve.wait_logged(&format!(
        "cannot run the host's program {}: No such file or directory",
        program.display()
    ));
    serve.wait_logged("the host failed with status 127; starting the host again");
    fs::rename(&aside, &program).unwrap();
    next_host(&serve, Some(host));
}
