//! Families of SoftIOV's card, and the configuration of its guests' driver.

use driver::any_vf::AnyVfConfig;
use driver::avf::vf::AvfDriverConfig;
use driver::vf::VfDriverConfig;

/// Device family of SoftIOV's card, with the format of its guests' receive descriptors if the family has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CardVariant {
    /// Card of the Intel 82576.
    #[value(name = "82576")]
    I82576,
    /// Card of Adaptive Virtual Functions with legacy descriptors.
    Avf,
    /// Card of Adaptive Virtual Functions with flexible descriptors.
    AvfFlex,
}

impl CardVariant {
    /// Returns the name of the card in rows of the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I82576 => "softiov",
            Self::Avf => "softiov avf",
            Self::AvfFlex => "softiov avf flexible",
        }
    }

    /// Returns the card family, as a host's configuration names the family.
    #[must_use]
    pub fn family(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf | Self::AvfFlex => "avf",
        }
    }

    /// Returns the configuration of a VF's driver: one queue pair with `descriptors` a ring, polled, and a doorbell for
    /// each `burst` frames.
    #[must_use]
    pub fn wanted(self, descriptors: u16, burst: u16) -> AnyVfConfig {
        let i82576 = VfDriverConfig {
            batch: burst,
            rx_descriptors: descriptors,
            tx_descriptors: descriptors,
            ..VfDriverConfig::default()
        };
        let avf = AvfDriverConfig { pairs: 1, descriptors, batch: burst, ..AvfDriverConfig::default() };
        let wanted = AnyVfConfig { i82576, avf };
        if self == Self::AvfFlex { wanted.flexible() } else { wanted }
    }
}
