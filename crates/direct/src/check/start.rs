//! From a VF that was just opened to one with a link. Left out: frames.

use super::{Found, Station, Subject, Trouble, World, instead, passes};
use crate::port::vf_mac;
use driver::vf::LinkCheck;
use host::poll::Clock;
use i82576::VfIndex;
use std::time::Duration;

/// How often the VF introduces itself.
const HANDSHAKES: usize = 3;
/// How long a link may take: autonegotiation of 1000BASE-T takes up to three seconds.
const LINK_PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Each VF is taken down and up again, which takes a VF_RESET and every wish.
pub(super) fn handshake<B: Subject>(world: &mut World<B>) -> Found {
    for station in &mut world.stations {
        for _ in 0..HANDSHAKES {
            station.vf.restart(&mut station.hal)?;
        }
    }
    passes(format!("{HANDSHAKES} times by {} VFs", world.stations.len()))
}

/// The one that our PF set; under another's PF any that a station can have, and that no other VF has.
pub(super) fn address<B: Subject>(world: &mut World<B>) -> Found {
    let addresses: Vec<_> = world.stations.iter().map(|station| station.vf.mac()).collect();
    let as_set = VfIndex::all().zip(&addresses).all(|(vf, mac)| *mac == vf_mac(vf));
    let distinct = |(i, mac): (usize, _)| !addresses[..i].contains(mac);
    let possible =
        addresses.iter().all(|mac| mac.is_valid_unicast()) && addresses.iter().enumerate().all(distinct);
    let saw = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let good = if world.port.is_some() { as_set } else { possible };
    if good { passes(saw) } else { instead(saw) }
}

pub(super) fn link<B: Subject>(world: &mut World<B>) -> Found {
    let mut saw = Vec::new();
    for station in &mut world.stations {
        let start = Clock.now_ns();
        wait_for_link(station)?;
        saw.push(format!("{} ms", (Clock.now_ns() - start) / 1_000_000));
    }
    passes(format!("after {}", saw.join(", ")))
}

/// Waits for the link.
pub(super) fn wait_for_link<B: Subject>(station: &mut Station<B>) -> Result<(), Trouble> {
    let end = Clock.now_ns() + LINK_PATIENCE.as_nanos() as u64;
    loop {
        match station.vf.check_link(&mut station.hal) {
            LinkCheck::Up(_) => return Ok(()),
            state if Clock.now_ns() >= end => {
                return instead(format!("{}: {}", station.hal.name(), without_link(state)));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// What a driver can say of a link that is not up. Whether the port has none or somebody has taken it from this VF, it
/// cannot see.
fn without_link(state: LinkCheck) -> &'static str {
    match state {
        LinkCheck::Up(_) => "up",
        LinkCheck::Down => {
            "down; the port may have no link, or the VF may be quarantined or its state be disable (on our own card \
             `softiov vf show` tells)"
        }
        LinkCheck::ResetNeeded => "the PF has lost track of the VF, which has to be reset",
        LinkCheck::Gone => "the function has gone from the bus",
    }
}

#[cfg(test)]
mod tests {
    use super::without_link;
    use driver::vf::LinkCheck;

    #[test]
    fn a_link_that_is_down_names_what_may_have_taken_it() {
        let told = without_link(LinkCheck::Down);
        for cause in ["port", "quarantined", "disable", "softiov vf show"] {
            assert!(told.contains(cause), "{cause} in {told}");
        }
    }
}
