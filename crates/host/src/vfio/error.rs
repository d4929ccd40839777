//! Why a function cannot be had, each with what helps.

use super::PciAddress;
use std::io;
use std::path::PathBuf;

/// Why a function cannot be had from Linux.
#[derive(Debug, thiserror::Error)]
pub enum VfioError {
    /// No such function.
    #[error("there is no PCI function {0}; `lspci -D` lists those there are")]
    NoSuchFunction(PciAddress),
    /// Something that sysfs should say cannot be read, or written.
    #[error("{path}: {source}", path = path.display())]
    Sysfs {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No IOMMU is in front of the function.
    #[error(
        "no IOMMU is in front of {0}; the machine needs one, and the kernel intel_iommu=on (or amd_iommu=on) on \
         its command line"
    )]
    NoIommu(PciAddress),
    /// The group has no IOMMU behind it.
    #[error(
        "{0} is in a noiommu group, in which its DMA could go anywhere; give the machine an IOMMU \
         (intel_iommu=on) and bind the function again"
    )]
    NoIommuGroup(PciAddress),
    /// Another driver has it, or none.
    #[error(
        "{address} is bound to {}, not to vfio-pci; `modprobe vfio-pci`, then in /sys/bus/pci/devices/{address} \
         write vfio-pci to driver_override and {address} to driver/unbind, and {address} to \
         /sys/bus/pci/drivers_probe",
        driver.as_deref().unwrap_or("no driver")
    )]
    NotBound {
        /// The function.
        address: PciAddress,
        /// Its driver, if it has one.
        driver: Option<String>,
    },
    /// `/dev/vfio/vfio` or the group's file cannot be opened.
    #[error("cannot open {path}: {source}; {remedy}", path = path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What may help.
        remedy: &'static str,
    },
    /// The kernel's VFIO is another than the one known here.
    #[error("this kernel's VFIO has no type 1 IOMMU, version 2; `modprobe vfio_iommu_type1`")]
    NoType1,
    /// The rest of the group is not free.
    #[error(
        "IOMMU group {group} is not viable: bind all of its functions to vfio-pci, or to no driver; it holds \
         {members}"
    )]
    NotViable {
        /// The group.
        group: u32,
        /// Its functions and their drivers.
        members: String,
    },
    /// A request failed.
    #[error("{address}: VFIO refuses {request}: {source}{}", remedy.unwrap_or(""))]
    Refused {
        /// The function.
        address: PciAddress,
        /// What was asked.
        request: &'static str,
        /// What the kernel said.
        source: io::Error,
        /// What may help, with a separator before it.
        remedy: Option<&'static str>,
    },
    /// Not what a PCI function offers.
    #[error("{address}: {what}")]
    Unexpected {
        /// The function.
        address: PciAddress,
        /// What is missing.
        what: &'static str,
    },
    /// The number of virtual functions cannot be set.
    #[error("cannot give {address} {count} virtual functions: {source}{remedy}")]
    VirtualFunctions {
        /// The physical function.
        address: PciAddress,
        /// How many were wanted.
        count: u8,
        /// What the kernel said.
        source: io::Error,
        /// What may help, with a separator before it.
        remedy: &'static str,
    },
}
