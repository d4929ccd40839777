//! Selects the host that a command addresses: named by its configuration, or the one with defaults.

use daemon::config::HostConfig;
use daemon::config::file::ConfigFile;
use std::path::PathBuf;

/// Options that select a host.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HostSelectionOptions {
    /// Configuration file of the host (default: none, for the host that runs with defaults).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the host's sockets (default: as configured).
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Directory where the host stores what commands change (default: as configured).
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl HostSelectionOptions {
    /// Loads the host's configuration from its file.
    pub(crate) fn load(&self) -> anyhow::Result<HostConfig> {
        self.load_with(|_| ())
    }

    /// Loads the host's configuration, after `change` to the contents of its file.
    pub(crate) fn load_with(&self, change: impl FnOnce(&mut ConfigFile)) -> anyhow::Result<HostConfig> {
        let text = HostConfig::text(self.config.as_deref())?;
        let mut file = HostConfig::read(self.config.as_deref(), &text)?;
        change(&mut file);
        if self.runtime_dir.is_some() {
            file.runtime_dir.clone_from(&self.runtime_dir);
        }
        let default = match &file.runtime_dir {
            Some(dir) => dir.clone(),
            None => host::runtime_dir::runtime_dir()?,
        };
        file.state_dir = self.state_dir.clone().or(file.state_dir).or_else(host::state_dir::state_dir);
        Ok(HostConfig { text, ..HostConfig::check(file, &default)? })
    }
}
