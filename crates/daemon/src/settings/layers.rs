//! Where a setting's value comes from, and which place wins: what was set until the host ends (volatile), then what
//! was set and kept, then the configuration file, then the default. Left out: what a value means.

use super::setting::{Leaves, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Nobody has set it.
    Default,
    /// The configuration file.
    File,
    /// A command; it outlives the host.
    Kept,
    /// A command with `--volatile`; it ends with the host.
    Volatile,
}

/// What each place says of one VF or port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The configuration file.
    pub file: Leaves,
    /// Commands, kept.
    pub kept: Leaves,
    /// Commands, until the host ends.
    pub volatile: Leaves,
}

impl Layers {
    /// What the file alone says.
    #[must_use]
    pub fn of_file(settings: &impl Settings) -> Self {
        Self { file: settings.leaves(), ..Self::default() }
    }

    /// The values that hold. What nobody has set stays unset.
    ///
    /// # Errors
    /// A name that is no setting's, or a value of the wrong type.
    pub fn effective<S: Settings>(&self) -> Result<S, serde_json::Error> {
        let mut all = self.file.clone();
        all.extend(self.kept.clone());
        all.extend(self.volatile.clone());
        S::from_leaves(&all)
    }

    /// Sets values by command. A value that is kept replaces a volatile one.
    pub fn change(&mut self, values: Leaves, volatile: bool) {
        if volatile {
            self.volatile.extend(values);
        } else {
            self.volatile.retain(|key, _| !values.contains_key(key));
            self.kept.extend(values);
        }
    }

    /// Takes back what commands have set; the file's values hold again, or the defaults.
    pub fn forget<'a>(&mut self, keys: impl IntoIterator<Item = &'a String>) {
        for key in keys {
            self.kept.remove(key);
            self.volatile.remove(key);
        }
    }

    /// The values that are not the default's, with where each comes from.
    #[must_use]
    pub fn origins(&self) -> BTreeMap<String, Origin> {
        let layers =
            [(&self.file, Origin::File), (&self.kept, Origin::Kept), (&self.volatile, Origin::Volatile)];
        let named = |(leaves, origin): (&Leaves, Origin)| {
            leaves.keys().map(|key| (key.clone(), origin)).collect::<Vec<_>>()
        };
        layers.into_iter().flat_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Layers, Origin};
    use crate::settings::{Settings, VfSettings};

    fn vlan(vlan: u16) -> VfSettings {
        VfSettings { vlan: Some(vlan), ..VfSettings::default() }
    }

    #[test]
    fn what_is_volatile_wins_then_what_is_kept_then_the_file() {
        let mut layers = Layers::of_file(&VfSettings { qos: Some(3), ..vlan(1) });
        let value = |layers: &Layers| {
            let settings: VfSettings = layers.effective().unwrap();
            (settings.vlan, settings.qos, layers.origins()["vlan"])
        };
        assert_eq!(value(&layers), (Some(1), Some(3), Origin::File));
        layers.change(vlan(2).leaves(), false);
        assert_eq!(value(&layers), (Some(2), Some(3), Origin::Kept));
        layers.change(vlan(3).leaves(), true);
        assert_eq!(value(&layers), (Some(3), Some(3), Origin::Volatile));
        layers.change(vlan(4).leaves(), false);
        assert_eq!(value(&layers), (Some(4), Some(3), Origin::Kept), "a kept change replaces a volatile one");
        layers.forget(&["vlan".to_owned()]);
        assert_eq!(value(&layers), (Some(1), Some(3), Origin::File));
        assert!(!layers.origins().contains_key("trust"));
    }
}
