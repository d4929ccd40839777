//! Debian's kernel for a guest: the image, unpacked where possible, and the modules that a guest may load.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt::{self, AptRoot};
use super::error::{AssetError, AssetIoResultExt, Result};
use super::tools::GuestTools;
use super::{AssetBuilder, KernelSeries, modules};

const META_PACKAGE: &str = "linux-image-amd64";
/// Prefix of the name of a kernel's package, before the release.
const IMAGE_PACKAGE: &str = "linux-image-";
/// Names of the kernel modules that a guest may load: the drivers under test, virtio for comparison, VFIO and UIO for
/// programs that drive a device, VLANs, and the control channel.
const MODULES: [&str; 10] = [
    "igb",
    "igbvf",
    "iavf",
    "vfio_pci",
    "vfio_iommu_type1",
    "uio_pci_generic",
    "8021q",
    "virtio_pci",
    "virtio_net",
    "virtio_console",
];

/// Kernel of a guest in the cache: its image and its modules.
#[derive(Debug)]
pub(super) struct CachedKernel {
    folder: PathBuf,
}

impl CachedKernel {
    /// Returns the path of the kernel image that QEMU boots.
    pub(super) fn image(&self) -> PathBuf {
        self.folder.join("image")
    }

    /// Returns the folder that becomes the guest's `/lib/modules`.
    pub(super) fn modules(&self) -> PathBuf {
        self.folder.join("modules")
    }
}

/// Returns the guest's kernel from the cache, or fetches and unpacks it if it is missing.
pub(super) fn prepare(
    builder: &mut AssetBuilder,
    series: KernelSeries,
    tools: &GuestTools,
) -> Result<CachedKernel> {
    let name = format!("kernel-{}", series.name());
    let folder = builder.cache.part(&name, &format!("2 {MODULES:?}"));
    if builder.needs_build(&folder)? {
        let apt = builder.apt(series.archive())?;
        let packages = packages(&apt, series)?;
        let root = builder.cache.build_folder("kernel-package")?;
        for package in &packages {
            builder.progress.step(&format!("fetching {package}"));
            apt::unpack(&apt.fetch_alone(package)?, &root)?;
        }
        builder.progress.step("unpacking the kernel");
        let build_folder = builder.cache.build_folder(&name)?;
        install(&root, &build_folder, tools)?;
        builder.cache.publish(&build_folder, &folder)?;
    }
    Ok(CachedKernel { folder })
}

/// Returns the names of the kernel's package, and of the further packages of the same release that newer kernels
/// consist of.
fn packages(apt: &AptRoot, series: KernelSeries) -> Result<Vec<String>> {
    let stands_for = apt.dependencies(META_PACKAGE, series.suite())?;
    let release = |name: &String| Some(name.strip_prefix(IMAGE_PACKAGE)?.to_owned());
    let absent = || AssetError::Contents(format!("{META_PACKAGE} depends on no {IMAGE_PACKAGE}*"));
    let release = stands_for.iter().find_map(release).ok_or_else(absent)?;
    let image = format!("{IMAGE_PACKAGE}{release}");
    let mut parts = apt.dependencies(&image, series.suite())?;
    parts.retain(|name| name.ends_with(&release));
    Ok([vec![image], parts].concat())
}

fn install(root: &Path, build_folder: &Path, tools: &GuestTools) -> Result<()> {
    let modules = [root.join("lib/modules"), root.join("usr/lib/modules")];
    let absent = || AssetError::Contents("the kernel package has no modules".into());
    let from = only_entry(modules.iter().find(|path| path.is_dir()).ok_or_else(absent)?, "")?;
    let boot = root.join("boot");
    let vmlinuz = if boot.is_dir() { only_entry(&boot, "vmlinuz-")? } else { from.join("vmlinuz") };
    let image = fs::read(&vmlinuz).at(&vmlinuz)?;
    let packed = build_folder.join("packed");
    let unpacked = build_folder.join("image");
    let payload = payload(&image).unwrap_or_default();
    fs::write(&packed, payload).at(&packed)?;
    if tools.decompress(&packed, payload, &unpacked)?.is_none() {
        fs::write(&unpacked, &image).at(&unpacked)?;
    }
    fs::remove_file(&packed).at(&packed)?;

    let to = build_folder.join("modules").join(from.file_name().unwrap_or_default());
    fs::create_dir_all(&to).at(&to)?;
    modules::pick(&MODULES, &from, &to, tools)
}

fn only_entry(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).at(folder)?.flatten();
    let mut entries = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let absent = || AssetError::Contents(format!("no {prefix}* in {}", folder.display()));
    entries.next().map(|entry| entry.path()).ok_or_else(absent)
}

/// Returns the compressed kernel inside a bzImage (Documentation/arch/x86/boot.rst, protocol 2.08), without the
/// four bytes of its length that the build appends.
///
/// The ELF file in it boots through its PVH entry point, without the self-extractor: under an emulated CPU that
/// saves two and a half seconds.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let long = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (setup_sectors + 1) * 512 + long(0x248)?;
    image.get(start..start.checked_add(long(0x24c)?)?.checked_sub(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_kernel_is_found_by_the_boot_protocol() {
        let mut image = vec![0; 2048];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c] = 10;
        image[1024 + 16..1024 + 26].copy_from_slice(b"kernel\x06\0\0\0");
        assert_eq!(payload(&image), Some(&b"kernel"[..]));
        assert_eq!(payload(&image[..1040]), None);
        image[0x202] = 0;
        assert_eq!(payload(&image), None);
    }
}
