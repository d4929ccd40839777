//! `softiov demo` on a standard output that fails. Left out: what it reports, which `cargo xtask test` checks.

use crate::process::{SOFTIOV, finish};
use std::process::Command;

#[test]
fn a_report_that_nobody_takes_is_an_error_and_no_panic() {
    for options in ["", "--json"] {
        let script = format!("exec {SOFTIOV} demo {options} > /dev/full");
        let said = finish(Command::new("sh").args(["-c", &script]));
        assert_eq!(said.status, Some(1), "{options}: {}", said.err);
        assert!(said.err.contains("cannot write to standard output"), "{options}: {}", said.err);
    }
}
