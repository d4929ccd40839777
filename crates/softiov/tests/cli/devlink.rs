//! Tests `softiov devlink` against the devlink of iproute2. `devlink.golden` is the output of iproute2 6.1's devlink
//! on Linux 6.1 for a netdevsim device with two VFs in switchdev mode, with addresses and states: after each command
//! its output, its standard error behind `! `, and its exit code. Names and handles are adapted to our host, and the
//! wire's port, which netdevsim counts from 1, is 0. Usage texts are left out, since they name what each program can
//! do.

use crate::process::{ServeProcess, softiov};
use std::fmt::Write;
use std::path::Path;
use tempfile::tempdir;

const GOLDEN: &str = include_str!("devlink.golden");

/// Returns the output of `softiov devlink` in the golden file's form, without lines of softiov's own.
fn transcript(folder: &Path, words: &str) -> String {
    let arguments: Vec<&str> = ["devlink"].into_iter().chain(words.split(' ')).collect();
    let said = softiov(folder, &arguments);
    let mut text = said.out;
    let ours = |line: &&str| line.starts_with("softiov: ") || line.starts_with("Usage: ");
    for line in said.err.lines().filter(|line| !ours(line)) {
        let _ = writeln!(text, "! {line}");
    }
    text + &format!("exit {}\n", said.status.unwrap_or(-1))
}

#[test]
fn softiov_devlink_prints_the_text_of_the_real_devlink() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    assert_eq!(softiov(serve.folder(), &["port", "set", "pf0", "--vfs", "2"]).status, Some(0));
    for (vf, mac) in [("0", "02:00:00:00:00:01"), ("1", "02:00:00:00:00:02")] {
        let set = softiov(serve.folder(), &["ip", "link", "set", "pf0", "vf", vf, "mac", mac]);
        assert_eq!((set.status, set.err.as_str()), (Some(0), ""));
    }
    let mut commands = 0;
    for conversation in GOLDEN.split("$ devlink ").skip(1) {
        let (words, theirs) = conversation.split_once('\n').unwrap();
        assert_eq!(transcript(serve.folder(), words), theirs, "devlink {words}");
        commands += 1;
    }
    assert!(commands > 20, "{commands} commands");
}
