//! `softiov events`: what a host tells of its guests. Which records are kept, and for how long, are `daemon::events`' tests.

use crate::process::{PATIENCE, SOFTIOV, Serve, softiov};
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
        assert!(begun.elapsed() < PATIENCE, "{told:?}");
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

/// One process takes over from another, and a third starts after a crash of that: whoever follows hears of each event once.
#[test]
fn nothing_is_lost_or_told_twice_when_another_process_takes_over() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    let mut follow = Command::new(SOFTIOV)
        .args(["events", "--follow", "--json", "--runtime-dir"])
        .arg(serve.folder())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut heard = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let mut until = |told: &str| -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = heard.next().unwrap();
            let is_it = event["event"] == told;
            events.push(event);
            if is_it {
                return events;
            }
        }
    };
    let mut processes = vec![until("serving")];
    for takes_over in ["upgrade", "crash"] {
        // More than the next process has at first, so that numbers alone would mislead.
        for state in ["disable", "auto"].repeat(10) {
            assert_eq!(softiov(serve.folder(), &["vf", "set", "pf0vf2", "--state", state]).status, Some(0));
        }
        match takes_over {
            "upgrade" => assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0)),
            _ => rustix::process::kill_process(serve.hosts()[0], rustix::process::Signal::KILL).unwrap(),
        }
        processes.push(until("serving"));
    }
    follow.kill().unwrap();
    follow.wait().unwrap();
    // The numbers of each process begin at 1, and leave nothing out.
    let numbers: Vec<u64> =
        processes.concat().iter().map(|event| event["number"].as_u64().unwrap()).collect();
    let runs: Vec<&[u64]> = numbers.chunk_by(|before, number| number > before).collect();
    assert_eq!(runs.len(), 3, "{numbers:?}");
    for run in &runs {
        assert!(run.iter().copied().eq(1..=run.len() as u64), "{run:?}");
    }
    assert!(runs[0].len() > 25, "the last events before the upgrade, too: {numbers:?}");
}
