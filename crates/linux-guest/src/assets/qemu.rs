//! A QEMU with vfio-user (10.1 or later): the one that the environment names, the system's own, or Debian's. Debian's
//! is unpacked into the cache and run through its own dynamic linker, since it needs a newer libc than an older host
//! has. Debian 12's QEMU 7.2, which has no vfio-user, is for guests on vhost-user sockets alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt, libraries};

const NEEDED: (u32, u32) = (10, 1);
const PACKAGE: &str = "qemu-system-x86";
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Generation of QEMU, by which a guest's arguments differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QemuSeries {
    /// QEMU 10.1 or later, with vfio-user.
    Current,
    /// QEMU 7.2, the one of Debian 12 (bookworm).
    Bookworm72,
}

/// QEMU that can be run on this host.
#[derive(Clone, Debug)]
pub struct Qemu {
    series: QemuSeries,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Folder of QEMU's loadable modules, if QEMU would not find it.
    modules: Option<PathBuf>,
}

impl Qemu {
    /// Returns a command that runs QEMU; append the machine's arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.envs(self.modules.iter().map(|folder| ("QEMU_MODULE_DIR", folder)));
        command
    }

    pub(crate) fn series(&self) -> QemuSeries {
        self.series
    }

    pub(super) fn at(program: PathBuf) -> Result<Self> {
        let series = QemuSeries::Current;
        Self { series, program, arguments: Vec::new(), modules: None }.checked()
    }

    /// Returns the QEMU of this system, if it is version 10.1 or later.
    pub(super) fn of_system() -> Option<Self> {
        Self::at("qemu-system-x86_64".into()).ok()
    }

    /// Returns the QEMU in an unpacked root file system, with all its libraries.
    fn in_root(root: &Path, series: QemuSeries) -> Result<Self> {
        let libraries = LIBRARIES.map(|folder| root.join(folder).display().to_string()).join(":");
        let program = libraries::linker(root);
        let mut arguments: Vec<OsString> = vec!["--library-path".into(), libraries.into()];
        arguments.push(root.join("usr/bin/qemu-system-x86_64").into());
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            arguments.extend(["-L".into(), root.join(data).into()]);
        }
        // QEMU looks beside the program that runs, which is the dynamic linker here. TCG of QEMU 7.2 is a module.
        let modules = Some(root.join("usr/lib/x86_64-linux-gnu/qemu"));
        Self { series, program, arguments, modules }.checked()
    }

    fn checked(self) -> Result<Self> {
        let ask = |question: &[&str]| self.command().args(question).output();
        let version = ask(&["--version"]).map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned(),
        );
        let device = || ask(&["-device", "vfio-user-pci,help"]).is_ok_and(|output| output.status.success());
        let fits = match self.series {
            QemuSeries::Current => version_of(&version) >= Some(NEEDED) && device(),
            QemuSeries::Bookworm72 => version_of(&version) == Some((7, 2)),
        };
        if fits {
            return Ok(self);
        }
        Err(AssetError::Qemu { program: self.program.display().to_string(), found: version })
    }
}

/// Returns Debian's QEMU from the cache, or fetches and unpacks it if it is missing.
pub(super) fn prepare(builder: &mut AssetBuilder, series: QemuSeries) -> Result<Qemu> {
    let (release, name) = match series {
        QemuSeries::Current => (DebianRelease::Trixie, "qemu"),
        QemuSeries::Bookworm72 => (DebianRelease::Bookworm, "qemu-bookworm-7.2"),
    };
    let part = builder.cache.part(name, &format!("1 {} {PACKAGE}", release.target_release()));
    if builder.needs_build(&part)? {
        let apt = builder.apt(release)?;
        let packages = apt.fetch("QEMU", &[PACKAGE], &mut builder.progress)?;
        builder.progress.step("unpacking QEMU");
        let build_folder = builder.cache.build_folder(name)?;
        for package in &packages {
            apt::unpack(package, &build_folder)?;
        }
        Qemu::in_root(&build_folder, series)?;
        builder.cache.publish(&build_folder, &part)?;
    }
    Qemu::in_root(&part, series)
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
