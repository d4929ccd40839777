//! Tests `softiov serve`: its start, its end, and files that a previous host left behind.

use crate::process::{PATIENCE, SOFTIOV, ServeProcess, eventually, files, softiov};
use rustix::process::Signal;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::tempdir;

#[test]
fn default_host_has_seven_vfs_and_a_control_socket() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let mut expected: Vec<String> = (0..7).map(|vf| format!("pf0vf{vf}/vf.sock")).collect();
    expected.insert(0, "control/control.sock".to_owned());
    assert_eq!(serve.files(), expected);
    serve.wait_logged("pf0vf6/vf.sock");
}

#[test]
fn sigterm_removes_the_sockets_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = tempdir().unwrap();
        let mut serve = ServeProcess::start(&folder, &[]);
        assert_eq!(serve.end(signal).code(), Some(0), "{signal:?}: {}", serve.log());
        assert_eq!(serve.files(), Vec::<String>::new());
    }
}

#[test]
fn host_survives_the_close_of_its_terminal() {
    let folder = tempdir().unwrap();
    let mut serve = ServeProcess::start(&folder, &[]);
    serve.signal(Signal::HUP);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    assert_eq!(serve.end(Signal::TERM).code(), Some(0), "{}", serve.log());
}

#[test]
fn sockets_of_a_dead_host_are_replaced() {
    let folder = tempdir().unwrap();
    let mut dead = ServeProcess::start(&folder, &[]);
    dead.kill_all();
    assert_eq!(dead.files().len(), 8, "a killed host cleans up nothing");
    let mut serve = ServeProcess::start(&folder, &[]);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    assert_eq!(serve.files(), Vec::<String>::new());
}

#[test]
fn second_host_in_the_same_socket_folder_is_refused() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let before = serve.files();
    let second = softiov(serve.folder(), &["serve"]);
    assert_eq!(second.status, Some(1));
    assert!(second.err.contains("control.sock is in use by another process"), "{}", second.err);
    assert_eq!(second.err.matches("in use").count(), 1, "the error must name the use once: {}", second.err);
    assert!(!second.err.contains("is ready"), "no VF is ready: {}", second.err);
    assert_eq!(serve.files(), before);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "the first host keeps serving");
}

#[test]
fn host_does_not_replace_a_file_at_a_sockets_path() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("pf0vf3/vf.sock");
    std::fs::create_dir(folder.path().join("pf0vf3")).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let said = softiov(folder.path(), &["serve"]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("pf0vf3/vf.sock: a file that is not a socket has this path"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    for (vf, there) in [(2, vec![]), (3, vec!["vf.sock"])] {
        let found = files(&folder.path().join(format!("pf0vf{vf}")));
        assert_eq!(found, there, "sockets are removed again, and folders stay");
    }
}

#[test]
fn unusable_socket_folder_is_named_with_a_remedy() {
    let said = softiov("/proc/softiov".as_ref(), &["serve"]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("/proc/softiov") && said.err.contains("runtime_dir"), "{}", said.err);
}

#[test]
fn host_raises_its_limit_on_open_files() {
    let folder = tempdir().unwrap();
    let script = format!("ulimit -S -n 128; exec {SOFTIOV} serve \"$@\"");
    let serve = ServeProcess::spawn(&folder, Command::new("sh").args(["-c", &script, "sh"]));
    let limits = std::fs::read_to_string(serve.proc().join("limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
}

/// Returns the host process's number of open file descriptors, and its CPU time in ticks.
fn used(serve: &ServeProcess) -> (usize, u64) {
    let folder = serve.proc();
    let stat = std::fs::read_to_string(folder.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    (std::fs::read_dir(folder.join("fd")).unwrap().count(), ticks)
}

/// Returns true if the host has closed a client's connection.
fn is_turned_away(client: &UnixStream) -> bool {
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    matches!((&mut &*client).read(&mut [0]), Ok(0))
}

#[test]
fn host_recovers_from_its_limit_of_open_descriptors() {
    let folder = tempdir().unwrap();
    let open = used(&ServeProcess::start(&folder, &[])).0;
    let script = format!("ulimit -n {}; exec {SOFTIOV} serve \"$@\"", open + 3);
    let serve = ServeProcess::spawn(&folder, Command::new("sh").args(["-c", &script, "sh"]));
    let connect = |vf| UnixStream::connect(serve.folder().join(format!("pf0vf{vf}/vf.sock"))).unwrap();
    let clients: Vec<UnixStream> = (0..7).map(connect).collect();
    let away = || clients.iter().filter(|client| is_turned_away(client)).count();
    eventually("some of 7 are turned away: a few descriptors were left", || (1..7).contains(&away()));
    // The host runs out either at the client's connection, or at a descriptor that serving it needs.
    let told = ["cannot accept a client", "cannot set up a client's connection"];
    eventually("the log says so", || told.iter().any(|told| serve.log().contains(told)));
    // A VF's client takes several descriptors; a refused one leaves the rest of them for control clients.
    let ask = |_| UnixStream::connect(serve.folder().join("control/control.sock")).unwrap();
    let callers: Vec<UnixStream> = (0..8).map(ask).collect();
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(3), "the control socket refuses too");
    let before = used(&serve).1;
    std::thread::sleep(Duration::from_secs(1));
    assert!(used(&serve).1 - before < 20, "the host must sleep while it refuses clients");
    drop((clients, callers));
    let deadline = Instant::now() + PATIENCE;
    while softiov(serve.folder(), &["vf", "list"]).status != Some(0) {
        assert!(Instant::now() < deadline, "{}", serve.log());
    }
    assert!(!is_turned_away(&connect(6)));
}
