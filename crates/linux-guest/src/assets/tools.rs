//! The programs that a guest has, from Debian 12, unpacked into the cache. Also holds the decompressors that
//! the other recipes use, so that the host needs none.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::{AssetError, AtPath, Result, failure};
use super::sources::Archive;
use super::{Kitchen, apt, libraries};

const PACKAGES: [&str; 8] =
    ["busybox-static", "dash", "ethtool", "iperf3", "iproute2", "pciutils", "xz-utils", "zstd"];

/// The programs beside busybox that go into the guest's /bin. The shell is Debian's because busybox's prefers its
/// own applets to programs of the same name, `ip` for one. (So do its applets: `timeout 5 ip` is busybox's,
/// `timeout 5 /bin/ip` is not.)
pub(super) const PROGRAMS: [&str; 6] =
    ["bin/dash", "sbin/bridge", "sbin/ethtool", "bin/ip", "usr/bin/iperf3", "usr/bin/lspci"];

/// The unpacked programs.
#[derive(Debug)]
pub(super) struct Tools {
    root: PathBuf,
}

impl Tools {
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn busybox(&self) -> PathBuf {
        self.root.join("bin/busybox")
    }

    /// Decompresses a file in the format that its first bytes tell. `None`: a format that is not known.
    pub(super) fn decompress(&self, from: &Path, magic: &[u8], to: &Path) -> Result<Option<()>> {
        let program = match magic {
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "usr/bin/xz",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "usr/bin/zstd",
            _ => return Ok(None),
        };
        let mut command = libraries::command(&self.root, program);
        command.args(["-d", "-c"]).stdin(File::open(from).at(from)?).stdout(File::create(to).at(to)?);
        let output = command.spawn().and_then(std::process::Child::wait_with_output).at(from)?;
        if output.status.success() { Ok(Some(())) } else { Err(failure(&command, &output)) }
    }
}

/// The programs from the cache, fetched and unpacked if they are not there yet.
pub(super) fn prepare(kitchen: &mut Kitchen) -> Result<Tools> {
    let part = kitchen.cache.part("tools", &format!("1 bookworm {PACKAGES:?}"));
    if kitchen.lacks(&part)? {
        let apt = kitchen.apt(Archive::Bookworm)?;
        let packages = apt.fetch("the guest's tools", &PACKAGES, &mut kitchen.progress)?;
        kitchen.progress.step("unpacking the guest's tools");
        let bench = kitchen.cache.bench("tools")?;
        for package in &packages {
            apt::unpack(package, &bench)?;
        }
        if let Some(program) = PROGRAMS.iter().find(|program| !bench.join(program).exists()) {
            return Err(AssetError::Contents(format!("no {program} in the packages {PACKAGES:?}")));
        }
        kitchen.cache.publish(&bench, &part)?;
    }
    Ok(Tools { root: part })
}
