//! The next Debian's kernel, Linux 6.12, beside guests with 6.1. Left out: everything that does not depend on the
//! driver's version.

use crate::guest::COMMAND;
use crate::report::Outcome;
use crate::world::{VISITOR, World};
use anyhow::{Result, ensure};
use linux_guest::{Assets, KernelSeries};

/// It binds, has a link, and exchanges pings and TCP both ways.
pub(crate) fn joins_in(world: &mut World) -> Result<Outcome> {
    let assets = Assets::prepare(KernelSeries::Trixie612)?;
    let trixie = world.boot_visitor(world.builder("trixie", VISITOR), &assets)?;
    let release = trixie.linux.kernel_release();
    ensure!(release.starts_with("6.12."), "it runs Linux {release}");
    trixie.settle()?;
    let driver = trixie.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igbvf\n"), "{driver}");
    for (from, to) in [(&trixie, &world.alice), (&world.alice, &trixie)] {
        from.reach(&to.address())?;
        for size in [56, 1400, 8000] {
            from.ping(&to.address(), size, 10)?;
        }
        from.iperf(&to.address(), "-n 16M")?;
        let errors = to.statistic("rx_csum_offload_errors")?;
        ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", to.name());
    }
    trixie.linux.shutdown(COMMAND)?;
    Ok(Outcome::Passed)
}
