//! `softiov capture -w`: what Wireshark's tshark reads in the file. What is captured is `daemon`'s to test
//! (`crates/daemon/tests/live/capture.rs`).

use crate::process::{SOFTIOV, Serve, finish};
use host::test_support::skipped;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// `softiov drive` sends two frames that are not let through: with a foreign address, and of a foreign VLAN.
#[test]
fn tshark_reads_who_sent_a_spoofed_frame_which_way_and_why_it_was_dropped() {
    let mut tshark = match linux_guest::tshark() {
        Ok(tshark) => tshark,
        Err(error) => return skipped("a capture in tshark", &error.to_string()),
    };
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    let file = folder.path().join("drops.pcapng");
    let mut capture = Command::new(SOFTIOV);
    capture.args(["capture", "pf0vf0", "pf0vf1", "--drops", "-c", "1", "--runtime-dir"]).arg(serve.folder());
    let filter = ["--filter", "ether src 02:82:57:06:02:00"];
    let mut capture = capture.args(filter).arg("-w").arg(&file).spawn().unwrap();
    serve.wait_until("the capture to begin", || file.metadata().is_ok_and(|file| file.len() > 0));
    let mut drive = Command::new(SOFTIOV);
    drive.arg("drive").stdout(Stdio::null());
    for vf in ["pf0vf0", "pf0vf1"] {
        drive.arg("--socket").arg(serve.folder().join(vf).join("vf.sock"));
    }
    assert!(drive.status().unwrap().success());
    assert!(capture.wait().unwrap().success());
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "eth.src", "frame.comment"];
    tshark.arg("-r").arg(&file).args(["-T", "fields"]).env("HOME", folder.path());
    for field in fields {
        tshark.args(["-e", field]);
    }
    let said = finish(&mut tshark);
    let why = "dropped: the source address is not the sender's (spoof check)";
    assert_eq!(said.out, format!("pf0vf0\t0x00000002\t02:82:57:06:02:00\t{why}\n"), "{}", said.err);
}
