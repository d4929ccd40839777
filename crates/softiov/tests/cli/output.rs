//! What becomes of the command when nobody takes what it writes: a log that cannot be written, and answers whose reader
//! is gone. Left out: errors that are told.

use crate::process::{PATIENCE, SOFTIOV, Serve, softiov};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Makes the host log as much as clients can make it.
fn cause_log_lines(sockets: &Path) {
    for vf in 0..7 {
        for _ in 0..10 {
            drop(UnixStream::connect(sockets.join(format!("pf0vf{vf}/vf.sock"))).unwrap());
        }
    }
}

/// The host serves, clients that make it log or not, and ends when it is asked to.
#[track_caller]
fn lives_on(mut serve: Serve) {
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    for _ in 0..3 {
        cause_log_lines(serve.folder());
        assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "its ports answer");
    }
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    assert_eq!(serve.files(), Vec::<String>::new());
}

#[test]
fn a_log_on_a_full_disk_ends_no_host() {
    let folder = tempdir().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    lives_on(Serve::with_log(&folder, full.into()));
}

#[test]
fn a_log_whose_reader_is_gone_ends_no_host() {
    let folder = tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    lives_on(Serve::with_log(&folder, writer.into()));
}

#[test]
fn a_log_that_nobody_reads_stalls_no_host_and_says_later_what_was_lost() {
    let folder = tempdir().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let serve = Serve::with_log(&folder, writer.into());
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    // Debug lines are more than the host keeps.
    for _ in 0..8 {
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| flood(serve.folder()))));
        });
        assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0), "its ports answer");
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

/// Control clients that speak no HTTP: the host turns each away, with a line at the level of debugging.
fn flood(sockets: &Path) {
    for _ in 0..400 {
        let mut client = UnixStream::connect(sockets.join("control/control.sock")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"no request\r\n\r\n").unwrap();
        // It has been turned away when the connection ends. How it ends depends on who closes first.
        if let Err(error) = client.read_to_end(&mut Vec::new()) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
}

/// The pipe fills again meanwhile, and the end does not wait for its reader for long.
#[track_caller]
fn lives_on_unread(mut serve: Serve) {
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
}

/// Has reading or writing fail where it would wait; answers the flags before.
fn do_not_block(pipe: impl AsFd) -> OFlags {
    let flags = fcntl_getfl(&pipe).unwrap();
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).unwrap();
    flags
}

/// Leaves no room in a pipe.
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
fn an_error_that_nobody_reads_does_not_hold_up_the_end() {
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
            panic!("it waits for ever; {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1));
}

/// Runs a command whose standard output has no reader any more: its status and standard error.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = Command::new(SOFTIOV).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_answer_whose_reader_is_gone_ends_the_command_quietly() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
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
fn rows_whose_reader_is_gone_end_the_run() {
    let (status, said) = unread(&["lab", "run", "fig06", "--json", "--jobs", "1"]);
    assert_eq!(status, Some(141));
    assert!(!said.contains("Broken pipe") && !said.contains("panicked"), "{said}");
}

#[test]
fn no_command_panics_without_standard_error() {
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
