//! The initramfs with the guest's whole file system: busybox and the other tools with their libraries, modules, and the
//! init script that answers the control channel. Built from the other parts in the cache.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cpio::CpioWriter;
use super::error::{AssetError, AssetIoResultExt, Result, run};
use super::kernel::CachedKernel;
use super::tools::{GuestTools, PROGRAMS};
use super::{AssetBuilder, KernelSeries, libraries};

const INIT: &str = include_str!("init.sh");
const FOLDERS: [&str; 13] = [
    "bin",
    "dev",
    "etc",
    "lib",
    "lib/x86_64-linux-gnu",
    "lib64",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/share",
    "usr/share/misc",
];

/// Returns the path of the guest's initramfs in the cache. Builds the initramfs if it is missing.
pub(super) fn prepare(
    builder: &mut AssetBuilder,
    series: KernelSeries,
    tools: &GuestTools,
    kernel: &CachedKernel,
) -> Result<PathBuf> {
    let parts = [tools.root().to_string_lossy(), kernel.image().to_string_lossy()].join(" ");
    let name = format!("initramfs-{}", series.name());
    let part = builder.cache.part(&name, &format!("1 {parts} {PROGRAMS:?} {INIT}"));
    if builder.needs_build(&part)? {
        builder.progress.step("building the guest's initramfs");
        let path = builder.cache.build_folder("initramfs")?.join("initramfs.cpio");
        fs::write(&path, build(tools, kernel)?).at(&path)?;
        builder.cache.publish(&path, &part)?;
    }
    Ok(part)
}

fn build(tools: &GuestTools, kernel: &CachedKernel) -> Result<Vec<u8>> {
    let mut cpio = CpioWriter::new(Vec::new());
    for folder in FOLDERS {
        cpio.directory(folder).at(Path::new(folder))?;
    }
    cpio.file("init", INIT.as_bytes()).at(Path::new("init"))?;
    copy(&mut cpio, "usr/share/misc/pci.ids", &tools.root().join("usr/share/misc/pci.ids"))?;
    add_programs(&mut cpio, tools)?;
    add_tree(&mut cpio, "lib/modules", &kernel.modules())?;
    cpio.finish().at(Path::new("initramfs"))
}

fn add_programs<W: Write>(cpio: &mut CpioWriter<W>, tools: &GuestTools) -> Result<()> {
    let base = |program: &str| program.rsplit('/').next().unwrap_or(program).to_owned();
    let mut names: Vec<String> = PROGRAMS.iter().map(|program| base(program)).collect();
    let mut needed = Vec::new();
    for (program, name) in PROGRAMS.iter().zip(&names) {
        copy(cpio, &format!("bin/{name}"), &tools.root().join(program))?;
        needed.extend(libraries::needed(tools.root(), program)?);
    }
    needed.sort();
    needed.dedup();
    for (name, path) in needed {
        copy(cpio, &format!("lib/x86_64-linux-gnu/{name}"), &path)?;
    }
    copy(cpio, "lib64/ld-linux-x86-64.so.2", &libraries::linker(tools.root()))?;

    // Busybox is static, so the host can run it to list its applets.
    copy(cpio, "bin/busybox", &tools.busybox())?;
    cpio.symlink("bin/sh", "dash").at(Path::new("bin/sh"))?;
    names.extend(["busybox".into(), "sh".into()]);
    let applets = run(Command::new(tools.busybox()).arg("--list"))?;
    for applet in String::from_utf8_lossy(&applets.stdout).lines() {
        if !names.iter().any(|name| name == applet) {
            cpio.symlink(&format!("bin/{applet}"), "busybox").at(Path::new(applet))?;
        }
    }
    Ok(())
}

fn add_tree<W: Write>(cpio: &mut CpioWriter<W>, name: &str, folder: &Path) -> Result<()> {
    cpio.directory(name).at(folder)?;
    let entries: std::io::Result<Vec<_>> = fs::read_dir(folder).at(folder)?.collect();
    let mut paths: Vec<_> = entries.at(folder)?.into_iter().map(|entry| entry.path()).collect();
    // The entries are sorted, so that the same inputs give the same bytes.
    paths.sort();
    for path in paths {
        let unnamed = || {
            AssetError::Contents(format!(
                "the name of {} is not plain text, so the initramfs cannot hold the file",
                path.display()
            ))
        };
        let base = path.file_name().and_then(|name| name.to_str()).ok_or_else(unnamed)?;
        let name = format!("{name}/{base}");
        if path.is_dir() { add_tree(cpio, &name, &path)? } else { copy(cpio, &name, &path)? }
    }
    Ok(())
}

fn copy<W: Write>(cpio: &mut CpioWriter<W>, name: &str, from: &Path) -> Result<()> {
    cpio.file(name, &fs::read(from).at(from)?).at(from)
}
