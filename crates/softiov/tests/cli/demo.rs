//! Tests `softiov demo` with an output that fails, with an interrupt, and with guests of either family.
//! `cargo xtask test` checks the rest of its report.

use crate::process::{SOFTIOV, files, finish};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn report_to_a_full_output_is_an_error_not_a_panic() {
    for options in ["", "--json"] {
        let script = format!("exec {SOFTIOV} demo {options} > /dev/full");
        let said = finish(Command::new("sh").args(["-c", &script]));
        assert_eq!(said.status, Some(1), "{options}: {}", said.err);
        assert!(said.err.contains("cannot write to standard output"), "{options}: {}", said.err);
    }
}

#[test]
fn interrupted_demo_removes_its_temporary_files() {
    for (moment, signal) in [
        ("starting", Signal::INT),
        ("attaching", Signal::TERM),
        ("pings", Signal::INT),
        ("attaching", Signal::HUP),
    ] {
        let folder = tempdir().unwrap();
        // A shell that starts tests in the background makes them and their children ignore SIGINT.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", SOFTIOV, "demo"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut demo = command.spawn().unwrap();
        let mut said = BufReader::new(demo.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains(moment)), "{moment}");
        kill_process(Pid::from_child(&demo), signal).unwrap();
        said.for_each(drop);
        assert!(!demo.wait().unwrap().success(), "{moment}");
        assert_eq!(files(folder.path()), Vec::<String>::new(), "{moment}");
    }
}

#[test]
fn embedded_demo_guests_drive_82576_and_avf_vfs() {
    for (options, family, expected) in
        [("", "82576", "softiov driver::vf"), ("--family avf --mapped", "avf", "softiov driver::avf::vf")]
    {
        let mut command = Command::new(SOFTIOV);
        let said = finish(command.args(["demo", "--json"]).args(options.split_whitespace()));
        assert_eq!(said.status, Some(0), "{options}: {}", said.err);
        let demo: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((&demo["family"], &demo["mapped"]), (&family.into(), &(family == "avf").into()), "{demo}");
        let list = |key: &str| demo[key].as_array().unwrap().clone();
        assert!(list("guests").iter().all(|guest| guest["driver"] == expected), "{options}: {demo}");
        assert_eq!((list("guests").len(), list("pings").len(), list("flows").len()), (3, 6, 6), "{options}");
        assert!(list("flows").iter().all(|flow| flow["bytes"] == 64 << 20), "{options}: {demo}");
    }
}
