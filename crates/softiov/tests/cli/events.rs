//! Tests `softiov events`: events of guests, in order, and followed across processes. `daemon::events` tests which
//! records are stored.

use crate::process::{PATIENCE, SOFTIOV, ServeProcess, softiov};
use crate::survival::attach;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Returns the host's stored events about `name`.
fn stored_events(serve: &ServeProcess, name: &str) -> Vec<String> {
    let said = softiov(serve.folder(), &["events", name, "--json"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let events = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn connect_and_disconnect_of_a_client_are_events_in_order() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    assert_eq!(stored_events(&serve, "pf0vf0"), ["the VF is ready for a client"]);
    drop(attach(serve.folder(), 0));
    let story = [
        "the VF is ready for a client",
        "a client has connected",
        "a driver runs the VF",
        "the client has closed the connection",
    ];
    let begun = Instant::now();
    loop {
        let mut events = stored_events(&serve, "pf0vf0");
        events.retain(|event| story.contains(&event.as_str()));
        if events == story {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{events:?}");
        sleep(Duration::from_millis(20));
    }
    let text = softiov(serve.folder(), &["events", "pf0vf0"]).out;
    assert!(text.lines().nth(1).unwrap().contains(" INFO  pf0vf0: a client has connected peer="), "{text}");
    assert!(!text.contains("pf0vf1"), "{text}");
}

#[test]
fn events_follow_prints_new_events() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let mut follow = Command::new(SOFTIOV)
        .args(["events", "--follow", "pf0vf2", "--runtime-dir"])
        .arg(serve.folder())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("pf0vf2: the VF is ready for a client"));
    softiov(serve.folder(), &["vf", "set", "pf0vf2", "--state", "disable"]);
    let line = lines.next().unwrap();
    assert!(line.contains("pf0vf2: the VF's link is down"), "{line}");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

/// Follows events over an upgrade, and then a crash: each event is printed once.
#[test]
fn events_follow_prints_each_event_once_across_hand_overs() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let mut follow = Command::new(SOFTIOV)
        .args(["events", "--follow", "--json", "--runtime-dir"])
        .arg(serve.folder())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut events_seen = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let mut until = |wanted: &str| -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = events_seen.next().unwrap();
            let is_last = event["event"] == wanted;
            events.push(event);
            if is_last {
                return events;
            }
        }
    };
    let mut processes = vec![until("the host is serving")];
    for takes_over in ["upgrade", "crash"] {
        // More events than the next process has at first, so that numbers alone would mislead.
        for state in ["disable", "auto"].repeat(10) {
            assert_eq!(softiov(serve.folder(), &["vf", "set", "pf0vf2", "--state", state]).status, Some(0));
        }
        match takes_over {
            "upgrade" => assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0)),
            _ => rustix::process::kill_process(serve.hosts()[0], rustix::process::Signal::KILL).unwrap(),
        }
        processes.push(until("the host is serving"));
    }
    follow.kill().unwrap();
    follow.wait().unwrap();
    // Each process numbers its events from 1, without gaps.
    let numbers: Vec<u64> =
        processes.concat().iter().map(|event| event["number"].as_u64().unwrap()).collect();
    let runs: Vec<&[u64]> = numbers.chunk_by(|before, number| number > before).collect();
    assert_eq!(runs.len(), 3, "{numbers:?}");
    for run in &runs {
        assert!(run.iter().copied().eq(1..=run.len() as u64), "{run:?}");
    }
    assert!(runs[0].len() > 25, "the last events before the upgrade, too: {numbers:?}");
}
