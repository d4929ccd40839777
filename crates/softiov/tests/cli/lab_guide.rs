//! Tests the lab's guide: each of its commands succeeds, in its order and in one folder. Each point has two milliseconds of virtual
//! time, so that this takes seconds.

use crate::process::SOFTIOV;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

const GUIDE: &str = include_str!("../../../../docs/lab-guide.md");

/// Commands that are not run, each by a part of it, and the reason.
const LEFT_OUT: [(&str, &str); 6] = [
    ("eoi_price", "runs an experiment that the reader writes; `guide_example` of the lab's tests runs it"),
    ("table=nehalem-x2apic", "runs on a machine that the reader adds"),
    ("guest=large", "uses a kernel that the reader adds"),
    ("policy=500 ", "uses a policy that the reader adds"),
    ("lab calibrate", "computes for minutes, and writes into the checkout"),
    ("lab host", "measures the machine, and predicts all experiments in full length"),
];

/// Experiments without simulated time, or with some of them.
const TIMELESS: [&str; 3] = ["all", "today", "translate"];

/// Settings that shorten a point.
const SHORT: [&str; 2] = ["measure_ms=2", "warm_up_ms=2"];

/// Returns the guide's commands in their order, without comments, each with a blank at its end.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for block in GUIDE.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for line in block.lines() {
            let line = line.split(" #").next().unwrap_or_default();
            commands.extend(line.split(" && ").map(|command| format!("{} ", command.trim())));
        }
    }
    commands
}

/// Returns a command with short points: `--set` after `run`, and settings of each model or point of `compare` and `explain`.
fn shortened(command: &str) -> String {
    let short = SHORT.join(",");
    let shorten = |word: &str| match word.split_once(':') {
        _ if word.starts_with('-') => word.to_owned(),
        Some(_) => format!("{word},{short}"),
        None if word == "unchanged" => short.clone(),
        None if word.contains('=') => format!("{word},{short}"),
        None => word.to_owned(),
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        [_, "lab", "run", ..] => {
            let mut command = words.join(" ");
            SHORT.iter().for_each(|setting| command.push_str(&format!(" --set {setting}")));
            // Some experiments have no time, and the lab refuses settings of time for them.
            if TIMELESS.iter().any(|name| words.contains(name)) { command + " --unaffected" } else { command }
        }
        [_, "lab", "compare" | "explain", ..] => {
            words.iter().copied().map(shorten).collect::<Vec<_>>().join(" ")
        }
        _ => words.join(" "),
    }
}

/// Files that the guide shows, each with a part of its text.
const FILES: [(&str, &str); 2] =
    [("one-socket.toml", "name = \"one-socket\""), ("server.toml", "name = \"our-server\"")];

/// Writes the files that a reader has before the guide's first command on them: those that the guide shows, and measurements of
/// `lab host`.
fn prepare(folder: &Path, command: &str) {
    for (name, part) in FILES.iter().filter(|(name, _)| command.contains(name) && !folder.join(name).exists())
    {
        let mut blocks = GUIDE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let file = blocks.find(|block| block.contains(part)).expect("the guide shows the file");
        fs::write(folder.join(name), file).unwrap();
    }
    if command.contains("--settings here") {
        fs::write(folder.join("here"), "cost.rx_skb=400\n").unwrap();
    }
}

fn run(folder: &Path, command: &str) {
    let program = command.replacen("softiov", SOFTIOV, 1);
    let output =
        Command::new("timeout").args(["300", "sh", "-c", &program]).current_dir(folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {}\n{error}", output.status);
}

#[test]
fn lab_guide_commands_succeed_in_their_order() {
    let folder = tempdir().unwrap();
    let mut number = 0;
    for command in commands() {
        if LEFT_OUT.iter().any(|(part, _)| command.contains(part)) {
            continue;
        }
        prepare(folder.path(), &command);
        run(folder.path(), &shortened(&command));
        number += 1;
    }
    assert!(number > 30, "{number} commands");
}

#[test]
fn lab_guide_has_each_command_that_is_left_out() {
    for (part, why) in LEFT_OUT {
        assert!(commands().iter().any(|command| command.contains(part)), "{part}: {why}");
    }
}
