//! Runs the guests' programs busybox and iperf3 on the host, as the network peer of a guest: the host needs
//! no iperf3 or ping of its own.

use std::process::Command;

use super::error::Result;
use super::tools::{self, GuestTools};
use super::{AssetBuilder, libraries};

/// Debian's busybox and iperf3, from the cache, for the host.
#[derive(Debug)]
pub struct HostTools {
    tools: GuestTools,
}

impl HostTools {
    /// Finds busybox and iperf3 in the cache, or downloads them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
    pub fn prepare() -> Result<Self> {
        let mut builder = AssetBuilder::open()?;
        let tools = tools::prepare(&mut builder)?;
        builder.close()?;
        Ok(Self { tools })
    }

    /// Returns a command that runs busybox: the command's first argument is the applet.
    pub fn busybox(&self) -> Command {
        Command::new(self.tools.busybox())
    }

    /// Returns a command that runs iperf3, with its own libraries.
    pub fn iperf3(&self) -> Command {
        libraries::command(self.tools.root(), "usr/bin/iperf3")
    }
}
