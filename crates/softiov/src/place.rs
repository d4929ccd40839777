//! Which host a command means: the one whose configuration is named, or the one at the default place.

use anyhow::Context;
use daemon::config::Config;
use std::path::PathBuf;

/// How commands say it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    /// The host's configuration file; without one, the host that runs with all defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder with the host's sockets, instead of what the configuration says.
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
}

impl Place {
    /// The configuration of that host.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let default = match &self.runtime_dir {
            Some(dir) => dir.clone(),
            None => host::runtime_dir::runtime_dir().context("no place for sockets")?,
        };
        let mut config = Config::load(self.config.as_deref(), &default)?;
        if let Some(dir) = &self.runtime_dir {
            config.runtime_dir.clone_from(dir);
        }
        Ok(config)
    }
}
