//! Checks the start of a VF, from the handshake to the link. Frames are checked later.

use super::{CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, passes, unexpected};
use crate::port::vf_mac;
use driver::vf::VfLinkStatus;
use host::poll::MonotonicClock;
use i82576::VfIndex;
use std::time::Duration;

/// Number of mailbox handshakes that the check makes with each VF.
const HANDSHAKES: usize = 3;
/// Timeout of a link: autonegotiation of 1000BASE-T takes up to three seconds.
const LINK_PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Checks that each VF can be restarted, which takes a VF_RESET message and every later request to the PF.
pub(super) fn handshake<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    for station in &mut world.stations {
        for _ in 0..HANDSHAKES {
            station.vf.restart(&mut station.hal)?;
        }
    }
    passes(format!("{HANDSHAKES} handshakes by each of {} VFs", world.stations.len()))
}

/// Checks the VFs' Ethernet addresses: under our PF driver those that it has set; under another PF driver any valid
/// ones that differ from each other.
pub(super) fn address<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let addresses: Vec<_> = world.stations.iter().map(|station| station.vf.mac()).collect();
    let as_set = VfIndex::all().zip(&addresses).all(|(vf, mac)| *mac == vf_mac(vf));
    let distinct = |(i, mac): (usize, _)| !addresses[..i].contains(mac);
    let possible =
        addresses.iter().all(|mac| mac.is_valid_unicast()) && addresses.iter().enumerate().all(distinct);
    let saw = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let good = if world.port.is_some() { as_set } else { possible };
    if good { passes(saw) } else { unexpected(saw) }
}

pub(super) fn link<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let mut saw = Vec::new();
    for station in &mut world.stations {
        let start = MonotonicClock.now_ns();
        wait_for_link(station)?;
        saw.push(format!("{} ms", (MonotonicClock.now_ns() - start) / 1_000_000));
    }
    passes(format!("link up after {}", saw.join(", ")))
}

/// Waits until the VF's link is up.
pub(super) fn wait_for_link<B: CheckedVfBus>(station: &mut CheckedVf<B>) -> Result<(), CardCheckError> {
    let end = MonotonicClock.now_ns() + LINK_PATIENCE.as_nanos() as u64;
    loop {
        match station.vf.check_link(&mut station.hal) {
            VfLinkStatus::Up(_) => return Ok(()),
            state if MonotonicClock.now_ns() >= end => {
                return unexpected(format!("link of {}: {}", station.hal.name(), without_link(state)));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Returns a description of the possible causes of a link that is down. The driver cannot distinguish a port without a
/// link from a VF that the PF has disabled.
fn without_link(state: VfLinkStatus) -> &'static str {
    match state {
        VfLinkStatus::Up(_) => "up",
        VfLinkStatus::Down => {
            "down: the port has no link, or the VF is quarantined or its state is disable (on SoftIOV's card \
             `softiov vf show` reports the state)"
        }
        VfLinkStatus::ResetNeeded => "not negotiated: the PF lost the VF's state, so the VF must be reset",
        VfLinkStatus::Gone => "unknown: the function was removed from the bus",
    }
}

#[cfg(test)]
mod tests {
    use super::without_link;
    use driver::vf::VfLinkStatus;

    #[test]
    fn link_check_failure_names_its_possible_causes() {
        let description = without_link(VfLinkStatus::Down);
        for cause in ["port", "quarantined", "disable", "softiov vf show"] {
            assert!(description.contains(cause), "{cause} in {description}");
        }
    }
}
