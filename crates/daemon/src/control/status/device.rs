//! Counts of a virtio VF's device, as the control interface, the metrics and the tools print them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of events of a virtio VF's device, since the host's process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VirtioDeviceCounts {
    /// Number of notifications by the guest's driver.
    pub kicks: u64,
    /// Number of interrupts to the guest's driver.
    pub calls: u64,
    /// Number of sent packets that were dropped because their descriptors or their header are malformed.
    pub malformed: u64,
    /// Number of sent packets that requested a checksum.
    pub checksums: u64,
    /// Number of sent packets that requested segmentation.
    pub segmented: u64,
    /// Number of sent packets in one frame whose checksum the host filled in.
    #[serde(default)]
    pub checksums_filled: u64,
    /// Number of sent packets that the host cut into segments.
    #[serde(default)]
    pub packets_cut: u64,
    /// Number of sent packets that the host passed on unsegmented to another guest.
    #[serde(default)]
    pub uncut_to_guests: u64,
    /// Number of sent packets that the host passed on unsegmented to the uplink.
    #[serde(default)]
    pub uncut_to_uplink: u64,
    /// Number of packets that the guest received unsegmented.
    pub passed_uncut: u64,
    /// Number of packets that the host has joined from several segments for the guest.
    #[serde(default)]
    pub coalesced_packets: u64,
    /// Number of segments in these packets.
    #[serde(default)]
    pub coalesced_frames: u64,
}

impl VirtioDeviceCounts {
    /// Returns each count with its name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("kicks", self.kicks),
            ("calls", self.calls),
            ("malformed", self.malformed),
            ("checksums", self.checksums),
            ("checksums_filled", self.checksums_filled),
            ("segmented", self.segmented),
            ("packets_cut", self.packets_cut),
            ("uncut_to_guests", self.uncut_to_guests),
            ("uncut_to_uplink", self.uncut_to_uplink),
            ("passed_uncut", self.passed_uncut),
            ("coalesced_packets", self.coalesced_packets),
            ("coalesced_frames", self.coalesced_frames),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::VirtioDeviceCounts;
    use serde_json::Value;

    #[test]
    fn metrics_and_json_have_the_same_device_counts() {
        let Ok(Value::Object(fields)) = serde_json::to_value(VirtioDeviceCounts::default()) else {
            panic!("counts are an object");
        };
        let mut names = VirtioDeviceCounts::default().named().map(|(name, _)| name).to_vec();
        names.sort_unstable();
        assert!(names.iter().copied().eq(fields.keys().map(String::as_str)), "{names:?} {fields:?}");
    }
}
