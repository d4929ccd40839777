//! The demo with virtual machines: two unmodified Debian kernels with the stock igbvf or iavf under QEMU, each on a VF,
//! and, if privileged, the host itself on a tap uplink in a network namespace. With iavf each guest has a VF of an 82576 as
//! well, so that figures of both can be shown beside each other.
//!
//! Left out: a check of everything a guest can do; that is the Linux test's.

mod guest;
mod interrupt;
mod uplink;

use super::Card;
use super::host::{Cost, DemoHost};
use super::report::{Figures, Flow, Outcome, Ping, Report, to_tenths};
use super::say;
use anyhow::{Context, Result};
use guest::{Guest, Interface};
use interrupt::Interrupt;
use linux_guest::{Accel, Assets, KernelSeries};
use uplink::Uplink;

const GUESTS: usize = 2;
/// Small, nearly full, and fragmented, bytes of payload.
const PING_SIZES: [u32; 3] = [56, 1_400, 8_000];
const PINGS: u32 = 20;
const UPLINK: &str = "uplink";
/// The port of the card that was asked for.
const CARD: usize = 0;
/// The family that others are shown beside.
const MEASURE: &str = "82576";

/// Runs it; each flow takes so many seconds.
pub(super) fn run(seconds: u64, card: Card<'_>) -> Result<Outcome> {
    say("preparing QEMU, kernel and initramfs (downloaded once, then cached)");
    let assets = Assets::prepare(KernelSeries::Bookworm61)?;
    let beside = Some(Card { family: MEASURE, ..card }).filter(|beside| beside.family != card.family);
    let cards: Vec<Card<'_>> = [card].into_iter().chain(beside).collect();
    // In the order in which things must go: signals, guests, host, uplink. Locals are dropped last to first.
    let (uplink, host) = start_host(&cards)?;
    let accel = Accel::choose(&assets);
    say(format_args!("booting {GUESTS} Debian guests on {}", accel.name()));
    let vfs = |guest: usize| (0..cards.len()).map(|port| &host.vfs(port)[guest]).collect::<Vec<_>>();
    let guests = (0..GUESTS).map(|guest| Guest::boot(&assets, &vfs(guest), accel));
    let guests = guests.collect::<Result<Vec<_>>>()?;
    let _interrupt = Interrupt::kills(guests.iter().map(Guest::pid).collect())?;
    for guest in &guests {
        guest.set_up()?;
        say(format_args!("{} is up: Linux {}", guest.interface(CARD).vf(), guest.kernel()));
    }
    let mut scene = Scene { host: &host, seconds, report: Report::new(card), wrong: Vec::new() };
    let [one, other] = &guests[..] else { anyhow::bail!("the demo is for {GUESTS} guests") };
    scene.play(&cards, [one, other], uplink.as_ref())?;
    let Scene { report, wrong, .. } = scene;
    Ok(Outcome::new(report, host.status(CARD)?.vfs, wrong))
}

/// The host, on an uplink if that can be had.
fn start_host(cards: &[Card<'_>]) -> Result<(Option<Uplink>, DemoHost)> {
    let ports = cards.len();
    match Uplink::open() {
        Ok(mut uplink) => {
            say(format_args!(
                "starting the host: {GUESTS} VFs on each of {ports} port(s), uplink tap {}",
                uplink.tap()
            ));
            let host = DemoHost::start(GUESTS, cards, Some(uplink.tap()))?;
            // Before there are guests: the tap is down while it moves, and so is the port's link.
            uplink.adopt_tap()?;
            Ok((Some(uplink), host))
        }
        Err(error) => {
            say(format_args!("no uplink, so traffic beyond the card is left out: {error:#}"));
            say(format_args!("starting the host: {GUESTS} VFs on each of {ports} port(s), no uplink"));
            Ok((None, DemoHost::start(GUESTS, cards, None)?))
        }
    }
}

/// What happens, and what is seen of it.
struct Scene<'a> {
    host: &'a DemoHost,
    seconds: u64,
    report: Report,
    wrong: Vec<String>,
}

impl Scene<'_> {
    fn play(&mut self, cards: &[Card<'_>], guests: [&Guest; 2], uplink: Option<&Uplink>) -> Result<()> {
        let [one, other] = guests.map(|guest| guest.interface(CARD));
        for interface in [&one, &other] {
            self.report.guests.push(interface.describe()?);
            self.wrong.extend(interface.missing_offloads()?);
        }
        say("pings between the VFs, small, nearly full and fragmented, untagged and in a VLAN");
        for (from, to) in [(&one, &other), (&other, &one)] {
            for size in PING_SIZES {
                self.ping(from, from.vf(), (to.vf(), &to.address()), size)?;
            }
            self.ping(from, &from.vlan_name(), (&to.vlan_name(), &to.vlan_address()), PING_SIZES[0])?;
        }
        for (port, card) in cards.iter().enumerate() {
            self.bulk(port, card.family, guests)?;
        }
        say("iperf3 between the VFs in a VLAN");
        self.flow(&one, &one.vlan_name(), (&other.vlan_name(), &other.vlan_address()), Direction::There);
        if uplink.is_some() {
            say("pings and iperf3 between a VF and the uplink, both ways");
            for size in PING_SIZES {
                self.ping(&one, one.vf(), (UPLINK, uplink::ADDRESS), size)?;
            }
            self.flow(&one, one.vf(), (UPLINK, uplink::ADDRESS), Direction::There);
            self.flow(&one, one.vf(), (UPLINK, uplink::ADDRESS), Direction::Back);
        }
        for interface in [&one, &other] {
            self.wrong.extend(interface.checksum_errors()?);
        }
        Ok(())
    }

    /// Bulk TCP between two VFs of a port, both ways.
    fn bulk(&mut self, port: usize, family: &str, guests: [&Guest; 2]) -> Result<()> {
        say(format_args!("iperf3 between the VFs of family {family}, both ways, {} s each", self.seconds));
        let [one, other] = guests.map(|guest| guest.interface(port));
        let first = self.report.flows.len();
        let mut cost = Cost::default();
        for (from, to) in [(&one, &other), (&other, &one)] {
            cost = cost.and(self.flow(from, from.vf(), (to.vf(), &to.address()), Direction::There));
        }
        let flows = &self.report.flows[first..];
        let mbps = flows.iter().map(|flow| flow.mbps).sum::<f64>() / flows.len() as f64;
        self.report.figures.push(Figures {
            family: family.to_owned(),
            driver: one.driver()?,
            mbps: to_tenths(mbps),
            trapped_per_1000_packets: cost.per_1000_packets(),
            interrupts_per_1000_packets: cost.interrupts_per_1000_packets(),
        });
        Ok(())
    }

    /// Pings an address; `to` is what it is called, and the address.
    fn ping(&mut self, guest: &Interface<'_>, from: &str, to: (&str, &str), size: u32) -> Result<()> {
        let measured = self.host.measure(guest.port(), || guest.ping(to.1, size, PINGS));
        let (round_trips, cost) = measured.with_context(|| format!("ping from {from} to {}", to.0))?;
        self.report.pings.push(Ping {
            from: from.to_owned(),
            to: to.0.to_owned(),
            sent: PINGS.into(),
            received: round_trips.len() as u64,
            rtt_us_p50: median(round_trips),
            trapped_each: cost.each(PINGS.into()),
        });
        Ok(())
    }

    /// A flow between a guest and an address, in either direction; answers what it cost.
    fn flow(&mut self, guest: &Interface<'_>, name: &str, peer: (&str, &str), direction: Direction) -> Cost {
        let ((from, to), option) = match direction {
            Direction::There => ((name, peer.0), ""),
            Direction::Back => ((peer.0, name), "-R"),
        };
        let measured = self.host.measure(guest.port(), || guest.iperf(peer.1, self.seconds, option));
        let ((bytes, mbps), cost) = measured.unwrap_or_else(|error| {
            self.wrong.push(format!("TCP from {from} to {to}: {error:#}"));
            ((0, 0.0), Cost::default())
        });
        let (from, to, mbps) = (from.to_owned(), to.to_owned(), to_tenths(mbps));
        let trapped_per_1000_packets = cost.per_1000_packets();
        self.report.flows.push(Flow { from, to, protocol: "tcp", bytes, mbps, trapped_per_1000_packets });
        cost
    }
}

/// Who sends: the guest, or its peer.
#[derive(Clone, Copy)]
enum Direction {
    There,
    Back,
}

fn median(mut round_trips: Vec<f64>) -> Option<f64> {
    round_trips.sort_unstable_by(f64::total_cmp);
    round_trips.get(round_trips.len() / 2).copied()
}
