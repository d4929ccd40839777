//! Tests `softiov demo` with an output that fails, with an interrupt, and with guests of either family.
//! `cargo xtask test` checks the rest of its report.

use crate::process::{SOFTIOV, files, finish};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn demo_report_to_a_full_output_is_an_error_not_a_panic() {
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

#[test]
fn embedded_demo_refuses_virtio_with_the_remedy() {
    let said = finish(Command::new(SOFTIOV).args(["demo", "--family", "virtio"]));
    assert_eq!((said.status, &*said.out), (Some(1), ""), "{}", said.err);
    assert!(said.err.contains("no driver for --family virtio; add --linux"), "{}", said.err);
}

/// SVG picture of a demo that the README shows.
const KEPT: &str = include_str!("../../../../docs/images/demo.svg");

/// Returns the texts and elements of an SVG picture, without numbers, so that pictures of different runs
/// compare as equal.
fn form(svg: &str) -> String {
    svg.split(|c: char| c.is_ascii_digit() || ",.".contains(c)).filter(|part| !part.is_empty()).collect()
}

/// Fails unless every element of an XML document is closed inside its parent.
fn check_nesting(xml: &str) {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("each tag ends");
        assert!(!text.contains('>') && tag.matches('"').count().is_multiple_of(2), "{tag}>{text}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None => open.push(tag.split(' ').next().unwrap()),
        }
        assert!(!open.is_empty() || text.trim().is_empty(), "{text:?} follows the document");
    }
    assert!(open.is_empty(), "{open:?} do not end");
}

#[test]
fn demo_writes_the_picture_that_the_readme_shows() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("demo.svg");
    let said = finish(Command::new(SOFTIOV).args(["demo", "--picture"]).arg(&file));
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.out.contains("flow from"), "the tables are printed too: {}", said.out);
    let svg = std::fs::read_to_string(&file).unwrap();
    check_nesting(&svg);
    assert!(svg.starts_with("<svg ") && svg.len() < 60_000, "{} bytes", svg.len());
    assert!(!svg.contains("<script") && ["pf0vf0", "pf0vf1", "pf0vf2"].iter().all(|vf| svg.contains(vf)));
    check_nesting(KEPT);
    assert_eq!(form(&svg), form(KEPT), "cargo run --release -- demo --picture docs/images/demo.svg");
}

#[test]
fn demo_picture_that_cannot_be_written_is_an_error() {
    let said = finish(Command::new(SOFTIOV).args(["demo", "--picture", "/nonexistent/demo.svg"]));
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("cannot write the picture to /nonexistent/demo.svg"), "{}", said.err);
}
