//! A port as text. Left out: its VFs, and JSON, which is the status as it is.

use crate::vf::print::{port_line, socket, traffic};
use daemon::control::status::{PortRules, PortStatus};
use daemon::control::tap::{TapDrops, TapState, TapStatus};
use daemon::policy::{Direction, Limit, MirrorRule};
use std::fmt::Write;

/// Everything about one port.
pub(crate) fn show(port: &PortStatus) -> String {
    let mut text = port_line(port);
    if let Some(status) = &port.tap {
        tap(&mut text, status);
    }
    if let Some(pf) = &port.pf {
        socket(&mut text, &pf.socket, pf.peer.as_ref(), pf.hint.as_deref());
        traffic(&mut text, (&pf.rx, &pf.tx), &pf.drops, &pf.interventions);
    }
    if let Some(rules) = &port.rules {
        for (kind, limit) in &rules.limits {
            let _ = writeln!(text, "    limit {kind}: {}", thresholds(limit));
        }
        let _ = writeln!(text, "    {}", storm(rules));
        for (number, rule) in &rules.mirrors {
            let _ = writeln!(text, "    mirror {number}: {}", mirror(&port.name, rule));
        }
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

fn storm(rules: &PortRules) -> String {
    let rate = |kbps: Option<u32>| match kbps.unwrap_or(0) {
        0 => "any".to_owned(),
        kbps => format!("{kbps}Kbps"),
    };
    let (broadcast, multicast) = (rate(rules.storm.broadcast), rate(rules.storm.multicast));
    let interval = rules.storm.interval.unwrap_or(0);
    format!(
        "storm control: broadcast {broadcast}, multicast {multicast}, interval {interval}ms, storms {}",
        rules.storms
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
