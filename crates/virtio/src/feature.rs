//! Feature bits of rings and network devices, and the rules between them (VIRTIO 1.2 sections 2.2, 5.1.3 and 6). Bits that
//! concern only other devices or other transports are omitted.

use core::fmt;
use core::ops::BitOr;
use serde::{Deserialize, Serialize};

/// Set of feature bits of a virtio device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct VirtioFeatures(u64);

/// Feature bit with its name in the standard and in Linux's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureRow {
    /// Set of features that contains this one feature.
    pub feature: VirtioFeatures,
    /// Name of the feature bit in the standard.
    pub name: &'static str,
    /// Section of VIRTIO 1.2 that defines the feature; of 1.3 where stated.
    pub section: &'static str,
}

/// Declares each feature as a constant and as a row of [`FEATURES`].
macro_rules! features {
    ($($(#[$doc:meta])* $constant:ident = $bit:literal, $name:literal, $section:literal;)*) => {
        impl VirtioFeatures {
            $($(#[$doc])* pub const $constant: Self = Self(1 << $bit);)*
        }

        /// All features that this crate names, in order of their bits.
        pub const FEATURES: &[FeatureRow] = &[
            $(FeatureRow { feature: VirtioFeatures::$constant, name: $name, section: $section },)*
        ];
    };
}

features! {
    /// Feature: the device completes partial checksums of packets that the driver sends.
    CSUM = 0, "VIRTIO_NET_F_CSUM", "5.1.3";
    /// Feature: the driver receives packets with a partial checksum.
    GUEST_CSUM = 1, "VIRTIO_NET_F_GUEST_CSUM", "5.1.3";
    /// Feature: the driver changes its receive offloads by the control queue.
    CTRL_GUEST_OFFLOADS = 2, "VIRTIO_NET_F_CTRL_GUEST_OFFLOADS", "5.1.3";
    /// Feature: the device reports a maximum MTU.
    MTU = 3, "VIRTIO_NET_F_MTU", "5.1.3";
    /// Feature: the device has a MAC address for the driver.
    MAC = 5, "VIRTIO_NET_F_MAC", "5.1.3";
    /// Feature: the driver receives unsegmented TCP over IPv4.
    GUEST_TSO4 = 7, "VIRTIO_NET_F_GUEST_TSO4", "5.1.3";
    /// Feature: the driver receives unsegmented TCP over IPv6.
    GUEST_TSO6 = 8, "VIRTIO_NET_F_GUEST_TSO6", "5.1.3";
    /// Feature: the driver receives unsegmented TCP with congestion marks (ECN).
    GUEST_ECN = 9, "VIRTIO_NET_F_GUEST_ECN", "5.1.3";
    /// Feature: the driver receives unfragmented UDP.
    GUEST_UFO = 10, "VIRTIO_NET_F_GUEST_UFO", "5.1.3";
    /// Feature: the device segments TCP over IPv4.
    HOST_TSO4 = 11, "VIRTIO_NET_F_HOST_TSO4", "5.1.3";
    /// Feature: the device segments TCP over IPv6.
    HOST_TSO6 = 12, "VIRTIO_NET_F_HOST_TSO6", "5.1.3";
    /// Feature: the device segments TCP with congestion marks (ECN).
    HOST_ECN = 13, "VIRTIO_NET_F_HOST_ECN", "5.1.3";
    /// Feature: the device fragments UDP.
    HOST_UFO = 14, "VIRTIO_NET_F_HOST_UFO", "5.1.3";
    /// Feature: the device spreads a received packet over several receive buffers.
    MRG_RXBUF = 15, "VIRTIO_NET_F_MRG_RXBUF", "5.1.3";
    /// Feature: the configuration space has the link state.
    STATUS = 16, "VIRTIO_NET_F_STATUS", "5.1.3";
    /// Feature: the device has a control queue.
    CTRL_VQ = 17, "VIRTIO_NET_F_CTRL_VQ", "5.1.3";
    /// Feature: the control queue sets receive modes.
    CTRL_RX = 18, "VIRTIO_NET_F_CTRL_RX", "5.1.3";
    /// Feature: the control queue sets VLAN filters.
    CTRL_VLAN = 19, "VIRTIO_NET_F_CTRL_VLAN", "5.1.3";
    /// Feature: the driver announces its address when the device asks for it.
    GUEST_ANNOUNCE = 21, "VIRTIO_NET_F_GUEST_ANNOUNCE", "5.1.3";
    /// Feature: the device has several queue pairs.
    MQ = 22, "VIRTIO_NET_F_MQ", "5.1.3";
    /// Feature: the control queue sets the MAC address.
    CTRL_MAC_ADDR = 23, "VIRTIO_NET_F_CTRL_MAC_ADDR", "5.1.3";
    /// Feature: a descriptor may refer to an indirect table of descriptors.
    INDIRECT_DESC = 28, "VIRTIO_F_INDIRECT_DESC", "6";
    /// Feature: driver and device each state the ring position at which they want a notification.
    EVENT_IDX = 29, "VIRTIO_F_EVENT_IDX", "6";
    /// Feature: the device follows VIRTIO 1.0 or later: little endian, and a packet header of 12 bytes.
    VERSION_1 = 32, "VIRTIO_F_VERSION_1", "6";
    /// Feature: addresses of the device are translated by an IOMMU.
    ACCESS_PLATFORM = 33, "VIRTIO_F_ACCESS_PLATFORM", "6";
    /// Feature: the rings are packed.
    RING_PACKED = 34, "VIRTIO_F_RING_PACKED", "6";
    /// Feature: the device returns buffers in the order in which they were made available.
    IN_ORDER = 35, "VIRTIO_F_IN_ORDER", "6";
    /// Feature: memory is ordered as on the platform, for devices in hardware.
    ORDER_PLATFORM = 36, "VIRTIO_F_ORDER_PLATFORM", "6";
    /// Feature: a notification of the driver states the number of available descriptors.
    NOTIFICATION_DATA = 38, "VIRTIO_F_NOTIFICATION_DATA", "6";
    /// Feature: the driver may reset a single queue.
    RING_RESET = 40, "VIRTIO_F_RING_RESET", "6";
    /// Feature: the control queue sets the interrupt moderation of each queue.
    VQ_NOTF_COAL = 52, "VIRTIO_NET_F_VQ_NOTF_COAL", "5.1.3 of 1.3";
    /// Feature: the control queue sets the interrupt moderation of all queues together.
    NOTF_COAL = 53, "VIRTIO_NET_F_NOTF_COAL", "5.1.3";
    /// Feature: the driver receives unsegmented UDP over IPv4.
    GUEST_USO4 = 54, "VIRTIO_NET_F_GUEST_USO4", "5.1.3";
    /// Feature: the driver receives unsegmented UDP over IPv6.
    GUEST_USO6 = 55, "VIRTIO_NET_F_GUEST_USO6", "5.1.3";
    /// Feature: the device segments UDP.
    HOST_USO = 56, "VIRTIO_NET_F_HOST_USO", "5.1.3";
    /// Feature: the packet header has a hash.
    HASH_REPORT = 57, "VIRTIO_NET_F_HASH_REPORT", "5.1.3";
    /// Feature: the driver gives the exact length of a packet's headers.
    GUEST_HDRLEN = 59, "VIRTIO_NET_F_GUEST_HDRLEN", "5.1.3";
    /// Feature: the control queue sets the distribution of packets over receive queues.
    RSS = 60, "VIRTIO_NET_F_RSS", "5.1.3";
    /// Feature: the device reports merged segments and acknowledgements.
    RSC_EXT = 61, "VIRTIO_NET_F_RSC_EXT", "5.1.3";
    /// Feature: the device is the standby for another device with the same address.
    STANDBY = 62, "VIRTIO_NET_F_STANDBY", "5.1.3";
    /// Feature: the configuration space has speed and duplex mode.
    SPEED_DUPLEX = 63, "VIRTIO_NET_F_SPEED_DUPLEX", "5.1.3";
}

/// Features that require at least one of several others (section 5.1.3.1). Each entry is the feature, and the set that
/// it requires one of.
pub const REQUIREMENTS: &[(VirtioFeatures, VirtioFeatures)] = {
    use VirtioFeatures as F;
    &[
        (F::GUEST_TSO4, F::GUEST_CSUM),
        (F::GUEST_TSO6, F::GUEST_CSUM),
        (F::GUEST_ECN, F::GUEST_TSO4.with(F::GUEST_TSO6)),
        (F::GUEST_UFO, F::GUEST_CSUM),
        (F::GUEST_USO4, F::GUEST_CSUM),
        (F::GUEST_USO6, F::GUEST_CSUM),
        (F::HOST_TSO4, F::CSUM),
        (F::HOST_TSO6, F::CSUM),
        (F::HOST_ECN, F::HOST_TSO4.with(F::HOST_TSO6)),
        (F::HOST_UFO, F::CSUM),
        (F::HOST_USO, F::CSUM),
        (F::CTRL_RX, F::CTRL_VQ),
        (F::CTRL_VLAN, F::CTRL_VQ),
        (F::GUEST_ANNOUNCE, F::CTRL_VQ),
        (F::MQ, F::CTRL_VQ),
        (F::CTRL_MAC_ADDR, F::CTRL_VQ),
        (F::NOTF_COAL, F::CTRL_VQ),
        (F::VQ_NOTF_COAL, F::CTRL_VQ),
        (F::RSC_EXT, F::HOST_TSO4.with(F::HOST_TSO6)),
        (F::RSS, F::CTRL_VQ),
    ]
};

impl VirtioFeatures {
    /// Set of features that is empty.
    pub const NONE: Self = Self(0);

    /// Returns the set of the features whose bits are set in `bits`, a number that a front end or a driver sent.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set of features as a number with a bit for each feature.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the union of two sets of features.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the features of this set that are not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns true if all features of `others` are in this set.
    #[must_use]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns true if at least one feature of `others` is in this set.
    #[must_use]
    pub const fn intersects(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns true if the set has no features.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for VirtioFeatures {
    type Output = Self;

    fn bitor(self, others: Self) -> Self {
        self.with(others)
    }
}

impl fmt::Display for VirtioFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (0..u64::BITS).map(|bit| (bit, Self(1 << bit))).filter(|(_, one)| self.contains(*one));
        for (at, (bit, one)) in bits.enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match FEATURES.iter().find(|row| row.feature == one) {
                Some(row) => f.write_str(row.name)?,
                None => write!(f, "feature bit {bit}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for VirtioFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtioFeatures({:#x}: {self})", self.0)
    }
}

/// Reason to refuse the features that a driver acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FeatureError {
    /// The driver acknowledged features that the device does not offer (section 2.2.1).
    #[error("acknowledged features that were not offered: {0}")]
    NotOffered(VirtioFeatures),
    /// The driver acknowledged a feature without a feature that the first one requires (section 5.1.3.1).
    #[error("{feature} requires {one_of}: acknowledge one of these too")]
    MissingRequirement {
        /// Feature that the driver acknowledged without the feature that it requires.
        feature: VirtioFeatures,
        /// Features of which the driver must acknowledge one.
        one_of: VirtioFeatures,
    },
}

/// Checks the features that a driver acknowledged, and returns them as accepted.
///
/// `delegated` are features that a front end negotiates in place of this device, such as the control queue in
/// vhost-user. The rules treat them as acknowledged.
///
/// # Errors
/// [`FeatureError`] if a feature was not offered, or if a feature that it requires is missing.
pub fn accept(
    offered: VirtioFeatures,
    acknowledged: VirtioFeatures,
    delegated: VirtioFeatures,
) -> Result<VirtioFeatures, FeatureError> {
    let unknown = acknowledged.without(offered);
    if !unknown.is_empty() {
        return Err(FeatureError::NotOffered(unknown));
    }
    let all = acknowledged | delegated;
    let violated = REQUIREMENTS
        .iter()
        .find(|(feature, one_of)| acknowledged.contains(*feature) && !all.intersects(*one_of));
    match violated {
        Some((feature, one_of)) => {
            Err(FeatureError::MissingRequirement { feature: *feature, one_of: *one_of })
        }
        None => Ok(acknowledged),
    }
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, FeatureError, REQUIREMENTS, VirtioFeatures as F, accept};
    use std::string::ToString;

    #[test]
    fn virtio_feature_names_are_unique_and_in_bit_order() {
        for pair in FEATURES.windows(2) {
            assert!(pair[0].feature.bits() < pair[1].feature.bits(), "{} stands too early", pair[1].name);
        }
        assert!(FEATURES.iter().all(|row| row.feature.bits().is_power_of_two()));
    }

    #[test]
    fn feature_words_of_linux_under_qemu_are_accepted() {
        // Linux 6.12 under QEMU acknowledges this word with a split ring, and these bits more with several packed rings.
        let split = F::from_bits(0x1_7020_bb83);
        for acknowledged in [split, split | F::MQ | F::RING_PACKED] {
            let offered = acknowledged | F::IN_ORDER | F::HOST_UFO;
            assert_eq!(accept(offered, acknowledged, F::CTRL_VQ), Ok(acknowledged));
        }
    }

    #[test]
    fn feature_that_was_not_offered_is_refused_by_name() {
        let refused = accept(F::CSUM, F::CSUM | F::RING_PACKED | F::from_bits(1 << 45), F::NONE).unwrap_err();
        assert_eq!(refused, FeatureError::NotOffered(F::RING_PACKED | F::from_bits(1 << 45)));
        let text = "acknowledged features that were not offered: VIRTIO_F_RING_PACKED, feature bit 45";
        assert_eq!(refused.to_string(), text);
    }

    #[test]
    fn feature_is_refused_without_one_of_its_requirements() {
        let all = F::from_bits(u64::MAX);
        for (feature, one_of) in REQUIREMENTS {
            let missing = FeatureError::MissingRequirement { feature: *feature, one_of: *one_of };
            assert_eq!(accept(all, *feature, F::NONE), Err(missing));
            for other in FEATURES.iter().filter(|row| one_of.contains(row.feature)) {
                // The required feature may have a requirement of its own, which is delegated here.
                let both = *feature | other.feature;
                assert_eq!(accept(all, both, all.without(*one_of)), Ok(both));
            }
        }
    }

    #[test]
    fn segmentation_without_checksum_offload_is_refused() {
        let refused = accept(F::HOST_TSO4 | F::CSUM, F::HOST_TSO4, F::NONE).unwrap_err();
        let text = "VIRTIO_NET_F_HOST_TSO4 requires VIRTIO_NET_F_CSUM: acknowledge one of these too";
        assert_eq!(refused.to_string(), text);
    }
}
