//! Attacks a host with the short set of hand-made cases. `cargo xtask attack` runs all of them.

use attack::case::CaseSet;
use attack::cases::GROUPS;
use attack::run::{run, select};
use std::path::Path;

#[test]
fn host_withstands_the_short_set_of_attacks() {
    let mut cases = select(GROUPS, &[]);
    cases.retain(|(_, case)| case.set == CaseSet::Short);
    let results = run(Path::new(env!("CARGO_BIN_EXE_softiov")), &cases, |_| ()).unwrap();
    let failed: Vec<_> = results.iter().filter(|result| result.failure.is_some()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
