//! A function that is ours: its group opened, put into a container of its own, and the device taken from it.
//!
//! Left out: two functions of one group, which would have to share a container.

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

use super::{Pci, PciAddress, Registers, VfioError, request};
use crate::eventfd::EventFd;
use crate::shared::SharedMemory;

/// The command register: memory space and bus master.
const COMMAND: u16 = 0x04;
const ENABLE: u16 = 1 << 1 | 1 << 2;

/// What the virtual functions of a physical one that VFIO holds are asked for: a UUID. Whoever opens the physical
/// function chooses it, so that nobody else gets virtual ones that he has power over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one, that nobody knows.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn random() -> io::Result<Self> {
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        Ok(Self(uuid.trim().to_owned()))
    }
}

/// A PCI function that Linux has handed over. It is given back, and reset, when dropped.
#[derive(Debug)]
pub struct Function {
    pub(super) address: PciAddress,
    pub(super) device: File,
    /// Where configuration space is in `device`.
    configuration: u64,
    pub(super) container: OwnedFd,
    /// Held, since closing it would take the device away.
    pub(super) group: OwnedFd,
    /// Which group that is.
    pub(super) number: u32,
}

impl Function {
    /// Takes the function, which vfio-pci has to be the driver of. Linux resets it on the way. `token` is wanted for
    /// a physical function with virtual ones, and then for each of these.
    ///
    /// # Errors
    /// [`VfioError`], each with what helps.
    pub fn open(pci: &Pci, address: PciAddress, token: Option<&Token>) -> Result<Self, VfioError> {
        let number = pci.vfio_group(address)?;
        let container = open(Path::new("/dev/vfio/vfio"))?;
        if !request::has_type1(container.as_fd()).unwrap_or(false) {
            return Err(VfioError::NoType1);
        }
        let group = open(&PathBuf::from(format!("/dev/vfio/{number}")))?;
        let refused = |request, remedy| refusal(address, request, remedy);
        let flags = request::group_flags(&group).map_err(refused("the group's state", None))?;
        if flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(VfioError::NotViable { group: number, members: pci.group_members(address) });
        }
        request::set_container(&group, &container).map_err(refused("the group a container", None))?;
        request::set_type1(&container)
            .map_err(refused("the container its IOMMU", Some(UNSAFE_INTERRUPTS)))?;
        let device = request::device(&group, &device_name(address, token))
            .map_err(refused("the device", Some(TOKEN)))?;
        let configuration = configuration(address, &device)?;
        Ok(Self { address, device: device.into(), configuration, container, group, number })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// Maps the registers of a region, BAR `index`.
    ///
    /// # Errors
    /// [`VfioError::Unexpected`] for a region that cannot be mapped; [`VfioError::Refused`].
    pub fn registers(&self, index: u32) -> Result<Registers, VfioError> {
        let address = self.address;
        let info = request::region_info(&self.device, index).map_err(refusal(
            address,
            "a region's description",
            None,
        ))?;
        let len = usize::try_from(info.size).unwrap_or(0);
        let pages = len > 0 && len.is_multiple_of(rustix::param::page_size());
        if info.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 || !pages {
            return Err(VfioError::Unexpected { address, what: "its registers cannot be mapped" });
        }
        Registers::map(self.device.as_fd(), info.offset, len).map_err(refusal(
            address,
            "to map registers",
            None,
        ))
    }

    /// Lets the function answer accesses to its registers, and reach memory.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn enable(&self) -> Result<(), VfioError> {
        let mut command = [0; 2];
        self.config(COMMAND, &mut command)?;
        self.set_config(COMMAND, &(u16::from_le_bytes(command) | ENABLE).to_le_bytes())
    }

    /// Reads bytes of configuration space from `offset` on, as VFIO shows it.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn config(&self, offset: u16, into: &mut [u8]) -> Result<(), VfioError> {
        self.config_done(self.device.read_exact_at(into, self.configuration + u64::from(offset)))
    }

    /// Writes bytes of configuration space from `offset` on, as far as VFIO lets.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn set_config(&self, offset: u16, from: &[u8]) -> Result<(), VfioError> {
        self.config_done(self.device.write_all_at(from, self.configuration + u64::from(offset)))
    }

    fn config_done(&self, done: io::Result<()>) -> Result<(), VfioError> {
        let refused = |source| VfioError::Refused {
            address: self.address,
            request: "its configuration space",
            source,
            remedy: None,
        };
        done.map_err(refused)
    }

    /// Lets the function reach `memory`, at `iova`, as long as it is held.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn share(&self, memory: &SharedMemory, iova: u64) -> Result<(), VfioError> {
        request::map_dma(&self.container, memory.memory(), iova).map_err(refusal(
            self.address,
            "to map memory for the device",
            Some(LOCKED),
        ))
    }

    /// Has the MSI-X vectors, from the first on, signal these eventfds, and enables MSI-X.
    ///
    /// # Errors
    /// [`VfioError::Refused`], also if the function has fewer vectors.
    pub fn signal(&self, eventfds: &[EventFd]) -> Result<(), VfioError> {
        let fds: Vec<BorrowedFd<'_>> = eventfds.iter().map(AsFd::as_fd).collect();
        request::set_eventfds(&self.device, VFIO_PCI_MSIX_IRQ_INDEX, &fds).map_err(refusal(
            self.address,
            "MSI-X vectors",
            None,
        ))
    }

    /// Resets the function (FLR). Its configuration stays; registers and interrupts in flight do not.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn reset(&self) -> Result<(), VfioError> {
        request::reset(&self.device).map_err(refusal(self.address, "a reset", None))
    }
}

const UNSAFE_INTERRUPTS: &str = "; without interrupt remapping (intremap) in the machine's IOMMU, and only if its \
    devices are to be trusted, write 1 to /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts";
const TOKEN: &str = "; if it is a virtual function and vfio-pci holds the physical one, both have to be opened \
    together, by the address of the physical one";
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
            io::ErrorKind::PermissionDenied => "become root, or have the file given to your user",
            io::ErrorKind::ResourceBusy => {
                "another program holds it, or a function of the same IOMMU group is taken"
            }
            _ => "is VFIO in this kernel?",
        };
        VfioError::Open { path: path.to_owned(), source, remedy }
    })
}

/// How VFIO is asked for a device, in the form that also says the token.
pub(super) fn device_name(address: PciAddress, token: Option<&Token>) -> CString {
    let name = token.map_or_else(|| address.to_string(), |Token(uuid)| format!("{address} vf_token={uuid}"));
    // Neither an address nor what the kernel says has a zero byte in it.
    CString::new(name).unwrap_or_default()
}

/// Where configuration space is, of what is a PCI function.
fn configuration(address: PciAddress, device: &OwnedFd) -> Result<u64, VfioError> {
    let info = request::device_info(device).map_err(refusal(address, "the device's description", None))?;
    if info.flags & VFIO_DEVICE_FLAGS_PCI == 0 || info.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX {
        return Err(VfioError::Unexpected { address, what: "VFIO does not know it as a PCI function" });
    }
    let region = request::region_info(device, VFIO_PCI_CONFIG_REGION_INDEX);
    Ok(region.map_err(refusal(address, "the place of configuration space", None))?.offset)
}
