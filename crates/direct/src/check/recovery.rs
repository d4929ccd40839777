//! Checks that drivers recover from resets by others, such as a function level reset or a reset of the PF.
//! Removal is not checked.

use super::start::wait_for_link;
use super::{
    CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, differs, passes, unexpected,
};
use crate::port::PfAndRegisters;
use driver::vf::VfLinkStatus;
use host::poll::MonotonicClock;
use i82576::VfIndex;
use std::time::Duration;

/// Timeout until a driver notices a reset.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);
const LENGTH: usize = 100;

/// Waits until the VF driver notices that its function was reset. Returns false after the timeout.
fn notices<B: CheckedVfBus>(station: &mut CheckedVf<B>) -> bool {
    let end = MonotonicClock.now_ns() + PATIENCE.as_nanos() as u64;
    while station.vf.check_link(&mut station.hal) != VfLinkStatus::ResetNeeded {
        if MonotonicClock.now_ns() >= end {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

fn come_back<B: CheckedVfBus>(station: &mut CheckedVf<B>) -> Result<(), CardCheckError> {
    station.vf.restart(&mut station.hal)?;
    wait_for_link(station)
}

fn exchange<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> Result<(), CardCheckError> {
    let (a, b) = world.pair()?;
    let sent = a.send(b.vf.mac(), 0, LENGTH)?;
    b.expect(&sent)?;
    let sent = b.send(a.vf.mac(), 1, LENGTH)?;
    a.expect(&sent)?;
    Ok(())
}

fn resets<B: CheckedVfBus>(world: &CardCheckContext<B>) -> Option<u64> {
    let side = world.port.as_ref()?.lock();
    VfIndex::new(0).map(|vf| side.pf.counters(vf).resets)
}

pub(super) fn vf_reset<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let before = resets(world);
    let (a, b) = world.pair()?;
    if let Err(error) = a.hal.reset() {
        return unexpected(error.to_string());
    }
    b.send(a.vf.mac(), 0, LENGTH)?;
    a.expect_nothing()?;
    let noticed = notices(a);
    come_back(a)?;
    exchange(world)?;
    match (before, resets(world)) {
        // The restart resets the function, too, so the PF must count two.
        (Some(before), Some(after)) if after < before + 2 => {
            unexpected("the PF did not notice the reset of the VF")
        }
        // Reported as a difference only: on most systems the driver is notified of a reset by the system.
        _ if !noticed => differs("RSTD does not show the reset to the VF"),
        _ => passes(""),
    }
}

pub(super) fn pf_reset<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    {
        let mut side = world.port()?.lock();
        let PfAndRegisters { pf, hal } = &mut *side;
        pf.reset(hal)?;
    }
    for station in &mut world.stations {
        if !notices(station) {
            return unexpected("a VF driver did not notice the reset of the port");
        }
        come_back(station)?;
    }
    exchange(world)?;
    passes("")
}
