//! Configuration of a port, the counterpart of the NVM image. Left out: the image's other words (`board`).

use core::num::NonZeroU64;
use i82576::MacAddress;

/// Port configuration, the counterpart of the NVM image.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The port's own address.
    pub mac: MacAddress,
    /// I/O virtualization is on: without it the card has no VFs, and says so in configuration space.
    pub iov: bool,
    /// What pools together may send to each other inside the card, bits a second (frame check sequence counted);
    /// `None` is without a limit. Silicon reaches 2.8 Gb/s (Dong et al., HPCA 2010).
    pub loopback: Option<NonZeroU64>,
}
