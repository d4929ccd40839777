//! Opens a PCI function by the files of sysfs, without VFIO: registers, configuration space, reset. Its DMA is not
//! restricted, so this is for guests that test their own device, with memory from [`crate::huge_pages`].

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::sysfs::read;
use super::{MappedRegisters, PciAddress, PciSysfs, VfioError};

/// Command register of configuration space (PCI 3.0 6.2.2), with its bits memory space, bus master, and interrupt disable:
/// nothing handles the function's interrupt pin.
const COMMAND: u64 = 0x04;
const ENABLE: u16 = 1 << 1 | BUS_MASTER | 1 << 10;
const BUS_MASTER: u16 = 1 << 2;

/// PCI function that this process opens by sysfs, as root. No kernel driver may hold it.
#[derive(Debug)]
pub struct SysfsFunction {
    folder: PathBuf,
    address: PciAddress,
    config: File,
}

impl SysfsFunction {
    /// Opens the configuration space of a function that no driver holds.
    ///
    /// # Errors
    /// [`VfioError::NoSuchFunction`], [`VfioError::Open`]; [`VfioError::Unexpected`] for a function behind an IOMMU, which
    /// would refuse physical addresses, and for one with a driver.
    pub fn open(pci: &PciSysfs, address: PciAddress) -> Result<Self, VfioError> {
        pci.ids(address)?;
        let folder = pci.folder(address);
        let unexpected = |what| Err(VfioError::Unexpected { address, what });
        if folder.join("iommu_group").exists() {
            return unexpected(
                "an IOMMU is in front of the function, so it cannot reach physical addresses; start the kernel \
                 without intel_iommu=on, or the machine without an IOMMU",
            );
        }
        if pci.driver(address).is_some() {
            return unexpected("a kernel driver holds the function; unbind it first");
        }
        let config = open(&folder.join("config"))?;
        Ok(Self { folder, address, config })
    }

    /// Maps the registers in the function's BAR `index`.
    ///
    /// # Errors
    /// [`VfioError::Open`]; [`VfioError::Refused`] if the kernel does not map the registers.
    pub fn registers(&self, index: u32) -> Result<MappedRegisters, VfioError> {
        let path = self.folder.join(format!("resource{index}"));
        let file = open(&path)?;
        let metadata = file.metadata().map_err(|source| VfioError::Sysfs { path, source })?;
        MappedRegisters::map(file.as_fd(), 0, metadata.len() as usize).map_err(|errno| VfioError::Refused {
            address: self.address,
            request: "mapping the registers",
            source: errno.into(),
            remedy: Some("; a kernel in lockdown refuses it: switch off Secure Boot"),
        })
    }

    /// Enables the function's memory space and bus mastering.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn enable(&self) -> Result<(), VfioError> {
        let mut command = [0; 2];
        self.config(COMMAND, &mut command)?;
        self.set_config(COMMAND, &(u16::from_le_bytes(command) | ENABLE).to_le_bytes())
    }

    /// Disables the function's bus mastering, so that it begins no DMA, also if it cannot be reset.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn disable_bus_master(&self) -> Result<(), VfioError> {
        let mut command = [0; 2];
        self.config(COMMAND, &mut command)?;
        self.set_config(COMMAND, &(u16::from_le_bytes(command) & !BUS_MASTER).to_le_bytes())
    }

    /// Reads bytes of the function's configuration space at `offset`.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn config(&self, offset: u64, into: &mut [u8]) -> Result<(), VfioError> {
        self.config.read_exact_at(into, offset).map_err(|source| self.failed("config", source))
    }

    /// Writes bytes of the function's configuration space at `offset`.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn set_config(&self, offset: u64, from: &[u8]) -> Result<(), VfioError> {
        self.config.write_all_at(from, offset).map_err(|source| self.failed("config", source))
    }

    /// Has the kernel reset the function, and restore its configuration space.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`], also if the function is not ready again within the kernel's timeout.
    pub fn reset(&self) -> Result<(), VfioError> {
        fs::write(self.folder.join("reset"), "1").map_err(|source| self.failed("reset", source))
    }

    fn failed(&self, file: &str, source: std::io::Error) -> VfioError {
        VfioError::Sysfs { path: self.folder.join(file), source }
    }
}

impl PciSysfs {
    /// Unbinds the driver of a function.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn unbind(&self, address: PciAddress) -> Result<(), VfioError> {
        write(self.folder(address).join("driver/unbind"), &address.to_string())
    }

    /// Binds a function to a driver that is loaded.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn bind(&self, address: PciAddress, driver: &str) -> Result<(), VfioError> {
        write(self.root.join("bus/pci/drivers").join(driver).join("bind"), &address.to_string())
    }

    /// Returns the name of the only driver that may bind a function, or `None` if each driver of its ids may.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn driver_override(&self, address: PciAddress) -> Result<Option<String>, VfioError> {
        let text = read(&self.folder(address).join("driver_override"))?;
        Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty() && name != "(null)"))
    }

    /// Sets the name of the only driver that may bind a function, or lets each driver of its ids bind it.
    ///
    /// # Errors
    /// [`VfioError::Sysfs`].
    pub fn set_driver_override(&self, address: PciAddress, driver: Option<&str>) -> Result<(), VfioError> {
        // A line without a name clears the name.
        write(self.folder(address).join("driver_override"), &format!("{}\n", driver.unwrap_or_default()))
    }
}

fn write(path: PathBuf, text: &str) -> Result<(), VfioError> {
    fs::write(&path, text).map_err(|source| VfioError::Sysfs { path, source })
}

fn open(path: &Path) -> Result<File, VfioError> {
    File::options().read(true).write(true).open(path).map_err(|source| VfioError::Open {
        path: path.to_owned(),
        source,
        remedy: "become root, and switch off Secure Boot: a kernel in lockdown refuses it",
    })
}
