//! `softiov demo` without virtual machines: runs three guests in this process, over real sockets and shared memory.
//!
//! SIGINT and SIGTERM are checked between steps, which are short. The demo then fails and cleans up as after any
//! error.

use super::card::DemoCard;
use super::host::DemoHost;
use super::print_progress;
use super::report::{DemoOutcome, DemoReport, PingResult, ReportedGuest, TcpFlow, to_tenths};
use anyhow::{Context, Result, ensure};
use daemon::config::VfConfig;
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig};
use host::poll::{SignalHandlers, SignalSet};
use std::net::Ipv4Addr;
use std::time::Duration;

const GUESTS: usize = 3;
/// Index of the demo's only port.
const PORT: usize = 0;
const PINGS: u16 = 20;
const FLOW_BYTES: u64 = 64 << 20;
const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the demo with embedded guests.
pub(super) fn run(card: DemoCard<'_>) -> Result<DemoOutcome> {
    print_progress(format_args!("starting the host: one port, {GUESTS} VFs, no uplink"));
    // Catch signals before anything exists that needs cleaning up.
    let signals = SignalHandlers::install().context("cannot catch signals")?;
    let host = DemoHost::start(GUESTS, &[card], None)?;
    let guests = host.vfs(PORT).iter().map(|vf| check_signals(&signals).and_then(|()| attach(vf)));
    let guests = guests.collect::<Result<Vec<_>>>()?;
    let descriptions = guests.iter().map(describe).collect();
    let mut report = DemoReport::new(card);
    report.guests = descriptions;
    let mut problems = Vec::new();
    for guest in guests.iter().filter(|guest| !guest.wait_link(LINK_TIMEOUT)) {
        problems.push(format!("{}: the link is down after {LINK_TIMEOUT:?}", guest.name()));
    }
    print_progress(format_args!("{PINGS} pings from every guest to every other"));
    for (from, to) in pairs(&guests) {
        check_signals(&signals)?;
        report.pings.push(ping(&host, from, to)?);
    }
    print_progress(format_args!("{} MiB over TCP from every guest to every other", FLOW_BYTES >> 20));
    for (from, to) in pairs(&guests) {
        check_signals(&signals)?;
        let (flow, problem) = send(&host, from, to)?;
        report.flows.push(flow);
        problems.extend(problem);
    }
    let port = host.status(PORT)?;
    Ok(DemoOutcome::new(report, port.vfs, problems))
}

/// Fails if SIGINT or SIGTERM has arrived.
fn check_signals(signals: &SignalHandlers) -> Result<()> {
    ensure!(signals.take() == SignalSet::default(), "the demo was interrupted by a signal");
    Ok(())
}

fn attach(vf: &VfConfig) -> Result<EmbeddedGuest> {
    print_progress(format_args!("attaching a guest to {}", vf.name));
    let ip = Ipv4Addr::new(10, 82, 0, vf.index.get() + 1);
    let config = EmbeddedGuestConfig { socket: vf.socket.clone(), name: vf.name.clone(), ip };
    EmbeddedGuest::start(config).with_context(|| format!("cannot start the guest on {}", vf.name))
}

fn describe(guest: &EmbeddedGuest) -> ReportedGuest {
    ReportedGuest {
        vf: guest.name().to_owned(),
        kind: "embedded",
        mac: guest.mac().to_string(),
        driver: guest.family().driver().to_owned(),
    }
}

fn pairs(guests: &[EmbeddedGuest]) -> impl Iterator<Item = (&EmbeddedGuest, &EmbeddedGuest)> {
    let ordered = guests.iter().flat_map(move |from| guests.iter().map(move |to| (from, to)));
    ordered.filter(|(from, to)| from.name() != to.name())
}

fn ping(host: &DemoHost, from: &EmbeddedGuest, to: &EmbeddedGuest) -> Result<PingResult> {
    let (pings, cost) = host.measure(PORT, || Ok(from.ping(to.ip(), PINGS)?))?;
    Ok(PingResult {
        from: from.name().to_owned(),
        to: to.name().to_owned(),
        sent: pings.sent.into(),
        received: pings.received() as u64,
        rtt_us_p50: pings.median().map(|median| to_tenths(median.as_secs_f64() * 1e6)),
        trapped_each: cost.accesses_per(PINGS.into()),
    })
}

/// Sends a TCP flow from one guest to another. Returns the flow's figures, and a description of the fault if bytes are
/// lost or wrong.
fn send(host: &DemoHost, from: &EmbeddedGuest, to: &EmbeddedGuest) -> Result<(TcpFlow, Option<String>)> {
    let (sent, cost) = host.measure(PORT, || Ok(from.send_tcp(to.ip(), FLOW_BYTES)))?;
    let (bytes, mbps, wrong) = match &sent {
        Ok(flow) if flow.is_intact() => (flow.bytes, flow.mbps(), None),
        Ok(flow) => {
            let (received, bytes) = (flow.received, flow.bytes);
            let at =
                flow.first_wrong.map(|at| format!(", data differs from byte {at} on")).unwrap_or_default();
            (received, flow.mbps(), Some(format!("{received} of {bytes} bytes received{at}")))
        }
        Err(error) => (0, 0.0, Some(error.to_string())),
    };
    let (from, to) = (from.name().to_owned(), to.name().to_owned());
    let problem = wrong.map(|what| format!("TCP from {from} to {to}: {what}"));
    let trapped_per_1000_packets = cost.per_1000_packets();
    let flow = TcpFlow { from, to, protocol: "tcp", bytes, mbps: to_tenths(mbps), trapped_per_1000_packets };
    Ok((flow, problem))
}
