//! A QEMU with vfio-user (10.1 or later): the one that the environment names, the system's own, or Debian's. Debian's
//! is unpacked into the cache and run through its own dynamic linker, since it needs a newer libc than an older host
//! has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt};

const NEEDED: (u32, u32) = (10, 1);
const PACKAGE: &str = "qemu-system-x86";
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// QEMU with vfio-user that can be run on this host.
#[derive(Clone, Debug)]
pub struct Qemu {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Qemu {
    /// Returns a command that runs QEMU; append the machine's arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    pub(super) fn at(program: PathBuf) -> Result<Self> {
        Self { program, arguments: Vec::new() }.checked()
    }

    /// Returns the QEMU of this system, if it is version 10.1 or later.
    pub(super) fn of_system() -> Option<Self> {
        Self::at("qemu-system-x86_64".into()).ok()
    }

    /// Returns the QEMU in an unpacked root file system, with all its libraries.
    fn in_root(root: &Path) -> Result<Self> {
        let libraries = LIBRARIES.map(|folder| root.join(folder).display().to_string()).join(":");
        let program = root.join("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        let mut arguments: Vec<OsString> = vec!["--library-path".into(), libraries.into()];
        arguments.push(root.join("usr/bin/qemu-system-x86_64").into());
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            arguments.extend(["-L".into(), root.join(data).into()]);
        }
        Self { program, arguments }.checked()
    }

    fn checked(self) -> Result<Self> {
        let ask = |question: &[&str]| self.command().args(question).output();
        let version = ask(&["--version"]).map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned(),
        );
        let device = ask(&["-device", "vfio-user-pci,help"]).is_ok_and(|output| output.status.success());
        if version_of(&version) >= Some(NEEDED) && device {
            return Ok(self);
        }
        Err(AssetError::Qemu { program: self.program.display().to_string(), found: version })
    }
}

/// Returns Debian's QEMU from the cache, or fetches and unpacks it if it is missing.
pub(super) fn prepare(builder: &mut AssetBuilder) -> Result<Qemu> {
    let part = builder.cache.part("qemu", &format!("1 trixie-backports {PACKAGE}"));
    if builder.needs_build(&part)? {
        let apt = builder.apt(DebianRelease::Trixie)?;
        let packages = apt.fetch("QEMU", &[PACKAGE], &mut builder.progress)?;
        builder.progress.step("unpacking QEMU");
        let build_folder = builder.cache.build_folder("qemu")?;
        for package in &packages {
            apt::unpack(package, &build_folder)?;
        }
        Qemu::in_root(&build_folder)?;
        builder.cache.publish(&build_folder, &part)?;
    }
    Qemu::in_root(&part)
}

/// Returns the major and minor version in a line such as "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1~bpo13+1)".
fn version_of(line: &str) -> Option<(u32, u32)> {
    let version = line.strip_prefix("QEMU emulator version ")?.split_whitespace().next()?;
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_versions_are_compared_as_numbers() {
        let backport = version_of("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1~bpo13+1)");
        assert_eq!(backport, Some((11, 1)));
        assert!(backport >= Some(NEEDED) && version_of("QEMU emulator version 10.1.0") >= Some(NEEDED));
        assert!(version_of("QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7)") < Some(NEEDED));
        assert!(version_of("No such file or directory") < Some(NEEDED));
    }

    #[test]
    fn program_that_is_not_qemu_is_refused_with_its_name() {
        let error = Qemu::at("/bin/true".into()).unwrap_err();
        assert!(error.to_string().starts_with("/bin/true is not QEMU 10.1"), "{error}");
    }
}
