//! Runs the host of a demo: one port per card, with its sockets in a temporary directory that is removed at the end.

use super::card::DemoCard;
use super::report::to_tenths;
use anyhow::{Context, Result};
use daemon::RunningHost;
use daemon::config::{HostConfig, PortConfig, VfConfig};
use daemon::control::client;
use daemon::control::status::{PortStatus, VfStatus, VmmInterventions};
use std::path::Path;
use tempfile::TempDir;

/// Running host of a demo. The host is dropped before its directory.
#[derive(Debug)]
pub(super) struct DemoHost {
    host: RunningHost,
    ports: Vec<PortConfig>,
    _folder: TempDir,
}

impl DemoHost {
    /// Starts a host with one port per card and `vfs` VFs per port. The first port's uplink is the tap `tap`, if
    /// given.
    pub(super) fn start(vfs: usize, cards: &[DemoCard<'_>], tap: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("softiov-")
            .tempdir()
            .context("cannot create a temporary directory")?;
        let config = configuration(vfs, cards, tap, folder.path())?;
        let ports = config.ports.clone();
        let host = RunningHost::start(config)?;
        Ok(Self { host, ports, _folder: folder })
    }

    /// Returns the VFs of one of the demo's ports, by index.
    pub(super) fn vfs(&self, port: usize) -> &[VfConfig] {
        &self.ports[port].vfs
    }

    /// Returns a port's status, asked over the control socket.
    pub(super) fn status(&self, port: usize) -> Result<PortStatus> {
        let ports = client::ports(self.host.control_socket())?;
        ports.into_iter().nth(port).with_context(|| format!("the host has no port {port}"))
    }

    /// Calls `traffic`, and returns its result and the cost of the packets that it moved on a port's VFs.
    pub(super) fn measure<T>(
        &self,
        port: usize,
        traffic: impl FnOnce() -> Result<T>,
    ) -> Result<(T, TrafficCost)> {
        let before = self.cost(port)?;
        let result = traffic()?;
        Ok((result, self.cost(port)?.since(before)))
    }

    fn cost(&self, port: usize) -> Result<TrafficCost> {
        Ok(self.status(port)?.vfs.iter().map(TrafficCost::of).fold(TrafficCost::default(), TrafficCost::and))
    }
}

/// Cost of traffic on a port's VFs: packets, interrupts, and register accesses that the host carried out.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TrafficCost {
    accesses: u64,
    interrupts: u64,
    packets: u64,
}

impl TrafficCost {
    fn of(vf: &VfStatus) -> Self {
        let VmmInterventions { reads, posted_writes, synchronous_writes, interrupts } = vf.interventions;
        let packets = vf.rx.packets + vf.tx.packets;
        Self { accesses: reads + posted_writes + synchronous_writes, interrupts, packets }
    }

    /// Adds the costs of another portion of the demo's traffic to these costs.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            accesses: self.accesses + other.accesses,
            interrupts: self.interrupts + other.interrupts,
            packets: self.packets + other.packets,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            accesses: self.accesses - before.accesses,
            interrupts: self.interrupts - before.interrupts,
            packets: self.packets - before.packets,
        }
    }

    /// Returns the number of register accesses that the traffic caused, divided by `count`.
    pub(super) fn accesses_per(self, count: f64) -> f64 {
        rate(self.accesses, count)
    }

    /// Returns the number of register accesses that the traffic caused per 1,000 packets.
    pub(super) fn per_1000_packets(self) -> f64 {
        rate(self.accesses, self.thousands())
    }

    /// Returns the number of interrupts that the traffic caused per 1,000 packets.
    pub(super) fn interrupts_per_1000_packets(self) -> f64 {
        rate(self.interrupts, self.thousands())
    }

    fn thousands(self) -> f64 {
        self.packets as f64 / 1000.0
    }
}

fn rate(events: u64, count: f64) -> f64 {
    to_tenths(events as f64 / count.max(1.0))
}

fn configuration(vfs: usize, cards: &[DemoCard<'_>], tap: Option<&str>, folder: &Path) -> Result<HostConfig> {
    let port = |(index, card): (usize, &DemoCard<'_>)| {
        let DemoCard { family, mapped } = card;
        let tap = tap.filter(|_| index == 0);
        let uplink = tap.map_or("\"none\"".to_owned(), |tap| format!("{{ tap = \"{tap}\" }}"));
        // The rings of a virtio VF are memory, and it has no doorbell page.
        let wait = if *mapped && *family != "virtio" { "mapped" } else { "sleep" };
        format!("[[port]]\nfamily = \"{family}\"\nvfs = {vfs}\nuplink = {uplink}\nwait = \"{wait}\"\n")
    };
    let text: String = cards.iter().enumerate().map(port).collect();
    let file = HostConfig::parse(&text).map_err(anyhow::Error::msg)?;
    Ok(HostConfig::check(file, folder)?)
}
