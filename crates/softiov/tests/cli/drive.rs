//! Tests `softiov drive` on VFs of a running host, and on functions that do not exist. Tests in guests cover
//! VFIO.

use crate::process::{SOFTIOV, ServeProcess, finish};
use serde_json::Value;
use std::process::Command;
use tempfile::tempdir;

#[test]
fn drive_prints_each_check_as_a_line_or_a_json_object() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let socket = serve.folder().join("pf0vf0/vf.sock");
    let text = finish(Command::new(SOFTIOV).args(["drive", "--socket"]).arg(&socket));
    assert_eq!((text.status, text.err.as_str()), (Some(0), ""), "{}", text.out);
    assert!(text.out.starts_with("passes   handshake "), "{}", text.out);
    let json = finish(Command::new(SOFTIOV).args(["drive", "--json", "--socket"]).arg(&socket));
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["functions"][0]["role"], "vf");
    assert_eq!(report["checks"][0]["check"], "handshake");
    assert_eq!(report["checks"][0]["result"], "passes");
    assert_eq!(report["checks"].as_array().unwrap().len() + 1, text.out.lines().count());
}

#[test]
fn drive_audit_lists_registers_and_the_pages_to_trap() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let socket = serve.folder().join("pf0vf0/vf.sock");
    let text = finish(Command::new(SOFTIOV).args(["drive", "--audit", "--socket"]).arg(&socket));
    assert_eq!((text.status, text.err.as_str()), (Some(0), ""), "{}", text.out);
    let status = text.out.lines().find(|line| line.contains(" STATUS ")).unwrap();
    assert!(status.ends_with("PCI number of the function, THE MACHINE'S"), "{status}");
    assert!(
        text.out.ends_with(
            "registers, 1 of them with values of the physical machine; pages of BAR0 to trap: 0x0\n"
        ),
        "{}",
        text.out
    );
    let json = finish(Command::new(SOFTIOV).args(["drive", "--audit", "--json", "--socket"]).arg(&socket));
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["registers"].as_array().unwrap().len() + 1, text.out.lines().count());
    assert_eq!(report["trap_pages"], serde_json::json!([0]));
}

#[test]
fn drive_refuses_missing_functions_and_wrong_usage() {
    let drive = |arguments: &[&str]| finish(Command::new(SOFTIOV).arg("drive").args(arguments));
    let missing = drive(&["--vf", "ffff:ff:1f.7"]);
    assert_eq!(missing.status, Some(1));
    assert!(missing.err.contains("no PCI function has address ffff:ff:1f.7"), "{}", missing.err);
    let missing = drive(&["--reset", "ffff:ff:1f.7", "--hide", "flr,bus"]);
    assert!(missing.err.contains("no PCI function has address ffff:ff:1f.7"), "{}", missing.err);
    let unserved = drive(&["--socket", "/nowhere/at.sock"]);
    assert_eq!(unserved.status, Some(1));
    assert!(unserved.err.contains("cannot connect to /nowhere/at.sock"), "{}", unserved.err);
    for usage in [
        &[][..],
        &["--vf", "eth0"],
        &["--pf", "1:0.0", "--vf", "1:0.1"],
        &["--vf", "1:0.0", "--peer", "::1"],
        &["--reset", "1:0.0", "--vf", "1:0.1"],
        &["--reset", "1:0.0", "--hide", "d4"],
        &["--vf", "1:0.0", "--without-reset"],
    ] {
        assert_eq!(drive(usage).status, Some(2), "{usage:?}");
    }
}

#[test]
fn report_to_a_full_output_is_an_error_not_a_panic() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let socket = serve.folder().join("pf0vf0/vf.sock");
    let script = format!("exec {SOFTIOV} drive --socket {} > /dev/full", socket.display());
    let said = finish(Command::new("sh").args(["-c", &script]));
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("cannot write to standard output"), "{}", said.err);
}
