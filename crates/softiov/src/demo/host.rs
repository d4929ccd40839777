//! A host for one demo: one port, its sockets in a temporary folder that goes when it ends.

use anyhow::{Context, Result, bail};
use daemon::Host;
use daemon::config::{Config, VfConfig};
use daemon::control::client::ask;
use daemon::control::protocol::{Answer, Request};
use daemon::control::status::PortStatus;
use std::path::Path;
use tempfile::TempDir;

/// A running host. The host ends before its folder goes.
#[derive(Debug)]
pub(super) struct DemoHost {
    host: Host,
    vfs: Vec<VfConfig>,
    _folder: TempDir,
}

impl DemoHost {
    /// One port with so many VFs; with a tap of that name as its uplink, or none.
    pub(super) fn start(vfs: usize, tap: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("softiov-").tempdir().context("no temporary folder")?;
        let config = configuration(vfs, tap, folder.path())?;
        let vfs = config.ports.iter().flat_map(|port| port.vfs.clone()).collect();
        let host = Host::start(config)?;
        Ok(Self { host, vfs, _folder: folder })
    }

    /// The VFs, by index.
    pub(super) fn vfs(&self) -> &[VfConfig] {
        &self.vfs
    }

    /// What the port tells about itself, asked over the control socket like anybody would.
    pub(super) fn status(&self) -> Result<PortStatus> {
        match ask(self.host.control_socket(), Request::PortList)? {
            Answer::Ports(ports) => ports.into_iter().next().context("the host has no port"),
            _ => bail!("the host answered another question"),
        }
    }
}

fn configuration(vfs: usize, tap: Option<&str>, folder: &Path) -> Result<Config> {
    let uplink = tap.map_or("\"none\"".to_owned(), |tap| format!("{{ tap = \"{tap}\" }}"));
    let text = format!("[[port]]\nvfs = {vfs}\nuplink = {uplink}\n");
    let file = Config::parse(&text).map_err(anyhow::Error::msg)?;
    Ok(Config::check(file, folder)?)
}
