//! Families of SoftIOV's card, and the configuration of its guests' driver.

use super::guests::vf::PolledVf;
use super::guests::{BURST, GuestRings, virtio};
use super::kind::ContenderKind;
use super::work::Workload;
use ::virtio::VirtioFeatures;
use anyhow::Result;
use driver::any_vf::AnyVfConfig;
use driver::avf::vf::AvfDriverConfig;
use driver::vf::VfDriverConfig;
use std::path::Path;
use vhost_client::VirtioNetConfig;

/// Device family of SoftIOV's card, with the format of its guests' receive descriptors or rings if the family has
/// several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CardVariant {
    /// Card of the Intel 82576.
    #[value(name = "82576")]
    I82576,
    /// Card of Adaptive Virtual Functions with legacy descriptors.
    Avf,
    /// Card of Adaptive Virtual Functions with flexible descriptors.
    AvfFlex,
    /// Card of virtio functions with split rings.
    Virtio,
    /// Card of virtio functions with packed rings, whose buffers are used in order.
    VirtioPacked,
}

impl CardVariant {
    /// Returns the name of the card in rows of the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I82576 => "softiov",
            Self::Avf => "softiov avf",
            Self::AvfFlex => "softiov avf flexible",
            Self::Virtio => "softiov virtio",
            Self::VirtioPacked => "softiov virtio packed",
        }
    }

    /// Returns the card family, as a host's configuration names the family.
    #[must_use]
    pub fn family(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf | Self::AvfFlex => "avf",
            Self::Virtio | Self::VirtioPacked => "virtio",
        }
    }

    /// Returns the modes in which the card is measured: the requested ones, or the only one of a virtio card.
    pub(crate) fn modes(self, requested: &[ContenderKind]) -> &[ContenderKind] {
        match self {
            Self::Virtio | Self::VirtioPacked => &[ContenderKind::Kicked],
            Self::I82576 | Self::Avf | Self::AvfFlex => requested,
        }
    }

    /// Attaches a guest to a function of the card, with rings for a workload. With `events` the guest sleeps until an interrupt
    /// instead of polling.
    ///
    /// # Errors
    /// The function does not start, or lacks a feature that the guest needs.
    pub(crate) fn attach(self, socket: &Path, work: Workload, events: bool) -> Result<Box<dyn GuestRings>> {
        Ok(match self {
            Self::Virtio | Self::VirtioPacked => {
                let mut guest = virtio::attach(socket, &self.virtio(work, events))?;
                if events {
                    guest.sleep_until_interrupts();
                }
                Box::new(guest)
            }
            Self::I82576 | Self::Avf | Self::AvfFlex => {
                let guest = PolledVf::attach(socket, &self.vf(work.descriptors()))?;
                Box::new(if events { guest.sleeping() } else { guest })
            }
        })
    }

    /// Returns the configuration of a VF's driver: one queue pair with `descriptors` a ring, polled, and a doorbell for
    /// each burst of frames.
    fn vf(self, descriptors: u16) -> AnyVfConfig {
        let i82576 = VfDriverConfig {
            batch: BURST,
            rx_descriptors: descriptors,
            tx_descriptors: descriptors,
            ..VfDriverConfig::default()
        };
        let avf = AvfDriverConfig { pairs: 1, descriptors, batch: BURST, ..AvfDriverConfig::default() };
        let wanted = AnyVfConfig { i82576, avf };
        if self == Self::AvfFlex { wanted.flexible() } else { wanted }
    }

    /// Returns the configuration of a virtio driver. The rings have the features of the peers' rings: no merged receive buffers,
    /// and event indexes only with `events`. A driver that sends large packets accepts segmentation too.
    fn virtio(self, work: Workload, events: bool) -> VirtioNetConfig {
        let rings = match self {
            Self::VirtioPacked => VirtioFeatures::RING_PACKED.with(VirtioFeatures::IN_ORDER),
            _ => VirtioFeatures::NONE,
        };
        let offloads = match work.mss() {
            Some(_) => VirtioFeatures::CSUM.with(VirtioFeatures::HOST_TSO4),
            None => VirtioFeatures::NONE,
        };
        let events = if events { VirtioFeatures::EVENT_IDX } else { VirtioFeatures::NONE };
        VirtioNetConfig { features: rings.with(offloads).with(events), descriptors: work.descriptors() }
    }
}
