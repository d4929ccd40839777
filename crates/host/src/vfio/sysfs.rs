//! What sysfs says of PCI functions, and the one thing written there: how many virtual functions there are.
//!
//! Left out: binding drivers, which is the administrator's decision.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{PciAddress, VfioError};

/// What a function calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIds {
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
}

/// The PCI functions of this machine.
#[derive(Clone, Debug)]
pub struct Pci {
    root: PathBuf,
}

impl Default for Pci {
    fn default() -> Self {
        Self::at(Path::new("/sys"))
    }
}

impl Pci {
    /// The functions that a copy of sysfs tells of.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn folder(&self, address: PciAddress) -> PathBuf {
        self.root.join("bus/pci/devices").join(address.to_string())
    }

    /// What the function calls itself.
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

    /// Where the machine has put the function's BARs: the first address of each, nothing where there is none.
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

    /// The driver that has the function.
    #[must_use]
    pub fn driver(&self, address: PciAddress) -> Option<String> {
        name_behind(&self.folder(address).join("driver"))
    }

    /// The IOMMU group that a function of which vfio-pci is the driver is in.
    ///
    /// # Errors
    /// [`VfioError::NoSuchFunction`], [`VfioError::NotBound`], [`VfioError::NoIommu`], [`VfioError::NoIommuGroup`].
    pub(super) fn vfio_group(&self, address: PciAddress) -> Result<u32, VfioError> {
        self.ids(address)?;
        let link = self.folder(address).join("iommu_group");
        let group = name_behind(&link).and_then(|name| name.parse().ok());
        let group = group.ok_or(VfioError::NoIommu(address))?;
        // Only groups that VFIO made for want of an IOMMU have this name.
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

    /// The functions of a function's IOMMU group, with their drivers, for people to read.
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

    /// The physical function that a virtual one belongs to; `None` for what is not virtual.
    #[must_use]
    pub fn physical_of(&self, address: PciAddress) -> Option<PciAddress> {
        name_behind(&self.folder(address).join("physfn"))?.parse().ok()
    }

    /// The virtual functions that a physical one has now, in order.
    #[must_use]
    pub fn virtual_of(&self, address: PciAddress) -> Vec<PciAddress> {
        let at = |index| name_behind(&self.folder(address).join(format!("virtfn{index}")))?.parse().ok();
        (0..).map_while(at).collect()
    }

    /// Gives a physical function of vfio-pci's so many virtual ones. It must have none before, unless `count` is 0.
    ///
    /// # Errors
    /// [`VfioError::VirtualFunctions`]; [`VfioError::Unexpected`] if it cannot have any.
    pub fn set_virtual_functions(&self, address: PciAddress, count: u8) -> Result<(), VfioError> {
        let path = self.folder(address).join("sriov_numvfs");
        if path.symlink_metadata().is_err() {
            return Err(VfioError::Unexpected { address, what: "it offers no virtual functions (SR-IOV)" });
        }
        fs::write(path, count.to_string()).map_err(|source| {
            // What vfio-pci answers unless it was told to.
            let untold = source.raw_os_error() == Some(libc::ENOENT);
            let remedy =
                if untold { "; write 1 to /sys/module/vfio_pci/parameters/enable_sriov" } else { "" };
            VfioError::VirtualFunctions { address, count, source, remedy }
        })
    }
}

fn read(path: &Path) -> Result<String, VfioError> {
    fs::read_to_string(path).map_err(|source| VfioError::Sysfs { path: path.to_owned(), source })
}

/// The last name of what a link leads to.
fn name_behind(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_str()?.to_owned())
}
