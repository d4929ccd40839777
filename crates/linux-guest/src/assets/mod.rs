//! Files to boot a guest with, prepared once into a cache folder from signed Debian packages.
//!
//! Each part is built in a work folder and renamed into place under a name that includes the hash of its recipe, so
//! an existing part is always complete, and a changed recipe is a new part. A lock file lets one process prepare
//! while others wait.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `SOFTIOV_CACHE` | the cache folder; else `$XDG_CACHE_HOME/softiov`, else `~/.cache/softiov` |
//! | `SOFTIOV_QEMU` | a `qemu-system-x86_64`, version 10.1 or later, to use instead of looking for one |
//! | `SOFTIOV_GUEST_KERNEL` | a kernel image to boot; needs `SOFTIOV_GUEST_INITRAMFS` with matching modules |
//! | `SOFTIOV_GUEST_INITRAMFS` | an initramfs built by this crate, for instance on another machine |
//! | `SOFTIOV_DEBIAN_MIRROR` | the Debian mirror; else the one that the host's own apt uses |
//! | `SOFTIOV_ACCEL` | `kvm` or `tcg`, instead of finding out (see [`crate::QemuAccelerator`]) |
//!
//! Parts of older recipes stay (delete the cache folder to remove them). Hosts other than x86-64 are not supported.

mod apt;
mod cache;
mod cpio;
mod debian;
mod debian_tools;
mod dpdk;
mod elf;
mod error;
mod host_dpdk;
mod host_tools;
mod initramfs;
mod ipxe;
mod kernel;
mod libraries;
mod modules;
mod open_vswitch;
mod output;
mod program;
mod progress;
mod prometheus;
mod qemu;
mod sources;
mod tools;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;

pub use debian::DebianRoot;
pub use debian_tools::{apparmor_parser, tshark};
pub use dpdk::DpdkSeries;
pub use error::AssetError;
pub use host_dpdk::HostDpdk;
pub use host_tools::HostTools;
pub use open_vswitch::OpenVSwitch;
pub use prometheus::{PrometheusPrograms, prometheus};
pub use qemu::Qemu;
pub(crate) use qemu::QemuSeries;

use apt::AptRoot;
use cache::AssetCache;
use error::Result;
use progress::ProgressReporter;
use sources::{DebianMirror, DebianRelease};

/// Debian's kernel version that a guest boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelSeries {
    /// Linux 6.1, the kernel of Debian 12 (bookworm).
    Bookworm61,
    /// Linux 6.12, the kernel of Debian 13 (trixie).
    Trixie612,
    /// The newest kernel for Debian 13, from its suite trixie-backports.
    TrixieBackports,
}

impl KernelSeries {
    /// Returns the kernel's name in the cache folder and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bookworm61 => "bookworm-6.1",
            Self::Trixie612 => "trixie-6.12",
            Self::TrixieBackports => "trixie-backports",
        }
    }

    fn archive(self) -> DebianRelease {
        match self {
            Self::Bookworm61 => DebianRelease::Bookworm,
            Self::Trixie612 | Self::TrixieBackports => DebianRelease::Trixie,
        }
    }

    /// Returns the Debian suite that apt prefers to the release's own for the packages of this kernel.
    fn suite(self) -> Option<&'static str> {
        match self {
            Self::Bookworm61 | Self::Trixie612 => None,
            Self::TrixieBackports => Some(DebianRelease::Trixie.target_release()),
        }
    }
}

/// Files to boot a guest with: QEMU, kernel and initramfs.
#[derive(Clone, Debug)]
pub struct BootFiles {
    qemu: Qemu,
    kernel: PathBuf,
    initramfs: PathBuf,
    /// Temporary file that holds `initramfs`, or `None` if `initramfs` is in the cache. Dropping the last copy removes
    /// the file.
    own: Option<Arc<TempPath>>,
}

impl BootFiles {
    /// Finds the files of a guest in the cache, or downloads and builds them, and reports the steps on standard error.
    ///
    /// The first call on a machine fetches 100 to 250 MB; later calls take milliseconds and no network.
    ///
    /// # Errors
    ///
    /// A tool is missing, the archive cannot be reached or verified, or the disk is full. The text names a remedy.
    pub fn prepare(series: KernelSeries) -> Result<Self> {
        let given_qemu = env_path("SOFTIOV_QEMU").map(Qemu::at).transpose()?;
        let given_guest = guest_from_environment()?;
        if let (Some(qemu), Some((kernel, initramfs))) = (&given_qemu, &given_guest) {
            let (qemu, kernel, initramfs) = (qemu.clone(), kernel.clone(), initramfs.clone());
            return Ok(Self { qemu, kernel, initramfs, own: None });
        }
        let mut builder = AssetBuilder::open()?;
        let qemu = match given_qemu.or_else(Qemu::of_system) {
            Some(qemu) => qemu,
            None => qemu::prepare(&mut builder, QemuSeries::Current)?,
        };
        let (kernel, initramfs) = match given_guest {
            Some(given) => given,
            None => prepare_guest(&mut builder, series)?,
        };
        builder.close()?;
        Ok(Self { qemu, kernel, initramfs, own: None })
    }

    /// Returns the same files with DPDK's `dpdk-testpmd` added to the guest's programs. Fetches 30 MB the first time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`prepare`](Self::prepare).
    pub fn with_dpdk(mut self, series: DpdkSeries) -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        self.initramfs = dpdk::prepare(&mut builder, series, &self.initramfs)?;
        builder.close()?;
        Ok(self)
    }

    /// Returns the same files with Debian 12's QEMU 7.2, which has no vfio-user: its guests can have VFs behind vhost-user
    /// sockets. Fetches 50 MB the first time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`prepare`](Self::prepare).
    pub fn with_bookworm_qemu(mut self) -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        self.qemu = qemu::prepare(&mut builder, QemuSeries::Bookworm72)?;
        builder.close()?;
        Ok(self)
    }

    /// Returns the same files with a program of this host added in the guest's /bin, which runs with the libraries of
    /// this host.
    ///
    /// # Errors
    ///
    /// The file is no ELF program for this host, needs_build a library, or the disk is full.
    pub fn with_program(mut self, program: &Path) -> Result<Self> {
        let own = program::prepare(&self.initramfs, program)?;
        self.initramfs = own.to_path_buf();
        self.own = Some(Arc::new(own));
        Ok(self)
    }

    /// Returns the path of iPXE as an image for QEMU's `-kernel`, with drivers for the cards it knows; pass its script
    /// as the initramfs. Fetches 1 MB the first time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`prepare`](Self::prepare).
    pub fn ipxe(&self) -> Result<PathBuf> {
        let mut builder = AssetBuilder::open()?;
        let image = ipxe::prepare(&mut builder)?;
        builder.close()?;
        Ok(image)
    }

    /// Returns the QEMU that runs the guests: version 10.1 or later, or [Debian 12's](Self::with_bookworm_qemu).
    pub fn qemu(&self) -> &Qemu {
        &self.qemu
    }

    /// Returns the path of the kernel to pass to `-kernel`: Debian's own, unpacked from its self-extracting image if
    /// possible, because an emulated CPU takes seconds to do that.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// Returns the path of the initramfs to pass to `-initrd`.
    pub fn initramfs(&self) -> &Path {
        &self.initramfs
    }
}

/// Shared tools of the recipes that build the parts of the cache: the cache, the Debian mirror, and the report of
/// progress.
struct AssetBuilder {
    cache: AssetCache,
    mirror: DebianMirror,
    progress: ProgressReporter,
    /// Private apts whose package lists are up to date, one for each Debian release in use.
    open: Vec<AptRoot>,
}

impl AssetBuilder {
    fn open() -> Result<Self> {
        let cache = AssetCache::open(&cache_folder()?)?;
        Ok(Self {
            cache,
            mirror: DebianMirror::of_host(),
            progress: ProgressReporter::new(),
            open: Vec::new(),
        })
    }

    /// Returns a private apt that sees one Debian release and none of the host's packages.
    fn apt(&mut self, archive: DebianRelease) -> Result<AptRoot> {
        if let Some(open) = self.open.iter().find(|root| root.archive() == archive) {
            return Ok(open.clone());
        }
        let root = AptRoot::open(&self.cache.work_folder(), archive, &self.mirror, &mut self.progress)?;
        self.open.push(root.clone());
        Ok(root)
    }

    /// Returns true if this process has to build a part of the cache; waits while another process builds the part.
    fn needs_build(&mut self, part: &Path) -> Result<bool> {
        self.cache.needs_build(part, &mut self.progress)
    }

    fn close(self) -> Result<()> {
        self.cache.close()
    }
}

fn prepare_guest(builder: &mut AssetBuilder, series: KernelSeries) -> Result<(PathBuf, PathBuf)> {
    let tools = tools::prepare(builder)?;
    let kernel = kernel::prepare(builder, series, &tools)?;
    let initramfs = initramfs::prepare(builder, series, &tools, &kernel)?;
    Ok((kernel.image(), initramfs))
}

fn guest_from_environment() -> Result<Option<(PathBuf, PathBuf)>> {
    match (env_path("SOFTIOV_GUEST_KERNEL"), env_path("SOFTIOV_GUEST_INITRAMFS")) {
        (Some(kernel), Some(initramfs)) => Ok(Some((kernel, initramfs))),
        (None, None) => Ok(None),
        _ => Err(AssetError::Environment(
            "SOFTIOV_GUEST_KERNEL and SOFTIOV_GUEST_INITRAMFS go together: the initramfs holds the kernel's modules",
        )),
    }
}

/// Returns the path of the cache folder with the finished parts.
///
/// # Errors
///
/// No environment variable names the folder.
pub fn cache_folder() -> Result<PathBuf> {
    env_path("SOFTIOV_CACHE")
        .or_else(|| env_path("XDG_CACHE_HOME").map(|folder| folder.join("softiov")))
        .or_else(|| env_path("HOME").map(|folder| folder.join(".cache/softiov")))
        .ok_or(AssetError::Environment("no cache folder: set SOFTIOV_CACHE (HOME is not set either)"))
}

fn env_path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
