//! A port as text. Left out: its VFs, and JSON, which is the status as it is.

use crate::vf::print::{function, port_line, settings};
use daemon::control::status::PortStatus;
use daemon::control::tap::{TapDrops, TapState, TapStatus};
use daemon::settings::{Direction, Limit, MirrorRule, PortSettings, Settings};
use std::fmt::Write;

/// A port among others: its line, and how many VFs it has.
pub(crate) fn line(port: &PortStatus) -> String {
    let line = port_line(port);
    if port.pf.is_some() {
        return line;
    }
    let connected = port.vfs.iter().filter(|vf| vf.peer.is_some()).count();
    format!("{}, {} VFs, {connected} with a client\n", line.trim_end(), port.vfs.len())
}

/// Everything about one port.
pub(crate) fn show(port: &PortStatus) -> String {
    let mut text = port_line(port);
    if let Some(status) = &port.tap {
        tap(&mut text, status);
    }
    if let Some(pf) = &port.pf {
        function(&mut text, pf);
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

fn tap(text: &mut String, status: &TapStatus) {
    let TapStatus { interface, state, seconds, carrier, mtu, reattached, drops } = status;
    let _ = write!(text, "    tap {interface} {state} for {seconds} s");
    match (state, carrier, mtu) {
        (TapState::Gone, ..) => {}
        (_, Some(carrier), Some(mtu)) => {
            let _ = write!(text, ", carrier {}, mtu {mtu}", if *carrier { "on" } else { "off" });
        }
        _ => text.push_str(", in another network namespace"),
    }
    let TapDrops { too_long, no_room, no_link } = drops;
    let _ = writeln!(text, ", reattached {reattached}");
    let _ = writeln!(text, "    tap drops: too long {too_long}, no room {no_room}, no link {no_link}");
}

fn thresholds(limit: &Limit) -> String {
    let from = |name: &str, threshold: Option<u32>| match threshold.unwrap_or(0) {
        0 => format!("{name} never"),
        events => format!("{name} {events}/s"),
    };
    let Limit { warn, throttle, quarantine } = *limit;
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
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
            Direction::Both => "both",
        };
        let _ = write!(text, ", uplink {direction}");
    }
    if let Some(vlans) = &rule.vlans {
        let _ = write!(text, ", vlans {vlans}");
    }
    text
}
