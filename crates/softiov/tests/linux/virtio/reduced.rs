//! Checks virtio_net without features that QEMU offers by default, as old or unusual machines run it. One guest has an
//! interface for each set of features.

use super::pairs::accepts;
use super::{add_address, exchange_at, linked, mac, set_up};
use crate::guest::{BOOT, COMMAND, ScenarioGuest};
use crate::report::LinuxCheckOutcome;
use crate::world::{LinuxTestbed, REDUCED};
use anyhow::{Context, Result, ensure};
use linux_guest::LinuxGuest;

/// Interface of the guest, with a reduced set of virtio features.
#[derive(Debug)]
struct ReducedInterface {
    /// True for a legacy device, one without virtio 1.0. Its packet header has 12 bytes if receive buffers are merged,
    /// and 10 bytes otherwise.
    legacy: bool,
    /// Properties of QEMU's device that are off.
    off: &'static [&'static str],
    /// Bits of features that the driver must not accept (virtio 1.2, 5.1.3 and 6).
    rejected: &'static [usize],
    /// Greatest MTU in bytes, as QEMU's device has it in `host_mtu`; `None` for a device without a limit.
    mtu: Option<u32>,
}

/// Bytes of the headers of an IPv4 packet with an ICMP echo request.
const PING_HEADERS: u32 = 28;

/// Interfaces of the guest, ordered by PCI slot.
const INTERFACES: [ReducedInterface; REDUCED.len()] = [
    ReducedInterface { legacy: false, off: &["mrg_rxbuf"], rejected: &[15], mtu: None },
    ReducedInterface {
        legacy: false,
        off: &["guest_tso4", "guest_tso6", "csum"],
        rejected: &[0, 7, 8],
        mtu: None,
    },
    ReducedInterface {
        legacy: false,
        off: &["guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo"],
        rejected: &[1, 7, 8, 9],
        mtu: None,
    },
    ReducedInterface {
        legacy: false,
        off: &["event_idx", "indirect_desc"],
        rejected: &[28, 29],
        mtu: Some(1400),
    },
    ReducedInterface { legacy: true, off: &["mrg_rxbuf"], rejected: &[15, 32], mtu: None },
    ReducedInterface { legacy: true, off: &[], rejected: &[32], mtu: None },
];

/// Checks that interfaces without mergeable buffers, segmentation, checksums, event indexes or the modern layout exchange
/// pings and TCP with Judy, who has all of them. Kernels verify the checksums. One interface has a greatest MTU.
pub(crate) fn features_are_not_needed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let mut builder = LinuxGuest::builder("mona");
    for (place, (vf, interface)) in (0..).zip(REDUCED.into_iter().zip(&INTERFACES)) {
        let mut properties: Vec<_> = interface.off.iter().map(|name| (*name, false.into())).collect();
        properties.extend([mac(0x10 + place), ("disable-modern", interface.legacy.into())]);
        properties.extend(interface.mtu.map(|mtu| ("host_mtu", mtu.into())));
        if interface.legacy {
            // QEMU's default behind a root port is a modern device only.
            properties.push(("disable-legacy", "off".into()));
        }
        builder = builder.vhost_socket(world.socket(vf), 1, &properties);
    }
    let mona = ScenarioGuest::spawn(builder, world.assets(), REDUCED[0], 8)?;
    mona.linux.wait_ready(BOOT)?;
    mona.check("iperf3 -s -D; echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore")?;
    let [judy, _] = world.virtio()?;
    for (place, interface) in INTERFACES.iter().enumerate() {
        exchange_with(&mona, judy, place, interface).with_context(|| format!("{interface:?}"))?;
    }
    mona.linux.shutdown(COMMAND)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that an interface has exactly its set of features, and that pings and TCP pass, both ways.
fn exchange_with(
    mona: &ScenarioGuest,
    judy: &ScenarioGuest,
    place: usize,
    interface: &ReducedInterface,
) -> Result<()> {
    let [near, far] = [8, 6].map(|host| format!("10.84.{}.{host}", 10 + place));
    add_address(judy, &far)?;
    let name = set_up(mona, place, &near)?;
    for bit in interface.rejected {
        ensure!(!accepts(mona, &name, *bit)?, "{name} has accepted feature {bit}");
    }
    exchange_at([(mona, &near), (judy, &far)], 8)?;
    interface.mtu.map_or(Ok(()), |mtu| mtu_is_limited(mona, &name, mtu, &far))
}

/// Checks that an interface has the MTU of its device, that no greater one can be set, and that a ping of exactly this size
/// passes. The kernel sends it with "do not fragment", because it fits.
fn mtu_is_limited(mona: &ScenarioGuest, name: &str, mtu: u32, far: &str) -> Result<()> {
    let shown = mona.check(&format!("cat /sys/class/net/{name}/mtu"))?;
    ensure!(shown.trim() == mtu.to_string(), "the MTU of {name} is {shown} instead of {mtu}");
    mona.check_fails(&format!("ip link set {name} mtu {}", mtu + 1))?;
    let before = mona.fragments_made()?;
    mona.ping(far, mtu - PING_HEADERS, 10)?;
    ensure!(mona.fragments_made()? == before, "fragments were made of packets of {mtu} bytes");
    mona.ping(far, mtu - PING_HEADERS + 1, 1)?;
    ensure!(mona.fragments_made()? > before, "a packet of {} bytes has left {name} whole", mtu + 1);
    Ok(())
}
