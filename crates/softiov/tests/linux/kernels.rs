//! Other Debian kernels beside guests with 6.1: the next release's, and the newest that it can have. Left out:
//! everything that does not depend on the driver's version.

use crate::guest::{COMMAND, Guest};
use crate::igb;
use crate::report::Outcome;
use crate::world::{PF, VISITOR, World};
use anyhow::{Context, Result, ensure};
use linux_guest::{Assets, KernelSeries};

/// Linux 6.12 binds igbvf, has a link, and exchanges pings and TCP both ways.
pub(crate) fn igbvf_of_trixie_joins_in(world: &mut World) -> Result<Outcome> {
    let release = join_in(world, KernelSeries::Trixie612)?;
    ensure!(release.starts_with("6.12."), "it runs Linux {release}");
    Ok(Outcome::Passed)
}

/// So does the kernel of trixie-backports, whichever it is today.
pub(crate) fn igbvf_of_backports_joins_in(world: &mut World) -> Result<Outcome> {
    is_newer_than_trixies(&join_in(world, KernelSeries::TrixieBackports)?)?;
    Ok(Outcome::Passed)
}

/// The igb of Linux 6.12 drives the PF: it has a link, passes its own tests, and exchanges traffic.
pub(crate) fn igb_of_trixie_drives_the_pf(world: &mut World) -> Result<Outcome> {
    let release = drive_the_pf(world, KernelSeries::Trixie612)?;
    ensure!(release.starts_with("6.12."), "it runs Linux {release}");
    Ok(Outcome::Passed)
}

/// So does the igb of trixie-backports.
pub(crate) fn igb_of_backports_drives_the_pf(world: &mut World) -> Result<Outcome> {
    is_newer_than_trixies(&drive_the_pf(world, KernelSeries::TrixieBackports)?)?;
    Ok(Outcome::Passed)
}

/// Boots a guest on the PF, lets it test itself and exchange traffic, and answers which kernel it runs.
fn drive_the_pf(world: &mut World, series: KernelSeries) -> Result<String> {
    let assets = Assets::prepare(series)?;
    let builder = world.builder(series.name(), PF).cpus(2);
    let guest = world.boot_in_place_of_dave(builder, &assets)?;
    guest.settle()?;
    let driver = guest.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igb\n"), "{driver}");
    igb::passes_its_own_tests(&guest)?;
    guest.settle()?;
    if let Ok(wire) = &world.wire {
        igb::exchange(&guest, wire)?;
    }
    let release = guest.linux.kernel_release();
    guest.linux.shutdown(COMMAND)?;
    Ok(release)
}

/// Boots a guest on a VF, lets it exchange traffic, and answers which kernel it runs.
fn join_in(world: &World, series: KernelSeries) -> Result<String> {
    let assets = Assets::prepare(series)?;
    let visitor = world.boot_visitor(world.builder(series.name(), VISITOR), &assets)?;
    visitor.settle()?;
    let driver = visitor.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igbvf\n"), "{driver}");
    for (from, to) in [(&visitor, world.alice()?), (world.alice()?, &visitor)] {
        exchange(from, to)?;
    }
    let release = visitor.linux.kernel_release();
    visitor.linux.shutdown(COMMAND)?;
    Ok(release)
}

fn exchange(from: &Guest, to: &Guest) -> Result<()> {
    from.reach(&to.address())?;
    for size in [56, 1400, 8000] {
        from.ping(&to.address(), size, 10)?;
    }
    from.iperf(&to.address(), "-n 16M")?;
    let errors = to.statistic("rx_csum_offload_errors")?;
    ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", to.name());
    Ok(())
}

fn is_newer_than_trixies(release: &str) -> Result<()> {
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).with_context(|| format!("Linux {release:?}"));
    ensure!((number()?, number()?) > (6, 12), "trixie-backports has Linux {release}");
    Ok(())
}
