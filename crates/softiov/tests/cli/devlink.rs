//! `softiov devlink` beside the real one. `devlink.golden` is what iproute2 6.1's devlink printed under Linux 6.1 about
//! netdevsim's device with two VFs in switchdev mode, whose functions told an address and a state: after each command what
//! it printed, on standard error behind `! `, and its exit code. Names and handles are those of our host, and the wire's
//! port, which netdevsim counts from 1, is 0. Usage is left out, which names what each of the two can do.

use crate::process::{Serve, softiov};
use std::fmt::Write;
use std::path::Path;
use tempfile::tempdir;

const GOLDEN: &str = include_str!("devlink.golden");

/// What `softiov devlink` says, in the golden file's form. Lines of ours below devlink's are left out.
fn said(folder: &Path, words: &str) -> String {
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
fn answers_and_errors_are_those_of_devlink() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    assert_eq!(softiov(serve.folder(), &["port", "set", "pf0", "--vfs", "2"]).status, Some(0));
    for (vf, mac) in [("0", "02:00:00:00:00:01"), ("1", "02:00:00:00:00:02")] {
        let set = softiov(serve.folder(), &["ip", "link", "set", "pf0", "vf", vf, "mac", mac]);
        assert_eq!((set.status, set.err.as_str()), (Some(0), ""));
    }
    let mut told = 0;
    for conversation in GOLDEN.split("$ devlink ").skip(1) {
        let (words, theirs) = conversation.split_once('\n').unwrap();
        assert_eq!(said(serve.folder(), words), theirs, "devlink {words}");
        told += 1;
    }
    assert!(told > 20, "{told} commands");
}
