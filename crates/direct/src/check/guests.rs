//! TCP/IP stacks on the VFs: guests in this process, which use the drivers as an operating system does, by interrupts.
//! They take the VFs over, so these checks are the last.
//!
//! Left out: how fast they are.

use super::{Found, Station, Subject, Trouble, Wire, World, instead, passes};
use embedded_guest::{EmbeddedGuest, Pings};
use std::net::Ipv4Addr;
use std::time::Duration;

const PINGS: u16 = 20;
const BYTES: u64 = 1 << 20;
const LINK_PATIENCE: Duration = Duration::from_secs(5);
/// Where guests live that look for nobody on the wire.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 82, 57, 1);

/// The guests on the first two VFs.
pub(super) struct Guests {
    first: EmbeddedGuest,
    second: Option<EmbeddedGuest>,
}

impl<B: Subject> World<B> {
    /// The guests; they start when they are first asked for.
    fn guests(&mut self) -> Result<&Guests, Trouble> {
        let guests = match self.guests.take() {
            Some(guests) => guests,
            None => start(&mut self.stations, self.wire)?,
        };
        Ok(self.guests.insert(guests))
    }
}

fn start<B: Subject>(stations: &mut Vec<Station<B>>, wire: Option<Wire>) -> Result<Guests, Trouble> {
    let ip = wire.map_or(NETWORK, |wire| wire.own);
    let next = |ip: Ipv4Addr| Ipv4Addr::from_bits(ip.to_bits() + 1);
    let neighbour = if wire.is_some_and(|wire| wire.peer == next(ip)) { next(next(ip)) } else { next(ip) };
    let mut taken = stations.drain(..stations.len().min(2));
    let Some(station) = taken.next() else { return Err(Trouble::NotHere("it takes a VF")) };
    let first = guest(station, "first", ip)?;
    let second = taken.next().map(|station| guest(station, "second", neighbour)).transpose()?;
    Ok(Guests { first, second })
}

fn guest<B: Subject>(station: Station<B>, name: &str, ip: Ipv4Addr) -> Result<EmbeddedGuest, Trouble> {
    // As new: the checks before may have left a vector masked.
    let Station { mut hal, mut vf } = station;
    vf.restart(&mut hal)?;
    let guest = EmbeddedGuest::start_on(hal, vf, name.to_owned(), ip)?;
    if guest.wait_link(LINK_PATIENCE) {
        Ok(guest)
    } else {
        instead(format!("the {name} guest finds no link"))
    }
}

impl Guests {
    fn second(&self) -> Result<&EmbeddedGuest, Trouble> {
        self.second.as_ref().ok_or(Trouble::NotHere("it takes two VFs"))
    }
}

fn judge(pings: &Pings) -> Found {
    let median = pings.median().unwrap_or_default().as_micros();
    let saw = format!("{} of {}, median {median} us", pings.received(), pings.sent);
    if pings.received() == usize::from(PINGS) { passes(saw) } else { instead(saw) }
}

pub(super) fn ping<B: Subject>(world: &mut World<B>) -> Found {
    let guests = world.guests()?;
    judge(&guests.first.ping(guests.second()?.ip(), PINGS)?)
}

pub(super) fn tcp<B: Subject>(world: &mut World<B>) -> Found {
    let guests = world.guests()?;
    let flow = guests.first.send_tcp(guests.second()?.ip(), BYTES)?;
    let saw = format!("{} of {} bytes", flow.received, flow.bytes);
    if flow.is_intact() { passes(saw) } else { instead(saw) }
}

pub(super) fn wire<B: Subject>(world: &mut World<B>) -> Found {
    let Some(wire) = world.wire else { return Err(Trouble::NotHere("no station was named; see --peer")) };
    judge(&world.guests()?.first.ping(wire.peer, PINGS)?)
}
