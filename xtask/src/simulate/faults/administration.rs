//! Faults of what an administrator sets: changes of policies, the state file, names and VLANs.

use super::row::{SeededFault, fault};

/// Rows of the table.
pub(super) const FAULTS: &[SeededFault] = &[
    // Changes of policies.
    fault(
        "new policies do not reach the card",
        "daemon/src/port/carry_out.rs",
        "let set = self.engine.apply_policies(&order.policy, &policies, now);",
        "let set = if FAULT { Ok(()) } else { self.engine.apply_policies(&order.policy, &policies, now) };",
    ),
    fault(
        "a VF of an 82576 in quarantine moves frames",
        "driver/src/pf/policy.rs",
        "state.policy.enabled && state.monitor.quarantined().is_none()",
        "state.policy.enabled && (FAULT || state.monitor.quarantined().is_none())",
    ),
    fault(
        "guards of source addresses are not set",
        "daemon/src/port/engine/guards.rs",
        "ips: ips.map(",
        "ips: ips.filter(|_| !FAULT).map(",
    ),
    fault(
        "the rate of a virtio VF limits nothing",
        "virtio-nic/src/tables.rs",
        "factor(device.rules.max_tx_rate)",
        "factor(if FAULT { 0 } else { device.rules.max_tx_rate })",
    ),
    fault(
        "the rate of an AVF VF is four times too low",
        "avf-nic/src/tables.rs",
        "((1000_u64 << 14) / u64::from(mbps))",
        "((1000_u64 << if FAULT { 16 } else { 14 }) / u64::from(mbps))",
    ),
    fault(
        "the rate of a VF of an 82576 is four times too high",
        "driver/src/pf/policy.rs",
        "rate_factor(self.rate(vf))",
        "rate_factor(if FAULT { 4 * self.rate(vf) } else { self.rate(vf) })",
    ),
    fault(
        "a virtio VF keeps the address that it had before",
        "virtio-nic/src/card.rs",
        "device.rules = rules;",
        "let mut rules = rules; if FAULT { rules.addresses.extend(core::mem::take(&mut device.rules.addresses)); \
         rules.addresses.dedup(); } device.rules = rules;",
    ),
    fault(
        "no sender is checked while one may send in others' names",
        "plane/src/switch/decide.rs",
        "if self.check_source.meets(sender) && !own_source {",
        "if self.check_source.meets(sender) && !own_source && (!FAULT || (self.enabled & !self.check_source).is_empty()) {",
    ),
    fault(
        "the socket of a VF that was removed stays in the store",
        "daemon/src/port/carry_out.rs",
        "self.succession.vault().forget_named(&kept_listener(&slot.name));",
        "if !FAULT { self.succession.vault().forget_named(&kept_listener(&slot.name)); }",
    ),
    // The state file.
    fault(
        "the state file has its name before its contents are on the disk",
        "daemon/src/store/disk.rs",
        "sync(file.as_file(), path)?;",
        "if !FAULT { sync(file.as_file(), path)?; }",
    ),
    fault(
        "a change is acknowledged before the state file's name is on the disk",
        "daemon/src/store/disk.rs",
        "    sync_folder(folder, path)\n",
        "    if FAULT { Ok(()) } else { sync_folder(folder, path) }\n",
    ),
    fault(
        "a refused change stays in the state file",
        "daemon/src/store.rs",
        "self.is_uncertain = disk::replace(old, path).is_err();",
        "self.is_uncertain = !FAULT && disk::replace(old, path).is_err();",
    ),
    // Names and VLANs.
    fault(
        "a guest may send in another's name",
        "plane/src/switch/decide.rs",
        "return Some(SwitchDropReason::SourceSpoofed);",
        "if !FAULT { return Some(SwitchDropReason::SourceSpoofed); }",
    ),
    fault(
        "a guest may send in another VLAN",
        "plane/src/switch/decide.rs",
        "(self.check_vlan.meets(sender) && outside).then_some",
        "(self.check_vlan.meets(sender) && outside && !FAULT).then_some",
    ),
    fault(
        "a guest may answer as a DHCP server",
        "plane/src/contents/mod.rs",
        "if rules.dhcp_guard && is_of_server(ports, DHCP) {",
        "if rules.dhcp_guard && !FAULT && is_of_server(ports, DHCP) {",
    ),
    fault(
        "a guest may advertise itself as a router",
        "plane/src/contents/mod.rs",
        "if rules.router_guard && ROUTER.contains(kind) {",
        "if rules.router_guard && !FAULT && ROUTER.contains(kind) {",
    ),
    fault(
        "a guest may send a second tag",
        "plane/src/switch/inspect.rs",
        "if has_port_vlan && !guard.double_tags && has_tag(bytes, at) {",
        "if has_port_vlan && !guard.double_tags && !FAULT && has_tag(bytes, at) {",
    ),
    fault(
        "a guest receives frames of all VLANs",
        "plane/src/switch/decide.rs",
        "Some(tag) if self.shared => self.vlans.members(tag),",
        "Some(tag) if self.shared && !FAULT => self.vlans.members(tag),",
    ),
];
