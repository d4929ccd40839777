//! Formats ports and VFs as text, in the manner of `ip link show`.

use daemon::config::file::{CardFamily, SocketRole};
use daemon::control::status::{
    ClientRefusals, ConnectedVmm, FilterQuotaStatus, FunctionStatus, PortStatus, RefusedClaims,
    SettingOrigin, VfConductStatus, VfFilterStatus, VfMailboxStatus, VfQuotaStatus, VfStatus,
    VirtioDeviceCounts, VmmInterventions, remedy,
};
use daemon::settings::{SettingValues, SettingsGroup};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the text of `softiov vf list`: a line for each VF, under a line for its port.
pub(crate) fn list(ports: &[PortStatus]) -> String {
    let mut text = String::new();
    for port in ports {
        text += &port_line(port);
        for vf in &port.vfs {
            let family = port.family_of(vf);
            let own =
                if family == port.family { String::new() } else { format!(", family {}", family.name()) };
            let _ = writeln!(text, "    {}{own}", line(vf));
        }
    }
    text
}

/// Returns the line of a port in the list of VFs.
pub(crate) fn port_line(port: &PortStatus) -> String {
    let PortStatus { name, family, mac, uplink, .. } = port;
    let family =
        if *family == CardFamily::default() { String::new() } else { format!(" family {}", family.name()) };
    let mut line = format!("{name}: link/ether {mac}{family} uplink {uplink} state {}", state(port.link));
    if let Some(pf) = &port.pf {
        let _ = write!(line, ", pf for a guest at {}{}", pf.socket.display(), client(pf.peer.as_ref()));
        line.push_str(if pf.hint.is_some() { " (see port show)" } else { "" });
    }
    line + "\n"
}

fn line(vf: &VfStatus) -> String {
    let mut line = format!("{:<8} link/ether {}", vf.name, vf.mac);
    for (key, value) in [
        ("vlan", vf.settings.vlan.map(u32::from)),
        ("qos", vf.settings.qos.map(u32::from)),
        ("max_tx_rate", vf.settings.max_tx_rate),
    ] {
        if let Some(value) = value.filter(|value| *value > 0) {
            let _ = write!(line, ", {key} {value}");
        }
    }
    let _ = write!(line, ", state {}, driver {}", state(vf.link), if vf.active { "active" } else { "none" });
    line += &restraint(&vf.conduct);
    line += &client(vf.peer.as_ref());
    if vf.hint.is_some() {
        line.push_str(" (see vf show)");
    }
    line
}

/// Returns the end of a VF's line in the list: the VF's quarantine and throttling, or an empty text.
fn restraint(conduct: &VfConductStatus) -> String {
    let cause = conduct.quarantine.as_ref();
    let quarantined = cause.map_or(String::new(), |cause| format!(", quarantined ({cause})"));
    quarantined + if conduct.throttled { ", throttled" } else { "" }
}

fn client(peer: Option<&ConnectedVmm>) -> String {
    peer.map_or(", no client".to_owned(), |peer| format!(", client pid {}", peer.pid))
}

fn state(up: bool) -> &'static str {
    if up { "UP" } else { "DOWN" }
}

/// Returns the text of `softiov vf show`: everything about one VF.
pub(crate) fn show(vf: &VfStatus) -> String {
    let mut text = line(vf) + "\n";
    let vlans: Vec<String> = vf.vlans.iter().map(u16::to_string).collect();
    let joined = if vlans.is_empty() { "none".to_owned() } else { vlans.join(" ") };
    let rid = if vf.rid.is_empty() { String::new() } else { format!("rid {}, ", vf.rid) };
    let _ = writeln!(text, "    {rid}member of vlans {joined}");
    if let Some(VfQuotaStatus { mac, vlan }) = vf.quotas {
        let of = |FilterQuotaStatus { used, guaranteed, most }| {
            format!("{used} ({guaranteed} guaranteed, at most {most})")
        };
        let _ = writeln!(text, "    filters: mac {}, vlan {}", of(mac), of(vlan));
    }
    if vf.filters.cut {
        let VfFilterStatus { used, most, .. } = vf.filters;
        let _ = writeln!(
            text,
            "    warning: the guest's address list was cut short ({used} of {most} filters in use): frames to other groups \
             do not arrive; set --trust on"
        );
    }
    settings(&mut text, &vf.settings.leaves(), &vf.origins);
    conduct(&mut text, &vf.conduct);
    function(&mut text, &vf.function);
    claims(&mut text, &vf.claims);
    if !vf.guarded.is_empty() {
        let _ = writeln!(text, "    dropped by guards: {}", list_of(&vf.guarded));
    }
    match &vf.device {
        // A virtio VF has neither registers nor a mailbox.
        Some(counts) => device(&mut text, counts, vf.mailbox.resets),
        None => {
            interventions(&mut text, &vf.function.interventions);
            mailbox(&mut text, &vf.mailbox);
        }
    }
    text
}

/// Appends the number of addresses that were refused to the guest, with the last one, to the text, if there were any.
fn claims(text: &mut String, claims: &RefusedClaims) {
    if let Some(address) = &claims.address {
        let _ = writeln!(
            text,
            "    refused addresses: {}, last {address}, which another VF, a station at the uplink or the host uses",
            claims.refused
        );
    }
}

/// Appends the settings of a VF or port with their values to the text, grouped by origin; defaults come
/// first.
pub(crate) fn settings(text: &mut String, leaves: &SettingValues, origins: &BTreeMap<String, SettingOrigin>) {
    for (origin, title) in [
        (SettingOrigin::Default, "by default"),
        (SettingOrigin::File, "from the file"),
        (SettingOrigin::Kept, "kept"),
        (SettingOrigin::Volatile, "volatile"),
    ] {
        let of = |key: &String| origins.get(key).copied().unwrap_or(SettingOrigin::Default);
        let some = leaves.iter().filter(|(key, _)| of(key) == origin);
        let some: Vec<String> = some.map(|(key, value)| format!("{key} {}", shown(value))).collect();
        if !some.is_empty() {
            let _ = writeln!(text, "    {title}: {}", some.join(", "));
        }
    }
}

/// Returns a setting's value as text, as commands accept it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let field = |(key, value)| format!("{key} {}", shown(value));
            fields.iter().map(field).collect::<Vec<_>>().join(" ")
        }
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        Value::Number(number) => number.to_string(),
    }
}

fn conduct(text: &mut String, conduct: &VfConductStatus) {
    if let Some(cause) = &conduct.quarantine {
        let _ = writeln!(text, "    quarantined: {cause}; release the VF with --quarantine off");
    }
    if !conduct.offences.is_empty() {
        let _ = writeln!(text, "    seconds above a threshold: {}", list_of(&conduct.offences));
    }
}

/// Appends the status of a function (a VF or a PF) to the text: socket, client, hint, traffic, drops and pending
/// frames.
pub(crate) fn function(text: &mut String, function: &FunctionStatus) {
    let FunctionStatus { peer, hint, refusals, rx, tx, drops, waiting, .. } = function;
    socket(text, function);
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
    refused_clients(text, refusals);
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
    if waiting.frames > 0 {
        let _ =
            writeln!(text, "    waiting for descriptors: frames {} bytes {}", waiting.frames, waiting.bytes);
    }
}

/// Appends the events of a virtio VF's device to the text.
fn device(text: &mut String, counts: &VirtioDeviceCounts, resets: u64) {
    let counts: Vec<String> = counts.named().map(|(name, count)| format!("{name} {count}")).to_vec();
    let _ = writeln!(text, "    device: {}, resets {resets}", counts.join(", "));
}

/// Appends the numbers of messages and interrupts between card and VMM to the text.
pub(crate) fn interventions(text: &mut String, vmm: &VmmInterventions) {
    let _ = writeln!(
        text,
        "    VMM interventions: {} reads, {} posted writes, {} synchronous writes, {} interrupts",
        vmm.reads, vmm.posted_writes, vmm.synchronous_writes, vmm.interrupts
    );
}

/// Appends the function's socket to the text, and the reason why the host is not connected to a VMM that listens.
fn socket(text: &mut String, function: &FunctionStatus) {
    let FunctionStatus { socket, socket_mode, unconnected, .. } = function;
    let mode = match socket_mode {
        SocketRole::Server => "",
        SocketRole::Client => ", socket_mode client",
    };
    let _ = writeln!(text, "    socket {}{mode}", socket.display());
    if let Some(why) = unconnected {
        let _ = writeln!(text, "    the host waits for the VMM's socket: {why}");
    }
}

/// Appends the number of refused clients to the text, if there were any.
fn refused_clients(text: &mut String, refusals: &ClientRefusals) {
    if refusals.count > 0 {
        let held = refusals.held.map_or(String::new(), |pid| format!("; client pid {pid} tries again"));
        let _ = writeln!(text, "    refused clients: {}{held}", refusals.count);
    }
}

fn mailbox(text: &mut String, mailbox: &VfMailboxStatus) {
    let VfMailboxStatus { requests, granted, refused, unanswered, resets, notices } = mailbox;
    let _ = writeln!(text, "    requests: {}, granted {granted}, unanswered {unanswered}", list_of(requests));
    let _ = writeln!(text, "    refused: {}", list_of(refused));
    for (reason, remedy) in refused.keys().filter_map(|reason| Some((reason, remedy(reason)?))) {
        let _ = writeln!(text, "    {reason} needs {remedy}");
    }
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
    use super::{restraint, show};
    use daemon::control::status::VfConductStatus;

    #[test]
    fn virtio_vf_is_shown_without_registers_and_mailbox() {
        let text = show(&crate::sample::virtio_port().vfs[0]);
        assert!(text.contains("\n    device: kicks 7, calls 0, "), "{text}");
        for absent in ["rid", "requests:", "notices", "posted writes"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(show(&crate::sample::port().vfs[0]).contains("    VMM interventions: 0 reads"));
    }

    #[test]
    fn vf_line_shows_quarantine_and_throttling() {
        let mut conduct = VfConductStatus::default();
        assert_eq!(restraint(&conduct), "");
        conduct.throttled = true;
        assert_eq!(restraint(&conduct), ", throttled");
        conduct.quarantine = Some("mailbox".to_owned());
        assert_eq!(restraint(&conduct), ", quarantined (mailbox), throttled");
    }
}
