//! Builds the Debian package of the program under test, as `cargo xtask deb` builds it.

use anyhow::{Result, ensure};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the Debian package with a version number, and returns the package's path.
pub(crate) fn package(version: &str, out: &Path) -> Result<PathBuf> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["run", "--quiet", "--package", "xtask", "--", "deb", "--version", version, "--out"])
        .arg(out);
    command.args(["--program", env!("CARGO_BIN_EXE_softiov")]);
    // Without compression, since the package is unpacked at once.
    let output = command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "cargo xtask deb: {}{}", text(&output.stdout), text(&output.stderr));
    Ok(PathBuf::from(text(&output.stdout).trim()))
}
