//! Facts about the checkout that the stages of `cargo xtask test` share. Runs no stage.

use std::path::PathBuf;
use std::process::Command;

/// Test targets that boot virtual machines. They have `test = false`, so a plain `cargo test` does not run them; `xtask
/// tidy` checks that no other target has it.
pub(crate) const GUEST_TESTS: [&str; 3] = ["boot", "linux", "package"];

/// Workspace root and git state that the test stages share.
#[derive(Debug)]
pub(super) struct TestWorkspace {
    pub(super) root: PathBuf,
    /// Output of `git status` before the first build. `None` outside a checkout.
    pub(super) status: Option<String>,
}

impl TestWorkspace {
    /// Returns the output of `git status`, or `None` without git or outside a checkout.
    pub(super) fn git_status(root: &PathBuf) -> Option<String> {
        let output = Command::new("git").args(["status", "--porcelain"]).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
