//! A virtual machine of the demo: its interfaces, one for each port, and what it is told to do with them. Left out: booting and the
//! control channel, which are `linux_guest`'s.

use crate::demo::report;
use anyhow::{Context, Result, anyhow, bail};
use daemon::config::VfConfig;
use linux_guest::{Accel, Assets, LinuxGuest};
use serde_json::Value;
use std::time::Duration;

/// An emulated CPU on a busy machine boots in a minute or two.
const BOOT: Duration = Duration::from_secs(240);
const COMMAND: Duration = Duration::from_secs(60);
/// An iperf3 server serves one client at a time, and needs a moment between two.
const ATTEMPTS: usize = 40;
const PAUSE: Duration = Duration::from_millis(250);
const VLAN: u8 = 100;
/// The second byte of addresses on the first port.
const FIRST_NETWORK: usize = 82;

/// What ethtool says of the offloads that igbvf and iavf switch on by themselves.
const OFFLOADS: [&str; 3] = ["rx-checksumming: on", "tx-checksumming: on", "tcp-segmentation-offload: on"];

/// A guest on a VF of each port.
#[derive(Debug)]
pub(super) struct Guest {
    linux: LinuxGuest,
    /// Its VFs, by port.
    vfs: Vec<String>,
    /// The last byte of its addresses.
    number: u8,
}

impl Guest {
    /// Starts it; it is not ready yet. `vfs` are by port, and have the same index.
    pub(super) fn boot(assets: &Assets, vfs: &[&VfConfig], accel: Accel) -> Result<Self> {
        let first = vfs.first().context("a guest without a VF")?;
        let builder = LinuxGuest::builder(&first.name).accel(accel);
        let linux = vfs.iter().fold(builder, |builder, vf| builder.vf_socket(&vf.socket)).spawn(assets)?;
        let names = vfs.iter().map(|vf| vf.name.clone()).collect();
        Ok(Self { linux, vfs: names, number: first.index.get() + 1 })
    }

    /// Waits until it is ready and gives its interfaces names by port, addresses, a VLAN and an iperf3 server.
    pub(super) fn set_up(&self) -> Result<()> {
        self.linux.wait_ready(BOOT)?;
        for port in 0..self.vfs.len() {
            self.interface(port).set_up()?;
        }
        self.check("iperf3 -s -D").map(drop)
    }

    pub(super) fn pid(&self) -> u32 {
        self.linux.pid()
    }

    /// The kernel release.
    pub(super) fn kernel(&self) -> String {
        self.linux.kernel_release()
    }

    /// What it has on a port.
    pub(super) fn interface(&self, port: usize) -> Interface<'_> {
        Interface { guest: self, port }
    }

    fn check(&self, script: &str) -> Result<String> {
        Ok(self.linux.check(script, COMMAND)?)
    }
}

/// What a guest has on a port.
#[derive(Debug)]
pub(super) struct Interface<'a> {
    guest: &'a Guest,
    port: usize,
}

impl Interface<'_> {
    /// Waits for the interface, gives it its name, addresses and a VLAN, and waits for its link.
    fn set_up(&self) -> Result<()> {
        let (name, vlan) = (self.name(), self.vlan_interface());
        let (address, vlan_address) = (self.address(), self.vlan_address());
        // The first VF is 01:00.0. iavf makes an interface when the PF has answered it.
        let device = format!("/sys/bus/pci/devices/0000:{:02x}:00.0", self.port + 1);
        let script = format!(
            "patient() {{
                 tries=0
                 until eval \"$1\"; do
                     tries=$((tries + 1)); [ $tries -lt 300 ] || {{ echo in vain: $1 >&2; exit 1; }}
                     usleep 100000
                 done
             }}
             patient '[ -e {device}/net ]'
             ip link set $(ls {device}/net) name {name} || exit
             ip link set {name} up && ip addr add {address}/24 dev {name} &&
             modprobe 8021q && ip link add link {name} name {vlan} type vlan id {VLAN} &&
             ip link set {vlan} up && ip addr add {vlan_address}/24 dev {vlan} || exit
             patient '[ \"$(cat /sys/class/net/{name}/carrier)\" = 1 ]'"
        );
        self.guest.check(&script).map(drop)
    }

    pub(super) fn port(&self) -> usize {
        self.port
    }

    /// The VF that it is.
    pub(super) fn vf(&self) -> &str {
        &self.guest.vfs[self.port]
    }

    /// Each port is a network of its own.
    pub(super) fn address(&self) -> String {
        format!("10.{}.0.{}", FIRST_NETWORK + self.port, self.guest.number)
    }

    pub(super) fn vlan_address(&self) -> String {
        format!("10.{}.{VLAN}.{}", FIRST_NETWORK + self.port, self.guest.number)
    }

    /// What its VLAN interface is called in the report.
    pub(super) fn vlan_name(&self) -> String {
        format!("{}.{VLAN}", self.vf())
    }

    /// What the guest calls it.
    fn name(&self) -> String {
        format!("vf{}", self.port)
    }

    fn vlan_interface(&self) -> String {
        format!("{}.{VLAN}", self.name())
    }

    /// The driver, from the guest's own mouth.
    pub(super) fn driver(&self) -> Result<String> {
        let link = format!("/sys/class/net/{}/device/driver", self.name());
        Ok(self.guest.check(&format!("basename $(readlink {link})"))?.trim().to_owned())
    }

    /// Its entry in the report.
    pub(super) fn describe(&self) -> Result<report::Guest> {
        let address = self.guest.check(&format!("cat /sys/class/net/{}/address", self.name()))?;
        let (mac, driver) = (address.trim().to_owned(), self.driver()?);
        Ok(report::Guest { vf: self.vf().to_owned(), kind: "linux", mac, driver })
    }

    /// Offloads that should be on and are not.
    pub(super) fn missing_offloads(&self) -> Result<Vec<String>> {
        let features = self.guest.check(&format!("ethtool -k {}", self.name()))?;
        let missing = OFFLOADS.iter().filter(|offload| !features.contains(*offload));
        Ok(missing.map(|offload| format!("{}: ethtool does not say {offload:?}", self.vf())).collect())
    }

    /// Checksums that the card or the kernel found wrong.
    pub(super) fn checksum_errors(&self) -> Result<Vec<String>> {
        let statistics = self.guest.check(&format!("ethtool -S {}", self.name()))?;
        let wrong = |line: &&str| line.contains("csum") && line.contains("err") && !line.ends_with(": 0");
        let lines = statistics.lines().map(str::trim).filter(wrong);
        Ok(lines.map(|line| format!("{}: {line}", self.vf())).collect())
    }

    /// Round-trip times of those answered of `count` pings, microseconds.
    pub(super) fn ping(&self, address: &str, size: u32, count: u32) -> Result<Vec<f64>> {
        let output = self.guest.linux.run(&format!("ping -A -c {count} -s {size} {address}"), COMMAND)?;
        Ok(output.stdout.lines().filter_map(round_trip).collect())
    }

    /// Runs an iperf3 client: bytes received, and megabits a second.
    pub(super) fn iperf(&self, server: &str, seconds: u64, option: &str) -> Result<(u64, f64)> {
        let script = format!("iperf3 -J -c {server} -t {seconds} {option}");
        for _ in 0..ATTEMPTS {
            let output = self.guest.linux.run(&script, COMMAND + Duration::from_secs(seconds))?;
            let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            if output.success() {
                return received(&report).context("iperf3 reports nothing received");
            }
            // Nothing has been sent then.
            if !output.stdout.contains("busy") && !output.stdout.contains("refused") {
                return Err(anyhow!("{} {}", report["error"], output.stderr));
            }
            std::thread::sleep(PAUSE);
        }
        bail!("the iperf3 server stays busy")
    }
}

/// `64 bytes from 10.82.0.2: seq=0 ttl=64 time=0.345 ms`: microseconds.
fn round_trip(line: &str) -> Option<f64> {
    let millis: f64 = line.split_once("time=")?.1.strip_suffix(" ms")?.parse().ok()?;
    Some(millis * 1000.0)
}

/// What an iperf3 report says of the receiver; `None` if that is nothing.
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
    fn busybox_tells_round_trips_in_milliseconds() {
        assert_eq!(round_trip("64 bytes from 10.82.0.2: seq=0 ttl=64 time=0.345 ms"), Some(345.0));
        assert_eq!(round_trip("round-trip min/avg/max = 0.1/0.2/0.3 ms"), None);
        assert_eq!(round_trip("PING 10.82.0.2 (10.82.0.2): 56 data bytes"), None);
    }

    #[test]
    fn a_flow_that_received_nothing_is_none() {
        let report = json!({"end": {"sum_received": {"bytes": 1000, "bits_per_second": 8e6}}});
        assert_eq!(received(&report), Some((1000, 8.0)));
        assert_eq!(received(&json!({"end": {"sum_received": {"bytes": 0, "bits_per_second": 0.0}}})), None);
        assert_eq!(received(&json!({"error": "unable to connect"})), None);
    }
}
