//! Tests commands whose output has no reader or cannot be written: the host's log, and answers on standard
//! output.

use crate::process::{PATIENCE, SOFTIOV, ServeProcess, softiov};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Connects to each VF's socket repeatedly, so that the host logs each connection and its end.
fn cause_log_lines(sockets: &Path) {
    for vf in 0..7 {
        for _ in 0..10 {
            drop(UnixStream::connect(sockets.join(format!("pf0vf{vf}/vf.sock"))).unwrap());
        }
    }
}

/// Checks that a host whose log blocks or fails still serves while clients cause log lines, and ends on
/// SIGTERM.
#[track_caller]
fn lives_on(mut serve: ServeProcess) {
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    for _ in 0..3 {
        cause_log_lines(serve.folder());
        assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "its ports reply");
    }
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    assert_eq!(serve.files(), Vec::<String>::new());
}

#[test]
fn full_log_disk_does_not_end_the_host() {
    let folder = tempdir().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    lives_on(ServeProcess::with_log(&folder, full.into()));
}

#[test]
fn file_size_limit_ends_no_host_or_keeper() {
    let folder = tempdir().unwrap();
    let log = File::create(folder.path().join("log")).unwrap();
    let serve = ServeProcess::with_log(&folder, log.into());
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "the host serves");
    let (keeper, before) = (Pid::from_child(&serve.child), serve.hosts());
    for process in before.iter().copied().chain([keeper]) {
        // No file can grow: the kernel sends SIGXFSZ to a process that tries.
        let limit = Rlimit { current: Some(0), maximum: None };
        prlimit(Some(process), Resource::Fsize, limit).unwrap();
    }
    cause_log_lines(serve.folder());
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "its ports reply");
    assert_eq!(serve.hosts(), before, "no other host has started");
    lives_on(serve);
}

#[test]
fn closed_log_pipe_does_not_end_the_host() {
    let folder = tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    lives_on(ServeProcess::with_log(&folder, writer.into()));
}

#[test]
fn unread_log_stalls_no_host_and_counts_lost_lines() {
    let folder = tempdir().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let serve = ServeProcess::with_log(&folder, writer.into());
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    // More debug lines than the host queues.
    for _ in 0..8 {
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| flood(serve.folder()))));
        });
        assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "its ports reply");
    }
    let mut log = String::new();
    let mut buffer = vec![0; 64 * 1024];
    do_not_block(&reader);
    let deadline = Instant::now() + PATIENCE;
    while !log.contains("log lines were lost") {
        assert!(Instant::now() < deadline, "{}", &log[log.len().saturating_sub(2000)..]);
        match reader.read(&mut buffer) {
            Ok(count) => log += &String::from_utf8_lossy(&buffer[..count]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    lives_on_unread(serve);
}

/// Connects control clients that speak no HTTP: the host refuses each, with a log line of level debug.
fn flood(sockets: &Path) {
    for _ in 0..400 {
        let mut client = UnixStream::connect(sockets.join("control/control.sock")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"no request\r\n\r\n").unwrap();
        // The host has refused the client when the connection ends, with an end or a reset.
        if let Err(error) = client.read_to_end(&mut Vec::new()) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
}

/// Checks that a host whose full log pipe has no reader ends on SIGTERM without a long wait.
#[track_caller]
fn lives_on_unread(mut serve: ServeProcess) {
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
}

/// Makes a pipe nonblocking, and returns the pipe's flags from before.
fn do_not_block(pipe: impl AsFd) -> OFlags {
    let flags = fcntl_getfl(&pipe).unwrap();
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).unwrap();
    flags
}

/// Fills a pipe, so that the next write would block.
fn fill(writer: &std::io::PipeWriter) {
    let flags = do_not_block(writer);
    for size in [4096, 1] {
        let piece = vec![b'\n'; size];
        while (&mut &*writer)
            .write(&piece)
            .map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock))
            .is_ok()
        {}
    }
    fcntl_setfl(writer, flags).unwrap();
}

#[test]
fn error_message_to_a_full_pipe_does_not_delay_the_exit() {
    let (_reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let mut command = Command::new(SOFTIOV);
    command.args(["serve", "--runtime-dir", "/proc/softiov"]).stderr(writer).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the command does not end; {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1));
}

/// Runs a command whose standard output has no reader, and returns its status and standard error.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = Command::new(SOFTIOV).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn command_with_a_closed_output_ends_without_a_message() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let place = serve.folder().to_str().unwrap();
    for arguments in [
        &["vf", "list", "--runtime-dir", place][..],
        &["vf", "show", "pf0vf0", "--json", "--runtime-dir", place],
        &["port", "show", "pf0", "--runtime-dir", place],
        &["qemu-args", "pf0vf0", "--runtime-dir", place],
        &["lab", "list"],
        &["lab", "list", "--json"],
    ] {
        assert_eq!(unread(arguments), (Some(141), String::new()), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["lab", "--help"]] {
        assert_eq!(unread(arguments), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn lab_run_ends_after_its_output_was_closed() {
    let (status, said) = unread(&["lab", "run", "fig06", "--json", "--jobs", "1"]);
    assert_eq!(status, Some(141));
    assert!(!said.contains("Broken pipe") && !said.contains("panicked"), "{said}");
}

#[test]
fn commands_with_a_closed_standard_error_do_not_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(SOFTIOV);
    command.args(["lab", "run", "fig06", "--jobs", "1"]).stdout(Stdio::null()).stderr(writer);
    assert_eq!(command.status().unwrap().code(), Some(0));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(SOFTIOV);
    command.args(["vf", "list", "--runtime-dir", "/proc/softiov"]).stdout(Stdio::null()).stderr(writer);
    assert_eq!(command.status().unwrap().code(), Some(3));
}
