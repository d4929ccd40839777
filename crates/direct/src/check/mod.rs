//! Checks the drivers on an 82576 behind VFIO: a table of checks, each a conversation with the card through the drivers
//! alone.
//!
//! | module | what it checks |
//! |---|---|
//! | `task` | the functions opened, for checks or an audit |
//! | `start` | the handshake with the PF's driver, addresses, the link |
//! | `traffic` | frames between VFs, and what the card counts of them |
//! | `filters` | who gets what: groups, VLANs, addresses; and spoofing |
//! | `offload` | checksums and segmentation |
//! | `interrupts` | vectors |
//! | `recovery` | resets |
//! | `guests` | TCP/IP on the VFs, and stations on the wire |
//!
//! A check without its required functions is skipped with its reason. A card may differ from the datasheet in
//! points that the drivers do not depend on: the report states that, and it is no failure.
//!
//! Speed is not measured.

mod filters;
mod frames;
mod guests;
mod interrupts;
mod offload;
mod packets;
mod recovery;
mod report;
mod start;
mod task;
mod traffic;

pub use guests::{EchoReplyStatistics, GuestNetworkStack, GuestStackError};
pub use report::{CardCheckReport, CardCheckRunReport, CardCheckVerdict, CheckedFunctionReport};
pub use task::audit;

use crate::DriverStartError;
use crate::hal::CheckedVfBus;
use crate::port::DrivenPf;
use driver::Vf;
use driver::pf::PfError;
use driver::vf::{VfDriverConfig, VfError};
use frames::FrameExchangeError;
use guests::GuestCheckContext;
use host::poll::MonotonicClock;
use host::vfio::{PciAddress, PciSysfs};
use i82576::MacAddress;
use policy::PolicyError;
use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use task::{CardCheckTask, with_world};

/// Timeout until the PF's driver lets a VF start.
const PF_PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(20);

/// Plan of a run of the checks: the functions to drive, and a station on the wire.
#[derive(Debug, Clone)]
pub struct CardCheckPlan {
    /// PCI functions that the run of the checks drives.
    pub functions: PciFunctionSelection,
    /// Station on the wire that the run pings, if any.
    pub wire: Option<WireStation>,
}

/// Station on the wire that answers pings, and the IP addresses that the VFs take for it.
#[derive(Debug, Clone, Copy)]
pub struct WireStation {
    /// IP address of the station on the wire.
    pub peer: Ipv4Addr,
    /// IP address of the first VF, in the station's /24. The second VF has the next address.
    pub own: Ipv4Addr,
}

/// Functions that a run of the checks drives.
#[derive(Debug, Clone)]
pub enum PciFunctionSelection {
    /// The PF and some of its VFs, both with drivers of this program.
    Port {
        /// PCI address of the PF.
        pf: PciAddress,
        /// Number of VFs to create, 1 to 7.
        vfs: u8,
    },
    /// VFs of a PF that a driver of another program drives.
    Vfs(Vec<PciAddress>),
    /// VFs of a SoftIOV card, by the paths of their vfio-user sockets. No virtual machine takes part.
    Sockets(Vec<PathBuf>),
}

/// Opens the functions of a plan, performs every check, and returns the functions to Linux. The checks of TCP/IP use
/// the stack `G`. `report` is called after each check, and its result continues or ends the run.
///
/// # Errors
/// [`DriverStartError`]: the drivers cannot be started.
pub fn run<G: GuestNetworkStack>(
    pci: &PciSysfs,
    plan: &CardCheckPlan,
    report: impl FnMut(&CardCheckReport) -> ControlFlow<()>,
) -> Result<CardCheckRunReport, DriverStartError> {
    with_world(pci, plan, CardCheckTask::<G, _> { report, stack: PhantomData })
}

/// Row of the table of checks: a check's name, the behaviour that it expects of the card, and its function.
struct CardCheck<W> {
    name: &'static str,
    expected: &'static str,
    make: fn(&mut W) -> CheckResult,
}

const fn check<W>(
    name: &'static str,
    expected: &'static str,
    make: fn(&mut W) -> CheckResult,
) -> CardCheck<W> {
    CardCheck { name, expected, make }
}

impl<B: CheckedVfBus> CardCheckContext<B> {
    /// Checks of the drivers, in order: later ones depend on earlier ones.
    const CHECKS: &[CardCheck<Self>] = &[
        check("handshake", "the PF replies to repeated VF_RESET messages", start::handshake),
        check("address", "each VF has its assigned address, or a valid one", start::address),
        check("link", "each VF has a link within 10 s", start::link),
        check("unicast", "frames of 60 to 1514 bytes arrive unchanged", traffic::unicast),
        check("broadcast", "a broadcast reaches the other VFs, and not its sender", traffic::broadcast),
        check("burst", "1,024 frames arrive unchanged and in order", traffic::burst),
        check(
            "jumbo",
            "frames of up to 9,000 bytes arrive at a VF that requested that length",
            traffic::jumbo,
        ),
        check("statistics", "the card counts sent and received frames", traffic::statistics),
        check(
            "loopback-statistics",
            "the card counts frames between VFs as loopback frames",
            traffic::loopback_statistics,
        ),
        check(
            "multicast",
            "a multicast group's frames arrive only while the VF is a member",
            filters::multicast,
        ),
        check(
            "all-multicast",
            "frames of every multicast group arrive while the VF requests them",
            filters::all_multicast,
        ),
        check(
            "vlan",
            "a VLAN's frames arrive, with the tag in the descriptor, only while the VF is a member",
            filters::vlan,
        ),
        check("port-vlan", "VFs on one port VLAN reach only each other, untagged", filters::port_vlan),
        check("change-address", "only the VF's new address receives", filters::change_address),
        check("added-address", "an added address receives until it is removed", filters::added_address),
        check(
            "spoofed-address",
            "a frame with another source address than the VF's is dropped",
            filters::spoofed_address,
        ),
        check(
            "spoofed-vlan",
            "a frame of a VLAN that the sender has not joined is dropped",
            filters::spoofed_vlan,
        ),
        check(
            "checksum",
            "the card inserts and verifies checksums of TCP and UDP over IPv4 and IPv6",
            offload::checksum,
        ),
        check("bad-checksum", "the card reports a wrong checksum", offload::bad_checksum),
        check("segmentation", "the card cuts 20,000 bytes into valid TCP segments", offload::segmentation),
        check("interrupts", "each of the three vectors signals", interrupts::each_vector),
        check("masking", "a vector that signalled stays masked until it is unmasked", interrupts::masking),
        check("moderation", "a vector signals at most once per interval", interrupts::moderation),
        check("vf-reset", "the VF driver recovers from a function-level reset", recovery::vf_reset),
        check("pf-reset", "the VF drivers recover from a reset of the port", recovery::pf_reset),
    ];

    fn examine<G: GuestNetworkStack>(
        mut self,
        mut report: impl FnMut(&CardCheckReport) -> ControlFlow<()>,
    ) -> Result<CardCheckRunReport, DriverStartError> {
        let functions = self.functions();
        let mut checks = Vec::new();
        let mut keep = |check: CardCheckReport| {
            let next = report(&check);
            checks.push(check);
            next
        };
        let mut drivers = Self::CHECKS.iter();
        let next = drivers.try_for_each(|check| {
            self.drain();
            keep(check.run(&mut self))
        });
        if next.is_continue() {
            let mut guests = GuestCheckContext::<B, G>::new(&mut self);
            // The last check has no successor to skip, so its return value is ignored.
            let _ = GuestCheckContext::CHECKS.iter().try_for_each(|check| keep(check.run(&mut guests)));
        }
        Ok(CardCheckRunReport { functions, checks })
    }
}

impl<W> CardCheck<W> {
    fn run(&self, world: &mut W) -> CardCheckReport {
        let CardCheckOutcome { result, saw } = (self.make)(world).unwrap_or_else(CardCheckOutcome::from);
        CardCheckReport { check: self.name, expected: self.expected, saw, result }
    }
}

/// Outcome of a check of the card: the verdict, and the observed behaviour.
struct CardCheckOutcome {
    result: CardCheckVerdict,
    saw: String,
}

/// Result of a check: its outcome, or the reason why it ended early.
type CheckResult = Result<CardCheckOutcome, CardCheckError>;

fn passes(saw: impl Into<String>) -> CheckResult {
    Ok(CardCheckOutcome { result: CardCheckVerdict::Passes, saw: saw.into() })
}

fn differs(saw: impl Into<String>) -> CheckResult {
    Ok(CardCheckOutcome { result: CardCheckVerdict::Differs, saw: saw.into() })
}

/// Reason why a check ended early.
#[derive(Debug, thiserror::Error)]
enum CardCheckError {
    /// The run lacks a function that the check needs.
    #[error("{0}")]
    NotHere(&'static str),
    /// An exchange of frames in the check failed.
    #[error(transparent)]
    Frame(#[from] FrameExchangeError),
    /// The VF driver failed.
    #[error(transparent)]
    Vf(#[from] VfError),
    /// The PF driver failed.
    #[error(transparent)]
    Pf(#[from] PfError),
    /// The PF driver refused a policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The TCP/IP stack on a VF failed.
    #[error("the TCP/IP stack on a VF failed: {0}")]
    Guest(GuestStackError),
    /// The card behaved otherwise than expected.
    #[error("{0}")]
    Unexpected(String),
}

impl From<CardCheckError> for CardCheckOutcome {
    fn from(trouble: CardCheckError) -> Self {
        let result = if matches!(trouble, CardCheckError::NotHere(_)) {
            CardCheckVerdict::Skipped
        } else {
            CardCheckVerdict::Fails
        };
        Self { result, saw: trouble.to_string() }
    }
}

fn unexpected<T>(saw: impl Into<String>) -> Result<T, CardCheckError> {
    Err(CardCheckError::Unexpected(saw.into()))
}

/// Context of the checks: the started VFs and PF, and the station on the wire. VFs come first, since they are returned
/// before their PF.
struct CardCheckContext<B: CheckedVfBus> {
    stations: Vec<CheckedVf<B>>,
    port: Option<DrivenPf>,
    wire: Option<WireStation>,
}

/// VF under check, with its driver.
struct CheckedVf<B> {
    hal: B,
    vf: Vf,
}

impl<B: CheckedVfBus> CardCheckContext<B> {
    fn start(
        buses: Vec<B>,
        port: Option<DrivenPf>,
        wire: Option<WireStation>,
    ) -> Result<Self, DriverStartError> {
        let mut world = Self { stations: Vec::with_capacity(buses.len()), port, wire };
        for bus in buses {
            world.stations.push(CheckedVf::start(bus)?);
        }
        Ok(world)
    }

    fn functions(&self) -> Vec<CheckedFunctionReport> {
        let report = |address: String, role, mac: MacAddress| CheckedFunctionReport {
            address,
            role,
            mac: mac.to_string(),
        };
        let pf = self.port.iter().map(|port| report(port.address().to_string(), "pf", port.lock().pf.mac()));
        let vf = |station: &CheckedVf<B>| report(station.hal.name(), "vf", station.vf.mac());
        pf.chain(self.stations.iter().map(vf)).collect()
    }

    /// Returns the first two VFs under check, or an error that skips the check if the run has fewer.
    fn pair(&mut self) -> Result<(&mut CheckedVf<B>, &mut CheckedVf<B>), CardCheckError> {
        match self.stations.as_mut_slice() {
            [a, b, ..] => Ok((a, b)),
            _ => Err(CardCheckError::NotHere("the check needs two VFs")),
        }
    }

    /// Returns the PF that this run drives, or an error that skips the check if another program's driver drives the PF.
    fn port(&self) -> Result<&DrivenPf, CardCheckError> {
        self.port.as_ref().ok_or(CardCheckError::NotHere("the check needs the PF driver of this program"))
    }

    /// Discards frames of the previous check that arrive late at any VF.
    fn drain(&mut self) {
        for station in &mut self.stations {
            station.drain();
        }
    }
}

/// Stops the VFs that no guest took over, so that they are idle as before the run. Guests stop their VFs themselves.
impl<B: CheckedVfBus> Drop for CardCheckContext<B> {
    fn drop(&mut self) {
        for station in &mut self.stations {
            station.vf.stop(&mut station.hal);
        }
    }
}

impl<B: CheckedVfBus> CheckedVf<B> {
    fn start(mut hal: B) -> Result<Self, DriverStartError> {
        let config = VfDriverConfig { seed: MonotonicClock.now_ns(), ..VfDriverConfig::default() };
        let vf =
            probe(&mut hal, &config).map_err(|error| DriverStartError::Vf { name: hal.name(), error })?;
        Ok(Self { hal, vf })
    }
}

/// Probes and starts a VF for the checks. It retries while the PF's driver starts.
fn probe<B: CheckedVfBus>(hal: &mut B, config: &VfDriverConfig) -> Result<Vf, VfError> {
    let end = MonotonicClock.now_ns() + PF_PATIENCE.as_nanos() as u64;
    let mut vf = loop {
        match Vf::probe(hal, config) {
            Err(VfError::PfInReset | VfError::Mailbox(_)) if MonotonicClock.now_ns() < end => {
                std::thread::sleep(RETRY);
            }
            other => break other?,
        }
    };
    vf.start(hal)?;
    Ok(vf)
}
