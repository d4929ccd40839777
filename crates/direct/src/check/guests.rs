//! Checks TCP/IP between the VFs and with the wire, by guests in this process whose drivers use interrupts, as in an
//! operating system. The guests keep the VFs, so these checks run last.
//!
//! The caller brings the TCP/IP stack. Throughput is not measured.

use super::{
    CardCheck, CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, WireStation, check,
    passes, unexpected,
};
use driver::Vf;
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;
use vfio_client::VfDriverHal;

/// Number of echo requests (pings) in a check.
const PINGS: u16 = 20;
/// Bytes that the TCP check sends.
const BYTES: u64 = 1 << 20;
/// Address of the first guest in runs without a station on the wire. The second guest has the next address.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 82, 57, 1);

/// Error of a TCP/IP stack on a VF.
pub type GuestStackError = Box<dyn Error + Send + Sync>;

/// Replies to a series of echo requests.
#[derive(Debug, Clone, Copy)]
pub struct EchoReplyStatistics {
    /// Number of echo replies received.
    pub received: usize,
    /// Median round-trip time; zero without a reply.
    pub median: Duration,
}

/// A TCP/IP stack on a started VF. Dropping it stops the VF.
pub trait GuestNetworkStack: Sized {
    /// Starts the TCP/IP stack on a VF, and waits until the VF's link is up. `ip` is the stack's address, in a /24.
    ///
    /// # Errors
    /// The stack does not start, or the link stays down.
    fn start<B: VfDriverHal>(bus: B, vf: Vf, name: &str, ip: Ipv4Addr) -> Result<Self, GuestStackError>;

    /// Sends `count` echo requests to `to`, one after the other.
    ///
    /// # Errors
    /// The stack has ended.
    fn ping(&self, to: Ipv4Addr, count: u16) -> Result<EchoReplyStatistics, GuestStackError>;

    /// Sends `bytes` bytes over TCP to the stack at `to`. Returns the bytes that arrived unchanged and in order.
    ///
    /// # Errors
    /// The receiver does not confirm the bytes.
    fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<u64, GuestStackError>;
}

/// TCP/IP stack on the first VF and, if the run has a second VF, the stack on that VF with its IP address.
struct GuestNetworkStacks<G> {
    first: G,
    second: Option<(G, Ipv4Addr)>,
}

/// Context of the TCP/IP checks: the VFs, and the stacks on them, which the first check starts.
pub(super) struct GuestCheckContext<'a, B: CheckedVfBus, G> {
    world: &'a mut CardCheckContext<B>,
    guests: Option<GuestNetworkStacks<G>>,
}

impl<'a, B: CheckedVfBus, G: GuestNetworkStack> GuestCheckContext<'a, B, G> {
    pub(super) const CHECKS: [CardCheck<Self>; 3] = [
        check("ping", "20 pings between TCP/IP stacks on two VFs are answered", Self::ping),
        check("tcp", "1 MiB over TCP arrives; the card cuts segments and inserts checksums", Self::tcp),
        check("wire", "20 pings to a station on the wire are answered", Self::wire),
    ];

    pub(super) fn new(world: &'a mut CardCheckContext<B>) -> Self {
        Self { world, guests: None }
    }

    /// Returns the TCP/IP stacks on the VFs, and starts them on the first call.
    fn guests(&mut self) -> Result<&GuestNetworkStacks<G>, CardCheckError> {
        let guests = match self.guests.take() {
            Some(guests) => guests,
            None => start(&mut self.world.stations, self.world.wire)?,
        };
        Ok(self.guests.insert(guests))
    }

    fn ping(&mut self) -> CheckResult {
        let guests = self.guests()?;
        let (_, ip) = guests.second()?;
        judge(guests.first.ping(*ip, PINGS))
    }

    fn tcp(&mut self) -> CheckResult {
        let guests = self.guests()?;
        let (_, ip) = guests.second()?;
        let received = guests.first.send_tcp(*ip, BYTES).map_err(CardCheckError::Guest)?;
        let saw = format!("{received} of {BYTES} bytes arrived");
        if received == BYTES { passes(saw) } else { unexpected(saw) }
    }

    fn wire(&mut self) -> CheckResult {
        let Some(wire) = self.world.wire else {
            return Err(CardCheckError::NotHere(
                "the check needs a station on the wire: name one with --peer",
            ));
        };
        judge(self.guests()?.first.ping(wire.peer, PINGS))
    }
}

impl<G> GuestNetworkStacks<G> {
    fn second(&self) -> Result<&(G, Ipv4Addr), CardCheckError> {
        self.second.as_ref().ok_or(CardCheckError::NotHere("the check needs two VFs"))
    }
}

fn start<B: CheckedVfBus, G: GuestNetworkStack>(
    stations: &mut Vec<CheckedVf<B>>,
    wire: Option<WireStation>,
) -> Result<GuestNetworkStacks<G>, CardCheckError> {
    let ip = wire.map_or(NETWORK, |wire| wire.own);
    let next = |ip: Ipv4Addr| Ipv4Addr::from_bits(ip.to_bits() + 1);
    let neighbour = if wire.is_some_and(|wire| wire.peer == next(ip)) { next(next(ip)) } else { next(ip) };
    let mut taken = stations.drain(..stations.len().min(2));
    let Some(station) = taken.next() else { return Err(CardCheckError::NotHere("the check needs a VF")) };
    let first = guest(station, "first", ip)?;
    let second = taken.next().map(|station| guest(station, "second", neighbour)).transpose()?;
    Ok(GuestNetworkStacks { first, second: second.map(|guest| (guest, neighbour)) })
}

fn guest<B: CheckedVfBus, G: GuestNetworkStack>(
    station: CheckedVf<B>,
    name: &str,
    ip: Ipv4Addr,
) -> Result<G, CardCheckError> {
    // The driver is restarted because earlier checks may have left a vector masked.
    let CheckedVf { mut hal, mut vf } = station;
    vf.restart(&mut hal)?;
    G::start(hal, vf, name, ip).map_err(CardCheckError::Guest)
}

fn judge(echoes: Result<EchoReplyStatistics, GuestStackError>) -> CheckResult {
    let EchoReplyStatistics { received, median } = echoes.map_err(CardCheckError::Guest)?;
    let saw = format!("{received} of {PINGS} pings answered, median round trip {} us", median.as_micros());
    if received == usize::from(PINGS) { passes(saw) } else { unexpected(saw) }
}
