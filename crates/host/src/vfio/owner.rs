//! Removes a function's DMA memory and resets its bus, when the function changes its owner. [`VfioFunction::reset`]
//! resets the function alone; `pcie::ladder` defines the order of resets.

use super::function::refusal;
use super::{VfioError, VfioFunction, request};
use crate::shared::SharedMemory;
use rustix::io::Errno;

impl VfioFunction {
    /// Unmaps memory that was shared at the I/O virtual address `iova`. The function cannot reach the memory after the
    /// return.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn unshare(&self, memory: &SharedMemory, iova: u64) -> Result<(), VfioError> {
        let done = request::unmap_dma(&self.container, iova, memory.memory().len());
        done.map_err(refusal(self.address, "unmapping memory from the device", None))
    }

    /// Returns true if this process holds every function that a reset of the function's bus would reset. Returns `None`
    /// if the bus cannot be reset.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn owns_its_bus(&self) -> Result<Option<bool>, VfioError> {
        match request::groups_on_the_bus(&self.device) {
            Ok(groups) => Ok(Some(groups.iter().all(|group| *group == self.number))),
            Err(Errno::NODEV) => Ok(None),
            Err(Errno::NOSPC) => Ok(Some(false)),
            Err(errno) => Err(refusal(self.address, "listing the functions on the bus", None)(errno)),
        }
    }

    /// Resets the function's bus. The kernel refuses if another process holds a function there.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn reset_bus(&self) -> Result<(), VfioError> {
        let done = request::reset_bus(&self.device, &self.group);
        done.map_err(refusal(self.address, "resetting the bus", Some(NO_LINK)))
    }
}

const NO_LINK: &str = "; the kernel's log has the reason: if the port above never reported that its link is active again, as QEMU's \
    root ports do not while ACPI serves hot-plug, give the port x-speed=2_5";
