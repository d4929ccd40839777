//! DPDK's testpmd with the poll-mode drivers of Intel's gigabit cards and of Adaptive Virtual Functions, for a guest that
//! drives its function without the kernel. It is one more archive behind the guest's initramfs, which Linux unpacks over the first, so guests
//! that do not want it do not pay for it. Left out: DPDK's other programs and drivers.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpio::CpioWriter;
use super::error::{AtPath, Result};
use super::sources::Archive;
use super::{Kitchen, apt, libraries};

/// The package that has testpmd. Alone: its dependencies are a compiler's.
const PROGRAM_PACKAGE: &str = "dpdk-dev";
/// The packages that bring all that testpmd is linked to, and the drivers.
const LIBRARY_PACKAGES: [&str; 19] = [
    "libbsd0",
    "librte-bitratestats23",
    "librte-bpf23",
    "librte-cmdline23",
    "librte-crypto-scheduler23",
    "librte-gro23",
    "librte-gso23",
    "librte-latencystats23",
    "librte-mempool-ring23",
    "librte-net-bnxt23",
    "librte-net-bond23",
    "librte-net-dpaa23",
    "librte-net-e1000-23",
    "librte-net-i40e23",
    "librte-net-iavf23",
    "librte-net-ice23",
    "librte-net-ixgbe23",
    "librte-net-mlx5-23",
    "librte-pdump23",
];
pub(super) const PROGRAM: &str = "usr/bin/dpdk-testpmd";
/// Where DPDK looks for drivers that it is not linked to, and which it finds there.
pub(super) const PLUGIN_FOLDER: &str = "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0";
const PLUGINS: [&str; 3] =
    ["librte_mempool_ring.so.23.0", "librte_net_e1000.so.23.0", "librte_net_iavf.so.23.0"];

/// Which libc loads by itself when a thread is cancelled, as testpmd does at its end.
const UNWINDER: &str = "lib/x86_64-linux-gnu/libgcc_s.so.1";

/// `initramfs` with testpmd, from the cache or built.
pub(super) fn prepare(kitchen: &mut Kitchen, initramfs: &Path) -> Result<PathBuf> {
    let dpdk = prepare_archive(kitchen)?;
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
fn prepare_archive(kitchen: &mut Kitchen) -> Result<PathBuf> {
    let part = kitchen.cache.part("dpdk", &format!("2 {} {PLUGINS:?}", recipe()));
    if kitchen.lacks(&part)? {
        let root = unpack(kitchen, &[], &[])?;
        let path = kitchen.cache.bench("dpdk-archive")?.join("dpdk.cpio");
        fs::write(&path, archive(&root)?).at(&path)?;
        kitchen.cache.publish(&path, &part)?;
    }
    Ok(part)
}

/// What the name of a part with testpmd in it says.
pub(super) fn recipe() -> String {
    format!("bookworm {PROGRAM_PACKAGE} {LIBRARY_PACKAGES:?}")
}

/// testpmd with its libraries, in a folder of the kitchen's. With it `more` packages and all that they depend on, and
/// packages that come `alone`.
pub(super) fn unpack(kitchen: &mut Kitchen, more: &[&str], alone: &[&str]) -> Result<PathBuf> {
    let apt = kitchen.apt(Archive::Bookworm)?;
    let libraries = [&LIBRARY_PACKAGES, more].concat();
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

/// testpmd in /bin, its libraries where the guest's are, and the drivers.
fn archive(root: &Path) -> Result<Vec<u8>> {
    let plugins = PLUGINS.map(|plugin| format!("{PLUGIN_FOLDER}/{plugin}"));
    let mut files = vec![("bin/dpdk-testpmd".to_owned(), root.join(PROGRAM))];
    files.push((UNWINDER.to_owned(), root.join(UNWINDER)));
    files.extend(plugins.iter().map(|plugin| (plugin.clone(), root.join(plugin))));
    for program in plugins.iter().map(String::as_str).chain([PROGRAM]) {
        let needed = libraries::needed(root, program)?.into_iter();
        files.extend(needed.map(|(name, path)| (format!("lib/x86_64-linux-gnu/{name}"), path)));
    }
    files.sort();
    files.dedup();

    let mut cpio = CpioWriter::new(Vec::new());
    let mut folders: Vec<&str> = Path::new(PLUGIN_FOLDER).ancestors().filter_map(Path::to_str).collect();
    folders.reverse();
    for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
        cpio.directory(folder).at(root)?;
    }
    for (name, from) in files {
        cpio.file(&name, &fs::read(&from).at(&from)?).at(&from)?;
    }
    cpio.finish().at(root)
}
