//! Selects kernel modules with all their dependencies, and writes the two indexes that modprobe reads. The package
//! has none: depmod makes them after installation, from the same `.modinfo` sections that this module reads.
//! Symbols and soft dependencies are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::elf;
use super::error::{AssetError, AssetIoResultExt, Result};
use super::tools::GuestTools;

/// Kernel module from Debian's kernel package, decompressed.
#[derive(Debug)]
struct KernelModule {
    /// Path of the module relative to `/lib/modules/RELEASE`, ending in `.ko`.
    path: String,
    contents: Vec<u8>,
    info: ModuleInfo,
}

/// Dependencies and aliases from a kernel module's `.modinfo` section.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModuleInfo {
    depends: Vec<String>,
    aliases: Vec<String>,
}

/// Copies the modules `wanted` with their dependencies from `from` (a `/lib/modules/RELEASE`) to `to`, and writes
/// modprobe's indexes there.
pub(super) fn pick(wanted: &[&str], from: &Path, to: &Path, tools: &GuestTools) -> Result<()> {
    let mut files = BTreeMap::new();
    index(from, &mut files)?;
    let builtin_list = from.join("modules.builtin");
    let builtin = fs::read_to_string(&builtin_list).at(&builtin_list)?;
    let builtin: Vec<_> = builtin.lines().map(|line| module_name(Path::new(line))).collect();

    let mut picked = BTreeMap::new();
    let mut missing: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
    while let Some(name) = missing.pop() {
        if picked.contains_key(&name) || builtin.contains(&name) {
            continue;
        }
        let absent = || AssetError::Contents(format!("the kernel package has no module {name}"));
        let file = files.get(&name).ok_or_else(absent)?;
        let module = read(file, from, to, tools)?;
        missing.extend(module.info.depends.iter().cloned());
        picked.insert(name, module);
    }
    write(&picked, to)
}

fn index(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        // Links to the packager's build tree are dangling, and no folders.
        if path.is_dir() && !path.is_symlink() {
            index(&path, files)?;
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".ko")) {
            files.insert(module_name(&path), path);
        }
    }
    Ok(())
}

/// Returns the name of a kernel module from the path of its file: `kernel/net/8021q/8021q.ko.xz` is `8021q`; the kernel
/// writes `-` as `_`.
fn module_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(".ko").next().unwrap_or_default().replace('-', "_")
}

fn read(file: &Path, from: &Path, build_folder: &Path, tools: &GuestTools) -> Result<KernelModule> {
    let relative = file.strip_prefix(from).unwrap_or(file).to_string_lossy();
    let path = relative.split(".ko").next().unwrap_or_default().to_owned() + ".ko";
    let mut contents = fs::read(file).at(file)?;
    let plain = build_folder.join("decompressed.ko");
    if tools.decompress(file, &contents, &plain)?.is_some() {
        contents = fs::read(&plain).at(&plain)?;
        fs::remove_file(&plain).at(&plain)?;
    }
    let modinfo = elf::section(&contents, ".modinfo");
    let info = info(modinfo.ok_or_else(|| AssetError::Contents(format!("{path} is not a kernel module")))?);
    Ok(KernelModule { path, contents, info })
}

fn info(modinfo: &[u8]) -> ModuleInfo {
    let mut info = ModuleInfo::default();
    for entry in modinfo.split(|&byte| byte == 0).filter_map(|entry| str::from_utf8(entry).ok()) {
        match entry.split_once('=') {
            Some(("depends", names)) => {
                let names = names.split(',').filter(|name| !name.is_empty());
                info.depends.extend(names.map(|name| name.replace('-', "_")));
            }
            Some(("alias", alias)) => info.aliases.push(alias.to_owned()),
            _ => {}
        }
    }
    info
}

fn write(modules: &BTreeMap<String, KernelModule>, to: &Path) -> Result<()> {
    let mut dep = String::new();
    let mut alias = String::new();
    for (name, module) in modules {
        let path = to.join(&module.path);
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder).at(folder)?;
        fs::write(&path, &module.contents).at(&path)?;
        dep += &dep_line(name, modules);
        for pattern in &module.info.aliases {
            alias += &format!("alias {pattern} {name}\n");
        }
    }
    for (name, text) in [("modules.dep", dep), ("modules.alias", alias)] {
        let path = to.join(name);
        fs::write(&path, text).at(&path)?;
    }
    Ok(())
}

/// Returns a kernel module's line `path: dependency ...` for `modules.dep`. The dependencies are in the reverse of the
/// order in which modprobe loads them.
fn dep_line(name: &str, modules: &BTreeMap<String, KernelModule>) -> String {
    let mut order = Vec::new();
    load_order(name, modules, &mut BTreeSet::new(), &mut order);
    let mut paths = order.into_iter().rev();
    let module = paths.next().unwrap_or_default();
    format!("{module}: {}\n", paths.collect::<Vec<_>>().join(" "))
}

/// Appends a kernel module's path to `order`, after the paths of all its dependencies.
fn load_order<'a>(
    name: &'a str,
    modules: &'a BTreeMap<String, KernelModule>,
    seen: &mut BTreeSet<&'a str>,
    order: &mut Vec<&'a str>,
) {
    // A name without a module is built into the kernel.
    if let Some(module) = modules.get(name)
        && seen.insert(name)
    {
        for dependency in &module.info.depends {
            load_order(dependency, modules, seen, order);
        }
        order.push(&module.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, depends: &[&str]) -> (String, KernelModule) {
        let info =
            ModuleInfo { depends: depends.iter().map(|&name| name.to_owned()).collect(), aliases: vec![] };
        (module_name(Path::new(path)), KernelModule { path: path.into(), contents: vec![], info })
    }

    #[test]
    fn modinfo_section_yields_dependencies_and_device_aliases() {
        let modinfo = b"alias=pci:v00008086d000010CAsv*\0depends=garp,virtio-ring\0license=GPL\0depends=\0";
        let file = elf::tests::with_modinfo(modinfo);
        let found = info(elf::section(&file, ".modinfo").unwrap());
        assert_eq!(found.depends, ["garp", "virtio_ring"]);
        assert_eq!(found.aliases, ["pci:v00008086d000010CAsv*"]);
    }

    #[test]
    fn module_name_drops_the_file_suffix_and_has_no_dashes() {
        assert_eq!(module_name(Path::new("kernel/drivers/char/virtio-console.ko.xz")), "virtio_console");
    }

    #[test]
    fn modules_dep_lists_dependencies_in_reverse_load_order() {
        let modules = BTreeMap::from([
            module("virtio_pci.ko", &["virtio_ring", "virtio", "builtin"]),
            module("virtio.ko", &["virtio_ring"]),
            module("virtio_ring.ko", &[]),
        ]);
        let line = dep_line("virtio_pci", &modules);
        assert_eq!(line, "virtio_pci.ko: virtio.ko virtio_ring.ko\n", "virtio needs virtio_ring before it");
        assert_eq!(dep_line("virtio_ring", &modules), "virtio_ring.ko: \n");
    }
}
