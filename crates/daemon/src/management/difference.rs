//! Differences between two configurations, setting by setting (`transition` applies them).

use crate::config::file::PortLinkRule;
use crate::config::{HostConfig, PortConfig, VfConfig};
use crate::control::protocol::{ConfigChange, ConfigChangeKind, SettingChange};
use crate::settings::{SettingValues, SettingsGroup};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the changes from one configuration to another: added and changed ports and VFs in the new configuration's
/// order, then removed ones.
pub(super) fn difference(before: &HostConfig, after: &HostConfig) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    for port in &after.ports {
        let old = before.ports.iter().find(|old| old.name == port.name);
        compare(&mut changes, &port.name, old.map(port_leaves), &port_leaves(port));
        for vf in &port.vfs {
            let old = old.and_then(|old| old.vfs.iter().find(|old| old.name == vf.name));
            compare(&mut changes, &vf.name, old.map(vf_leaves), &vf_leaves(vf));
        }
    }
    let names = |config: &HostConfig| -> Vec<String> {
        let port = |port: &PortConfig| {
            let vfs: Vec<String> = port.vfs.iter().map(|vf| vf.name.clone()).collect();
            std::iter::once(port.name.clone()).chain(vfs)
        };
        config.ports.iter().flat_map(port).collect()
    };
    let stay = names(after);
    for name in names(before).into_iter().filter(|name| !stay.contains(name)) {
        changes.push(ConfigChange { name, what: ConfigChangeKind::Removed, settings: BTreeMap::new() });
    }
    changes
}

/// Compares the old and the new settings of a port or VF, and adds a difference to `changes`.
fn compare(changes: &mut Vec<ConfigChange>, name: &str, old: Option<SettingValues>, new: &SettingValues) {
    let what = if old.is_some() { ConfigChangeKind::Changed } else { ConfigChangeKind::Added };
    let settings = setting_changes(&old.unwrap_or_default(), new);
    if what == ConfigChangeKind::Added || !settings.is_empty() {
        changes.push(ConfigChange { name: name.to_owned(), what, settings });
    }
}

/// Returns the settings of a port or VF that differ, with old and new value. An unset value is null.
fn setting_changes(old: &SettingValues, new: &SettingValues) -> BTreeMap<String, SettingChange> {
    let value = |leaves: &SettingValues, key: &String| leaves.get(key).cloned().unwrap_or(Value::Null);
    let keys = old.keys().chain(new.keys());
    let steps = keys.map(|key| (key.clone(), SettingChange { old: value(old, key), new: value(new, key) }));
    steps.filter(|(_, step)| step.old != step.new).collect()
}

/// Returns the values of a port that `softiov apply` can change, by setting name.
fn port_leaves(port: &PortConfig) -> SettingValues {
    let settings = if port.pf_socket.is_some() { SettingValues::new() } else { port.settings().leaves() };
    let link = match port.link {
        PortLinkRule::Uplink => "uplink",
        PortLinkRule::Up => "up",
    };
    let cpus = if port.cpus.is_empty() { "any".to_owned() } else { port.cpus.to_string() };
    let impair = port.impair.map_or("nothing".to_owned(), |impair| impair.to_string());
    let record = port.record.as_ref().map_or("nowhere".to_owned(), |path| path.display().to_string());
    let own = [
        ("uplink", port.uplink.to_string()),
        ("impair", impair),
        ("record", record),
        ("link", link.to_owned()),
        ("cpus", cpus),
    ];
    let own = own.map(|(key, text)| (key.to_owned(), Value::String(text)));
    settings.into_iter().chain(own).collect()
}

fn vf_leaves(vf: &VfConfig) -> SettingValues {
    vf.settings().leaves()
}
