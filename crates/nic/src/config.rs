//! Configuration of a port. The other words of the NVM image are fixed (`board`).

use core::num::NonZeroU64;
use i82576::MacAddress;

/// Port configuration, the counterpart of the NVM image.
#[derive(Debug, Clone, Copy)]
pub struct NicConfig {
    /// MAC address of the port itself.
    pub mac: MacAddress,
    /// True if I/O virtualization is on. Without it the card has no VFs and no SR-IOV capability.
    pub iov: bool,
    /// Limit of the traffic between pools inside the card, bits per second with the frame check sequence; `None` for no
    /// limit. Silicon reaches 2.8 Gb/s (Dong et al., HPCA 2010).
    pub loopback: Option<NonZeroU64>,
}
