//! Reads descriptions of PCI functions from sysfs, and sets the number of VFs there.
//!
//! Binding drivers is left to the administrator.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{PciAddress, VfioError};

/// Vendor and device id of a function in configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIds {
    /// Vendor id of the function.
    pub vendor: u16,
    /// Device id of the function.
    pub device: u16,
}

/// PCI functions of this machine, as sysfs describes them.
#[derive(Clone, Debug)]
pub struct PciSysfs {
    pub(super) root: PathBuf,
}

impl Default for PciSysfs {
    fn default() -> Self {
        Self::at(Path::new("/sys"))
    }
}

impl PciSysfs {
    /// Creates a description of the PCI functions in another sysfs, for tests.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn folder(&self, address: PciAddress) -> PathBuf {
        self.root.join("bus/pci/devices").join(address.to_string())
    }

    /// Returns the function's vendor and device id.
    ///
    /// # Errors
    /// [`VfioError::NoSuchFunction`], [`VfioError::Sysfs`].
    pub fn ids(&self, address: PciAddress) -> Result<PciIds, VfioError> {
        if !self.folder(address).exists() {
            return Err(VfioError::NoSuchFunction(address));
        }
        let id = |name| {
            let path = self.folder(address).join(name);
            let text = read(&path)?;
            let digits = text.trim().trim_start_matches("0x");
            let wrong = |_| VfioError::Sysfs { path, source: io::ErrorKind::InvalidData.into() };
            u16::from_str_radix(digits, 16).map_err(wrong)
        };
        Ok(PciIds { vendor: id("vendor")?, device: id("device")? })
    }

    /// Returns the first address of each BAR, or `None` for an unused one.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn bars(&self, address: PciAddress) -> Result<[Option<u64>; 6], VfioError> {
        let path = self.folder(address).join("resource");
        let text = read(&path)?;
        let mut lines = text.lines().map(|line| {
            let first = line.split(' ').next()?.trim_start_matches("0x");
            u64::from_str_radix(first, 16).ok().filter(|first| *first != 0)
        });
        Ok(std::array::from_fn(|_| lines.next().flatten()))
    }

    /// Returns the driver that the function is bound to, if any.
    #[must_use]
    pub fn driver(&self, address: PciAddress) -> Option<String> {
        name_behind(&self.folder(address).join("driver"))
    }

    /// Returns the number of the IOMMU group of a function that is bound to vfio-pci.
    ///
    /// # Errors
    /// [`VfioError::NoSuchFunction`], [`VfioError::NotBound`], [`VfioError::NoIommu`], [`VfioError::NoIommuGroup`].
    pub(super) fn vfio_group(&self, address: PciAddress) -> Result<u32, VfioError> {
        self.ids(address)?;
        let link = self.folder(address).join("iommu_group");
        let group = name_behind(&link).and_then(|name| name.parse().ok());
        let group = group.ok_or(VfioError::NoIommu(address))?;
        // VFIO gives this name to groups without an IOMMU only.
        if fs::read_to_string(link.join("name")).is_ok_and(|name| name.trim() == "vfio-noiommu") {
            return Err(VfioError::NoIommuGroup(address));
        }
        let driver = self.driver(address);
        if driver.as_deref() == Some("vfio-pci") {
            Ok(group)
        } else {
            Err(VfioError::NotBound { address, driver })
        }
    }

    /// Lists the functions of a function's IOMMU group as text, with their drivers.
    pub(super) fn group_members(&self, address: PciAddress) -> String {
        let folder = self.folder(address).join("iommu_group/devices");
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut members: Vec<String> = names
            .filter_map(|name| name.to_str()?.parse().ok())
            .map(|member| format!("{member} ({})", self.driver(member).as_deref().unwrap_or("no driver")))
            .collect();
        members.sort_unstable();
        members.join(", ")
    }

    /// Returns a VF's PF, or `None` for other functions.
    #[must_use]
    pub fn physical_of(&self, address: PciAddress) -> Option<PciAddress> {
        name_behind(&self.folder(address).join("physfn"))?.parse().ok()
    }

    /// Returns the VFs of a PF, in order of their numbers.
    #[must_use]
    pub fn virtual_of(&self, address: PciAddress) -> Vec<PciAddress> {
        let at = |index| name_behind(&self.folder(address).join(format!("virtfn{index}")))?.parse().ok();
        (0..).map_while(at).collect()
    }

    /// Sets the number of VFs of a PF that is bound to vfio-pci. It must be 0 before, unless `count` is 0.
    ///
    /// # Errors
    /// [`VfioError::VirtualFunctions`]; [`VfioError::Unexpected`] without SR-IOV.
    pub fn set_virtual_functions(&self, address: PciAddress, count: u8) -> Result<(), VfioError> {
        let path = self.folder(address).join("sriov_numvfs");
        if path.symlink_metadata().is_err() {
            return Err(VfioError::Unexpected { address, what: "the function has no SR-IOV capability" });
        }
        fs::write(path, count.to_string()).map_err(|source| {
            // vfio-pci returns this error unless its parameter is set.
            let untold = source.raw_os_error() == Some(libc::ENOENT);
            let remedy =
                if untold { "; write 1 to /sys/module/vfio_pci/parameters/enable_sriov" } else { "" };
            VfioError::VirtualFunctions { address, count, source, remedy }
        })
    }
}

pub(super) fn read(path: &Path) -> Result<String, VfioError> {
    fs::read_to_string(path).map_err(|source| VfioError::Sysfs { path: path.to_owned(), source })
}

/// Returns the last component of a symbolic link's target.
fn name_behind(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_str()?.to_owned())
}
