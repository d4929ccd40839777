//! Network beyond the uplinks: a network namespace with a bridge, an address and an iperf3 server, into which the taps
//! of two ports are plugged. It needs privileges; without them the scenario runs without uplinks and reports that. The
//! host itself creates the taps.

use crate::stream::EVERY_MS;
use anyhow::{Context, Result, ensure};
use linux_guest::HostTools;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Last byte of the IPv4 address of the namespace beyond the uplinks.
const NUMBER: u8 = 254;

/// MTU of the bridge beyond the uplinks, except for jumbo frames.
pub(crate) const MTU: u16 = 1500;
/// MTU of the taps beyond the uplinks, and maximum MTU of the bridge.
pub(crate) const JUMBO: u16 = 9000;
/// Name of the bridge beyond the uplinks.
const BRIDGE: &str = "wire";

/// Network namespace beyond the uplinks. Dropping this value removes the namespace.
#[derive(Debug)]
pub(crate) struct WireNamespace {
    name: String,
    tools: HostTools,
    iperf3: Option<NamespaceServer>,
}

/// Server process in the namespace beyond the uplinks. Dropping this value ends the server.
#[derive(Debug)]
pub(crate) struct NamespaceServer(Child);

impl WireNamespace {
    /// Creates the namespace beyond the uplinks with its bridge.
    ///
    /// # Errors
    /// A privilege or a program is missing.
    pub(crate) fn open() -> Result<Self> {
        let tools = HostTools::prepare().context("cannot prepare busybox and iperf3")?;
        File::options().read(true).write(true).open("/dev/net/tun").context("cannot open /dev/net/tun")?;
        // Unique on this machine, and short enough for an interface name.
        let name = format!("siot{}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name])).context("cannot create a network namespace")?;
        let mut wire = Self { name, tools, iperf3: None };
        wire.ip(&format!("link add {BRIDGE} type bridge mcast_snooping 0"))
            .context("cannot create a bridge")?;
        wire.ip(&format!("addr add {}/24 dev {BRIDGE}", wire.address()))?;
        wire.ip(&format!("link set {BRIDGE} up"))?;
        wire.iperf3 = Some(
            wire.start(wire.tools.iperf3().arg("-s"))
                .context("cannot start iperf3 in the network namespace")?,
        );
        Ok(wire)
    }

    /// Serves a folder's files by HTTP at the namespace's address.
    pub(crate) fn serve(&self, folder: &Path) -> Result<NamespaceServer> {
        let mut httpd = self.tools.busybox();
        self.start(httpd.args(["httpd", "-f", "-h"]).arg(folder))
            .context("cannot start httpd in the namespace")
    }

    /// Returns the name of the tap that the host creates as a port's uplink.
    pub(crate) fn tap(&self, port: u8) -> String {
        format!("{}p{port}", self.name)
    }

    /// Plugs a port's tap, which the host holds open, into the bridge.
    pub(crate) fn plug(&self, port: u8) -> Result<()> {
        let tap = self.tap(port);
        run(Command::new("ip").args(["link", "set", &tap, "netns", &self.name]))?;
        self.attach(&tap)
    }

    /// Limits the TCP segments in a frame that the namespace sends over connections of the future, or ends the limit.
    pub(crate) fn limit_segments(&self, segments: Option<u16>) -> Result<()> {
        self.ip(&format!("link set {BRIDGE} gso_max_segs {}", segments.unwrap_or(u16::MAX)))
    }

    /// Plugs an interface of the namespace into the bridge.
    pub(crate) fn attach(&self, interface: &str) -> Result<()> {
        self.ip(&format!("link set {interface} mtu {JUMBO} master {BRIDGE} up"))?;
        // A bridge follows its ports' MTU until it has one of its own.
        self.set_mtu(MTU)
    }

    /// Deletes a port's tap.
    pub(crate) fn remove_tap(&self, port: u8) -> Result<()> {
        self.ip(&format!("link del {}", self.tap(port)))
    }

    /// Creates a port's tap again in the host's network namespace. Call [`plug`](Self::plug) once the host has attached
    /// the tap.
    pub(crate) fn return_tap(&self, port: u8) -> Result<()> {
        run(Command::new("ip").args(["tuntap", "add", &self.tap(port), "mode", "tap"])).map(drop)
    }

    /// Sets a port's tap up or down.
    pub(crate) fn set_tap(&self, port: u8, up: bool) -> Result<()> {
        self.ip(&format!("link set {} {}", self.tap(port), if up { "up" } else { "down" }))
    }

    /// Sets the MTU of the bridge beyond the uplinks, at most that of jumbo frames.
    pub(crate) fn set_mtu(&self, mtu: u16) -> Result<()> {
        self.ip(&format!("link set {BRIDGE} mtu {mtu}"))
    }

    /// Returns the IPv4 address of the namespace beyond the uplinks.
    pub(crate) fn address(&self) -> String {
        format!("10.82.0.{NUMBER}")
    }

    /// Returns the path of the namespace beyond the uplinks, in /run/netns or /proc.
    pub(crate) fn namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// Pings a guest from the namespace beyond the uplinks; every ping must be answered.
    pub(crate) fn ping(&self, address: &str, size: u32, count: u32) -> Result<()> {
        let mut ping = self.inside(&self.tools.busybox());
        let words = format!("ping -A -c {count} -s {size} {address}");
        let text = run(ping.args(words.split(' '))).context("ping from the namespace failed")?;
        let expected = format!("{count} packets transmitted, {count} packets received");
        ensure!(text.contains(&expected), "from the namespace: {words}: {text}");
        Ok(())
    }

    /// Starts to ping a guest from the namespace beyond the uplinks every [`EVERY_MS`] milliseconds. The replies go to `file`.
    pub(crate) fn ping_into(&self, file: &Path, address: &str) -> Result<NamespaceServer> {
        let mut ping = self.tools.busybox();
        let mut inside = self.inside(ping.args(["ping", "-i", &format!("0.{EVERY_MS:03}"), address]));
        let child = inside.stdin(Stdio::null()).stdout(File::create(file)?).stderr(Stdio::null()).spawn();
        Ok(NamespaceServer(child.context("cannot start ping in the network namespace")?))
    }

    /// Returns the interfaces, neighbours, learnt addresses and connections of the namespace as text, for error
    /// messages.
    pub(crate) fn state(&self) -> String {
        let ask = |words: &str| {
            let mut words = words.split(' ');
            let command = words.next().map(Command::new);
            let text = command.map(|mut command| run(self.inside(command.args(words)).stdin(Stdio::null())));
            text.unwrap_or_else(|| Ok(String::new())).unwrap_or_else(|error| format!("{error:#}\n"))
        };
        ["ip -s link", "ip neigh", "bridge fdb show", "ss -tinoe"].map(ask).concat()
    }

    /// Returns the Ethernet addresses that the bridge beyond the uplinks has learned, with their interfaces.
    pub(crate) fn learned(&self) -> Result<String> {
        run(&mut self.inside(Command::new("bridge").args(["fdb", "show", "br", BRIDGE])))
    }

    fn start(&self, server: &Command) -> Result<NamespaceServer> {
        let mut inside = self.inside(server);
        let quiet = inside.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(NamespaceServer(quiet.spawn()?))
    }

    /// Runs `ip` with the arguments `words` in the namespace beyond the uplinks.
    fn ip(&self, words: &str) -> Result<()> {
        run(Command::new("ip").args(["-n", &self.name]).args(words.split(' '))).map(drop)
    }

    /// Returns a command that runs `command` in the namespace beyond the uplinks.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        inside
    }
}

/// Another bridge in a network namespace of its own, with a cable to the bridge beyond the uplinks. Dropping this value removes
/// the namespace.
#[derive(Debug)]
pub(crate) struct FarSwitch {
    name: String,
}

impl FarSwitch {
    /// Name of the cable's interface at the bridge beyond the uplinks.
    pub(crate) const CABLE: &str = "cable";

    /// Creates the namespace with its bridge and the cable.
    pub(crate) fn join(wire: &WireNamespace) -> Result<Self> {
        let name = format!("{}f", wire.name);
        run(Command::new("ip").args(["netns", "add", &name])).context("cannot create a network namespace")?;
        let far = Self { name };
        far.ip(&format!("link add {BRIDGE} type bridge mcast_snooping 0"))?;
        far.ip(&format!("link set {BRIDGE} up"))?;
        far.ip(&format!("link add far type veth peer name {} netns {}", Self::CABLE, wire.name))?;
        far.ip(&format!("link set far master {BRIDGE} up"))?;
        wire.attach(Self::CABLE)?;
        Ok(far)
    }

    /// Plugs a tap, which a host holds open, into the bridge.
    pub(crate) fn plug(&self, tap: &str) -> Result<()> {
        run(Command::new("ip").args(["link", "set", tap, "netns", &self.name]))?;
        self.ip(&format!("link set {tap} master {BRIDGE} up"))
    }

    /// Returns the interfaces and learnt addresses of the namespace as text, for error messages.
    pub(crate) fn state(&self) -> String {
        let ask = |program: &str, words: &str| {
            run(Command::new(program).args(["-n", &self.name]).args(words.split(' '))).unwrap_or_default()
        };
        ask("ip", "-s link") + &ask("bridge", "fdb show")
    }

    /// Runs `ip` with the arguments `words` in the namespace.
    fn ip(&self, words: &str) -> Result<()> {
        run(Command::new("ip").args(["-n", &self.name]).args(words.split(' '))).map(drop)
    }
}

impl Drop for FarSwitch {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("ip").args(["netns", "del", &self.name])) {
            eprintln!("cannot delete network namespace {0} (run `ip netns del {0}`): {error:#}", self.name);
        }
    }
}

impl Drop for NamespaceServer {
    fn drop(&mut self) {
        // Both fail only for a server that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for WireNamespace {
    fn drop(&mut self) {
        self.iperf3 = None;
        if let Err(error) = run(Command::new("ip").args(["netns", "del", &self.name])) {
            eprintln!("cannot delete network namespace {0} (run `ip netns del {0}`): {error:#}", self.name);
        }
    }
}

/// Runs a program on this machine that must succeed, and returns its output.
fn run(command: &mut Command) -> Result<String> {
    let shown = |part: &OsStr| part.to_string_lossy().into_owned();
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(shown).collect();
    let output = command.output().with_context(|| words.join(" "))?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", words.join(" "), output.status, text.trim());
    Ok(text)
}
