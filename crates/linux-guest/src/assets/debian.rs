//! A Debian 13 as a folder, its packages installed by their own scripts: for tests of what is installed on a system, with
//! systemd and libvirt. Made by mmdebstrap, which takes root. Left out: a kernel, QEMU, and starting anything in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kitchen;
use super::error::{Result, run};
use super::sources::Archive;

const PACKAGES: [&str; 7] = [
    "cpio",
    "libvirt-clients",
    "libvirt-daemon",
    "libvirt-daemon-driver-qemu",
    "libvirt-daemon-log",
    "procps",
    "systemd",
];
/// What nobody reads here.
const LEFT_OUT: [&str; 3] = ["/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*"];

/// The folder, in the cache. Nobody may change what is in it.
#[derive(Clone, Debug)]
pub struct DebianRoot {
    folder: PathBuf,
}

impl DebianRoot {
    /// Finds it in the cache, or makes it: 60 MB to fetch, 250 MB on disk.
    ///
    /// # Errors
    ///
    /// Those of [`Assets::prepare`](super::Assets::prepare), and that mmdebstrap is missing or this is not root.
    pub fn prepare() -> Result<Self> {
        let mut kitchen = Kitchen::open()?;
        let part = kitchen.cache.part("debian", &format!("1 trixie {PACKAGES:?} {LEFT_OUT:?}"));
        if kitchen.lacks(&part)? {
            let sources = kitchen.apt(Archive::Trixie)?.sources();
            kitchen.progress.step("installing a Debian 13 into a folder");
            let bench = kitchen.cache.bench("debian")?;
            run(mmdebstrap(&bench).arg(sources))?;
            kitchen.cache.publish(&bench, &part)?;
        }
        kitchen.close()?;
        Ok(Self { folder: part })
    }

    /// Where it is.
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
    command.arg(Archive::Trixie.name()).arg(folder);
    command
}
