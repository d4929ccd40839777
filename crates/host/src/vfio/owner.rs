//! What a function is asked when it changes its owner: memory taken away from it, and a reset of its bus. Left out: a reset
//! of the function alone ([`Function::reset`]), and in which order (`pcie::ladder`).

use super::function::refusal;
use super::{Function, VfioError, request};
use crate::shared::SharedMemory;
use rustix::io::Errno;

impl Function {
    /// Takes back memory that was shared at `iova`. When this returns the function does not reach it any more.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn unshare(&self, memory: &SharedMemory, iova: u64) -> Result<(), VfioError> {
        let done = request::unmap_dma(&self.container, iova, memory.memory().len());
        done.map_err(refusal(self.address, "to take memory from the device", None))
    }

    /// Whether every function that a reset of its bus would reset is ours; nothing if its bus cannot be reset.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn owns_its_bus(&self) -> Result<Option<bool>, VfioError> {
        match request::groups_on_the_bus(&self.device) {
            Ok(groups) => Ok(Some(groups.iter().all(|group| *group == self.number))),
            Err(Errno::NODEV) => Ok(None),
            Err(Errno::NOSPC) => Ok(Some(false)),
            Err(errno) => Err(refusal(self.address, "the functions on its bus", None)(errno)),
        }
    }

    /// Resets its bus. The kernel refuses if a function there is another's.
    ///
    /// # Errors
    /// [`VfioError::Refused`].
    pub fn reset_bus(&self) -> Result<(), VfioError> {
        let done = request::reset_bus(&self.device, &self.group);
        done.map_err(refusal(self.address, "a reset of its bus", Some(NO_LINK)))
    }
}

const NO_LINK: &str = "; the kernel's log tells why: if the port above never said that its link is active again, as QEMU's \
    root ports do not while ACPI serves hot-plug, give the port x-speed=2_5";
