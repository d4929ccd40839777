//! State file: changes of settings by command that survive a restart of the host. The file is replaced as a whole, so
//! that a crash leaves the old file or the new one. `settings` defines the values.

mod disk;
#[cfg(test)]
pub(crate) mod faulty_disk;
#[cfg(test)]
mod tests;

use crate::config::{ConfigError, HostConfig};
use crate::disk_wait::DiskWait;
use crate::settings::{PortSettings, SettingValues, SettingsGroup, VfSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Version of the state file's format.
const VERSION: u32 = 1;

/// Contents of the state file: changes of settings by command, and an applied configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSettings {
    version: u32,
    /// Configuration that was applied instead of the host's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applied: Option<AppliedConfig>,
    #[serde(default)]
    ports: BTreeMap<String, PortSettings>,
    #[serde(default)]
    vfs: BTreeMap<String, VfSettings>,
}

/// Version of a state file, whatever else it has.
#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

/// Configuration that `softiov apply` has applied, in the state file. It is dropped as soon as the host's own file has
/// another text than `instead_of`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppliedConfig {
    instead_of: String,
    text: String,
}

/// Reason why changes by command cannot be stored or restored.
#[derive(Debug, Error)]
pub enum SettingsStoreError {
    /// No folder is configured for the state file.
    #[error(
        "no directory to save the change in; set state_dir, or use --volatile for a change until the host \
         ends"
    )]
    NoPlace,
    /// The state file with changes by command cannot be written.
    #[error(
        "cannot save the change in {path}: {source}; nothing was changed. Free space, or set state_dir to a \
         writable directory, or use --volatile for a change until the host ends"
    )]
    Write {
        /// Path of the unwritable state file.
        path: PathBuf,
        /// Error from the kernel when writing the state file.
        source: io::Error,
    },
    /// The state file cannot be written, and neither can its old contents: it may hold a change that is not in force.
    #[error(
        "cannot save the change in {path}: {source}; the settings in force are as they were, but the file may hold a refused change, and a \
         host that starts would apply it. Make the directory writable, and repeat the change or another one: the host then replaces \
         the file"
    )]
    Uncertain {
        /// Path of the state file.
        path: PathBuf,
        /// Error from the kernel when writing the state file.
        source: io::Error,
    },
    /// The state file with changes by command cannot be read.
    #[error("cannot read the state file {path}: {source}")]
    Read {
        /// Path of the unreadable state file.
        path: PathBuf,
        /// Error from the kernel when reading the state file.
        source: io::Error,
    },
    /// Another version of the program has written the state file.
    #[error(
        "{path} has version {version}, and this program reads version {VERSION}: start the program that has written it; moving \
         the file away would drop all settings that commands have changed"
    )]
    OtherVersion {
        /// Path of the state file.
        path: PathBuf,
        /// Version of the state file's format.
        version: u32,
    },
    /// The state file is damaged.
    #[error(
        "{path} is not a state file of this version ({problem}); move the file away to start without saved \
         changes"
    )]
    Damaged {
        /// Path of the invalid state file.
        path: PathBuf,
        /// Description of the damage of the state file.
        problem: String,
    },
    /// A change in the state file conflicts with the configuration file.
    #[error(
        "{source}; the value is a change saved in {path}: change the configuration file, or move {path} away"
    )]
    Contradiction {
        /// Path of the state file with the change.
        path: PathBuf,
        /// Error of the stored change, which conflicts with the configuration file.
        source: ConfigError,
    },
}

impl HostConfig {
    /// Reads the state file, if there is one, and returns the configuration with the changes in the file.
    ///
    /// # Errors
    /// [`SettingsStoreError`].
    pub fn restore(self) -> Result<Self, SettingsStoreError> {
        let Some(path) = self.state_file() else { return Ok(self) };
        let Some(state) = read(&path)? else { return Ok(self) };
        let contradiction = |source| SettingsStoreError::Contradiction { path: path.clone(), source };
        let mut config = match state.applied {
            Some(applied) if applied.instead_of == self.text => {
                tracing::info!(
                    "the host uses the configuration that was applied last, until the configuration file \
                     changes"
                );
                let next = self.parse_like(&applied.text).map_err(contradiction)?;
                // The rights that this process gives up are those of its own file and its arguments.
                Self { text: self.text, applied: Some(applied.text), confine: self.confine, ..next }
            }
            Some(_) => {
                tracing::info!(
                    "the configuration file has changed; the host drops the configuration that was applied \
                     before"
                );
                self
            }
            None => self,
        };
        let mut ports: BTreeMap<_, _> =
            state.ports.iter().map(|(name, kept)| (name, kept.leaves())).collect();
        let mut vfs: BTreeMap<_, _> = state.vfs.iter().map(|(name, kept)| (name, kept.leaves())).collect();
        for port in &mut config.ports {
            port.layers.kept = ports.remove(&port.name).unwrap_or_default();
            for vf in port.vfs.iter_mut().chain(&mut port.withheld) {
                vf.layers.kept = vfs.remove(&vf.name).unwrap_or_default();
            }
        }
        for name in ports.keys().chain(vfs.keys()) {
            tracing::warn!(
                name,
                "saved changes are for a port or VF that does not exist; the next saved change drops them"
            );
        }
        config.resolve().map_err(contradiction)?;
        Ok(config)
    }

    /// Parses another configuration file's text as the configuration of the same host.
    fn parse_like(&self, text: &str) -> Result<Self, ConfigError> {
        let mut file = Self::read(Some(Path::new("the file applied last")), text)?;
        file.runtime_dir = Some(self.runtime_dir.clone());
        file.state_dir.clone_from(&self.state_dir);
        Self::check(file, &self.runtime_dir)
    }

    /// Returns the path of this host's state file, which is named after its runtime directory.
    fn state_file(&self) -> Option<PathBuf> {
        let name = self.runtime_dir.display().to_string();
        let name = name.trim_matches('/').replace('-', "\\x2d").replace('/', "-");
        Some(self.state_dir.as_ref()?.join(format!("{name}.json")))
    }

    fn state(&self) -> StoredSettings {
        let applied = self.applied.clone();
        let applied = applied.map(|text| AppliedConfig { instead_of: self.text.clone(), text });
        let vfs = self.ports.iter().flat_map(|port| port.vfs.iter().chain(&port.withheld));
        StoredSettings {
            version: VERSION,
            applied,
            ports: self.ports.iter().filter_map(|port| kept(&port.name, &port.layers.kept)).collect(),
            vfs: vfs.filter_map(|vf| kept(&vf.name, &vf.layers.kept)).collect(),
        }
    }
}

/// Returns kept settings with the name of their VF or port, or `None` if there are none.
fn kept<S: SettingsGroup>(name: &str, leaves: &SettingValues) -> Option<(String, S)> {
    let settings = S::from_leaves(leaves).ok().filter(|_| !leaves.is_empty())?;
    Some((name.to_owned(), settings))
}

/// Reads a state file. Returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<StoredSettings>, SettingsStoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SettingsStoreError::Read { path: path.to_owned(), source }),
    };
    let damaged = |problem: String| SettingsStoreError::Damaged { path: path.to_owned(), problem };
    // Before the rest: a later version may have keys that this program does not know.
    let StoredVersion { version } =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if version != VERSION {
        return Err(SettingsStoreError::OtherVersion { path: path.to_owned(), version });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(error.to_string()))
}

/// State file of a running host.
#[derive(Debug, Default)]
pub(crate) struct StateFile {
    /// True if the file may hold a change that the host has refused: the disk has kept the old contents from returning.
    is_uncertain: bool,
    disk: DiskWait,
}

impl StateFile {
    /// Creates the state file of a host whose waits for the disk are marked in `disk`.
    pub(crate) fn new(disk: DiskWait) -> Self {
        Self { is_uncertain: false, disk }
    }

    /// Writes the changes by command of the configuration `next`, if they differ from those of `before`, or if the file may hold
    /// others.
    ///
    /// # Errors
    /// [`SettingsStoreError::NoPlace`], [`SettingsStoreError::Write`]: the file is unchanged. [`SettingsStoreError::Uncertain`].
    pub(crate) fn keep(&mut self, next: &HostConfig, before: &HostConfig) -> Result<(), SettingsStoreError> {
        let (state, old) = (next.state(), before.state());
        let is_changed = state != old;
        if !is_changed && !self.is_uncertain {
            return Ok(());
        }
        let path = next.state_file().ok_or(SettingsStoreError::NoPlace)?;
        let disk = self.disk.clone();
        match disk.during(|| self.write(&path, &state, &old)) {
            Ok(()) => Ok(()),
            // The change itself needs no file.
            Err(error) if !is_changed => {
                let path = path.display();
                tracing::warn!(%path, %error, "the state file may still hold a change that the host has refused");
                Ok(())
            }
            Err(source) if self.is_uncertain => Err(SettingsStoreError::Uncertain { path, source }),
            Err(source) => Err(SettingsStoreError::Write { path, source }),
        }
    }

    /// Writes the configuration in force again, after the host could not put the change to `refused` to work.
    ///
    /// # Errors
    /// Those of [`Self::keep`]; the file may hold the refused change then, until a later change is kept.
    pub(crate) fn take_back(
        &mut self,
        in_force: &HostConfig,
        refused: &HostConfig,
    ) -> Result<(), SettingsStoreError> {
        self.keep(in_force, refused).inspect_err(|_| self.is_uncertain = true)
    }

    /// Returns true if the file may hold a change that the host has refused.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// Replaces the file. The new file is on the disk before it gets the name, and the name is on the disk before this returns. If
    /// that fails, the file has its old contents again, or is uncertain.
    fn write(&mut self, path: &Path, state: &StoredSettings, before: &StoredSettings) -> io::Result<()> {
        // A disk that is full or fails later cannot keep the old contents away: they are on the disk already.
        let old = disk::prepare(path, &self.contents(path, before)?)?;
        let new = disk::prepare(path, &text(state)?)?;
        let replaced = disk::replace(new, path);
        if replaced.is_ok() {
            self.is_uncertain = false;
        } else if !matches!(read(path), Ok(found) if found.as_ref() != Some(state)) {
            // The new file is in place, but may not survive a power failure. A disk that became read-only refuses the old one too.
            self.is_uncertain = disk::replace(old, path).is_err();
        }
        replaced
    }

    /// Returns the contents of the file, or those of the state `before` if the file holds others or is missing. The file may have
    /// changes of ports that the configuration does not have.
    fn contents(&self, path: &Path, before: &StoredSettings) -> io::Result<Vec<u8>> {
        if self.is_uncertain {
            return text(before);
        }
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => text(before),
            found => found,
        }
    }
}

fn text(state: &StoredSettings) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(state)?;
    text.push(b'\n');
    Ok(text)
}
