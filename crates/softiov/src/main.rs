//! The softiov command.
fn main() {}
