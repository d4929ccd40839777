//! Commands of the nightly toolchain, for tools that a stable compiler does not have.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

/// Toolchain of the commands.
pub(crate) const TOOLCHAIN: &str = "nightly";

/// Platform of the programs. Named, so that the compiler's flags are not those of build scripts too.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Checks that a program of the nightly toolchain runs. `arguments` are words before `--version`.
///
/// # Errors
/// The program does not run: `need` is the reason why it is needed, and `remedy` the command that installs it.
pub(crate) fn require(program: &str, arguments: &[&str], need: &str, remedy: &str) -> Result<()> {
    let mut command = nightly(program);
    let version =
        command.args(arguments).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let words = [&[program], arguments].concat().join(" ");
    ensure!(
        version.is_ok_and(|status| status.success()),
        "{need}, and `rustup run {TOOLCHAIN} {words}` fails; install it with `{remedy}`"
    );
    Ok(())
}

/// Returns a command of the nightly toolchain, without the variables by which the present toolchain names itself.
pub(crate) fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN, program]).stdin(Stdio::null());
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}
