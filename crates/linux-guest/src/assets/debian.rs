//! A Debian 13 system in a folder, its packages installed by their own scripts: for tests of an installed system with
//! systemd and libvirt. Made by mmdebstrap, which needs root. It has no kernel and no QEMU, and is not started.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::AssetBuilder;
use super::error::{Result, run};
use super::sources::DebianRelease;

const PACKAGES: [&str; 7] = [
    "cpio",
    "libvirt-clients",
    "libvirt-daemon",
    "libvirt-daemon-driver-qemu",
    "libvirt-daemon-log",
    "procps",
    "systemd",
];
/// Patterns of files in packages that are not installed, as the tests do not need them.
const LEFT_OUT: [&str; 3] = ["/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*"];

/// Folder of a Debian system in the cache. Its contents must not be changed.
#[derive(Clone, Debug)]
pub struct DebianRoot {
    folder: PathBuf,
}

impl DebianRoot {
    /// Finds the Debian system in the cache, or creates it: 60 MB to fetch, 250 MB on disk.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare), and an error without mmdebstrap or
    /// without root.
    pub fn prepare() -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        let part = builder.cache.part("debian", &format!("1 trixie {PACKAGES:?} {LEFT_OUT:?}"));
        if builder.needs_build(&part)? {
            let sources = builder.apt(DebianRelease::Trixie)?.sources();
            builder.progress.step("installing Debian 13 into a folder for the guest");
            let build_folder = builder.cache.build_folder("debian")?;
            run(mmdebstrap(&build_folder).arg(sources))?;
            builder.cache.publish(&build_folder, &part)?;
        }
        builder.close()?;
        Ok(Self { folder: part })
    }

    /// Returns the path of the Debian system's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn mmdebstrap(folder: &Path) -> Command {
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--mode=root", "--variant=essential", "--format=directory"]);
    command.arg(format!("--include={}", PACKAGES.join(",")));
    command.args(["--aptopt=APT::Install-Recommends \"false\"", "--aptopt=Acquire::Languages \"none\""]);
    command.args(LEFT_OUT.map(|what| format!("--dpkgopt=path-exclude={what}")));
    command.arg(DebianRelease::Trixie.name()).arg(folder);
    command
}
