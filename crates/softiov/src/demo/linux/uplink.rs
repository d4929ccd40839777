//! The host beyond the uplink: a network namespace that the card's tap is moved into, with an address and an
//! iperf3 server. A tap's descriptor keeps working when its interface moves.
//!
//! Left out: making the tap, which is the card's host's work.

use crate::demo::say;
use anyhow::{Context, Result, ensure};
use linux_guest::HostTools;
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// The address in the namespace.
pub(super) const ADDRESS: &str = "10.82.0.254";

/// The namespace. Dropping it removes it, and what is in it.
#[derive(Debug)]
pub(super) struct Uplink {
    /// Of the namespace, and of the tap.
    name: String,
    server: Option<Child>,
}

impl Uplink {
    /// Makes the namespace.
    ///
    /// # Errors
    /// What is missing for it: mostly privilege.
    pub(super) fn open() -> Result<Self> {
        File::options().read(true).write(true).open("/dev/net/tun").context("/dev/net/tun")?;
        // No other process's, and short enough for an interface.
        let name = format!("siodemo{}", std::process::id());
        ip(&["netns", "add", &name])?;
        let uplink = Self { name, server: None };
        // A namespace alone does not mean that taps can be made.
        ip(&["tuntap", "add", uplink.tap(), "mode", "tap"])?;
        ip(&["tuntap", "del", uplink.tap(), "mode", "tap"])?;
        Ok(uplink)
    }

    /// The name for the tap.
    pub(super) fn tap(&self) -> &str {
        &self.name
    }

    /// Moves the tap, which is there now, into the namespace, and serves iperf3 there.
    pub(super) fn adopt_tap(&mut self) -> Result<()> {
        let name = &self.name;
        ip(&["link", "set", name, "netns", name])?;
        ip(&["-n", name, "addr", "add", &format!("{ADDRESS}/24"), "dev", name])?;
        ip(&["-n", name, "link", "set", name, "up"])?;
        let iperf3 = HostTools::prepare()?.iperf3();
        let mut server = Command::new("ip");
        server.args(["netns", "exec", name]).arg(iperf3.get_program()).args(iperf3.get_args()).arg("-s");
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(server.spawn().context("iperf3 in the namespace")?);
        Ok(())
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only for a server that has ended.
            let _ = server.kill();
            let _ = server.wait();
        }
        if let Err(error) = ip(&["netns", "del", &self.name]) {
            say(format_args!("the namespace {} is left behind: {error:#}", self.name));
        }
    }
}

/// Runs `ip`, which has to succeed.
fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output().context("ip (of iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", words.join(" "), said.trim());
    Ok(())
}
