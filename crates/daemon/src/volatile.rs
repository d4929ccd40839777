//! Changes of settings that end with the host (`--volatile`), saved in memory for a successor process: an upgrade or a
//! crash is not the end of the host. `store` has the changes that are kept on disk.

use crate::config::{ConfigError, HostConfig};
use crate::settings::{SettingLayers, SettingValues};
use crate::vault::FileDescriptorStore;
use host::shared::SharedMemory;
use std::collections::BTreeMap;
use std::os::fd::AsFd;

/// Name under which the memory of volatile settings is kept for the successor process.
const VOLATILE: &str = "volatile";
/// Bytes of the length field before the saved volatile settings in their memory.
const LENGTH: u64 = 8;
/// Maximum bytes of volatile settings that are read. It bounds the allocation if the memory is damaged.
const MOST: u64 = 16 << 20;

/// Volatile settings by the name of the port or VF.
type VolatileSettings = BTreeMap<String, SettingValues>;

/// Saves the volatile settings for the host's successor process. A failure is logged: the settings are then lost if the
/// host dies.
pub(crate) fn note(config: &HostConfig, vault: &FileDescriptorStore) {
    let noted = serde_json::to_vec(&of(config)).map_err(|error| error.to_string()).and_then(|bytes| {
        let memory = SharedMemory::new((LENGTH + bytes.len() as u64).next_multiple_of(4096));
        let memory = memory.map_err(|error| error.to_string())?;
        let written = memory.memory().write(0, &(bytes.len() as u64).to_ne_bytes());
        written.and_then(|()| memory.memory().write(LENGTH, &bytes)).map_err(|error| error.to_string())?;
        vault.keep(VOLATILE, memory.as_fd()).map_err(|error| error.to_string())
    });
    if let Err(error) = noted {
        tracing::error!(error, "cannot save volatile changes; the changes are lost if this process dies");
    }
}

/// Removes the saved volatile settings, at the end of the host.
pub(crate) fn forget(vault: &FileDescriptorStore) {
    vault.forget(VOLATILE);
}

/// Returns the configuration with the volatile settings that the previous host process has saved. Those that conflict with
/// the configuration are dropped, and no others.
pub(crate) fn restore(config: HostConfig, vault: &FileDescriptorStore) -> HostConfig {
    let Some(volatile) = read(vault) else { return config };
    // Changes of several functions may need each other, such as two VFs that have exchanged their addresses.
    if let Ok(next) = with(&config, &volatile) {
        return next;
    }
    volatile.into_iter().fold(config, |config, (name, settings)| {
        match with(&config, &VolatileSettings::from([(name.clone(), settings)])) {
            Ok(next) => next,
            Err(error) => {
                let why = "saved volatile changes conflict with the configuration, and are dropped";
                tracing::error!(name, %error, "{why}");
                config
            }
        }
    })
}

/// Returns the configuration with these volatile settings too.
fn with(config: &HostConfig, volatile: &VolatileSettings) -> Result<HostConfig, ConfigError> {
    let mut next = config.clone();
    for (name, layers) in layers(&mut next) {
        if let Some(settings) = volatile.get(&name) {
            layers.volatile = settings.clone();
        }
    }
    next.resolve().map(|()| next)
}

fn read(vault: &FileDescriptorStore) -> Option<VolatileSettings> {
    let memory = SharedMemory::adopt(vault.copy(VOLATILE)?).ok()?;
    let mut length = [0; LENGTH as usize];
    memory.memory().read(0, &mut length).ok()?;
    let mut bytes = vec![0; u64::from_ne_bytes(length).min(MOST) as usize];
    memory.memory().read(LENGTH, &mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn of(config: &HostConfig) -> VolatileSettings {
    let mut copy = config.clone();
    let set = |(name, layers): (String, &mut SettingLayers)| (name, std::mem::take(&mut layers.volatile));
    layers(&mut copy).map(set).filter(|(_, leaves)| !leaves.is_empty()).collect()
}

/// Returns the setting layers of every port and VF, each with the name of the port or VF.
fn layers(config: &mut HostConfig) -> impl Iterator<Item = (String, &mut SettingLayers)> {
    config.ports.iter_mut().flat_map(|port| {
        let vfs = port.vfs.iter_mut().chain(&mut port.withheld);
        let vfs = vfs.map(|vf| (vf.name.clone(), &mut vf.layers));
        std::iter::once((port.name.clone(), &mut port.layers)).chain(vfs)
    })
}

#[cfg(test)]
mod tests {
    use super::{note, restore};
    use crate::config::HostConfig;
    use crate::settings::{SettingsGroup, VfSettings};
    use crate::vault::FileDescriptorStore;
    use std::path::Path;

    /// Returns the configuration of the file, and the same with the second VF in a volatile quarantine.
    fn with_quarantine() -> (HostConfig, HostConfig) {
        let file = HostConfig::parse("[[port]]\nvfs = 2\n").unwrap();
        let file = HostConfig::check(file, Path::new("/run")).unwrap();
        let mut changed = file.clone();
        let quarantined = VfSettings { quarantine: Some(true), ..VfSettings::default() };
        changed.ports[0].vfs[1].layers.change(quarantined.leaves(), true);
        (file, changed)
    }

    /// A host without a state folder has only volatile changes. The keeper holds them over a death of the process.
    #[test]
    fn quarantine_without_a_state_file_survives_the_process() {
        let ((file, mut changed), vault) = (with_quarantine(), FileDescriptorStore::default());
        changed.resolve().unwrap();
        note(&changed, &vault);
        let successor = restore(file, &vault);
        assert_eq!(successor.ports[0].vfs.iter().map(|vf| vf.quarantine).collect::<Vec<_>>(), [false, true]);
    }

    /// A later version of the host may have saved a setting that this one does not know.
    #[test]
    fn unknown_volatile_setting_of_a_port_costs_no_quarantine() {
        let ((file, mut changed), vault) = (with_quarantine(), FileDescriptorStore::default());
        changed.ports[0].layers.change([("of_tomorrow".to_owned(), true.into())].into(), true);
        note(&changed, &vault);
        let successor = restore(file, &vault);
        assert!(successor.ports[0].vfs[1].quarantine);
        assert!(!successor.ports[0].layers.origins().contains_key("of_tomorrow"));
    }
}
