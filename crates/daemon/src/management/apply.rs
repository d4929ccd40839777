//! Application of a configuration file to the running host, by `softiov apply` or SIGHUP. `transition` makes the
//! changes.

use super::difference::difference;
use super::{ControlRequestResult, HostManager, refused};
use crate::config::HostConfig;
use crate::control::protocol::{ApplyRequest, ConfigDifference};
use crate::settings::SettingLayers;
use std::collections::BTreeMap;

impl HostManager {
    /// Applies a configuration file to the running host, or with `dry_run` only returns the difference.
    pub(super) fn apply(&mut self, file: &ApplyRequest) -> ControlRequestResult<ConfigDifference> {
        if file.reload && file.text == self.config.text {
            tracing::info!(file = ?file.name, "the configuration file has not changed; nothing to apply");
            return Ok(ConfigDifference { dry_run: file.dry_run, changes: Vec::new() });
        }
        let next = self.planned(file)?;
        let changes = difference(&self.config, &next);
        if !file.dry_run {
            self.transition_to(next, None)?;
            tracing::info!(file = ?file.name, changes = changes.len(), "applied the configuration file");
        }
        Ok(ConfigDifference { dry_run: file.dry_run, changes })
    }

    /// Returns the configuration of a file, with those changes by command that the file does not override.
    fn planned(&self, file: &ApplyRequest) -> ControlRequestResult<HostConfig> {
        let mut parsed = HostConfig::read(Some(&file.name), &file.text).map_err(refused)?;
        parsed.runtime_dir = file.runtime_dir.clone().or(parsed.runtime_dir);
        parsed.state_dir =
            file.state_dir.clone().or(parsed.state_dir).or_else(|| self.config.state_dir.clone());
        let own = HostConfig::read(None, &self.config.text).map_err(refused)?.confine;
        let confine = parsed.confine.clone();
        let mut next = HostConfig::check(parsed, &self.config.runtime_dir).map_err(refused)?;
        for (key, same) in [
            ("runtime_dir", next.runtime_dir == self.config.runtime_dir),
            ("state_dir", next.state_dir == self.config.state_dir),
            ("http", next.http == self.config.http),
            ("control", next.control_access == self.config.control_access),
            ("client_memory", next.client_memory() == self.config.client_memory()),
            // The values in force may be those of arguments of `softiov serve`.
            ("confine.user", confine.user == own.user),
            ("confine.seccomp", confine.seccomp == own.seccomp),
            ("confine.landlock", confine.landlock == own.landlock),
        ] {
            if !same {
                return Err(refused(format!("{key} cannot change while the host runs; restart the host")));
            }
        }
        (next.text, next.applied) = match file.reload {
            true => (file.text.clone(), None),
            false => {
                (self.config.text.clone(), Some(file.text.clone()).filter(|text| *text != self.config.text))
            }
        };
        let mut known: BTreeMap<&str, &SettingLayers> = BTreeMap::new();
        for port in &self.config.ports {
            known.insert(&port.name, &port.layers);
            known.extend(port.vfs.iter().chain(&port.withheld).map(|vf| (vf.name.as_str(), &vf.layers)));
        }
        for port in &mut next.ports {
            inherit(&mut port.layers, known.get(port.name.as_str()).copied());
            for vf in port.vfs.iter_mut().chain(&mut port.withheld) {
                inherit(&mut vf.layers, known.get(vf.name.as_str()).copied());
            }
        }
        next.resolve().map_err(refused)?;
        Ok(next)
    }
}

/// Copies the changes by command into a port's or VF's new settings, except for settings that the file has.
fn inherit(layers: &mut SettingLayers, known: Option<&SettingLayers>) {
    if let Some(known) = known {
        (layers.kept, layers.volatile) = (known.kept.clone(), known.volatile.clone());
        let set: Vec<String> = layers.file.keys().cloned().collect();
        layers.forget(&set);
    }
}
