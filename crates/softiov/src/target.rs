//! Which host a command means: the one whose configuration is named, or the one at the default place.

use daemon::config::Config;
use daemon::config::file::File;
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
    /// The folder where the host keeps what commands change, instead of what the configuration says.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl Place {
    /// The configuration of that host, as its file says.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        self.load_with(|_| ())
    }

    /// The configuration of that host, with changes to what its file says.
    pub(crate) fn load_with(&self, change: impl FnOnce(&mut File)) -> anyhow::Result<Config> {
        let text = Config::text(self.config.as_deref())?;
        let mut file = Config::read(self.config.as_deref(), &text)?;
        change(&mut file);
        if self.runtime_dir.is_some() {
            file.runtime_dir.clone_from(&self.runtime_dir);
        }
        let default = match &file.runtime_dir {
            Some(dir) => dir.clone(),
            None => host::runtime_dir::runtime_dir()?,
        };
        file.state_dir = self.state_dir.clone().or(file.state_dir).or_else(host::state_dir::state_dir);
        Ok(Config { text, ..Config::check(file, &default)? })
    }
}
