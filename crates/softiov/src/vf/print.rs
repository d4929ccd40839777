//! Ports and VFs as text, in the manner of `ip link show`. Left out: JSON, which is the status as it is.

use daemon::control::status::{
    Conduct, Drops, Interventions, LinkState, Mailbox, Peer, PortStatus, Traffic, VfStatus,
};
use daemon::policy::Coalesce;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A line for each VF, under a line for its port.
pub(crate) fn list(ports: &[PortStatus]) -> String {
    let mut text = String::new();
    for port in ports {
        text += &port_line(port);
        for vf in &port.vfs {
            let _ = writeln!(text, "    {}", line(vf));
        }
    }
    text
}

/// The line of a port.
pub(crate) fn port_line(port: &PortStatus) -> String {
    let PortStatus { name, mac, uplink, .. } = port;
    let mut line = format!("{name}: link/ether {mac} uplink {uplink} state {}", state(port.link));
    if let Some(pf) = &port.pf {
        let _ = write!(line, ", pf for a guest at {}{}", pf.socket.display(), client(pf.peer.as_ref()));
        line.push_str(if pf.hint.is_some() { " (see port show)" } else { "" });
    }
    line + "\n"
}

fn line(vf: &VfStatus) -> String {
    let mut line = format!("{:<8} link/ether {}", vf.name, vf.mac);
    if let Some(vlan) = vf.vlan {
        let _ = write!(line, ", vlan {vlan}");
        if vf.qos > 0 {
            let _ = write!(line, ", qos {}", vf.qos);
        }
    }
    if vf.max_tx_rate > 0 {
        let _ = write!(line, ", max_tx_rate {}Mbps", vf.max_tx_rate);
    }
    let _ = write!(line, ", state {}, driver {}", state(vf.link), if vf.active { "active" } else { "none" });
    line += &restraint(&vf.conduct);
    line += &client(vf.peer.as_ref());
    if vf.hint.is_some() {
        line.push_str(" (see vf show)");
    }
    line
}

/// What is done about a VF's conduct.
fn restraint(conduct: &Conduct) -> String {
    let cause = conduct.quarantine.as_ref();
    let quarantined = cause.map_or(String::new(), |cause| format!(", quarantined ({cause})"));
    quarantined + if conduct.throttled { ", throttled" } else { "" }
}

fn client(peer: Option<&Peer>) -> String {
    peer.map_or(", no client".to_owned(), |peer| format!(", client pid {}", peer.pid))
}

fn state(up: bool) -> &'static str {
    if up { "UP" } else { "DOWN" }
}

fn on(set: bool) -> &'static str {
    if set { "on" } else { "off" }
}

/// Everything about one VF.
pub(crate) fn show(vf: &VfStatus) -> String {
    let mut text = line(vf) + "\n";
    let link_state = match vf.link_state {
        LinkState::Auto => "auto",
        LinkState::Enable => "enable",
        LinkState::Disable => "disable",
    };
    let _ = writeln!(
        text,
        "    spoof checking {}, link-state {link_state}, trust {}, rid {}",
        on(vf.spoof_check),
        on(vf.trust),
        vf.rid
    );
    let vlans: Vec<String> = vf.vlans.iter().map(u16::to_string).collect();
    let joined = if vlans.is_empty() { "none".to_owned() } else { vlans.join(" ") };
    let allowed = if vf.allowed_vlans.is_empty() { "none" } else { &vf.allowed_vlans };
    let mtu = if vf.max_mtu == 0 { "none".to_owned() } else { vf.max_mtu.to_string() };
    let _ = writeln!(
        text,
        "    vlans {joined}, allowed {allowed}, all multicast {}, mtu limit {mtu}, rss {}",
        on(vf.allmulti),
        on(vf.rss)
    );
    let _ = writeln!(text, "    {}", interrupts(vf));
    conduct(&mut text, &vf.conduct);
    socket(&mut text, &vf.socket, vf.peer.as_ref(), vf.hint.as_deref());
    traffic(&mut text, (&vf.rx, &vf.tx), &vf.drops, &vf.interventions);
    mailbox(&mut text, &vf.mailbox);
    text
}

/// Where a function is offered, who has it, and what keeps it from working.
pub(crate) fn socket(text: &mut String, socket: &Path, peer: Option<&Peer>, hint: Option<&str>) {
    let _ = writeln!(text, "    socket {}", socket.display());
    if let Some(peer) = peer {
        let _ = writeln!(
            text,
            "    client pid {} uid {}, {} memory windows, {} shareable ({} MiB)",
            peer.pid,
            peer.uid,
            peer.windows,
            peer.shareable,
            peer.shareable_bytes >> 20
        );
    }
    if let Some(hint) = hint {
        let _ = writeln!(text, "    warning: {hint}");
    }
}

fn interrupts(vf: &VfStatus) -> String {
    let bound = |hz: u32| if hz == 0 { "none".to_owned() } else { format!("{hz}/s") };
    let chooser = match vf.coalesce {
        Coalesce::Guest => "the guest",
        Coalesce::Adaptive => "the host",
    };
    let (least, most) = (bound(vf.min_interrupts), bound(vf.max_interrupts));
    format!("interrupts chosen by {chooser}, floor {least}, ceiling {most}")
}

fn conduct(text: &mut String, conduct: &Conduct) {
    if let Some(cause) = &conduct.quarantine {
        let _ = writeln!(text, "    quarantined: {cause}; let it out with --quarantine off");
    }
    if !conduct.offences.is_empty() {
        let _ = writeln!(text, "    seconds of too much: {}", list_of(&conduct.offences));
    }
}

/// What a function's guest has received and sent, what was lost, and what it cost.
pub(crate) fn traffic(text: &mut String, (rx, tx): (&Traffic, &Traffic), drops: &Drops, vmm: &Interventions) {
    let _ = writeln!(
        text,
        "    RX: bytes {} packets {} mcast {} bcast {} dropped {}",
        rx.bytes, rx.packets, rx.multicast, rx.broadcast, rx.dropped
    );
    let _ = writeln!(text, "    TX: bytes {} packets {} dropped {}", tx.bytes, tx.packets, tx.dropped);
    let _ = writeln!(
        text,
        "    drops: no descriptors {}, queue disabled {}, storm {}, invalid {}, blocked {} (spoofed {}, link control \
         {}), unclaimed {}, dma faults {}",
        drops.rx_no_descriptors,
        drops.rx_disabled,
        drops.rx_storm,
        drops.tx_invalid,
        drops.tx_blocked,
        drops.tx_spoofed,
        drops.tx_link_control,
        drops.tx_unclaimed,
        drops.dma_faults
    );
    let _ = writeln!(
        text,
        "    VMM interventions: {} reads, {} posted writes, {} synchronous writes, {} interrupts",
        vmm.reads, vmm.posted_writes, vmm.synchronous_writes, vmm.interrupts
    );
}

fn mailbox(text: &mut String, mailbox: &Mailbox) {
    let Mailbox { requests, granted, refused, unanswered, resets, notices } = mailbox;
    let _ = writeln!(text, "    requests: {}, granted {granted}, unanswered {unanswered}", list_of(requests));
    let _ = writeln!(text, "    refused: {}", list_of(refused));
    let _ = writeln!(text, "    resets {resets}, notices {notices}");
}

fn list_of(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::restraint;
    use daemon::control::status::Conduct;

    #[test]
    fn a_line_tells_of_a_vf_that_is_shut_in_or_slowed_down() {
        let mut conduct = Conduct::default();
        assert_eq!(restraint(&conduct), "");
        conduct.throttled = true;
        assert_eq!(restraint(&conduct), ", throttled");
        conduct.quarantine = Some("mailbox".to_owned());
        assert_eq!(restraint(&conduct), ", quarantined (mailbox), throttled");
    }
}
