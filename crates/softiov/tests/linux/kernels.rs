//! Checks guests with kernels newer than 6.1, beside guests with 6.1: the kernel of the next Debian release, and the
//! kernel of its backports.

use crate::avf::AvfInterface;
use crate::avf::ethtool::spreads_flows;
use crate::guest::{COMMAND, ScenarioGuest};
use crate::igb;
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE_AVF, LinuxTestbed, PF, VISITOR, VISITOR_AVF};
use anyhow::{Context, Result, ensure};
use linux_guest::{BootFiles, KernelSeries};

/// Payload of pings at an MTU of 9000, in bytes.
const JUMBO: u32 = 8000;
const VLAN: u8 = 77;

/// Checks that Linux 6.12 binds igbvf and iavf, has a link with each, and exchanges pings and TCP both ways.
pub(crate) fn vf_drivers_of_trixie_join_in(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let release = join_in(world, KernelSeries::Trixie612)?;
    ensure!(release.starts_with("6.12."), "the guest runs Linux {release} instead of 6.12");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that igbvf and iavf of trixie-backports' kernel bind, have links, and exchange pings and TCP both ways.
pub(crate) fn vf_drivers_of_backports_join_in(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    is_7_or_newer(&join_in(world, KernelSeries::TrixieBackports)?)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the igb of Linux 6.12 drives the PF: it has a link, passes its own tests, and exchanges traffic.
pub(crate) fn igb_of_trixie_drives_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let release = drive_the_pf(world, KernelSeries::Trixie612)?;
    ensure!(release.starts_with("6.12."), "the guest runs Linux {release} instead of 6.12");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the igb of trixie-backports' kernel drives the PF: it has a link, passes its own tests, and exchanges
/// traffic.
pub(crate) fn igb_of_backports_drives_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    is_7_or_newer(&drive_the_pf(world, KernelSeries::TrixieBackports)?)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Boots a guest with another kernel on the PF, runs the self-tests of the kernel's driver, exchanges traffic, and
/// returns the kernel's release.
fn drive_the_pf(world: &mut LinuxTestbed, series: KernelSeries) -> Result<String> {
    let assets = BootFiles::prepare(series)?;
    let builder = world.builder(series.name(), PF).cpus(2);
    let guest = world.boot_in_place_of_dave(builder, &assets)?;
    guest.settle()?;
    let driver = guest.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igb\n"), "{driver}");
    igb::passes_its_own_tests(&guest, world.wire.as_ref().ok())?;
    guest.settle()?;
    if let Ok(wire) = &world.wire {
        igb::exchange(&guest, wire)?;
    }
    let release = guest.linux.kernel_release();
    guest.linux.shutdown(COMMAND)?;
    Ok(release)
}

/// Boots a guest with another kernel on a VF of each family, exchanges traffic, and returns the kernel's release.
fn join_in(world: &LinuxTestbed, series: KernelSeries) -> Result<String> {
    let assets = BootFiles::prepare(series)?;
    let builder = world.builder(series.name(), VISITOR).vf_socket(world.socket(VISITOR_AVF)).cpus(2);
    let visitor = world.boot_visitor(builder, &assets)?;
    visitor.settle()?;
    let driver = visitor.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igbvf\n"), "{driver}");
    for (from, to) in [(&visitor, world.alice()?), (world.alice()?, &visitor)] {
        exchange(from, to)?;
    }
    iavf_joins_in(world, &visitor)?;
    let release = visitor.linux.kernel_release();
    visitor.linux.shutdown(COMMAND)?;
    Ok(release)
}

fn exchange(from: &ScenarioGuest, to: &ScenarioGuest) -> Result<()> {
    from.reach(&to.address())?;
    for size in [56, 1400, 8000] {
        from.ping(&to.address(), size, 10)?;
    }
    from.iperf(&to.address(), "-n 16M")?;
    let errors = to.statistic("rx_csum_offload_errors")?;
    ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", to.name());
    Ok(())
}

/// Checks iavf of a guest with another kernel: pings, TCP, tags, both queues, and a number of queues and an MTU that
/// need a reset of its VF.
fn iavf_joins_in(world: &LinuxTestbed, visitor: &ScenarioGuest) -> Result<()> {
    let alice = AvfInterface::set_up(world.alice()?, ALICE_AVF, 1)?;
    let end = AvfInterface::set_up(visitor, VISITOR_AVF, 5)?;
    end.is_bound(world)?;
    crate::avf::recovery::exchange(&alice, &end)?;
    spreads_flows(world, &end, &alice.address())?;
    for one in [&alice, &end] {
        one.join_vlan(VLAN)?;
    }
    for queues in [1, 2] {
        end.check(&format!("ethtool -L IF combined {queues}"))?;
        end.wait_carrier(true)?;
        visitor.reach(&alice.vlan_address(VLAN)).with_context(|| format!("{queues} queues"))?;
        end.iperf(&alice.vlan_address(VLAN), 8)?;
        alice.iperf(&end.vlan_address(VLAN), 8)?;
    }
    end.check("ip link set IF mtu 9000")?;
    alice.check("ip link set IF down && ip link set IF mtu 9000 && ip link set IF up")?;
    [&alice, &end].into_iter().try_for_each(|end| end.wait_carrier(true))?;
    alice.reach(&end)?;
    let fragments = visitor.fragments_made()?;
    end.ping(&alice, JUMBO, 10)?;
    ensure!(visitor.fragments_made()? == fragments, "fragments were made of frames that fit");
    crate::avf::no_checksum_errors(visitor)
}

/// Checks that a kernel's release is 7.0 or newer, as trixie-backports has it: an older one would repeat another check.
pub(crate) fn is_7_or_newer(release: &str) -> Result<()> {
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    ensure!(major >= Some(7), "the guest runs Linux {release} instead of 7.0 or newer of trixie-backports");
    Ok(())
}
