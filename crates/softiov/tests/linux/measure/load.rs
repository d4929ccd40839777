//! Defines the loads of a measured guest, and reads the counters before and after each.

use anyhow::{Context, Result};
use serde_json::Value;
use std::time::Duration;

/// Duration of the measurement of one load, seconds.
pub(super) const SECONDS: u64 = 3;
/// Payload of a full frame of a TCP stream with time stamps, bytes.
const SEGMENT: f64 = 1448.0;
/// Unit in which the guest's /proc/stat counts processor time, milliseconds.
const TICK_MS: f64 = 10.0;
/// Separator of the parts of the guest's output.
const MARK: &str = "=====";

/// Network load of a guest while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestNetworkLoad {
    /// TCP stream that the guest sends.
    Sent,
    /// TCP stream that the guest receives.
    Received,
    /// Pings of 56 bytes from the guest, each as soon as the last is answered.
    Asked,
    /// TCP stream from the guest to another guest on the same port.
    Between,
}

impl GuestNetworkLoad {
    pub(super) const ALL: [Self; 4] = [Self::Sent, Self::Received, Self::Asked, Self::Between];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sent => "TCP from the guest",
            Self::Received => "TCP to the guest",
            Self::Asked => "ping",
            Self::Between => "TCP between guests",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Sent | Self::Received | Self::Between => "Mb/s",
            Self::Asked => "answers/s",
        }
    }

    /// Returns a script that reads the counters, runs the load to `server` over `connections` connections, and reads
    /// them again.
    pub(super) fn script(self, server: &str, connections: u32) -> String {
        let work = match self {
            Self::Sent | Self::Between => format!("iperf3 -J -c {server} -t {SECONDS} -P {connections}"),
            Self::Received => format!("iperf3 -J -c {server} -t {SECONDS} -P {connections} -R"),
            Self::Asked => format!("ping -q -A -w {SECONDS} {server}"),
        };
        // Only virtio_net counts its kicks; statistics of other drivers are not read, because some would request them
        // from their PF.
        format!(
            "look() {{
                 head -n 1 /proc/stat
                 cd /sys/class/net/eth0/device
                 for irq in $(ls msi_irqs 2> /dev/null || ls ../msi_irqs); do
                     echo irq $(cat /sys/kernel/irq/$irq/per_cpu_count)
                 done
                 case $(readlink driver) in */virtio_net) ethtool -S eth0 | grep _kicks: ;; esac
                 echo {MARK}
             }}
             look; {work}; echo {MARK}; look"
        )
    }

    /// Parses the output of the program that makes the load: the rate, the packets, and the retransmitted segments.
    fn moved(self, said: &str) -> Result<NetworkLoadThroughput> {
        let unclear = || format!("{}: {said}", self.name());
        if self == Self::Asked {
            let line =
                said.lines().find(|line| line.contains(" packets transmitted")).with_context(unclear)?;
            let words: Vec<&str> = line.split(' ').collect();
            let answers: f64 = words.get(3).with_context(unclear)?.parse().with_context(unclear)?;
            // A request and its answer.
            return Ok(NetworkLoadThroughput {
                rate: answers / SECONDS as f64,
                packets: 2.0 * answers,
                again: 0,
            });
        }
        let report: Value = serde_json::from_str(said).with_context(unclear)?;
        let (sent, received) = (&report["end"]["sum_sent"], &report["end"]["sum_received"]);
        let bytes = received["bytes"].as_f64().with_context(unclear)?;
        let rate = received["bits_per_second"].as_f64().with_context(unclear)? / 1e6;
        Ok(NetworkLoadThroughput {
            rate,
            packets: bytes / SEGMENT,
            again: sent["retransmits"].as_u64().unwrap_or(0),
        })
    }
}

struct NetworkLoadThroughput {
    rate: f64,
    packets: f64,
    again: u64,
}

/// Result of a guest's load: rate, packets, processor time, interrupts and register accesses.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkLoadResult {
    pub(super) load: GuestNetworkLoad,
    /// Rate of the load: megabits per second of a TCP stream, or answered pings per second.
    pub(super) rate: f64,
    /// Number of packets of the load: full frames that carry a stream, or requests and answers of pings.
    pub(super) packets: f64,
    /// Number of retransmitted TCP segments.
    pub(super) again: u64,
    /// Milliseconds for which the guest's processors were in use. The next field is the milliseconds for which they
    /// were available.
    pub(super) busy_ms: f64,
    pub(super) there_ms: f64,
    /// Processor time of QEMU and of the forwarder by the host's count, milliseconds.
    pub(super) vmm_ms: f64,
    pub(super) forwarder_ms: f64,
    /// Number of interrupts of the guest's network card.
    pub(super) interrupts: u64,
    /// Number of the guest's register accesses that the host counted, or of virtio-net's kicks.
    pub(super) accesses: u64,
}

impl NetworkLoadResult {
    /// Parses the output of [`GuestNetworkLoad::script`]. If the host has no count of register accesses, virtio-net's
    /// kicks take its place.
    pub(super) fn read(load: GuestNetworkLoad, printed: &str, host: &HostCounters) -> Result<Self> {
        let mark = format!("{MARK}\n");
        let mut parts = printed.split(&mark);
        let mut part = || parts.next().with_context(|| format!("the guest's counts: {printed}"));
        let (before, said, after) = (part()?, part()?, part()?);
        let (before, after) = (GuestCounters::read(before)?, GuestCounters::read(after)?);
        let NetworkLoadThroughput { rate, packets, again } = load.moved(said)?;
        Ok(Self {
            load,
            rate,
            packets,
            again,
            busy_ms: (after.busy - before.busy) as f64 * TICK_MS,
            there_ms: (after.there - before.there) as f64 * TICK_MS,
            vmm_ms: host.vmm.as_secs_f64() * 1000.0,
            forwarder_ms: host.forwarder.as_secs_f64() * 1000.0,
            interrupts: after.interrupts - before.interrupts,
            accesses: host.accesses.unwrap_or(after.kicks - before.kicks),
        })
    }
}

/// Counters of this machine around a load: register accesses, and processor time of QEMU and of the forwarder.
#[derive(Debug)]
pub(super) struct HostCounters {
    /// Number of register reads and writes that SoftIOV's host carried out; `None` for another program's card.
    pub(super) accesses: Option<u64>,
    /// Processor time of QEMU and of the forwarder; the forwarder's is zero where QEMU forwards.
    pub(super) vmm: Duration,
    pub(super) forwarder: Duration,
}

impl HostCounters {
    /// Returns the increases of the counters since an earlier reading.
    pub(super) fn since(self, before: &Self) -> Self {
        Self {
            accesses: self.accesses.zip(before.accesses).map(|(after, before)| after - before),
            vmm: self.vmm.saturating_sub(before.vmm),
            forwarder: self.forwarder.saturating_sub(before.forwarder),
        }
    }
}

/// Counters of the guest since it booted: processor time, interrupts of the card, and virtio-net's kicks.
#[derive(Debug, Default)]
struct GuestCounters {
    busy: u64,
    there: u64,
    interrupts: u64,
    kicks: u64,
}

impl GuestCounters {
    fn read(text: &str) -> Result<Self> {
        let mut counts = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let numbers = || words.iter().skip(1).map(|word| word.parse::<u64>());
            match words.first() {
                Some(&"cpu") => {
                    // user, nice, system, idle, iowait, irq, softirq; the rest does not occur here (proc(5)).
                    let times = numbers().take(7).collect::<Result<Vec<_>, _>>()?;
                    counts.there = times.iter().sum();
                    counts.busy = counts.there - times.iter().skip(3).take(2).sum::<u64>();
                }
                Some(&"irq") => counts.interrupts += numbers().sum::<Result<u64, _>>()?,
                Some(kicks) if kicks.ends_with("_kicks:") => {
                    counts.kicks += numbers().sum::<Result<u64, _>>()?;
                }
                _ => {}
            }
        }
        Ok(counts)
    }
}
