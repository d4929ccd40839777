//! A virtual machine of the demo: its interfaces, one per port, and the commands it runs.

use crate::demo::report;
use anyhow::{Context, Result, anyhow, bail};
use daemon::config::VfConfig;
use daemon::config::file::CardFamily;
use linux_guest::{BootFiles, GuestBuilder, LinuxGuest, QemuAccelerator};
use serde_json::Value;
use std::time::Duration;

/// Maximum time for a guest's boot: an emulated CPU on a busy machine boots in a minute or two.
const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of attempts to reach an iperf3 server, which serves one client at a time and needs a moment
/// between two.
const IPERF_ATTEMPTS: usize = 40;
const IPERF_PAUSE: Duration = Duration::from_millis(250);
const VLAN: u8 = 100;
/// Second byte of the guests' IPv4 addresses on the first port.
const FIRST_NETWORK: usize = 82;

/// Lines of `ethtool -k` for offloads that igbvf and iavf enable by default.
const OFFLOADS: [&str; 3] = ["rx-checksumming: on", "tx-checksumming: on", "tcp-segmentation-offload: on"];

/// Linux guest of the demo with a VF on each port.
#[derive(Debug)]
pub(super) struct DemoGuest {
    linux: LinuxGuest,
    /// Guest's VFs, by port.
    vfs: Vec<VfConfig>,
    /// Last byte of the guest's IPv4 addresses on all networks.
    number: u8,
}

impl DemoGuest {
    /// Starts a guest without waiting for its boot. `vfs` are its VFs, one per port; they have the same index
    /// on their ports.
    pub(super) fn boot(assets: &BootFiles, vfs: &[&VfConfig], accel: QemuAccelerator) -> Result<Self> {
        let first = vfs.first().context("cannot boot a guest of the demo without a VF")?;
        let builder = LinuxGuest::builder(&first.name).accel(accel);
        let linux = vfs.iter().fold(builder, |builder, vf| plug(builder, vf)).spawn(assets)?;
        let vfs = vfs.iter().map(|vf| (*vf).clone()).collect();
        Ok(Self { linux, vfs, number: first.index.get() + 1 })
    }

    /// Waits until the guest has booted, configures its interfaces (names, addresses, a VLAN) and starts an
    /// iperf3 server.
    pub(super) fn set_up(&self) -> Result<()> {
        self.linux.wait_ready(BOOT_TIMEOUT)?;
        for port in 0..self.vfs.len() {
            self.interface(port).set_up()?;
        }
        self.check("iperf3 -s -D").map(drop)
    }

    pub(super) fn pid(&self) -> u32 {
        self.linux.pid()
    }

    /// Returns the guest's kernel release.
    pub(super) fn kernel(&self) -> String {
        self.linux.kernel_release()
    }

    /// Returns the guest's interface on a port.
    pub(super) fn interface(&self, port: usize) -> GuestInterface<'_> {
        GuestInterface { guest: self, port }
    }

    fn check(&self, script: &str) -> Result<String> {
        Ok(self.linux.check(script, COMMAND_TIMEOUT)?)
    }
}

/// Plugs a VF into a guest, by the protocol of the VF's family.
fn plug(builder: GuestBuilder, vf: &VfConfig) -> GuestBuilder {
    match vf.family {
        CardFamily::Virtio => builder.vhost_socket(&vf.socket, 1, &[("mac", vf.mac.to_string().into())]),
        CardFamily::I82576 | CardFamily::Avf => builder.vf_socket(&vf.socket),
    }
}

/// Network interface of a demo guest on a port.
#[derive(Debug)]
pub(super) struct GuestInterface<'a> {
    guest: &'a DemoGuest,
    port: usize,
}

impl GuestInterface<'_> {
    /// Waits for the guest's interface, sets its name, addresses and VLAN, and waits for its link.
    fn set_up(&self) -> Result<()> {
        let (name, vlan) = (self.name(), self.vlan_interface());
        let (address, vlan_address) = (self.address(), self.vlan_address());
        let VfConfig { mac, family, .. } = self.vf_config();
        // The guest's system loads the drivers of PCI functions by itself, and none of virtio devices.
        let load = if *family == CardFamily::Virtio { "modprobe virtio_net" } else { ":" };
        let script = format!(
            "wait_until() {{
                 tries=0
                 until eval \"$1\"; do
                     tries=$((tries + 1)); [ $tries -lt 300 ] || {{ echo timeout: $1 >&2; exit 1; }}
                     usleep 100000
                 done
             }}
             {load}
             # iavf creates its interface once the PF has replied.
             interface() {{ grep -lix {mac} /sys/class/net/*/address | cut -d / -f 5; }}
             wait_until '[ -n \"$(interface)\" ]'
             ip link set $(interface) name {name} || exit
             ip link set {name} up && ip addr add {address}/24 dev {name} &&
             modprobe 8021q && ip link add link {name} name {vlan} type vlan id {VLAN} &&
             ip link set {vlan} up && ip addr add {vlan_address}/24 dev {vlan} || exit
             wait_until '[ \"$(cat /sys/class/net/{name}/carrier)\" = 1 ]'"
        );
        self.guest.check(&script).map(drop)
    }

    pub(super) fn port(&self) -> usize {
        self.port
    }

    /// Returns the name of the interface's VF.
    pub(super) fn vf(&self) -> &str {
        &self.vf_config().name
    }

    fn vf_config(&self) -> &VfConfig {
        &self.guest.vfs[self.port]
    }

    /// Returns the guest's IPv4 address on a port. Each port is a network of its own.
    pub(super) fn address(&self) -> String {
        format!("10.{}.0.{}", FIRST_NETWORK + self.port, self.guest.number)
    }

    pub(super) fn vlan_address(&self) -> String {
        format!("10.{}.{VLAN}.{}", FIRST_NETWORK + self.port, self.guest.number)
    }

    /// Returns the VLAN interface's name in the report.
    pub(super) fn vlan_name(&self) -> String {
        format!("{}.{VLAN}", self.vf())
    }

    /// Returns the interface's name in the guest's Linux.
    fn name(&self) -> String {
        format!("vf{}", self.port)
    }

    fn vlan_interface(&self) -> String {
        format!("{}.{VLAN}", self.name())
    }

    /// Reads the bound driver's name from the guest's sysfs.
    pub(super) fn driver(&self) -> Result<String> {
        let link = format!("/sys/class/net/{}/device/driver", self.name());
        Ok(self.guest.check(&format!("basename $(readlink {link})"))?.trim().to_owned())
    }

    /// Returns the guest's entry in the demo's report.
    pub(super) fn describe(&self) -> Result<report::ReportedGuest> {
        let address = self.guest.check(&format!("cat /sys/class/net/{}/address", self.name()))?;
        let (mac, driver) = (address.trim().to_owned(), self.driver()?);
        Ok(report::ReportedGuest { vf: self.vf().to_owned(), kind: "linux", mac, driver })
    }

    /// Returns a problem for each offload that the driver should have enabled ([`OFFLOADS`]) and has not.
    pub(super) fn missing_offloads(&self) -> Result<Vec<String>> {
        let features = self.guest.check(&format!("ethtool -k {}", self.name()))?;
        let missing = OFFLOADS.iter().filter(|offload| !features.contains(*offload));
        Ok(missing.map(|offload| format!("{}: ethtool -k does not show {offload:?}", self.vf())).collect())
    }

    /// Returns a problem for each of the interface's checksum error counters that is not 0.
    pub(super) fn checksum_errors(&self) -> Result<Vec<String>> {
        let statistics = self.guest.check(&format!("ethtool -S {}", self.name()))?;
        let wrong = |line: &&str| line.contains("csum") && line.contains("err") && !line.ends_with(": 0");
        let lines = statistics.lines().map(str::trim).filter(wrong);
        Ok(lines.map(|line| format!("{}: {line}", self.vf())).collect())
    }

    /// Sends `count` pings and returns the round-trip times of the answered ones, microseconds.
    pub(super) fn ping(&self, address: &str, size: u32, count: u32) -> Result<Vec<f64>> {
        let output =
            self.guest.linux.run(&format!("ping -A -c {count} -s {size} {address}"), COMMAND_TIMEOUT)?;
        Ok(output.stdout.lines().filter_map(round_trip).collect())
    }

    /// Runs an iperf3 client in the guest for `seconds` against `server`, and returns received bytes and
    /// throughput in Mb/s.
    pub(super) fn iperf(&self, server: &str, seconds: u64, option: &str) -> Result<(u64, f64)> {
        let script = format!("iperf3 -J -c {server} -t {seconds} {option}");
        for _ in 0..IPERF_ATTEMPTS {
            let output = self.guest.linux.run(&script, COMMAND_TIMEOUT + Duration::from_secs(seconds))?;
            let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            if output.success() {
                return received(&report).context("iperf3 reports 0 bytes received");
            }
            // A server that is busy or still starting is tried again.
            if !output.stdout.contains("busy") && !output.stdout.contains("refused") {
                return Err(anyhow!("iperf3 failed: {} {}", report["error"], output.stderr));
            }
            std::thread::sleep(IPERF_PAUSE);
        }
        bail!("the iperf3 server is still busy after {IPERF_ATTEMPTS} attempts")
    }
}

/// Returns the round-trip time, microseconds, in a line such as `64 bytes from 10.82.0.2: seq=0 ttl=64
/// time=0.345 ms`.
fn round_trip(line: &str) -> Option<f64> {
    let millis: f64 = line.split_once("time=")?.1.strip_suffix(" ms")?.parse().ok()?;
    Some(millis * 1000.0)
}

/// Returns the received bytes and the Mb/s of an iperf3 report, or `None` if nothing was received.
fn received(report: &Value) -> Option<(u64, f64)> {
    let sum = &report["end"]["sum_received"];
    let bytes = sum["bytes"].as_u64().filter(|bytes| *bytes > 0)?;
    Some((bytes, sum["bits_per_second"].as_f64()? / 1e6))
}

#[cfg(test)]
mod tests {
    use super::{received, round_trip};
    use serde_json::json;

    #[test]
    fn busybox_ping_round_trips_are_in_milliseconds() {
        assert_eq!(round_trip("64 bytes from 10.82.0.2: seq=0 ttl=64 time=0.345 ms"), Some(345.0));
        assert_eq!(round_trip("round-trip min/avg/max = 0.1/0.2/0.3 ms"), None);
        assert_eq!(round_trip("PING 10.82.0.2 (10.82.0.2): 56 data bytes"), None);
    }

    #[test]
    fn demo_flow_without_received_bytes_has_no_result() {
        let report = json!({"end": {"sum_received": {"bytes": 1000, "bits_per_second": 8e6}}});
        assert_eq!(received(&report), Some((1000, 8.0)));
        assert_eq!(received(&json!({"end": {"sum_received": {"bytes": 0, "bits_per_second": 0.0}}})), None);
        assert_eq!(received(&json!({"error": "unable to connect"})), None);
    }
}
