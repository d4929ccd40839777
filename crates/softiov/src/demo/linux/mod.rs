//! The demo with virtual machines: two unmodified Debian kernels with the stock igbvf or iavf under QEMU, each on a VF,
//! and, if privileged, the host itself on a tap uplink in a network namespace.
//!
//! Left out: a check of everything a guest can do; that is the Linux test's.

mod guest;
mod interrupt;
mod uplink;

use super::Card;
use super::host::DemoHost;
use super::report::{Flow, Outcome, Ping, Report, to_tenths};
use super::say;
use anyhow::{Context, Result};
use guest::Guest;
use interrupt::Interrupt;
use linux_guest::{Accel, Assets, KernelSeries};
use uplink::Uplink;

const GUESTS: usize = 2;
/// Small, nearly full, and fragmented, bytes of payload.
const PING_SIZES: [u32; 3] = [56, 1_400, 8_000];
const PINGS: u32 = 20;
const UPLINK: &str = "uplink";

/// Runs it; each flow takes so many seconds.
pub(super) fn run(seconds: u64, card: Card<'_>) -> Result<Outcome> {
    say("preparing QEMU, kernel and initramfs (downloaded once, then cached)");
    let assets = Assets::prepare(KernelSeries::Bookworm61)?;
    // In the order in which things must go: signals, guests, host, uplink. Locals are dropped last to first.
    let (uplink, host) = start_host(card)?;
    let accel = Accel::choose(&assets);
    say(format_args!("booting {GUESTS} Debian guests on {}", accel.name()));
    let guests = host.vfs().iter().map(|vf| Guest::boot(&assets, vf, accel)).collect::<Result<Vec<_>>>()?;
    let _interrupt = Interrupt::kills(guests.iter().map(Guest::pid).collect())?;
    for guest in &guests {
        guest.set_up()?;
        say(format_args!("{} is up: Linux {}", guest.vf(), guest.kernel()));
    }
    let report = Report { mapped: card.mapped, ..Report::default() };
    let mut scene = Scene { host: &host, seconds, report, wrong: Vec::new() };
    scene.play(&guests, uplink.as_ref())?;
    let Scene { report, wrong, .. } = scene;
    Ok(Outcome::new(report, host.status()?.vfs, wrong))
}

/// The host, on an uplink if that can be had.
fn start_host(card: Card<'_>) -> Result<(Option<Uplink>, DemoHost)> {
    match Uplink::open() {
        Ok(mut uplink) => {
            say(format_args!("starting the host: one port, {GUESTS} VFs, uplink tap {}", uplink.tap()));
            let host = DemoHost::start(GUESTS, card, Some(uplink.tap()))?;
            // Before there are guests: the tap is down while it moves, and so is the port's link.
            uplink.adopt_tap()?;
            Ok((Some(uplink), host))
        }
        Err(error) => {
            say(format_args!("no uplink, so traffic beyond the card is left out: {error:#}"));
            say(format_args!("starting the host: one port, {GUESTS} VFs, no uplink"));
            Ok((None, DemoHost::start(GUESTS, card, None)?))
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
    fn play(&mut self, guests: &[Guest], uplink: Option<&Uplink>) -> Result<()> {
        let [one, other] = guests else { anyhow::bail!("the demo is for {GUESTS} guests") };
        for guest in guests {
            self.report.guests.push(guest.describe()?);
            self.wrong.extend(guest.missing_offloads()?);
        }
        say("pings between the VFs, small, nearly full and fragmented, untagged and in a VLAN");
        for (from, to) in [(one, other), (other, one)] {
            for size in PING_SIZES {
                self.ping(from, from.vf(), (to.vf(), &to.address()), size)?;
            }
            self.ping(from, &from.vlan_name(), (&to.vlan_name(), &to.vlan_address()), PING_SIZES[0])?;
        }
        say(format_args!("iperf3 between the VFs, both ways, {} s each", self.seconds));
        for (from, to) in [(one, other), (other, one)] {
            self.flow(from, from.vf(), (to.vf(), &to.address()), Direction::There);
        }
        say("iperf3 between the VFs in a VLAN");
        self.flow(one, &one.vlan_name(), (&other.vlan_name(), &other.vlan_address()), Direction::There);
        if uplink.is_some() {
            say("pings and iperf3 between a VF and the uplink, both ways");
            for size in PING_SIZES {
                self.ping(one, one.vf(), (UPLINK, uplink::ADDRESS), size)?;
            }
            self.flow(one, one.vf(), (UPLINK, uplink::ADDRESS), Direction::There);
            self.flow(one, one.vf(), (UPLINK, uplink::ADDRESS), Direction::Back);
        }
        for guest in guests {
            self.wrong.extend(guest.checksum_errors()?);
        }
        Ok(())
    }

    /// Pings an address; `to` is what it is called, and the address.
    fn ping(&mut self, guest: &Guest, from: &str, to: (&str, &str), size: u32) -> Result<()> {
        let measured = self.host.measure(|| guest.ping(to.1, size, PINGS));
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

    /// A flow between a guest and an address, in either direction.
    fn flow(&mut self, guest: &Guest, name: &str, peer: (&str, &str), direction: Direction) {
        let ((from, to), option) = match direction {
            Direction::There => ((name, peer.0), ""),
            Direction::Back => ((peer.0, name), "-R"),
        };
        let measured = self.host.measure(|| guest.iperf(peer.1, self.seconds, option));
        let (bytes, mbps, trapped_per_1000_packets) = match measured {
            Ok(((bytes, mbps), cost)) => (bytes, mbps, cost.per_1000_packets()),
            Err(error) => {
                self.wrong.push(format!("TCP from {from} to {to}: {error:#}"));
                (0, 0.0, 0.0)
            }
        };
        let (from, to) = (from.to_owned(), to.to_owned());
        let mbps = to_tenths(mbps);
        self.report.flows.push(Flow { from, to, protocol: "tcp", bytes, mbps, trapped_per_1000_packets });
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
