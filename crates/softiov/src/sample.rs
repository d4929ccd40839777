//! Sample of a host's status for tests: a port with one VF that a guest drives, before any traffic.

use daemon::config::file::CardFamily;
use daemon::control::status::{DropCounts, PortStatus, TrafficCounts, VirtioDeviceCounts};
use serde_json::json;

/// Returns the status of the sample's port in family virtio.
pub(crate) fn virtio_port() -> PortStatus {
    let mut port = port();
    port.family = CardFamily::Virtio;
    port.vfs[0].rid.clear();
    port.vfs[0].device = Some(VirtioDeviceCounts { kicks: 7, ..VirtioDeviceCounts::default() });
    port
}

/// Returns the status of `pf0` with `pf0vf0`, without an uplink.
pub(crate) fn port() -> PortStatus {
    let vf = json!({
        "name": "pf0vf0", "index": 0, "rid": "01:10.0", "mac": "02:00:00:00:00:01", "vlans": [], "link": true,
        "active": true, "conduct": {"quarantine": null, "throttled": false, "offences": {}}, "socket": "/run/s",
        "peer": {"pid": 0, "uid": 0, "windows": 1, "shareable": 1, "shareable_bytes": 1 << 30}, "hint": null,
        "drops": DropCounts::default(), "rx": TrafficCounts::default(), "tx": TrafficCounts::default(), "settings": {},
        "interventions": {"reads": 0, "posted_writes": 0, "synchronous_writes": 0, "interrupts": 0},
        "mailbox": {"requests": {}, "granted": 0, "refused": {}, "unanswered": 0, "resets": 0, "notices": 0},
    });
    let port =
        json!({"name": "pf0", "mac": "02:00:00:00:00:ff", "uplink": "none", "link": true, "vfs": [vf]});
    serde_json::from_value(port).expect("the sample must be the JSON of a port's status")
}
