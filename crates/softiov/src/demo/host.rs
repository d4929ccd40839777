//! A host for one demo: one port, its sockets in a temporary folder that goes when it ends.

use super::Card;
use super::report::to_tenths;
use anyhow::{Context, Result};
use daemon::Host;
use daemon::config::{Config, VfConfig};
use daemon::control::client;
use daemon::control::status::{Interventions, PortStatus, VfStatus};
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
    /// One port with so many VFs, and with a tap of that name as its uplink, or none.
    pub(super) fn start(vfs: usize, card: Card<'_>, tap: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("softiov-").tempdir().context("no temporary folder")?;
        let config = configuration(vfs, card, tap, folder.path())?;
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
        let ports = client::ports(self.host.control_socket())?;
        ports.into_iter().next().context("the host has no port")
    }
}

impl DemoHost {
    /// What traffic costs, and what it answers itself.
    pub(super) fn measure<T>(&self, traffic: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
        let before = self.cost()?;
        let answer = traffic()?;
        let after = self.cost()?;
        let (accesses, packets) = (after.accesses - before.accesses, after.packets - before.packets);
        Ok((answer, Cost { accesses, packets }))
    }

    fn cost(&self) -> Result<Cost> {
        let vfs = self.status()?.vfs;
        let accesses = |vf: &VfStatus| {
            let Interventions { reads, posted_writes, synchronous_writes, .. } = vf.interventions;
            reads + posted_writes + synchronous_writes
        };
        let packets = vfs.iter().map(|vf| vf.rx.packets + vf.tx.packets).sum();
        Ok(Cost { accesses: vfs.iter().map(accesses).sum(), packets })
    }
}

/// Accesses to registers that reached the host, and packets, of all VFs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    accesses: u64,
    packets: u64,
}

impl Cost {
    /// Accesses for so many things done.
    pub(super) fn each(self, count: f64) -> f64 {
        to_tenths(self.accesses as f64 / count.max(1.0))
    }

    /// Accesses for 1,000 packets.
    pub(super) fn per_1000_packets(self) -> f64 {
        self.each(self.packets as f64 / 1000.0)
    }
}

fn configuration(vfs: usize, card: Card<'_>, tap: Option<&str>, folder: &Path) -> Result<Config> {
    let Card { family, mapped } = card;
    let uplink = tap.map_or("\"none\"".to_owned(), |tap| format!("{{ tap = \"{tap}\" }}"));
    let wait = if mapped { "mapped" } else { "sleep" };
    let text =
        format!("[[port]]\nfamily = \"{family}\"\nvfs = {vfs}\nuplink = {uplink}\nwait = \"{wait}\"\n");
    let file = Config::parse(&text).map_err(anyhow::Error::msg)?;
    Ok(Config::check(file, folder)?)
}
