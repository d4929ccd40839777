//! Checks virtio_net of kernels newer than 6.1: of the next Debian release's kernel, and of its backports' kernel.

use super::{accepts, add_address, exchange_at, is_packed, linked, mac, set_up};
use crate::guest::{BOOT, COMMAND, ScenarioGuest};
use crate::kernels::is_7_or_newer;
use crate::report::LinuxCheckOutcome;
use crate::world::{LinuxTestbed, REDUCED, VISITOR_VIRTIO};
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, KernelSeries, LinuxGuest};

/// Bit of the feature `VIRTIO_F_IN_ORDER` (virtio 1.2, 6).
const IN_ORDER: usize = 35;
/// IPv4 addresses of the guest with the other kernel and of Judy, for its interface with split rings and for that with packed
/// rings.
const ADDRESSES: [[&str; 2]; 2] = [["10.84.0.5", "10.84.0.6"], ["10.84.9.5", "10.84.9.6"]];

/// Checks that virtio_net of Linux 6.12 exchanges pings and TCP over two queue pairs, with split
/// and with packed rings.
pub(crate) fn of_trixie_joins_in(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let release = join_in(world, KernelSeries::Trixie612, false)?;
    ensure!(release.starts_with("6.12."), "the guest runs Linux {release} instead of 6.12");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that virtio_net of trixie-backports' kernel accepts that the card uses buffers in order, and exchanges pings and TCP
/// over two queue pairs, with split and with packed rings. Linux 6.12 does not know this feature.
pub(crate) fn of_backports_keeps_order(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    is_7_or_newer(&join_in(world, KernelSeries::TrixieBackports, true)?)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Boots a guest with another kernel on a VF, exchanges traffic with Judy, and returns the kernel's release.
fn join_in(world: &mut LinuxTestbed, series: KernelSeries, in_order: bool) -> Result<String> {
    let assets = BootFiles::prepare(series)?;
    let [judy, _] = linked(world)?;
    ADDRESSES.iter().try_for_each(|[_, judys]| add_address(judy, judys))?;
    let mut builder = LinuxGuest::builder(series.name()).cpus(2);
    for (vf, packed) in [(VISITOR_VIRTIO, false), (REDUCED[0], true)] {
        let properties =
            [("in_order", true.into()), ("packed", packed.into()), mac(if packed { 15 } else { 5 })];
        builder = builder.vhost_socket(world.socket(vf), 2, &properties);
    }
    let visitor = ScenarioGuest::spawn(builder, &assets, VISITOR_VIRTIO, 5)?;
    visitor.linux.wait_ready(BOOT)?;
    visitor.check("iperf3 -s -D; echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore")?;
    let [judy, _] = world.virtio()?;
    for (place, [address, judys]) in ADDRESSES.into_iter().enumerate() {
        let interface = set_up(&visitor, place, address)?;
        let accepted = (accepts(&visitor, &interface, IN_ORDER)?, is_packed(&visitor, &interface)?);
        ensure!(
            accepted == (in_order, place == 1),
            "{}: {interface} has accepted \"in order\" and packed rings: {accepted:?}",
            series.name()
        );
        exchange_at([(&visitor, address), (judy, judys)], 8)?;
    }
    let release = visitor.linux.kernel_release();
    visitor.linux.shutdown(COMMAND)?;
    Ok(release)
}
