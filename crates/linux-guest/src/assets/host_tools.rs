//! The guests' programs run on the host, for the other end of what a guest is asked to reach: a host need not
//! have iperf3 or ping of its own. Left out: programs that guests do not have.

use std::process::Command;

use super::error::Result;
use super::tools::{self, Tools};
use super::{Kitchen, libraries};

/// Debian's busybox and iperf3, from the cache, for the host.
#[derive(Debug)]
pub struct HostTools {
    tools: Tools,
}

impl HostTools {
    /// Finds the programs in the cache, or downloads them.
    ///
    /// # Errors
    ///
    /// Those of [`Assets::prepare`](super::Assets::prepare).
    pub fn prepare() -> Result<Self> {
        let mut kitchen = Kitchen::open()?;
        let tools = tools::prepare(&mut kitchen)?;
        kitchen.close()?;
        Ok(Self { tools })
    }

    /// busybox: its first argument is the applet.
    pub fn busybox(&self) -> Command {
        Command::new(self.tools.busybox())
    }

    /// iperf3, with its own libraries.
    pub fn iperf3(&self) -> Command {
        libraries::command(self.tools.root(), "usr/bin/iperf3")
    }
}
