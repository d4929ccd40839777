//! Attacks a host with all hand-made cases. `cargo xtask attack` does the same on two builds, and prints a table.

use attack::cases::GROUPS;
use attack::run::{run, select};
use std::path::Path;

#[test]
fn host_withstands_all_attacks() {
    let results = run(Path::new(env!("CARGO_BIN_EXE_softiov")), &select(GROUPS, &[]), |_| ()).unwrap();
    let failed: Vec<_> = results.iter().filter(|result| result.failure.is_some()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
