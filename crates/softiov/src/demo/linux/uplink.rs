//! Sets up the network beyond the demo's uplink: a network namespace with the card's tap, an address and an iperf3
//! server. The tap's file descriptor stays valid when its interface moves.

use crate::demo::print_progress;
use anyhow::{Context, Result, ensure};
use linux_guest::HostTools;
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// IPv4 address in the network namespace beyond the demo's uplink, where the iperf3 server listens.
pub(super) const ADDRESS: &str = "10.82.0.254";

/// Network namespace beyond the demo's uplink. Dropping this value removes the namespace and its interfaces.
#[derive(Debug)]
pub(super) struct UplinkNamespace {
    /// Name of the demo's network namespace and of its tap.
    name: String,
    server: Option<Child>,
}

impl UplinkNamespace {
    /// Creates the network namespace beyond the demo's uplink.
    ///
    /// # Errors
    /// The namespace or a tap cannot be created, mostly for lack of privilege.
    pub(super) fn open() -> Result<Self> {
        File::options().read(true).write(true).open("/dev/net/tun").context("cannot open /dev/net/tun")?;
        // Unique to this process, and short enough for an interface name.
        let name = format!("siodemo{}", std::process::id());
        ip(&["netns", "add", &name])?;
        let uplink = Self { name, server: None };
        // The right to create a namespace does not imply the right to create taps.
        ip(&["tuntap", "add", uplink.tap(), "mode", "tap"])?;
        ip(&["tuntap", "del", uplink.tap(), "mode", "tap"])?;
        Ok(uplink)
    }

    /// Returns the name of the demo's tap.
    pub(super) fn tap(&self) -> &str {
        &self.name
    }

    /// Moves the host's tap into the demo's namespace and starts an iperf3 server there.
    pub(super) fn adopt_tap(&mut self) -> Result<()> {
        let name = &self.name;
        ip(&["link", "set", name, "netns", name])?;
        ip(&["-n", name, "addr", "add", &format!("{ADDRESS}/24"), "dev", name])?;
        ip(&["-n", name, "link", "set", name, "up"])?;
        let iperf3 = HostTools::prepare()?.iperf3();
        let mut server = Command::new("ip");
        server.args(["netns", "exec", name]).arg(iperf3.get_program()).args(iperf3.get_args()).arg("-s");
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(server.spawn().context("cannot start iperf3 in the network namespace")?);
        Ok(())
    }
}

impl Drop for UplinkNamespace {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only for a server that has ended.
            let _ = server.kill();
            let _ = server.wait();
        }
        if let Err(error) = ip(&["netns", "del", &self.name]) {
            print_progress(format_args!(
                "cannot delete network namespace {0} (run `ip netns del {0}`): {error:#}",
                self.name
            ));
        }
    }
}

/// Runs `ip` with the arguments `words`. If `ip` fails, the error has its message.
fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output().context("cannot run ip; install iproute2")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`ip {}` failed: {}", words.join(" "), stderr.trim());
    Ok(())
}
