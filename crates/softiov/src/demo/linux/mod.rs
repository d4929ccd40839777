//! `softiov demo --linux`: boots two Debian virtual machines under QEMU with the stock igbvf, iavf or virtio_net, each on a VF.
//! If privileged, the host itself takes part over a tap uplink in a network namespace. With iavf or virtio_net, each guest
//! also has a VF of an 82576, so that the report shows both families.

mod guest;
mod interrupt;
mod uplink;

use super::card::DemoCard;
use super::host::{DemoHost, TrafficCost};
use super::print_progress;
use super::report::{DemoOutcome, DemoReport, FamilyPerformance, PingResult, TcpFlow, to_tenths};
use anyhow::{Context, Result};
use guest::{DemoGuest, GuestInterface};
use interrupt::DemoSignalThread;
use linux_guest::{BootFiles, KernelSeries, QemuAccelerator};
use uplink::UplinkNamespace;

const GUESTS: usize = 2;
/// Payload sizes of the demo's pings, bytes: small, nearly a full frame, and fragmented.
const PING_SIZES: [u32; 3] = [56, 1_400, 8_000];
const PINGS: u32 = 20;
const UPLINK: &str = "uplink";
/// Index of the demo's port with the requested card.
const CARD: usize = 0;
/// Device family whose figures the report shows beside those of other families.
const BASELINE: &str = "82576";

/// Runs the demo with virtual machines; each flow takes `seconds`.
pub(super) fn run(seconds: u64, card: DemoCard<'_>) -> Result<DemoOutcome> {
    print_progress("preparing QEMU, kernel and initramfs (downloaded once, then cached)");
    let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
    let beside = Some(DemoCard { family: BASELINE, ..card }).filter(|beside| beside.family != card.family);
    let cards: Vec<DemoCard<'_>> = [card].into_iter().chain(beside).collect();
    // Locals are dropped last to first: signals, guests, host, uplink.
    let (uplink, host) = start_host(&cards)?;
    let accel = QemuAccelerator::choose(&assets);
    print_progress(format_args!("booting {GUESTS} Debian guests on {}", accel.name()));
    let vfs = |guest: usize| (0..cards.len()).map(|port| &host.vfs(port)[guest]).collect::<Vec<_>>();
    let guests = (0..GUESTS).map(|guest| DemoGuest::boot(&assets, &vfs(guest), accel));
    let guests = guests.collect::<Result<Vec<_>>>()?;
    let _interrupt = DemoSignalThread::kill_on_signal(guests.iter().map(DemoGuest::pid).collect())?;
    for guest in &guests {
        guest.set_up()?;
        print_progress(format_args!("{} is up: Linux {}", guest.interface(CARD).vf(), guest.kernel()));
    }
    let mut scenario =
        LinuxDemo { host: &host, seconds, report: DemoReport::new(card), problems: Vec::new() };
    let [one, other] = &guests[..] else { anyhow::bail!("the demo needs {GUESTS} guests") };
    scenario.play(&cards, [one, other], uplink.as_ref())?;
    let LinuxDemo { report, problems, .. } = scenario;
    Ok(DemoOutcome::new(report, host.status(CARD)?.vfs, problems))
}

/// Starts the demo's host with an uplink in a network namespace, or without one if a namespace is not available.
fn start_host(cards: &[DemoCard<'_>]) -> Result<(Option<UplinkNamespace>, DemoHost)> {
    let ports = cards.len();
    match UplinkNamespace::open() {
        Ok(mut uplink) => {
            print_progress(format_args!(
                "starting the host: {GUESTS} VFs on each of {ports} port(s), uplink tap {}",
                uplink.tap()
            ));
            let host = DemoHost::start(GUESTS, cards, Some(uplink.tap()))?;
            // Before guests boot: the tap, and with it the port's link, is down while it moves.
            uplink.adopt_tap()?;
            Ok((Some(uplink), host))
        }
        Err(error) => {
            print_progress(format_args!("no uplink, skipping traffic beyond the card: {error:#}"));
            print_progress(format_args!(
                "starting the host: {GUESTS} VFs on each of {ports} port(s), no uplink"
            ));
            Ok((None, DemoHost::start(GUESTS, cards, None)?))
        }
    }
}

/// Running demo with virtual machines: its host, its report so far, and the problems found.
struct LinuxDemo<'a> {
    host: &'a DemoHost,
    seconds: u64,
    report: DemoReport,
    problems: Vec<String>,
}

impl LinuxDemo<'_> {
    fn play(
        &mut self,
        cards: &[DemoCard<'_>],
        guests: [&DemoGuest; 2],
        uplink: Option<&UplinkNamespace>,
    ) -> Result<()> {
        let [one, other] = guests.map(|guest| guest.interface(CARD));
        for interface in [&one, &other] {
            self.report.guests.push(interface.describe()?);
            self.problems.extend(interface.missing_offloads()?);
        }
        print_progress("pings between the VFs, small, nearly full and fragmented, untagged and in a VLAN");
        for (from, to) in [(&one, &other), (&other, &one)] {
            for size in PING_SIZES {
                self.ping(from, from.vf(), (to.vf(), &to.address()), size)?;
            }
            self.ping(from, &from.vlan_name(), (&to.vlan_name(), &to.vlan_address()), PING_SIZES[0])?;
        }
        for (port, card) in cards.iter().enumerate() {
            self.bulk(port, card.family, guests)?;
        }
        print_progress("iperf3 between the VFs in a VLAN");
        self.flow(&one, &one.vlan_name(), (&other.vlan_name(), &other.vlan_address()), FlowDirection::ToPeer);
        if uplink.is_some() {
            print_progress("pings and iperf3 between a VF and the uplink, both ways");
            for size in PING_SIZES {
                self.ping(&one, one.vf(), (UPLINK, uplink::ADDRESS), size)?;
            }
            self.flow(&one, one.vf(), (UPLINK, uplink::ADDRESS), FlowDirection::ToPeer);
            self.flow(&one, one.vf(), (UPLINK, uplink::ADDRESS), FlowDirection::FromPeer);
        }
        for interface in [&one, &other] {
            self.problems.extend(interface.checksum_errors()?);
        }
        Ok(())
    }

    /// Measures bulk TCP between the guests' VFs on a port, both ways, and adds flows and figures to the report.
    fn bulk(&mut self, port: usize, family: &str, guests: [&DemoGuest; 2]) -> Result<()> {
        print_progress(format_args!(
            "iperf3 between the VFs of card family {family}, both ways, {} s each",
            self.seconds
        ));
        let [one, other] = guests.map(|guest| guest.interface(port));
        let first = self.report.flows.len();
        let mut cost = TrafficCost::default();
        for (from, to) in [(&one, &other), (&other, &one)] {
            cost = cost.and(self.flow(from, from.vf(), (to.vf(), &to.address()), FlowDirection::ToPeer));
        }
        let flows = &self.report.flows[first..];
        let mbps = flows.iter().map(|flow| flow.mbps).sum::<f64>() / flows.len() as f64;
        self.report.figures.push(FamilyPerformance {
            family: family.to_owned(),
            driver: one.driver()?,
            mbps: to_tenths(mbps),
            trapped_per_1000_packets: cost.per_1000_packets(),
            interrupts_per_1000_packets: cost.interrupts_per_1000_packets(),
        });
        Ok(())
    }

    /// Pings a peer from a guest's interface, and adds the result to the report. `to` is the peer's name in the report,
    /// and its address.
    fn ping(&mut self, guest: &GuestInterface<'_>, from: &str, to: (&str, &str), size: u32) -> Result<()> {
        let measured = self.host.measure(guest.port(), || guest.ping(to.1, size, PINGS));
        let (round_trips, cost) =
            measured.with_context(|| format!("the ping from {from} to {} failed", to.0))?;
        self.report.pings.push(PingResult {
            from: from.to_owned(),
            to: to.0.to_owned(),
            sent: PINGS.into(),
            received: round_trips.len() as u64,
            rtt_us_p50: median(round_trips),
            trapped_each: cost.accesses_per(PINGS.into()),
        });
        Ok(())
    }

    /// Runs a TCP flow between a guest and `peer` (name and address), adds the flow to the report, and returns its
    /// cost.
    fn flow(
        &mut self,
        guest: &GuestInterface<'_>,
        name: &str,
        peer: (&str, &str),
        direction: FlowDirection,
    ) -> TrafficCost {
        let ((from, to), option) = match direction {
            FlowDirection::ToPeer => ((name, peer.0), ""),
            FlowDirection::FromPeer => ((peer.0, name), "-R"),
        };
        let measured = self.host.measure(guest.port(), || guest.iperf(peer.1, self.seconds, option));
        let ((bytes, mbps), cost) = measured.unwrap_or_else(|error| {
            self.problems.push(format!("TCP from {from} to {to}: {error:#}"));
            ((0, 0.0), TrafficCost::default())
        });
        let (from, to, mbps) = (from.to_owned(), to.to_owned(), to_tenths(mbps));
        let trapped_per_1000_packets = cost.per_1000_packets();
        self.report.flows.push(TcpFlow { from, to, protocol: "tcp", bytes, mbps, trapped_per_1000_packets });
        cost
    }
}

/// Direction of a TCP flow, seen from the guest.
#[derive(Clone, Copy)]
enum FlowDirection {
    ToPeer,
    FromPeer,
}

fn median(mut round_trips: Vec<f64>) -> Option<f64> {
    round_trips.sort_unstable_by(f64::total_cmp);
    round_trips.get(round_trips.len() / 2).copied()
}
