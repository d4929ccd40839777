//! Boots a pair of virtio guests, one with split rings and one with packed rings, and checks how their drivers have bound the
//! devices.

use crate::guest::{BOOT, ScenarioGuest};
use crate::world::{PACKED, SPLIT};
use anyhow::{Context, Result, ensure};
use linux_guest::{BootFiles, LinuxGuest};
use serde_json::Value;
use std::path::PathBuf;

/// Number of queue pairs, and of processors, of a guest with packed rings.
pub(super) const PAIRS: u32 = 4;
/// Bit of the feature `VIRTIO_NET_F_GUEST_TSO4` (virtio 1.2, 5.1.3).
const GUEST_TSO4: usize = 7;
/// Bit of the feature `VIRTIO_F_IN_ORDER` (virtio 1.2, 6).
const IN_ORDER: usize = 35;
/// Greatest MTU in bytes of the guest with packed rings, as QEMU's device has it in `host_mtu`.
const GREATEST_MTU: u32 = 9000;
/// Number of flows that spread over the queues of a guest: hardly ever do all take the same one of two queues.
const FLOWS: u32 = 24;

/// Devices of a pair of guests, the first with split rings and the second with packed rings. The second has a greatest MTU.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairDevices {
    /// Numbers of queue pairs. A guest has as many processors.
    pub(super) pairs: [u32; 2],
    /// The VMM of a guest offers `VIRTIO_F_IN_ORDER`, which QEMU 7.2 does not know.
    pub(super) in_order: [bool; 2],
}

/// Devices of the testbed's guests.
pub(super) const TESTBED: PairDevices = PairDevices { pairs: [1, PAIRS], in_order: [false; 2] };

/// Boots a guest with split rings on the first socket, and a guest with packed rings on the second, each from its own files.
/// Addresses of the first guest end in `number`, and those of the second in the next number.
pub(super) fn boot_pair(
    names: [&str; 2],
    sockets: [PathBuf; 2],
    devices: PairDevices,
    assets: [&BootFiles; 2],
    number: u8,
) -> Result<[ScenarioGuest; 2]> {
    let spawn = |place: usize, socket, number| {
        let pairs = devices.pairs[place];
        let mut properties = vec![mac(number)];
        properties.extend(devices.in_order[place].then(|| ("in_order", true.into())));
        let vf = if place == 0 {
            SPLIT
        } else {
            properties.extend([("packed", true.into()), ("host_mtu", GREATEST_MTU.into())]);
            PACKED
        };
        let builder = LinuxGuest::builder(names[place]).cpus(pairs).vhost_socket(socket, pairs, &properties);
        ScenarioGuest::spawn(builder, assets[place], vf, number)
    };
    let [first, second] = sockets;
    let guests = [spawn(0, first, number)?, spawn(1, second, number + 1)?];
    guests.iter().try_for_each(|guest| guest.linux.wait_ready(BOOT))?;
    Ok(guests)
}

/// Checks that both guests of a pair run virtio_net with its offloads, the first with split rings and the second with packed
/// rings and no greater MTU than its device's, with all queue pairs.
pub(super) fn are_bound(guests: [&ScenarioGuest; 2], devices: PairDevices) -> Result<()> {
    for (place, guest) in guests.into_iter().enumerate() {
        let (name, pairs, wants_packed) = (guest.name(), devices.pairs[place], place == 1);
        let driver = guest.check("ethtool -i eth0")?;
        ensure!(driver.contains("driver: virtio_net"), "{name}: {driver}");
        let offloads = guest.check("ethtool -k eth0")?;
        let wanted = ["tx-checksumming: on", "tx-tcp-segmentation: on", "rx-checksumming: on"];
        let missing = wanted.iter().find(|offload| !offloads.contains(**offload));
        ensure!(missing.is_none(), "{name}: {missing:?} is not in {offloads}");
        ensure!(accepts(guest, "eth0", GUEST_TSO4)?, "{name} receives no large packets");
        ensure!(is_packed(guest, "eth0")? == wants_packed, "{name}: packed rings should be {wants_packed}");
        let queues = guest.check("ls -d /sys/class/net/eth0/queues/rx-* | wc -l")?;
        ensure!(queues.trim() == pairs.to_string(), "{name}: {queues} of {pairs} queue pairs");
        let in_order = accepts(guest, "eth0", IN_ORDER)?;
        ensure!(in_order == devices.in_order[place], "{name}: buffers in order: {in_order}");
    }
    let [_, packed] = guests;
    packed.check_fails(&format!("ip link set eth0 mtu {}", GREATEST_MTU + 1)).map(drop)
}

/// Checks that TCP between two guests arrives in packets larger than a segment in the mean, both ways, and that flows arrive in several
/// queues of a guest that has them.
pub(super) fn exchange_large_packets([one, other]: [&ScenarioGuest; 2], devices: PairDevices) -> Result<()> {
    let [first, second] = devices.pairs;
    for (from, to, pairs) in [(one, other, second), (other, one, first)] {
        let (before, queues) = (received(to)?, received_by_queue(to)?);
        from.iperf(&to.address(), &format!("-n 24M -P {FLOWS}"))?;
        let (after, later) = (received(to)?, received_by_queue(to)?);
        let mean = (after[0] - before[0]) / (after[1] - before[1]).max(1);
        ensure!(mean > 1514, "{}: packets of TCP have {mean} bytes in the mean", to.name());
        let used = queues.iter().zip(&later).filter(|(before, after)| after > before).count();
        ensure!(pairs == 1 || used > 1, "{}: of {pairs} queues, {used} received: {later:?}", to.name());
    }
    Ok(())
}

/// Returns the numbers of bytes and packets that a guest's eth0 has received.
fn received(guest: &ScenarioGuest) -> Result<[u64; 2]> {
    let folder = "/sys/class/net/eth0/statistics";
    let text = guest.check(&format!("cat {folder}/rx_bytes {folder}/rx_packets"))?;
    let mut counts = text.split_whitespace().map(str::parse);
    Ok([counts.next().context("no bytes")??, counts.next().context("no packets")??])
}

/// Returns the number of interrupts of each receive queue of a guest's eth0, or of packets if the queues have no interrupts of their
/// own: without MSI-X, which QEMU 7.2 lacks here.
fn received_by_queue(guest: &ScenarioGuest) -> Result<Vec<u64>> {
    let interrupts = guest.check("cat /proc/interrupts")?;
    let vectors = interrupts.lines().filter(|line| line.contains("-input."));
    let sums: Vec<u64> = vectors
        .map(|line| line.split_whitespace().skip(1).map_while(|count| count.parse::<u64>().ok()).sum())
        .collect();
    if !sums.is_empty() {
        return Ok(sums);
    }
    // Linux 6.12 and newer kernels do not count packets here.
    let counters = guest.check("ethtool -S eth0")?;
    let packets =
        counters.lines().filter_map(|line| line.trim().strip_prefix("rx_queue_")?.split_once("_packets: "));
    packets.map(|(_, count)| Ok(count.parse()?)).collect()
}

/// Returns the property of QEMU's device that gives an interface an Ethernet address ending in `number`: by default, the
/// first interface of every QEMU has the same address.
pub(crate) fn mac(number: u8) -> (&'static str, Value) {
    ("mac", format!("52:54:00:82:84:{number:02x}").into())
}

/// Returns true if the driver of an interface has accepted a feature, by its bit number (virtio 1.2, 5.1.3 and 6).
pub(super) fn accepts(guest: &ScenarioGuest, interface: &str, bit: usize) -> Result<bool> {
    let features = guest.check(&format!("cat /sys/class/net/{interface}/device/features"))?;
    Ok(features.as_bytes().get(bit) == Some(&b'1'))
}

/// Returns true if an interface's driver uses packed rings (`VIRTIO_F_RING_PACKED`; virtio 1.2, 6).
pub(crate) fn is_packed(guest: &ScenarioGuest, interface: &str) -> Result<bool> {
    accepts(guest, interface, 34)
}
