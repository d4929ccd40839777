//! The tasks of the project: `cargo xtask test` proves everything.
fn main() {}
