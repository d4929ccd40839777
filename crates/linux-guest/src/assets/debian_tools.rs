//! Debian programs that tests run on the host to check our output: tshark for captures, apparmor_parser for the
//! AppArmor rule. They run with the libraries of their own packages.

use std::path::PathBuf;
use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt, libraries};

/// Program from a Debian package: the package's name, and the program's path in the package.
struct DebianTool {
    package: &'static str,
    program: &'static str,
}

const TSHARK: DebianTool = DebianTool { package: "tshark", program: "usr/bin/tshark" };
const APPARMOR: DebianTool = DebianTool { package: "apparmor", program: "sbin/apparmor_parser" };

/// Returns a command that runs Debian's tshark, Wireshark on the command line, from the cache. Fetches 45 MB the
/// first time.
///
/// # Errors
///
/// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
pub fn tshark() -> Result<Command> {
    let part = unpacked(&TSHARK)?;
    let mut command = libraries::command(&part, TSHARK.program);
    command.env("WIRESHARK_DATA_DIR", part.join("usr/share/wireshark"));
    Ok(command)
}

/// Returns a command that runs Debian's apparmor_parser from the cache, with Debian's abstractions. It parses
/// profiles even if the kernel has no AppArmor.
///
/// # Errors
///
/// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
pub fn apparmor_parser() -> Result<Command> {
    let part = unpacked(&APPARMOR)?;
    let mut command = libraries::command(&part, APPARMOR.program);
    command.arg("--base").arg(part.join("etc/apparmor.d"));
    Ok(command)
}

/// Unpacks a tool's packages into the cache, if they are missing, and returns the tool's folder there.
fn unpacked(tool: &DebianTool) -> Result<PathBuf> {
    let &DebianTool { package: name, program } = tool;
    let mut builder = AssetBuilder::open()?;
    let part = builder.cache.part(name, &format!("1 bookworm {name}"));
    if builder.needs_build(&part)? {
        let apt = builder.apt(DebianRelease::Bookworm)?;
        let packages = apt.fetch(name, &[name], &mut builder.progress)?;
        let root = builder.cache.build_folder(name)?;
        for package in &packages {
            apt::unpack(package, &root)?;
        }
        if !root.join(program).exists() {
            return Err(AssetError::Contents(format!("no {program} in the package {name}")));
        }
        builder.cache.publish(&root, &part)?;
    }
    builder.close()?;
    Ok(part)
}
