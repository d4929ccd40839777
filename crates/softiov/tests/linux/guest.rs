//! Linux guest of the checks: its addresses, and the commands by which checks use and observe it.

use crate::world::{PACKED, PF, SPLIT};
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use linux_guest::{BackgroundScript, BootFiles, GuestBuilder, GuestCommandOutput, LinuxGuest};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout of a guest's boot, which takes four seconds on an idle machine.
pub(crate) const BOOT: Duration = Duration::from_secs(600);
/// Timeout of a command in a guest on a busy machine.
pub(crate) const COMMAND: Duration = Duration::from_secs(600);
/// Timeout of a condition that [`eventually`] polls in a guest or host.
const PATIENCE: Duration = Duration::from_secs(240);

/// Running Linux guest of the checks, with the function behind its eth0 and the last byte of its addresses.
#[derive(Debug)]
pub(crate) struct ScenarioGuest {
    pub(crate) linux: LinuxGuest,
    /// Function behind the guest's eth0: a VF, or a port's PF.
    pub(crate) vf: &'static str,
    driver: &'static str,
    number: u8,
}

/// Bytes sent and received by a TCP or UDP flow, as iperf3 reports them.
#[derive(Debug)]
pub(crate) struct IperfResult {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl ScenarioGuest {
    /// Starts a guest, without waiting for its boot, whose IP addresses end in `number`.
    pub(crate) fn spawn(
        builder: GuestBuilder,
        assets: &BootFiles,
        vf: &'static str,
        number: u8,
    ) -> Result<Self> {
        let driver = match vf {
            PF => "igb",
            SPLIT | PACKED => "virtio_net",
            _ => "igbvf",
        };
        Ok(Self { linux: builder.spawn(assets)?, vf, driver, number })
    }

    /// Returns the guest's IPv4 address on the untagged network.
    pub(crate) fn address(&self) -> String {
        self.vlan_address(0)
    }

    /// Returns the guest's IPv4 address in a VLAN with an id below 256.
    pub(crate) fn vlan_address(&self, vlan: u8) -> String {
        format!("10.82.{vlan}.{}", self.number)
    }

    /// Returns the guest's IPv6 address on the untagged network.
    pub(crate) fn address_v6(&self) -> String {
        format!("fd82::{}", self.number)
    }

    /// Restores the network state in which every check begins: driver loaded, eth0 up with an MTU of 1500 and its
    /// addresses, no VLANs, an iperf3 server running.
    pub(crate) fn settle(&self) -> Result<()> {
        // Each interface answers ARP for its own address only, so that interfaces can be distinguished.
        let script = format!(
            "[ -d /sys/class/net/eth0 ] || modprobe {}
             echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
             for vlan in /sys/class/net/*.*; do [ ! -e $vlan ] || ip link del ${{vlan##*/}}; done
             for other in eth1 eth2; do [ ! -e /sys/class/net/$other ] || ip link set $other down; done
             ip neigh flush all
             ip link set eth0 mtu 1500 up || exit
             ip addr replace {}/24 dev eth0 || exit
             ip addr replace {}/64 dev eth0 nodad || exit
             pidof iperf3 > /dev/null || iperf3 -s -D",
            self.driver,
            self.address(),
            self.address_v6()
        );
        self.check(&script)?;
        self.wait_carrier(true)
    }

    /// Runs a script in the guest that must succeed, and returns its output.
    pub(crate) fn check(&self, script: &str) -> Result<String> {
        Ok(self.linux.check(script, COMMAND)?)
    }

    /// Runs a script in the guest that must fail, and returns its output.
    pub(crate) fn check_fails(&self, script: &str) -> Result<String> {
        let output = self.linux.run(script, COMMAND)?;
        let text = output.stdout + &output.stderr;
        ensure!(output.status != 0, "{}: {script:?} should have failed; it printed {text:?}", self.name());
        Ok(text)
    }

    pub(crate) fn name(&self) -> &str {
        self.linux.name()
    }

    /// Sets the guest's eth0 up and waits for the link of eth0.
    pub(crate) fn settle_link(&self) -> Result<()> {
        self.check("ip link set eth0 up")?;
        self.wait_carrier(true)
    }

    /// Waits until the driver reports eth0's carrier up or down.
    pub(crate) fn wait_carrier(&self, up: bool) -> Result<()> {
        eventually(|| {
            let carrier = self.check("cat /sys/class/net/eth0/carrier")?;
            ensure!(
                carrier.trim() == if up { "1" } else { "0" },
                "the carrier of eth0 is {}",
                carrier.trim()
            );
            Ok(())
        })
        .with_context(|| format!("{}: the link should be {}", self.name(), if up { "up" } else { "down" }))
    }

    /// Sends pings to `address`, each as soon as the last is answered; every one must be answered.
    pub(crate) fn ping(&self, address: &str, size: u32, count: u32) -> Result<()> {
        let output = self.linux.run(&format!("ping -A -c {count} -s {size} {address}"), COMMAND)?;
        let expected = format!("{count} packets transmitted, {count} packets received");
        ensure!(
            output.stdout.contains(&expected),
            "{}: ping of {address} with {size} bytes failed: {}{}",
            self.name(),
            output.stdout,
            output.stderr
        );
        Ok(())
    }

    /// Checks that pings of a size to `address` are not answered.
    pub(crate) fn cannot_ping(&self, address: &str, size: u32) -> Result<()> {
        self.check_fails(&format!("ping -c 2 -W 1 -s {size} {address}")).map(drop)
    }

    /// Waits until `address` answers a ping from the guest.
    pub(crate) fn reach(&self, address: &str) -> Result<()> {
        eventually(|| self.check(&format!("ping -c 1 -W 1 {address}")).map(drop))
            .with_context(|| format!("{} does not reach {address}", self.name()))
    }

    /// Checks that an address does not answer pings from an interface within a second or two.
    pub(crate) fn cannot_reach(&self, interface: &str, address: &str) -> Result<()> {
        self.check_fails(&format!("ping -c 2 -W 1 -I {interface} {address}")).map(drop)
    }

    /// Adds a VLAN interface on top of the interface `below`, with this guest's address in the VLAN.
    pub(crate) fn join_vlan(&self, below: &str, vlan: u8) -> Result<()> {
        let (name, address) = (format!("{below}.{vlan}"), self.vlan_address(vlan));
        let script = format!(
            "modprobe 8021q && ip link add link {below} name {name} type vlan id {vlan} &&
             ip addr add {address}/24 dev {name} && ip link set {name} up"
        );
        self.check(&script).map(drop)
    }

    /// Sends `count` broadcasts in a VLAN (0: untagged), without waiting for answers.
    pub(crate) fn broadcast(&self, vlan: u8, count: u32) -> Result<()> {
        self.check_fails(&format!("ping -q -c {count} -i 0.02 -W 1 10.82.{vlan}.255")).map(drop)
    }

    /// Runs an iperf3 client in the guest to its end, with `options` for amount and protocol, and returns the flow's
    /// result.
    pub(crate) fn iperf(&self, server: &str, options: &str) -> Result<IperfResult> {
        // The server accepts one client at a time and needs a moment between two; only that failure is tried again.
        let ended = eventually(|| {
            let output = self.linux.run(&iperf_command(server, options), COMMAND)?;
            let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            match flow(&report) {
                Some(flow) if output.success() => Ok(Ok(flow)),
                _ if output.stdout.contains("busy") => bail!("the iperf3 server is busy"),
                _ => Ok(Err(iperf_failure(&output, &report))),
            }
        });
        ended.flatten().with_context(|| format!("{}: iperf3 {options} to {server} failed", self.name()))
    }

    /// Starts an iperf3 client in the guest in the background, to be finished with
    /// [`finish_iperf`](Self::finish_iperf).
    pub(crate) fn start_iperf(&self, server: &str, options: &str) -> Result<BackgroundScript> {
        Ok(self.linux.spawn_background(&iperf_command(server, options))?)
    }

    pub(crate) fn finish_iperf(&self, running: &BackgroundScript) -> Result<IperfResult> {
        let output = self.linux.wait(running, COMMAND)?;
        let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let flow = flow(&report).filter(|_| output.success());
        flow.ok_or_else(|| iperf_failure(&output, &report)).with_context(|| self.name().to_owned())
    }

    /// Returns the number of IP fragments that the guest's kernel has created.
    pub(crate) fn fragments_made(&self) -> Result<u64> {
        self.snmp("Ip", "FragCreates")
    }

    /// Returns a protocol's counter in the guest's /proc/net/snmp, which has a line of names and a line of numbers per
    /// protocol.
    pub(crate) fn snmp(&self, protocol: &str, name: &str) -> Result<u64> {
        let text = self.check(&format!("grep ^{protocol}: /proc/net/snmp"))?;
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let column = rows.first().and_then(|names| names.iter().position(|found| *found == name));
        let number = column
            .and_then(|column| rows.get(1)?.get(column))
            .with_context(|| format!("/proc/net/snmp has no counter {name}"))?;
        Ok(number.parse()?)
    }

    /// Returns a counter of `ethtool -S eth0`.
    pub(crate) fn statistic(&self, name: &str) -> Result<u64> {
        Ok(self.statistics(&[name])?[0])
    }

    /// Returns counters of `ethtool -S eth0`, read at once.
    pub(crate) fn statistics(&self, names: &[&str]) -> Result<Vec<u64>> {
        self.statistics_of("eth0", names)
    }

    /// Returns counters of `ethtool -S` for an interface, read at once.
    pub(crate) fn statistics_of(&self, interface: &str, names: &[&str]) -> Result<Vec<u64>> {
        let text = self.check(&format!("ethtool -S {interface}"))?;
        let value = |name: &&str| {
            let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            let value = value.with_context(|| format!("ethtool -S has no {name}:\n{text}"))?;
            Ok(value.parse()?)
        };
        names.iter().map(value).collect()
    }

    /// Returns the number of interrupts of eth0 on all processors, by the interrupt's name.
    pub(crate) fn interrupts(&self) -> Result<Vec<(String, u64)>> {
        let text = self.check("cat /proc/interrupts")?;
        let parse = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            let name = words.last().filter(|name| name.starts_with("eth0"))?;
            Some(((*name).to_owned(), words[1..].iter().map_while(|word| word.parse::<u64>().ok()).sum()))
        };
        Ok(text.lines().filter_map(parse).collect())
    }
}

fn iperf_command(server: &str, options: &str) -> String {
    format!("iperf3 -J -c {server} {options}")
}

fn iperf_failure(output: &GuestCommandOutput, report: &Value) -> Error {
    anyhow!("iperf3 ended with status {}: {}{}", output.status, report["error"], output.stderr)
}

/// Returns the bytes sent and received in an iperf3 report; TCP and UDP have the same two sums.
fn flow(report: &Value) -> Option<IperfResult> {
    let bytes = |sum: &str| report["end"][sum]["bytes"].as_u64();
    Some(IperfResult { sent: bytes("sum_sent")?, received: bytes("sum_received")? })
}

/// Polls the check `look` until it succeeds, and returns its last error after the timeout.
pub(crate) fn eventually<T>(look: impl FnMut() -> Result<T>) -> Result<T> {
    eventually_within(PATIENCE, look)
}

/// Polls the check `look` like [`eventually`], with another timeout.
pub(crate) fn eventually_within<T>(patience: Duration, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match look() {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            seen => return seen,
        }
    }
}

/// Returns the last events of a VF and its client, as text for an error. `control` is the host's control socket.
pub(crate) fn last_events(control: &Path, vf: &str) -> String {
    match ask(control, ControlRequest::VfFlight { vf: vf.to_owned() }) {
        Ok(ControlAnswer::Flight(recording)) => {
            let events = recording.entries.iter().rev().filter(|entry| entry.region.is_none()).take(12);
            let said = events.map(|event| format!("{} ({} ms ago)", event.what, event.before_ns / 1_000_000));
            format!("{vf}: {}", said.collect::<Vec<_>>().join("; "))
        }
        other => format!("{vf}: {other:?}"),
    }
}
