//! What the served card is, and what its guests' driver asks of it. Left out: how fast that is.

use driver::any_vf::AnyVfConfig;
use driver::avf::vf::Wishes;
use driver::vf::Config;

/// A family, and which receive descriptors its guests use where there are several forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Card {
    /// An 82576.
    #[value(name = "82576")]
    I82576,
    /// Adaptive Virtual Functions, legacy descriptors.
    Avf,
    /// Adaptive Virtual Functions, flexible descriptors.
    AvfFlex,
}

impl Card {
    /// What the rows of this card are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I82576 => "softiov",
            Self::Avf => "softiov avf",
            Self::AvfFlex => "softiov avf flexible",
        }
    }

    /// The family, as a host's configuration names it.
    #[must_use]
    pub fn family(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf | Self::AvfFlex => "avf",
        }
    }

    /// What a driver asks of it that polls one queue pair: rings of so many descriptors, and a doorbell a burst.
    #[must_use]
    pub fn wanted(self, descriptors: u16, burst: u16) -> AnyVfConfig {
        let i82576 = Config {
            batch: burst,
            rx_descriptors: descriptors,
            tx_descriptors: descriptors,
            ..Config::default()
        };
        let avf = Wishes { pairs: 1, descriptors, batch: burst, ..Wishes::default() };
        let wanted = AnyVfConfig { i82576, avf };
        if self == Self::AvfFlex { wanted.flexible() } else { wanted }
    }
}
