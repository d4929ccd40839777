//! `softiov events`: what a host tells of its guests. Which records are kept, and for how long, are `daemon::events`' tests.

use crate::process::{SOFTIOV, Serve, softiov};
use crate::survival::attach;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// What has happened to something, as told now.
fn told(serve: &Serve, name: &str) -> Vec<String> {
    let said = softiov(serve.folder(), &["events", name, "--json"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let events = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_guests_coming_and_going_is_told_in_its_order() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    assert_eq!(told(&serve, "pf0vf0"), ["ready"]);
    drop(attach(serve.folder(), 0));
    let story = ["ready", "a client has connected", "a driver runs the VF", "the client has gone"];
    let begun = Instant::now();
    loop {
        let mut told = told(&serve, "pf0vf0");
        told.retain(|event| story.contains(&event.as_str()));
        if told == story {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{told:?}");
        sleep(Duration::from_millis(20));
    }
    let text = softiov(serve.folder(), &["events", "pf0vf0"]).out;
    assert!(text.lines().nth(1).unwrap().contains(" INFO  pf0vf0: a client has connected peer="), "{text}");
    assert!(!text.contains("pf0vf1"), "{text}");
}

#[test]
fn what_happens_is_followed() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    let mut follow = Command::new(SOFTIOV)
        .args(["events", "--follow", "pf0vf2", "--runtime-dir"])
        .arg(serve.folder())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("pf0vf2: ready"));
    softiov(serve.folder(), &["vf", "set", "pf0vf2", "--state", "disable"]);
    let line = lines.next().unwrap();
    assert!(line.contains("pf0vf2: the VF's link is down"), "{line}");
    follow.kill().unwrap();
    follow.wait().unwrap();
}
