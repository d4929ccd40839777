//! Checks virtio_net of kernels newer than 6.1: of the next Debian release's kernel, and of its backports' kernel.

use super::{accepts, add_address, exchange_at, linked, mac, set_up};
use crate::guest::{BOOT, COMMAND, ScenarioGuest};
use crate::report::LinuxCheckOutcome;
use crate::world::{LinuxTestbed, VISITOR_VIRTIO};
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, KernelSeries, LinuxGuest};

/// Bit of the feature `VIRTIO_F_IN_ORDER` (virtio 1.2, 6).
const IN_ORDER: usize = 35;
/// IPv4 addresses of the guest with the other kernel, and of Judy.
const ADDRESSES: [&str; 2] = ["10.84.0.5", "10.84.0.6"];

/// Checks that virtio_net of Linux 6.12 exchanges pings and TCP over two queue pairs.
pub(crate) fn of_trixie_joins_in(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let release = join_in(world, KernelSeries::Trixie612, false)?;
    ensure!(release.starts_with("6.12."), "the guest runs Linux {release} instead of 6.12");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that virtio_net of trixie-backports' kernel accepts that the card uses buffers in order, and exchanges pings and TCP
/// over two queue pairs. Linux 6.12 does not know this feature.
pub(crate) fn of_backports_keeps_order(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    join_in(world, KernelSeries::TrixieBackports, true)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Boots a guest with another kernel on a VF, exchanges traffic with Judy, and returns the kernel's release.
fn join_in(world: &mut LinuxTestbed, series: KernelSeries, in_order: bool) -> Result<String> {
    let assets = BootFiles::prepare(series)?;
    let [judy, _] = linked(world)?;
    add_address(judy, ADDRESSES[1])?;
    let properties = [("in_order", true.into()), mac(5)];
    let builder = LinuxGuest::builder(series.name()).cpus(2);
    let builder = builder.vhost_socket(world.socket(VISITOR_VIRTIO), 2, &properties);
    let visitor = ScenarioGuest::spawn(builder, &assets, VISITOR_VIRTIO, 5)?;
    visitor.linux.wait_ready(BOOT)?;
    let interface = set_up(&visitor, 0, ADDRESSES[0])?;
    visitor.check("iperf3 -s -D")?;
    let accepted = accepts(&visitor, &interface, IN_ORDER)?;
    ensure!(accepted == in_order, "{}: the feature \"in order\" is accepted: {accepted}", series.name());
    let [judy, _] = world.virtio()?;
    exchange_at([(&visitor, ADDRESSES[0]), (judy, ADDRESSES[1])], 16)?;
    let release = visitor.linux.kernel_release();
    visitor.linux.shutdown(COMMAND)?;
    Ok(release)
}
