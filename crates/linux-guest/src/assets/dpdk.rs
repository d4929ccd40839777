//! DPDK's testpmd with the poll-mode drivers of Intel's gigabit cards and of Adaptive Virtual Functions, for a guest that
//! drives its function without the kernel. It is one more archive behind the guest's initramfs, which Linux unpacks over the first, so guests
//! that do not want it do not pay for it. Left out: DPDK's other programs and drivers.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpio::CpioWriter;
use super::error::{AtPath, Result};
use super::sources::Archive;
use super::{Kitchen, apt, libraries};

/// A version of DPDK, by the Debian release that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DpdkSeries {
    /// 22.11, of Debian 12 (bookworm).
    Bookworm2211,
    /// 24.11, of Debian 13 (trixie).
    Trixie2411,
}

impl DpdkSeries {
    fn archive(self) -> Archive {
        match self {
            Self::Bookworm2211 => Archive::Bookworm,
            Self::Trixie2411 => Archive::Trixie,
        }
    }

    /// The number of its binary interface, which names of packages and files end in.
    fn abi(self) -> u8 {
        match self {
            Self::Bookworm2211 => 23,
            Self::Trixie2411 => 25,
        }
    }

    /// Where it looks for drivers that its programs are not linked to, and which it finds there.
    pub(super) fn plugin_folder(self) -> String {
        format!("usr/lib/x86_64-linux-gnu/dpdk/pmds-{}.0", self.abi())
    }

    /// The packages that bring all that testpmd is linked to, and the drivers.
    fn packages(self) -> Vec<String> {
        let library = |name: &&str| format!("librte-{name}{}", self.abi());
        LIBRARIES.iter().map(library).chain(["libbsd0".to_owned()]).collect()
    }
}

/// The package that has testpmd. Alone: its dependencies are a compiler's.
const PROGRAM_PACKAGE: &str = "dpdk-dev";
/// The libraries that bring all that testpmd is linked to, and the drivers, by their packages' names.
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
const PLUGINS: [&str; 3] = ["librte_mempool_ring", "librte_net_e1000", "librte_net_iavf"];

/// Which libc loads by itself when a thread is cancelled, as testpmd does at its end.
const UNWINDER: &str = "libgcc_s.so.1";
/// Where a guest has its libraries.
const LIBRARY_FOLDER: &str = "lib/x86_64-linux-gnu";

/// `initramfs` with testpmd, from the cache or built.
pub(super) fn prepare(kitchen: &mut Kitchen, series: DpdkSeries, initramfs: &Path) -> Result<PathBuf> {
    let dpdk = prepare_archive(kitchen, series)?;
    let part = kitchen.cache.part("initramfs-dpdk", &format!("{} {}", initramfs.display(), dpdk.display()));
    if kitchen.lacks(&part)? {
        let path = kitchen.cache.bench("initramfs-dpdk")?.join("initramfs.cpio");
        let archives = [fs::read(initramfs).at(initramfs)?, fs::read(&dpdk).at(&dpdk)?].concat();
        fs::write(&path, archives).at(&path)?;
        kitchen.cache.publish(&path, &part)?;
    }
    Ok(part)
}

/// What is added to an initramfs.
fn prepare_archive(kitchen: &mut Kitchen, series: DpdkSeries) -> Result<PathBuf> {
    let part = kitchen.cache.part("dpdk", &format!("3 {} {PLUGINS:?}", recipe(series)));
    if kitchen.lacks(&part)? {
        let root = unpack(kitchen, series, &[], &[])?;
        let path = kitchen.cache.bench("dpdk-archive")?.join("dpdk.cpio");
        fs::write(&path, archive(series, &root)?).at(&path)?;
        kitchen.cache.publish(&path, &part)?;
    }
    Ok(part)
}

/// What the name of a part with testpmd in it says.
pub(super) fn recipe(series: DpdkSeries) -> String {
    format!("{} {PROGRAM_PACKAGE} {:?}", series.archive().name(), series.packages())
}

/// testpmd with its libraries, in a folder of the kitchen's. With it `more` packages and all that they depend on, and
/// packages that come `alone`.
pub(super) fn unpack(
    kitchen: &mut Kitchen,
    series: DpdkSeries,
    more: &[&str],
    alone: &[&str],
) -> Result<PathBuf> {
    let apt = kitchen.apt(series.archive())?;
    let packages = series.packages();
    let libraries: Vec<&str> = packages.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let mut packages = apt.fetch("DPDK", &libraries, &mut kitchen.progress)?;
    for package in [&[PROGRAM_PACKAGE], alone].concat() {
        packages.push(apt.fetch_alone(package)?);
    }
    kitchen.progress.step("unpacking DPDK");
    let root = kitchen.cache.bench("dpdk")?;
    for package in &packages {
        apt::unpack(package, &root)?;
    }
    Ok(root)
}

/// testpmd in /bin, its libraries and their linker where the guest's are, and the drivers. What the guest has besides works
/// with libraries that are newer than its own.
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
