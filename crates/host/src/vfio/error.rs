//! Errors of VFIO functions, each with its remedy.

use super::PciAddress;
use std::io;
use std::path::PathBuf;

/// Reason why a PCI function is not available by VFIO.
#[derive(Debug, thiserror::Error)]
pub enum VfioError {
    /// No PCI function has this address.
    #[error("no PCI function has address {0}; `lspci -D` lists the existing functions")]
    NoSuchFunction(PciAddress),
    /// A file of sysfs is not readable or writable.
    #[error("cannot access {path}: {source}", path = path.display())]
    Sysfs {
        /// Path of the file in sysfs.
        path: PathBuf,
        /// Kernel's error for the file in sysfs.
        source: io::Error,
    },
    /// The PCI function is behind no IOMMU.
    #[error(
        "function {0} is behind no IOMMU; enable the machine's IOMMU, and start the kernel with \
         intel_iommu=on (or amd_iommu=on)"
    )]
    NoIommu(PciAddress),
    /// The function is in a noiommu group: no IOMMU restricts its DMA.
    #[error(
        "function {0} is in a noiommu group, so its DMA could reach all memory; give the machine an IOMMU \
         (intel_iommu=on) and bind the function again"
    )]
    NoIommuGroup(PciAddress),
    /// The function is bound to a driver other than vfio-pci, or to none.
    #[error(
        "function {address} is bound to {}, not to vfio-pci; `modprobe vfio-pci`, then in \
         /sys/bus/pci/devices/{address} write vfio-pci to driver_override and {address} to driver/unbind, \
         and {address} to /sys/bus/pci/drivers_probe",
        driver.as_deref().unwrap_or("no driver")
    )]
    NotBound {
        /// PCI address of the function that is bound to the wrong driver.
        address: PciAddress,
        /// Driver that the function is bound to, if any.
        driver: Option<String>,
    },
    /// `/dev/vfio/vfio` or the group's file cannot be opened.
    #[error("cannot open {path}: {source}; {remedy}", path = path.display())]
    Open {
        /// Path of the VFIO file that cannot be opened.
        path: PathBuf,
        /// Kernel's error for opening the VFIO file.
        source: io::Error,
        /// Likely remedy for the failed opening of the VFIO file.
        remedy: &'static str,
    },
    /// The kernel's VFIO has no IOMMU of a supported type.
    #[error("VFIO of this kernel does not support a type 1 IOMMU (version 2); `modprobe vfio_iommu_type1`")]
    NoType1,
    /// Other functions of the IOMMU group are bound to other drivers.
    #[error(
        "IOMMU group {group} is not viable: bind all of its functions to vfio-pci, or to no driver; it holds \
         {members}"
    )]
    NotViable {
        /// Number of the IOMMU group.
        group: u32,
        /// Functions of the IOMMU group, with the drivers that they are bound to.
        members: String,
    },
    /// The kernel refused a VFIO request.
    #[error("VFIO request on function {address} failed: {request}: {source}{}", remedy.unwrap_or(""))]
    Refused {
        /// PCI address of the function in the refused request.
        address: PciAddress,
        /// Name of the refused VFIO request.
        request: &'static str,
        /// Kernel's error for the VFIO request.
        source: io::Error,
        /// Likely remedy for the refusal, with a separator before it.
        remedy: Option<&'static str>,
    },
    /// The PCI function lacks a required property.
    #[error("cannot use function {address}: {what}")]
    Unexpected {
        /// PCI address of the function that lacks the property.
        address: PciAddress,
        /// Property that the function lacks, in words.
        what: &'static str,
    },
    /// The kernel refused to change the number of VFs.
    #[error("cannot set the number of virtual functions of {address} to {count}: {source}{remedy}")]
    VirtualFunctions {
        /// Address of the PF.
        address: PciAddress,
        /// Requested number of VFs.
        count: u8,
        /// Kernel's error for the change of the number of VFs.
        source: io::Error,
        /// Likely remedy for the refused change, with a separator before it.
        remedy: &'static str,
    },
}
