//! Programs of a guest from Debian 12, unpacked into the cache. They include the decompressors that the other recipes
//! use, so that the host needs none.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::{AssetError, AssetIoResultExt, Result, failure};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt, libraries};

const PACKAGES: [&str; 8] =
    ["busybox-static", "dash", "ethtool", "iperf3", "iproute2", "pciutils", "xz-utils", "zstd"];

/// Names of the programs beside busybox that go into the guest's /bin. The shell is Debian's because busybox's prefers
/// its own applets to programs of the same name, `ip` for one. (So do its applets: `timeout 5 ip` is busybox's,
/// `timeout 5 /bin/ip` is not.)
pub(super) const PROGRAMS: [&str; 6] =
    ["bin/dash", "sbin/bridge", "sbin/ethtool", "bin/ip", "usr/bin/iperf3", "usr/bin/lspci"];

/// Programs and decompressors of a guest, unpacked into the cache.
#[derive(Debug)]
pub(super) struct GuestTools {
    root: PathBuf,
}

impl GuestTools {
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn busybox(&self) -> PathBuf {
        self.root.join("bin/busybox")
    }

    /// Decompresses the file `from` to `to` according to its first bytes. Returns `None` if its format is unknown.
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

/// Returns the guest's programs from the cache, or fetches and unpacks them if they are missing.
pub(super) fn prepare(builder: &mut AssetBuilder) -> Result<GuestTools> {
    let part = builder.cache.part("tools", &format!("1 bookworm {PACKAGES:?}"));
    if builder.needs_build(&part)? {
        let apt = builder.apt(DebianRelease::Bookworm)?;
        let packages = apt.fetch("the guest's tools", &PACKAGES, &mut builder.progress)?;
        builder.progress.step("unpacking the guest's tools");
        let build_folder = builder.cache.build_folder("tools")?;
        for package in &packages {
            apt::unpack(package, &build_folder)?;
        }
        if let Some(program) = PROGRAMS.iter().find(|program| !build_folder.join(program).exists()) {
            return Err(AssetError::Contents(format!("no {program} in the packages {PACKAGES:?}")));
        }
        builder.cache.publish(&build_folder, &part)?;
    }
    Ok(GuestTools { root: part })
}
