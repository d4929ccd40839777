//! Decides whether warnings fail the tests. They do with the version of Rust that the workspace states. A later compiler has lints
//! that the sources do not know yet, and fails no newcomer's tests by them.

use anyhow::{Context, Result};

use crate::metadata;

/// Version of Rust that the workspace states (`rust-version`), whose warnings are errors.
const STATED: &str = env!("CARGO_PKG_RUST_VERSION");

/// Returns true if warnings of the compiler, of clippy and of rustdoc fail a stage. Says so if they do not.
pub(super) fn are_denied() -> Result<bool> {
    let compiler = metadata::compiler()?;
    let used = compiler.split_whitespace().nth(1).unwrap_or_default();
    let is_later = is_later(used, STATED).with_context(|| format!("no version of Rust: {compiler}"))?;
    if is_later {
        println!("   Rust {used} is later than {STATED}: its warnings fail nothing");
    }
    Ok(!is_later)
}

/// Returns true if a version such as 1.95.0 has other lints than a stated one such as 1.95, since it is later.
fn is_later(used: &str, stated: &str) -> Option<bool> {
    let numbers = |version: &str| -> Option<[u32; 2]> {
        let mut parts = version.split('.');
        Some([parts.next()?.parse().ok()?, parts.next()?.parse().ok()?])
    };
    Some(numbers(used)? > numbers(stated)?)
}

#[cfg(test)]
mod tests {
    use super::is_later;

    #[test]
    fn patch_release_has_the_lints_of_its_version() {
        let is_later = |used| is_later(used, "1.95");
        assert_eq!(["1.95.0", "1.95.2"].map(is_later), [Some(false); 2]);
        assert_eq!(["1.96.0", "1.100.0-nightly", "2.0.0"].map(is_later), [Some(true); 3]);
        assert_eq!(["", "1", "1.x"].map(is_later), [None; 3]);
    }
}
