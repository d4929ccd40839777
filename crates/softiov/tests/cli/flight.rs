//! Tests `softiov vf flight`: the recording of a VF as text, as JSON and in a file. Also tests the file that the host
//! writes when it quarantines a VF. `crates/daemon/tests/live/flight.rs` tests what is recorded.

use crate::process::{SOFTIOV, ServeProcess, files, softiov};
use crate::survival::attach;
use host::test_support::skipped;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn flight_recording_is_printed_and_saved_as_text_and_json() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let _guest = attach(serve.folder(), 0);
    let said = softiov(serve.folder(), &["vf", "flight", "pf0vf0"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    assert!(
        said.out.starts_with("pf0vf0 at ") && said.out.contains("  write   VMBMEM[0] reset 0x800 = 0x1\n")
    );
    let json = softiov(serve.folder(), &["vf", "flight", "pf0vf0", "--json"]).out;
    let recording: Value = serde_json::from_str(&json).unwrap();
    assert!(recording["entries"].as_array().is_some_and(|entries| entries.len() > 20), "{json}");
    let file = folder.path().join("recording.json");
    let file = file.to_str().unwrap();
    assert_eq!(softiov(serve.folder(), &["vf", "flight", "pf0vf0", "-w", file]).out, "");
    let read = softiov(serve.folder(), &["vf", "flight", "--read", file]);
    assert!(read.out.contains("VMBMEM[0] reset"), "{}{}", read.out, read.err);
    let to_stdout = softiov(serve.folder(), &["vf", "flight", "pf0vf0", "-w", "-"]).out;
    assert!(serde_json::from_str::<Value>(&to_stdout).is_ok());
    let unknown = softiov(serve.folder(), &["vf", "flight", "pf0vf9"]);
    assert!(unknown.status == Some(1) && unknown.err.contains("pf0vf6"), "{}", unknown.err);
    let none = softiov(serve.folder(), &["vf", "flight", "--read", "/dev/null"]);
    assert!(
        none.status == Some(1) && none.err.contains("/dev/null is not a flight recording"),
        "{}",
        none.err
    );
}

/// Makes the host quarantine VFs at the first spoofed frame, and sends spoofed frames until a VF is quarantined.
fn spoof(serve: &ServeProcess) {
    let limit = ["port", "limit", "pf0", "spoofing", "--quarantine", "1", "--volatile"];
    assert_eq!(softiov(serve.folder(), &limit).status, Some(0));
    let mut drive = Command::new(SOFTIOV);
    drive.arg("drive").stdout(Stdio::null()).stderr(Stdio::null());
    for vf in ["pf0vf0", "pf0vf1"] {
        drive.arg("--socket").arg(serve.folder().join(vf).join("vf.sock"));
    }
    let mut drive = drive.spawn().unwrap();
    serve.wait_logged("the VF exceeds a threshold");
    drive.kill().unwrap();
    drive.wait().unwrap();
}

#[test]
fn quarantine_writes_a_flight_recording_named_in_the_log() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    spoof(&serve);
    serve.wait_logged("wrote a flight recording of the VF");
    let kept = folder.path().join("state/flight");
    let [name] = &files(&kept)[..] else { panic!("{:?}", files(&kept)) };
    serve.wait_logged(name);
    let read = softiov(serve.folder(), &["vf", "flight", "--read", kept.join(name).to_str().unwrap()]);
    for part in ["pf0vf0 at ", "quarantined for spoofing", "dropped spoofed", "offence spoofing, "] {
        assert!(read.out.contains(part), "{part} in {}{}", read.out, read.err);
    }
}

#[test]
fn flight_recording_survives_a_disk_that_is_full() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return skipped("a recording on a full disk", "this process may not create a mount namespace");
    }
    let folder = tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script =
        "mount -t tmpfs -o size=64k none $0; mkdir $0/flight; head -c 1M /dev/zero > $0/fill; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(&disk).args([SOFTIOV, "serve"]);
    let serve = ServeProcess::spawn_keeping(&folder, &mut command, &disk);
    spoof(&serve);
    serve.wait_logged("cannot write the VF's flight recording");
    serve.wait_logged("No space left");
    let said = softiov(serve.folder(), &["vf", "flight", "pf0vf0"]).out;
    assert!(said.contains("offence spoofing"), "{said}");
    assert_eq!(
        softiov(serve.folder(), &["vf", "set", "pf0vf0", "--quarantine", "off", "--volatile"]).status,
        Some(0)
    );
}
