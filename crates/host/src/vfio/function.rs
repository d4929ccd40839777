//! Opens a PCI function by VFIO: its IOMMU group, in a container of its own, and its device.
//!
//! Two functions of one group are not supported: they would have to share a container.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{
    VFIO_DEVICE_FLAGS_PCI, VFIO_GROUP_FLAGS_VIABLE, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
    VFIO_REGION_INFO_FLAG_MMAP,
};

use super::{MappedRegisters, PciAddress, PciSysfs, VfioError, request};
use crate::eventfd::EventFd;
use crate::shared::SharedMemory;

/// Command register of configuration space (PCI 3.0 6.2.2), with its bits memory space and bus master.
const COMMAND: u16 = 0x04;
const ENABLE: u16 = 1 << 1 | 1 << 2;

/// Secret UUID by which VFIO opens a VF whose PF is held by VFIO too. The process that opens the PF chooses the UUID,
/// so no other process can open that PF's VFs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfToken(String);

impl VfToken {
    /// Creates a random VF token.
    ///
    /// # Errors
    /// The kernel provides no random numbers.
    pub fn random() -> io::Result<Self> {
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        Ok(Self(uuid.trim().to_owned()))
    }
}

/// PCI function opened by VFIO. Dropping it closes and resets the function.
#[derive(Debug)]
pub struct VfioFunction {
    pub(super) address: PciAddress,
    pub(super) device: File,
    /// Offset of configuration space in `device`.
    configuration: u64,
    pub(super) container: OwnedFd,
    /// File descriptor of the function's IOMMU group, held open since closing it would release the device.
    pub(super) group: OwnedFd,
    /// Number of the function's IOMMU group.
    pub(super) number: u32,
}

impl VfioFunction {
    /// Opens a function that is bound to vfio-pci, which resets it. A PF with VFs and each of its VFs require the
    /// same `token`.
    ///
    /// # Errors
    /// [`VfioError`], each with its remedy.
    pub fn open(pci: &PciSysfs, address: PciAddress, token: Option<&VfToken>) -> Result<Self, VfioError> {
        let number = pci.vfio_group(address)?;
        let container = open(Path::new("/dev/vfio/vfio"))?;
        if !request::has_type1(container.as_fd()).unwrap_or(false) {
            return Err(VfioError::NoType1);
        }
        let group = open(&PathBuf::from(format!("/dev/vfio/{number}")))?;
        let refused = |request, remedy| refusal(address, request, remedy);
        let flags =
            request::group_flags(&group).map_err(refused("reading the state of the IOMMU group", None))?;
        if flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(VfioError::NotViable { group: number, members: pci.group_members(address) });
        }
        request::set_container(&group, &container)
            .map_err(refused("adding the IOMMU group to a container", None))?;
        request::set_type1(&container)
            .map_err(refused("setting the container's IOMMU type", Some(UNSAFE_INTERRUPTS)))?;
        let device = request::device(&group, &device_name(address, token))
            .map_err(refused("opening the device", Some(TOKEN)))?;
        let configuration = configuration(address, &device)?;
        Ok(Self { address, device: device.into(), configuration, container, group, number })
    }

    /// Returns the PCI address of the function.
    #[must_use]
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// Maps the registers in the function's BAR `index`.
    ///
    /// # Errors
    /// [`VfioError::Unexpected`] for a region that cannot be mapped; [`VfioError::Refused`].
    pub fn registers(&self, index: u32) -> Result<MappedRegisters, VfioError> {
        let address = self.address;
        let info = request::region_info(&self.device, index).map_err(refusal(
            address,
            "reading the description of a region",
            None,
        ))?;
        let len = usize::try_from(info.size).unwrap_or(0);
        let pages = len > 0 && len.is_multiple_of(rustix::param::page_size());
        if info.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 || !pages {
            return Err(VfioError::Unexpected { address, what: "the function's registers cannot be mapped" });
        }
        MappedRegisters::map(self.device.as_fd(), info.offset, len).map_err(refusal(
            address,
            "mapping the registers",
            None,
        ))
    }

    /// Enables the function's memory space and bus mastering.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn enable(&self) -> Result<(), VfioError> {
        let mut command = [0; 2];
        self.config(COMMAND, &mut command)?;
        self.set_config(COMMAND, &(u16::from_le_bytes(command) | ENABLE).to_le_bytes())
    }

    /// Reads bytes of the function's configuration space at `offset`, as VFIO presents them.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn config(&self, offset: u16, into: &mut [u8]) -> Result<(), VfioError> {
        self.config_done(self.device.read_exact_at(into, self.configuration + u64::from(offset)))
    }

    /// Writes bytes of the function's configuration space at `offset`, except those that VFIO protects.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn set_config(&self, offset: u16, from: &[u8]) -> Result<(), VfioError> {
        self.config_done(self.device.write_all_at(from, self.configuration + u64::from(offset)))
    }

    fn config_done(&self, done: io::Result<()>) -> Result<(), VfioError> {
        let refused = |source| VfioError::Refused {
            address: self.address,
            request: "accessing configuration space",
            source,
            remedy: None,
        };
        done.map_err(refused)
    }

    /// Maps `memory` for the function's DMA at the I/O virtual address `iova`, while the function is open.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn share(&self, memory: &SharedMemory, iova: u64) -> Result<(), VfioError> {
        request::map_dma(&self.container, memory.memory(), iova).map_err(refusal(
            self.address,
            "mapping memory for the device",
            Some(LOCKED),
        ))
    }

    /// Makes the function's MSI-X interrupt vectors, from the first on, signal these eventfds, and enables MSI-X.
    ///
    /// # Errors
    /// [`VfioError::Refused`], also if the function has fewer vectors.
    pub fn signal(&self, eventfds: &[EventFd]) -> Result<(), VfioError> {
        let fds: Vec<BorrowedFd<'_>> = eventfds.iter().map(AsFd::as_fd).collect();
        request::set_eventfds(&self.device, VFIO_PCI_MSIX_IRQ_INDEX, &fds).map_err(refusal(
            self.address,
            "assigning eventfds to MSI-X vectors",
            None,
        ))
    }

    /// Resets the function (FLR). Its configuration is kept; registers and pending interrupts are lost.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn reset(&self) -> Result<(), VfioError> {
        request::reset(&self.device).map_err(refusal(self.address, "resetting the function", None))
    }
}

const UNSAFE_INTERRUPTS: &str = "; without interrupt remapping (intremap) in the machine's IOMMU, and only if its \
    devices can be trusted, write 1 to /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts";
const TOKEN: &str = "; if the device is a virtual function and vfio-pci holds its physical function, open \
    both together, by the address of the physical function";
const LOCKED: &str = "; the kernel locks the memory: raise `ulimit -l`";

pub(super) fn refusal(
    address: PciAddress,
    request: &'static str,
    remedy: Option<&'static str>,
) -> impl FnOnce(Errno) -> VfioError {
    move |errno| VfioError::Refused { address, request, source: errno.into(), remedy }
}

fn open(path: &Path) -> Result<OwnedFd, VfioError> {
    let opened = File::options().read(true).write(true).open(path);
    opened.map(OwnedFd::from).map_err(|source| {
        let remedy = match source.kind() {
            io::ErrorKind::NotFound => "`modprobe vfio-pci`",
            io::ErrorKind::PermissionDenied => "become root, or give the file to this user",
            io::ErrorKind::ResourceBusy => {
                "another program holds this function, or another function of the same IOMMU group"
            }
            _ => "check that this kernel has VFIO",
        };
        VfioError::Open { path: path.to_owned(), source, remedy }
    })
}

/// Formats the name by which VFIO opens a device, with its token if there is one.
pub(super) fn device_name(address: PciAddress, token: Option<&VfToken>) -> CString {
    let name =
        token.map_or_else(|| address.to_string(), |VfToken(uuid)| format!("{address} vf_token={uuid}"));
    // Neither an address nor the kernel's UUID contains a zero byte.
    CString::new(name).unwrap_or_default()
}

/// Returns the offset of configuration space in a VFIO device. Refuses a device that is no PCI function.
fn configuration(address: PciAddress, device: &OwnedFd) -> Result<u64, VfioError> {
    let info = request::device_info(device).map_err(refusal(
        address,
        "reading the description of the device",
        None,
    ))?;
    if info.flags & VFIO_DEVICE_FLAGS_PCI == 0 || info.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX {
        return Err(VfioError::Unexpected {
            address,
            what: "VFIO does not present the device as a PCI function",
        });
    }
    let region = request::region_info(device, VFIO_PCI_CONFIG_REGION_INDEX);
    Ok(region.map_err(refusal(address, "reading the offset of configuration space", None))?.offset)
}
