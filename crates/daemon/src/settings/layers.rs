//! Values of settings by source, from highest to lowest: volatile commands (until the host ends), kept commands, the
//! configuration file, the default.

use super::setting::{SettingValues, SettingsGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Source of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SettingOrigin {
    /// Default value: neither the configuration file nor a command has set the setting.
    Default,
    /// Value of the configuration file.
    File,
    /// Value that a command has set, and that outlives the host.
    Kept,
    /// Value that a command has set with `--volatile`, and that ends with the host.
    Volatile,
}

/// Settings of one VF or port, separated by their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingLayers {
    /// Values that the configuration file sets.
    pub file: SettingValues,
    /// Values that commands have set to outlive the host.
    pub kept: SettingValues,
    /// Values that commands have set until the host ends.
    pub volatile: SettingValues,
}

impl SettingLayers {
    /// Creates the layers of a VF or port from its settings in the configuration file.
    #[must_use]
    pub fn of_file(settings: &impl SettingsGroup) -> Self {
        Self { file: settings.leaves(), ..Self::default() }
    }

    /// Returns the settings in force: each has the value of its highest source. A setting without a value stays unset.
    ///
    /// # Errors
    /// A name is unknown, or a value has the wrong type.
    pub fn effective<S: SettingsGroup>(&self) -> Result<S, serde_json::Error> {
        let mut all = self.file.clone();
        all.extend(self.kept.clone());
        all.extend(self.volatile.clone());
        S::from_leaves(&all)
    }

    /// Sets values by command, kept or volatile. A kept value replaces a volatile one, which would hide it.
    pub fn change(&mut self, values: SettingValues, volatile: bool) {
        if volatile {
            self.volatile.extend(values);
        } else {
            self.volatile.retain(|key, _| !values.contains_key(key));
            self.kept.extend(values);
        }
    }

    /// Removes the values that commands have given these settings. Values of the configuration file or defaults apply
    /// again.
    pub fn forget<'a>(&mut self, keys: impl IntoIterator<Item = &'a String>) {
        for key in keys {
            self.kept.remove(key);
            self.volatile.remove(key);
        }
    }

    /// Returns the source of each value that is set.
    #[must_use]
    pub fn origins(&self) -> BTreeMap<String, SettingOrigin> {
        let layers = [
            (&self.file, SettingOrigin::File),
            (&self.kept, SettingOrigin::Kept),
            (&self.volatile, SettingOrigin::Volatile),
        ];
        let named = |(leaves, origin): (&SettingValues, SettingOrigin)| {
            leaves.keys().map(|key| (key.clone(), origin)).collect::<Vec<_>>()
        };
        layers.into_iter().flat_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{SettingLayers, SettingOrigin};
    use crate::settings::{SettingsGroup, VfSettings};

    fn vlan(vlan: u16) -> VfSettings {
        VfSettings { vlan: Some(vlan), ..VfSettings::default() }
    }

    #[test]
    fn volatile_settings_override_stored_ones_and_the_file() {
        let mut layers = SettingLayers::of_file(&VfSettings { qos: Some(3), ..vlan(1) });
        let value = |layers: &SettingLayers| {
            let settings: VfSettings = layers.effective().unwrap();
            (settings.vlan, settings.qos, layers.origins()["vlan"])
        };
        assert_eq!(value(&layers), (Some(1), Some(3), SettingOrigin::File));
        layers.change(vlan(2).leaves(), false);
        assert_eq!(value(&layers), (Some(2), Some(3), SettingOrigin::Kept));
        layers.change(vlan(3).leaves(), true);
        assert_eq!(value(&layers), (Some(3), Some(3), SettingOrigin::Volatile));
        layers.change(vlan(4).leaves(), false);
        assert_eq!(
            value(&layers),
            (Some(4), Some(3), SettingOrigin::Kept),
            "a kept change replaces a volatile one"
        );
        layers.forget(&["vlan".to_owned()]);
        assert_eq!(value(&layers), (Some(1), Some(3), SettingOrigin::File));
        assert!(!layers.origins().contains_key("trust"));
    }
}
