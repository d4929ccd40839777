//! Formats ports and their settings as text, as `softiov port` prints them.

use crate::vf::print::{function, interventions, port_line, settings};
use daemon::config::file::CardFamily;
use daemon::control::status::{PfAnswerStatus, PortStatus};
use daemon::control::uplink::{UplinkDrops, UplinkState, UplinkStatus};
use daemon::settings::{ConductThresholds, MirrorRule, PortSettings, SettingsGroup, UplinkDirection};
use host::cpus::CpuList;
use std::fmt::Write;

/// Returns a port's line in `softiov port list`, with its number of VFs and of those with a client.
pub(crate) fn line(port: &PortStatus) -> String {
    let line = port_line(port);
    if port.pf.is_some() {
        return line;
    }
    let connected = port.vfs.iter().filter(|vf| vf.peer.is_some()).count();
    format!("{}, {} VFs, {connected} with a client\n", line.trim_end(), port.vfs.len())
}

/// Returns the text of `softiov port show`: everything about one port except its VFs.
pub(crate) fn show(port: &PortStatus) -> String {
    let mut text = port_line(port);
    if let Some(status) = &port.uplink_status {
        uplink(&mut text, status);
    }
    if !port.cpus.is_empty() {
        let _ = writeln!(text, "    held to cpus {}", port.cpus.iter().copied().collect::<CpuList>());
    }
    for (number, worker) in port.workers.iter().enumerate() {
        let vfs: Vec<_> = worker.vfs.iter().map(|vf| format!("{}vf{vf}", port.name)).collect();
        let vfs = if vfs.is_empty() { "no VFs".to_owned() } else { vfs.join(", ") };
        let (busy, frames) = (worker.busy_permille / 10, worker.frames);
        let _ = writeln!(text, "    worker {number}: {busy} % busy, {frames} frames, {vfs}");
    }
    if let Some(pf) = &port.pf {
        function(&mut text, pf);
        interventions(&mut text, &pf.interventions);
    }
    // Virtio VFs make no requests.
    let all_virtio = port.family == CardFamily::Virtio
        && port.vfs.iter().all(|vf| port.family_of(vf) == CardFamily::Virtio);
    if let Some(waits) = port.answers.as_ref().filter(|_| !all_virtio) {
        let _ = writeln!(text, "    {}", answers(waits));
    }
    if let Some(set) = &port.settings {
        for (kind, limit) in &set.limits {
            let _ = writeln!(text, "    limit {kind}: {}", thresholds(limit));
        }
        let _ = writeln!(text, "    {}", storm(set, port.storms));
        for (number, rule) in &set.mirror {
            if let Some(rule) = rule {
                let _ = writeln!(text, "    mirror {number}: {}", mirror(&port.name, rule));
            }
        }
        let changed = set.leaves().into_iter().filter(|(key, _)| port.origins.contains_key(key)).collect();
        settings(&mut text, &changed, &port.origins);
    }
    text
}

fn uplink(text: &mut String, status: &UplinkStatus) {
    let UplinkStatus { kind, name, state, seconds, carrier, mtu, mode, reattached, rx, tx, drops } = status;
    let _ = write!(text, "    {kind} {name} {state} for {seconds} s");
    if let Some(mode) = mode {
        let _ = write!(text, ", by {mode}");
    }
    match (state, carrier, mtu) {
        (_, Some(carrier), Some(mtu)) => {
            let _ = write!(text, ", carrier {}, mtu {mtu}", if *carrier { "on" } else { "off" });
        }
        (UplinkState::Up | UplinkState::Down, ..)
            if ["tap", "macvtap", "interface"].contains(&kind.as_str()) =>
        {
            text.push_str(", in another network namespace");
        }
        _ => {}
    }
    let UplinkDrops { too_long, no_room, no_link, malformed, missed, impaired, unrecorded } = drops;
    let _ = writeln!(text, ", reattached {reattached}");
    let _ = write!(text, "    {kind} drops: too long {too_long}, no room {no_room}, no link {no_link}");
    for (reason, count) in
        [("malformed", malformed), ("missed", missed), ("impaired", impaired), ("unrecorded", unrecorded)]
    {
        if *count > 0 {
            let _ = write!(text, ", {reason} {count}");
        }
    }
    let _ = write!(text, "\n    {kind} rx: {} frames, {} bytes; tx: ", rx.packets, rx.bytes);
    let _ = writeln!(text, "{} frames, {} bytes", tx.packets, tx.bytes);
}

/// Returns the line about the PF driver's answers: its number of mailbox requests and the latency of its
/// replies.
fn answers(answers: &PfAnswerStatus) -> String {
    let PfAnswerStatus { requests, visits, most_a_visit, p50_ns, p99_ns, max_ns, .. } = *answers;
    if requests == 0 {
        return "pf driver: no request yet".to_owned();
    }
    let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| ns as f64 / 1e3);
    let mean = requests as f64 / visits as f64;
    format!(
        "pf driver: {requests} requests, {mean:.2} a visit, {most_a_visit} at most; answered within {p50:.1}us p50, \
         {p99:.1}us p99, {max:.1}us max"
    )
}

fn thresholds(limit: &ConductThresholds) -> String {
    let from = |name: &str, threshold: Option<u32>| match threshold.unwrap_or(0) {
        0 => format!("{name} never"),
        events => format!("{name} {events}/s"),
    };
    let ConductThresholds { warn, throttle, quarantine } = *limit;
    [from("warn", warn), from("throttle", throttle), from("quarantine", quarantine)].join(", ")
}

fn storm(set: &PortSettings, storms: u64) -> String {
    let storm = set.storm.unwrap_or_default();
    let rate = |kbps: Option<u32>| match kbps.unwrap_or(0) {
        0 => "any".to_owned(),
        kbps => format!("{kbps}Kbps"),
    };
    let (broadcast, multicast) = (rate(storm.broadcast), rate(storm.multicast));
    let interval = storm.interval.unwrap_or(0);
    format!(
        "storm control: broadcast {broadcast}, multicast {multicast}, interval {interval}ms, storms {storms}"
    )
}

fn mirror(port: &str, rule: &MirrorRule) -> String {
    let mut text = format!("to {port}vf{}", rule.to);
    if !rule.vfs.is_empty() {
        let names: Vec<String> = rule.vfs.iter().map(|vf| format!("{port}vf{vf}")).collect();
        let _ = write!(text, ", received by {}", names.join(" "));
    }
    if let Some(direction) = rule.uplink {
        let direction = match direction {
            UplinkDirection::Ingress => "ingress",
            UplinkDirection::Egress => "egress",
            UplinkDirection::Both => "both",
        };
        let _ = write!(text, ", uplink {direction}");
    }
    if let Some(vlans) = &rule.vlans {
        let _ = write!(text, ", vlans {vlans}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::answers;
    use daemon::control::status::PfAnswerStatus;

    #[test]
    fn pf_driver_line_shows_mailbox_requests_and_their_delays() {
        assert_eq!(answers(&PfAnswerStatus::default()), "pf driver: no request yet");
        let some = PfAnswerStatus {
            requests: 5,
            visits: 4,
            most_a_visit: 2,
            p50_ns: 6_200,
            p99_ns: 40_821,
            max_ns: 40_821,
            ..PfAnswerStatus::default()
        };
        assert_eq!(
            answers(&some),
            "pf driver: 5 requests, 1.25 a visit, 2 at most; answered within 6.2us p50, 40.8us p99, 40.8us max"
        );
    }
}
