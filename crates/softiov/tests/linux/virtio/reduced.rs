//! Checks virtio_net without features that QEMU offers by default, as old or unusual machines run it. One guest has an
//! interface for each set of features.

use super::{accepts, add_address, exchange_at, linked, mac, set_up};
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
}

/// Interfaces of the guest, ordered by PCI slot.
const INTERFACES: [ReducedInterface; REDUCED.len()] = [
    ReducedInterface { legacy: false, off: &["mrg_rxbuf"], rejected: &[15] },
    ReducedInterface { legacy: false, off: &["guest_tso4", "guest_tso6", "csum"], rejected: &[0, 7, 8] },
    ReducedInterface {
        legacy: false,
        off: &["guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo"],
        rejected: &[1, 7, 8, 9],
    },
    ReducedInterface { legacy: false, off: &["event_idx", "indirect_desc"], rejected: &[28, 29] },
    ReducedInterface { legacy: true, off: &["mrg_rxbuf"], rejected: &[15, 32] },
    ReducedInterface { legacy: true, off: &[], rejected: &[32] },
];

/// Checks that interfaces without mergeable buffers, segmentation, checksums, event indexes or the modern layout exchange
/// pings and TCP with Judy, who has all of them. Kernels verify the checksums.
pub(crate) fn features_are_not_needed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let mut builder = LinuxGuest::builder("mona");
    for (place, (vf, interface)) in (0..).zip(REDUCED.into_iter().zip(&INTERFACES)) {
        let mut properties: Vec<_> = interface.off.iter().map(|name| (*name, false.into())).collect();
        properties.extend([mac(0x10 + place), ("disable-modern", interface.legacy.into())]);
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
    exchange_at([(mona, &near), (judy, &far)], 8)
}
