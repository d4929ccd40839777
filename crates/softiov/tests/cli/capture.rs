//! Tests `softiov capture -w`, read by Wireshark's tshark from a file, and from a pipe while the host runs.
//! `crates/daemon/tests/live/capture.rs` tests what is captured.

use crate::process::{SOFTIOV, ServeProcess};
use host::test_support::skipped;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use tempfile::tempdir;

/// Starts `softiov capture` for the dropped frames of two VFs, which ends after one frame. Writes pcapng to
/// the file `to`, or to a pipe.
fn capture(serve: &ServeProcess, to: &Path) -> Child {
    let mut capture = Command::new(SOFTIOV);
    capture.args(["capture", "pf0vf0", "pf0vf1", "--drops", "-c", "1", "--runtime-dir"]).arg(serve.folder());
    capture.args(["--filter", "ether src 02:82:57:06:02:00", "-w"]).arg(to);
    capture.stdout(Stdio::piped()).spawn().unwrap()
}

/// Feeds tshark a capture through a pipe, first `begin` and then `rest`. Returns tshark's output.
fn read_by(mut tshark: Command, begin: &[u8], mut rest: impl Read) -> String {
    tshark.args(["-r", "-", "-T", "fields"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    for field in ["frame.interface_name", "frame.packet_flags_direction", "eth.src", "frame.comment"] {
        tshark.args(["-e", field]);
    }
    let mut tshark = tshark.spawn().unwrap();
    let mut pipe = tshark.stdin.take().unwrap();
    pipe.write_all(begin).unwrap();
    std::io::copy(&mut rest, &mut pipe).unwrap();
    drop(pipe);
    String::from_utf8(tshark.wait_with_output().unwrap().stdout).unwrap()
}

/// Reads the first bytes of a capture, which arrive when it has begun.
fn begin(of: &mut ChildStdout) -> [u8; 28] {
    let mut begin = [0; 28];
    of.read_exact(&mut begin).unwrap();
    begin
}

/// Captures the two frames of `softiov drive` that are dropped: one with a foreign address, and one of a
/// foreign VLAN.
#[test]
fn tshark_shows_sender_direction_and_drop_reason() {
    let folder = tempdir().unwrap();
    let tshark = || {
        linux_guest::tshark().map(|mut tshark| {
            tshark.env("HOME", folder.path());
            tshark
        })
    };
    let live = match tshark() {
        Ok(tshark) => tshark,
        Err(error) => return skipped("a capture in tshark", &error.to_string()),
    };
    let serve = ServeProcess::start(&folder, &[]);
    let file = folder.path().join("drops.pcapng");
    let (mut kept, mut piped) = (capture(&serve, &file), capture(&serve, Path::new("-")));
    let mut pipe = piped.stdout.take().unwrap();
    let begin = begin(&mut pipe);
    let live = thread::spawn(move || read_by(live, &begin, pipe));
    serve.wait_until("the capture to begin", || file.metadata().is_ok_and(|file| file.len() > 0));
    let mut drive = Command::new(SOFTIOV);
    drive.arg("drive").stdout(Stdio::null());
    for vf in ["pf0vf0", "pf0vf1"] {
        drive.arg("--socket").arg(serve.folder().join(vf).join("vf.sock"));
    }
    assert!(drive.status().unwrap().success());
    assert!(kept.wait().unwrap().success() && piped.wait().unwrap().success());
    let why = "dropped: the source address is not the sender's (spoof check)";
    let expected = format!("pf0vf0\t0x00000002\t02:82:57:06:02:00\t{why}\n");
    assert_eq!(live.join().unwrap(), expected);
    assert_eq!(read_by(tshark().unwrap(), &[], std::fs::File::open(&file).unwrap()), expected);
}
