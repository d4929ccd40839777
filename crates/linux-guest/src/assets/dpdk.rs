//! DPDK's testpmd with the poll-mode drivers of Intel's gigabit cards, of Adaptive Virtual Functions and of virtio, for
//! a guest that drives its function without the kernel. It is a second archive behind the guest's initramfs, which
//! Linux unpacks over the first, so other guests do not pay for it. DPDK's other programs and drivers are not
//! included.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpio::CpioWriter;
use super::error::{AssetIoResultExt, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt, libraries};

/// Version of DPDK, named by the Debian release that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DpdkSeries {
    /// DPDK 22.11, of Debian 12 (bookworm).
    Bookworm2211,
    /// DPDK 24.11, of Debian 13 (trixie).
    Trixie2411,
}

impl DpdkSeries {
    fn archive(self) -> DebianRelease {
        match self {
            Self::Bookworm2211 => DebianRelease::Bookworm,
            Self::Trixie2411 => DebianRelease::Trixie,
        }
    }

    /// Returns the version of DPDK's binary interface, a suffix of the names of packages and files.
    fn abi(self) -> u8 {
        match self {
            Self::Bookworm2211 => 23,
            Self::Trixie2411 => 25,
        }
    }

    /// Returns the folder in which DPDK's programs look for drivers that are not linked into the program.
    pub(super) fn plugin_folder(self) -> String {
        format!("usr/lib/x86_64-linux-gnu/dpdk/pmds-{}.0", self.abi())
    }

    /// Returns the Debian packages of the libraries that testpmd is linked to, and of the drivers.
    fn packages(self) -> Vec<String> {
        let library = |name: &&str| format!("librte-{name}{}", self.abi());
        LIBRARIES.iter().map(library).chain(["libbsd0".to_owned()]).collect()
    }
}

/// Debian package that contains testpmd. The package is fetched alone: its dependencies are a compiler's.
const PROGRAM_PACKAGE: &str = "dpdk-dev";
/// Package names of the libraries that testpmd is linked to, directly or indirectly, and of the drivers.
const LIBRARIES: [&str; 18] = [
    "bitratestats",
    "bpf",
    "cmdline",
    "crypto-scheduler",
    "gro",
    "gso",
    "latencystats",
    "mempool-ring",
    "net-bnxt",
    "net-bond",
    "net-dpaa",
    "net-e1000-",
    "net-i40e",
    "net-iavf",
    "net-ice",
    "net-ixgbe",
    "net-mlx5-",
    "pdump",
];
pub(super) const PROGRAM: &str = "usr/bin/dpdk-testpmd";
const PLUGINS: [&str; 4] =
    ["librte_mempool_ring", "librte_net_e1000", "librte_net_iavf", "librte_net_virtio"];

/// Library that libc loads by itself when a thread is cancelled, as testpmd does at its end.
const UNWINDER: &str = "libgcc_s.so.1";
/// Folder of a guest's libraries.
const LIBRARY_FOLDER: &str = "lib/x86_64-linux-gnu";

/// Returns the path of `initramfs` with testpmd appended, from the cache or built.
pub(super) fn prepare(builder: &mut AssetBuilder, series: DpdkSeries, initramfs: &Path) -> Result<PathBuf> {
    let dpdk = prepare_archive(builder, series)?;
    let part = builder.cache.part("initramfs-dpdk", &format!("{} {}", initramfs.display(), dpdk.display()));
    if builder.needs_build(&part)? {
        let path = builder.cache.build_folder("initramfs-dpdk")?.join("initramfs.cpio");
        let archives = [fs::read(initramfs).at(initramfs)?, fs::read(&dpdk).at(&dpdk)?].concat();
        fs::write(&path, archives).at(&path)?;
        builder.cache.publish(&path, &part)?;
    }
    Ok(part)
}

/// Returns the path of the archive with testpmd that is appended to an initramfs, from the cache or built.
fn prepare_archive(builder: &mut AssetBuilder, series: DpdkSeries) -> Result<PathBuf> {
    let part = builder.cache.part("dpdk", &format!("3 {} {PLUGINS:?}", recipe(series)));
    if builder.needs_build(&part)? {
        let virtio = format!("librte-net-virtio{}", series.abi());
        let root = unpack(builder, series, &[&virtio], &[])?;
        let path = builder.cache.build_folder("dpdk-archive")?.join("dpdk.cpio");
        fs::write(&path, archive(series, &root)?).at(&path)?;
        builder.cache.publish(&path, &part)?;
    }
    Ok(part)
}

/// Returns the recipe of a cached part that contains testpmd of this series.
pub(super) fn recipe(series: DpdkSeries) -> String {
    format!("{} {PROGRAM_PACKAGE} {:?}", series.archive().name(), series.packages())
}

/// Unpacks testpmd with its libraries into a build folder. Also unpacks the packages `more` with all their
/// dependencies, and the packages `alone` without dependencies.
pub(super) fn unpack(
    builder: &mut AssetBuilder,
    series: DpdkSeries,
    more: &[&str],
    alone: &[&str],
) -> Result<PathBuf> {
    let apt = builder.apt(series.archive())?;
    let packages = series.packages();
    let libraries: Vec<&str> = packages.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let mut packages = apt.fetch("DPDK", &libraries, &mut builder.progress)?;
    for package in [&[PROGRAM_PACKAGE], alone].concat() {
        packages.push(apt.fetch_alone(package)?);
    }
    builder.progress.step("unpacking DPDK");
    let root = builder.cache.build_folder("dpdk")?;
    for package in &packages {
        apt::unpack(package, &root)?;
    }
    Ok(root)
}

/// Builds the initramfs archive of testpmd: the program in /bin, its libraries and their linker in the guest's folders,
/// and the drivers. The guest's other programs also work with these newer libraries.
fn archive(series: DpdkSeries, root: &Path) -> Result<Vec<u8>> {
    let (abi, folder) = (series.abi(), series.plugin_folder());
    let plugins = PLUGINS.map(|plugin| format!("{folder}/{plugin}.so.{abi}.0"));
    let mut files = vec![("bin/dpdk-testpmd".to_owned(), root.join(PROGRAM))];
    files.push(("lib64/ld-linux-x86-64.so.2".to_owned(), libraries::linker(root)));
    files.push((format!("{LIBRARY_FOLDER}/{UNWINDER}"), libraries::find(root, UNWINDER)));
    files.extend(plugins.iter().map(|plugin| (plugin.clone(), root.join(plugin))));
    for program in plugins.iter().map(String::as_str).chain([PROGRAM]) {
        let needed = libraries::needed(root, program)?.into_iter();
        files.extend(needed.map(|(name, path)| (format!("{LIBRARY_FOLDER}/{name}"), path)));
    }
    files.sort();
    files.dedup();

    let mut cpio = CpioWriter::new(Vec::new());
    let mut folders: Vec<&str> = Path::new(&folder).ancestors().filter_map(Path::to_str).collect();
    folders.reverse();
    for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
        cpio.directory(folder).at(root)?;
    }
    for (name, from) in files {
        cpio.file(&name, &fs::read(&from).at(&from)?).at(&from)?;
    }
    cpio.finish().at(root)
}
