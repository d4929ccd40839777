//! Counters of a host in the text formats of Prometheus and OpenMetrics. Beside SoftIOV's own metrics there are those
//! that SR-IOV dashboards know (`sriov_vf_*`, from the SR-IOV network metrics exporter).

mod answers;

use super::status::{PortStatus, VfStatus, VirtioDeviceCounts};
use policy::FilterKind;
use prometheus::core::Collector;
use prometheus::{CounterVec, Error, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

/// Function that returns a metric's value from a VF's status.
type MetricReader = fn(&VfStatus) -> u64;

/// Per-VF metrics under the names that SR-IOV dashboards expect. Labels: `numa_node`, `pciAddr`, `pf`, `vf`. The label
/// `pciAddr` counts each port as a PCI domain, in the order of the ports.
const KNOWN: [(&str, &str, MetricReader); 9] = [
    ("sriov_vf_rx_bytes", "Bytes received by the guest", |vf| vf.rx.bytes),
    ("sriov_vf_rx_packets", "Frames received by the guest", |vf| vf.rx.packets),
    ("sriov_vf_rx_multicast", "Multicast frames received by the guest", |vf| vf.rx.multicast),
    ("sriov_vf_rx_broadcast", "Broadcast frames received by the guest", |vf| vf.rx.broadcast),
    ("sriov_vf_rx_dropped", "Frames for the guest that were dropped", |vf| vf.rx.dropped),
    ("sriov_vf_tx_bytes", "Bytes sent by the guest", |vf| vf.tx.bytes),
    ("sriov_vf_tx_packets", "Frames sent by the guest", |vf| vf.tx.packets),
    ("sriov_vf_tx_dropped", "Frames of the guest that were dropped", |vf| vf.tx.dropped),
    ("sriov_vf_tx_errors", "Transmit requests of the guest that were invalid", |vf| vf.drops.tx_invalid),
];

/// Gauges of each VF: name, help text and reader. Labels: `pf`, `vf`.
const STATES: [(&str, &str, MetricReader); 6] = [
    ("softiov_vf_link_up", "1 if the guest sees a link", |vf| u64::from(vf.link)),
    ("softiov_vf_driver_active", "1 if a driver has enabled the VF", |vf| u64::from(vf.active)),
    ("softiov_vf_client_connected", "1 if a VMM is connected", |vf| u64::from(vf.peer.is_some())),
    ("softiov_vf_quarantined", "1 if the VF is quarantined", |vf| u64::from(vf.conduct.quarantine.is_some())),
    ("softiov_vf_throttled", "1 if the VF is throttled", |vf| u64::from(vf.conduct.throttled)),
    ("softiov_vf_shared_memory_bytes", "Bytes of guest memory that the card can access", |vf| {
        vf.peer.as_ref().map_or(0, |peer| peer.shareable_bytes)
    }),
];

/// Counters of each VF: name, help text and reader. Labels: `pf`, `vf`.
const COUNTS: [(&str, &str, MetricReader); 6] = [
    ("softiov_vf_mailbox_granted_total", "Requests of the VF that the PF driver granted", |vf| {
        vf.mailbox.granted
    }),
    ("softiov_vf_mailbox_unanswered_total", "Requests of the VF that the PF driver did not answer", |vf| {
        vf.mailbox.unanswered
    }),
    ("softiov_vf_refused_clients_total", "Connections of VMMs that the VF refused", |vf| vf.refusals.count),
    ("softiov_vf_refused_claims_total", "MAC addresses that the VF claimed and the plane refused", |vf| {
        vf.claims.refused
    }),
    ("softiov_vf_resets_total", "Resets of the VF", |vf| vf.mailbox.resets),
    ("softiov_vf_notices_total", "Notices to the VF's driver of a link change or a reset", |vf| {
        vf.mailbox.notices
    }),
];

/// Function that returns several values, each with its label, from a VF's status.
type LabelledMetricReader = fn(&VfStatus) -> Vec<(String, u64)>;

/// Counters of each VF that are divided by a further label, such as the drop reason.
const BY_KIND: [(&str, &str, &str, LabelledMetricReader); 7] = [
    ("softiov_vf_drops_total", "Dropped frames of a VF, by reason", "reason", drops),
    ("softiov_vf_guarded_total", "Frames of a VF that its guards dropped, by reason", "reason", |vf| {
        vf.guarded.clone().into_iter().collect()
    }),
    ("softiov_vf_device_events_total", "Events of a virtio VF's device, by kind", "kind", |vf| {
        let counts = vf.device.iter().flat_map(VirtioDeviceCounts::named);
        counts.map(|(kind, count)| (kind.to_owned(), count)).collect()
    }),
    ("softiov_vf_interventions_total", "VMM interventions, by kind", "kind", interventions),
    ("softiov_vf_mailbox_requests_total", "Requests of the VF to the PF driver, by subject", "about", |vf| {
        vf.mailbox.requests.clone().into_iter().collect()
    }),
    (
        "softiov_vf_mailbox_refused_total",
        "Requests of the VF that the PF driver refused, by reason",
        "reason",
        |vf| vf.mailbox.refused.clone().into_iter().collect(),
    ),
    (
        "softiov_vf_offence_seconds_total",
        "Seconds in which the VF exceeded a threshold, by offence",
        "offence",
        |vf| vf.conduct.offences.clone().into_iter().collect(),
    ),
];

/// Returns the numbers of a VF's dropped frames by reason. Each frame is counted under one reason, so `blocked`
/// excludes the more exact ones.
fn drops(vf: &VfStatus) -> Vec<(String, u64)> {
    let drops = vf.drops;
    let all = [
        ("no_descriptors", drops.rx_no_descriptors),
        ("queue_disabled", drops.rx_disabled),
        ("storm", drops.rx_storm),
        ("invalid", drops.tx_invalid),
        ("spoofed", drops.tx_spoofed),
        ("link_control", drops.tx_link_control),
        ("blocked", drops.tx_blocked.saturating_sub(drops.tx_spoofed + drops.tx_link_control)),
        ("unclaimed", drops.tx_unclaimed),
        ("dma_fault", drops.dma_faults),
    ];
    all.map(|(reason, count)| (reason.to_owned(), count)).to_vec()
}

/// Returns the numbers of messages and interrupts between card and VMM for a VF, by kind (metric `interventions`).
fn interventions(vf: &VfStatus) -> Vec<(String, u64)> {
    let vmm = vf.interventions;
    let all = [
        ("read", vmm.reads),
        ("posted_write", vmm.posted_writes),
        ("synchronous_write", vmm.synchronous_writes),
        ("interrupt", vmm.interrupts),
    ];
    all.map(|(kind, count)| (kind.to_owned(), count)).to_vec()
}

/// Formats the metrics of all ports.
pub(crate) fn text(ports: &[PortStatus]) -> Result<String, Error> {
    let registry = Registry::new();
    port_metrics(&registry, ports)?;
    worker_metrics(&registry, ports)?;
    let vfs = || ports.iter().flat_map(|port| port.vfs.iter().map(move |vf| (port.name.as_str(), vf)));
    for (name, help, read) in KNOWN {
        let metric = counter(&registry, name, help, &["numa_node", "pciAddr", "pf", "vf"])?;
        for (domain, port) in ports.iter().enumerate() {
            for vf in &port.vfs {
                // A virtio VF has no PCI address.
                let address =
                    if vf.rid.is_empty() { String::new() } else { format!("{domain:04x}:{}", vf.rid) };
                let index = vf.index.to_string();
                metric.with_label_values(&["", &address, &port.name, &index]).inc_by(read(vf));
            }
        }
    }
    for (name, help, read) in STATES {
        let metric = gauge(&registry, name, help, &["pf", "vf"])?;
        for (port, vf) in vfs() {
            metric.with_label_values(&[port, &vf.index.to_string()]).set(signed(read(vf)));
        }
    }
    let filters = "Filters of the VF, by kind";
    let filters = gauge(&registry, "softiov_vf_filters", filters, &["pf", "vf", "kind"])?;
    for (port, vf) in vfs() {
        let uses = vf.quotas.map(|of| [(FilterKind::Mac, of.mac), (FilterKind::Vlan, of.vlan)]);
        for (kind, of) in uses.into_iter().flatten() {
            filters.with_label_values(&[port, &vf.index.to_string(), kind.name()]).set(of.used.into());
        }
    }
    for (name, help, read) in COUNTS {
        let metric = counter(&registry, name, help, &["pf", "vf"])?;
        for (port, vf) in vfs() {
            metric.with_label_values(&[port, &vf.index.to_string()]).inc_by(read(vf));
        }
    }
    for (name, help, label, read) in BY_KIND {
        let metric = counter(&registry, name, help, &["pf", "vf", label])?;
        for (port, vf) in vfs() {
            for (kind, count) in read(vf) {
                metric.with_label_values(&[port, &vf.index.to_string(), &kind]).inc_by(count);
            }
        }
    }
    let families: Vec<_> = registry.gather().into_iter().chain(answers::family(ports)).collect();
    TextEncoder::new().encode_to_string(&families)
}

/// Adds the metrics of ports and uplinks to the registry.
fn port_metrics(registry: &Registry, ports: &[PortStatus]) -> Result<(), Error> {
    let link = gauge(registry, "softiov_port_link_up", "1 if the port's link is up", &["pf"])?;
    let waiting = "Frames in the port's receive buffer that wait for receive descriptors";
    let waiting = gauge(registry, "softiov_port_waiting_frames", waiting, &["pf"])?;
    let waiting_bytes = "Bytes in the port's receive buffer";
    let waiting_bytes = gauge(registry, "softiov_port_waiting_bytes", waiting_bytes, &["pf"])?;
    let storms =
        counter(registry, "softiov_port_storms_total", "Storms that storm control has limited", &["pf"])?;
    let visits = "Visits of the PF driver in which it answered at least one VF";
    let visits = counter(registry, "softiov_port_pf_visits_total", visits, &["pf"])?;
    let lost = counter(
        registry,
        "softiov_port_uplink_drops_total",
        "Frames dropped at the uplink",
        &["pf", "reason"],
    )?;
    let unrecorded = "Frames that are missing from the recording of the uplink";
    let unrecorded = counter(registry, "softiov_port_uplink_unrecorded_total", unrecorded, &["pf"])?;
    let frames = "Frames that passed the uplink";
    let frames = counter(registry, "softiov_port_uplink_packets_total", frames, &["pf", "direction"])?;
    let bytes = "Bytes of frames that passed the uplink";
    let bytes = counter(registry, "softiov_port_uplink_bytes_total", bytes, &["pf", "direction"])?;
    for port in ports {
        link.with_label_values(&[&port.name]).set(i64::from(port.link));
        let functions = || port.pf.iter().chain(port.vfs.iter().map(|vf| &vf.function));
        let [frames_wait, bytes_wait] =
            [functions().map(|f| f.waiting.frames).sum(), functions().map(|f| f.waiting.bytes).sum()];
        waiting.with_label_values(&[&port.name]).set(signed(frames_wait));
        waiting_bytes.with_label_values(&[&port.name]).set(signed(bytes_wait));
        storms.with_label_values(&[&port.name]).inc_by(port.storms);
        if let Some(answers) = &port.answers {
            visits.with_label_values(&[&port.name]).inc_by(answers.visits);
        }
        let Some(status) = &port.uplink_status else { continue };
        for (direction, traffic) in [("rx", status.rx), ("tx", status.tx)] {
            frames.with_label_values(&[port.name.as_str(), direction]).inc_by(traffic.packets);
            bytes.with_label_values(&[port.name.as_str(), direction]).inc_by(traffic.bytes);
        }
        let drops = status.drops;
        unrecorded.with_label_values(&[&port.name]).inc_by(drops.unrecorded);
        let reasons = [
            ("too_long", drops.too_long),
            ("no_room", drops.no_room),
            ("no_link", drops.no_link),
            ("malformed", drops.malformed),
            ("missed", drops.missed),
            ("impaired", drops.impaired),
        ];
        for (reason, count) in reasons {
            lost.with_label_values(&[port.name.as_str(), reason]).inc_by(count);
        }
    }
    Ok(())
}

/// Adds the metrics of the workers of ports that have several. The first worker, 0, is the port's own thread.
fn worker_metrics(registry: &Registry, ports: &[PortStatus]) -> Result<(), Error> {
    let labels = ["pf", "worker"];
    let busy = "Seconds for which the worker was busy";
    let busy = Opts::new("softiov_port_worker_busy_seconds_total", busy);
    let busy = register(registry, CounterVec::new(busy, &labels)?)?;
    let frames = "Frames that VFs have sent or received on the worker";
    let frames = counter(registry, "softiov_port_worker_frames_total", frames, &labels)?;
    let home =
        gauge(registry, "softiov_vf_worker", "Number of the worker that serves the VF", &["pf", "vf"])?;
    for port in ports {
        for (number, worker) in (0_u8..).zip(&port.workers) {
            let name = number.to_string();
            let labels = [port.name.as_str(), &name];
            busy.with_label_values(&labels).inc_by(worker.busy_ns as f64 / 1e9);
            frames.with_label_values(&labels).inc_by(worker.frames);
            for vf in &worker.vfs {
                home.with_label_values(&[port.name.as_str(), &vf.to_string()]).set(number.into());
            }
        }
    }
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn counter(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauge(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn register<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// Media type of the text format of Prometheus.
pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Media type of OpenMetrics.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Converts metrics from the Prometheus text format to OpenMetrics: the family of a counter drops the suffix `_total`,
/// a counter without that suffix becomes "unknown", and the text has an end mark.
pub(crate) fn openmetrics(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", name, "counter"] if !name.ends_with("_total") => {
                out += &format!("# TYPE {name} unknown");
            }
            ["#", word, name, rest] => {
                out += &format!("# {word} {} {rest}", name.strip_suffix("_total").unwrap_or(name));
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::{openmetrics, text};
    use crate::control::status::{DropCounts, PortStatus, TrafficCounts, VmmInterventions};
    use crate::control::uplink::UplinkDrops;
    use serde_json::json;

    /// Formats the metrics of a port whose PF a guest drives: three frames wait in its receive buffer, and seven are
    /// missing in the uplink's recording.
    #[test]
    fn port_metrics_have_pending_rx_frames_and_recording_losses() {
        let drops = UplinkDrops { unrecorded: 7, ..UplinkDrops::default() };
        let port = json!({
            "name": "pf0", "mac": "02:00:00:00:00:ff", "uplink": "tap:t", "link": true, "vfs": [],
            "uplink_status": {"kind": "tap", "name": "t", "state": "up", "seconds": 1, "reattached": 0, "drops": drops},
            "pf": {
                "socket": "/run/s", "peer": null, "hint": null, "rx": TrafficCounts::default(), "tx": TrafficCounts::default(),
                "drops": DropCounts::default(), "waiting": {"frames": 3, "bytes": 180},
                "interventions": VmmInterventions::default(),
            },
        });
        let port: PortStatus = serde_json::from_value(port).unwrap();
        let text = text(&[port]).unwrap();
        for line in [
            "softiov_port_waiting_frames{pf=\"pf0\"} 3\n",
            "softiov_port_waiting_bytes{pf=\"pf0\"} 180\n",
            "softiov_port_uplink_unrecorded_total{pf=\"pf0\"} 7\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("unrecorded\"}"), "unrecorded frames are counted as drops");
    }

    #[test]
    fn metrics_have_the_work_of_each_worker() {
        let port = json!({
            "name": "pf0", "mac": "02:00:00:00:00:ff", "uplink": "none", "link": true, "vfs": [],
            "workers": [
                {"busy_permille": 10, "busy_ns": 1_500_000_000, "frames": 3, "vfs": [0, 2]},
                {"busy_permille": 0, "busy_ns": 0, "frames": 0, "vfs": [1]},
            ],
        });
        let port: PortStatus = serde_json::from_value(port).unwrap();
        let text = text(&[port]).unwrap();
        for line in [
            "softiov_port_worker_busy_seconds_total{pf=\"pf0\",worker=\"0\"} 1.5\n",
            "softiov_port_worker_frames_total{pf=\"pf0\",worker=\"0\"} 3\n",
            "softiov_port_worker_frames_total{pf=\"pf0\",worker=\"1\"} 0\n",
            "softiov_vf_worker{pf=\"pf0\",vf=\"1\"} 1\n",
            "softiov_vf_worker{pf=\"pf0\",vf=\"2\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn openmetrics_type_lines_have_names_without_total() {
        let text = "# HELP a_total A b c\n# TYPE a_total counter\na_total{pf=\"x y\"} 1\n# HELP b B\n# TYPE b counter\nb 2\n\
                    # TYPE c gauge\nc 3\n";
        let expected = "# HELP a A b c\n# TYPE a counter\na_total{pf=\"x y\"} 1\n# HELP b B\n# TYPE b unknown\nb 2\n\
                        # TYPE c gauge\nc 3\n# EOF\n";
        assert_eq!(openmetrics(text), expected);
    }
}
