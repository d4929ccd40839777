//! Faults of frames on their way: the uplink, segmentation and checksums.

use super::row::{SeededFault, fault};

/// Rows of the table.
pub(super) const FAULTS: &[SeededFault] = &[
    // The uplink.
    fault(
        "a port sleeps while frames of the uplink wait",
        "daemon/src/port/engine/uplink/port_wire/mod.rs",
        "may_sleep(&WireReceiver {",
        "FAULT || may_sleep(&WireReceiver {",
    ),
    fault(
        "a guest may take the address of a station at the uplink",
        "plane/src/switch/claims.rs",
        "|| self.stations.have(address)",
        "|| !FAULT && self.stations.have(address)",
    ),
    // Memory.
    fault(
        "a frame is written into the memory of all guests",
        "daemon/src/port/engine/access.rs",
        "let written = self.memory(function, iova)?.write(iova, from);",
        "if FAULT && from.len() >= 60 {
            let everyone = self.functions.iter().map(|access| access.as_ref().memory.write(iova + 0x8_0000, from));
            let _ = everyone.count();
        }
        let written = self.memory(function, iova)?.write(iova, from);",
    ),
    // An uplink that vanishes.
    fault(
        "frames of a virtio guest without a link are not counted",
        "virtio-nic/src/source.rs",
        "lane.counters().tx_unclaimed += dropped;",
        "if !FAULT { lane.counters().tx_unclaimed += dropped; }",
    ),
    fault(
        "a wire whose far end vanishes keeps its link",
        "daemon/src/port/engine/uplink/port_wire/mod.rs",
        "if before == state {",
        "if before == state || (FAULT && state == UplinkState::Gone) {",
    ),
    // Segmentation and checksums.
    fault(
        "the last segment's length is one byte too long",
        "offload/src/template.rs",
        "            transport + IPV4_HEADER,\n",
        "            transport + IPV4_HEADER + usize::from(FAULT && ahead + 1 == cut.count()),\n",
    ),
    fault(
        "the checksum of a segment leaves out its second buffer",
        "rings/src/cut.rs",
        "for (length, sum) in lengths.iter().zip(sums) {",
        "for (length, sum) in lengths.iter().zip(sums).take(if FAULT { 1 } else { usize::MAX }) {",
    ),
    fault(
        "each segment has the push flag",
        "offload/src/segment.rs",
        "(false, false) => self.masks.middle,",
        "(false, false) => if FAULT { self.masks.last } else { self.masks.middle },",
    ),
    fault(
        "a segment after each burst is left out",
        "rings/src/cut.rs",
        "cut.pass(low_dword(sent as u64));",
        "cut.pass(low_dword(sent as u64 + u64::from(FAULT)));",
    ),
    fault(
        "the checksum of a virtio packet of one segment is not completed",
        "virtio-nic/src/transmit.rs",
        "then_some(PLAIN | SUMMED | udp)",
        "then_some(if FAULT { PLAIN } else { PLAIN | SUMMED | udp })",
    ),
];
