//! What is expected of the drivers on such a card, and what came: a table of checks, each a conversation with the
//! card through the drivers alone.
//!
//! | module | what it checks |
//! |---|---|
//! | `deed` | the functions opened, for checks or an audit |
//! | `start` | the handshake with the PF's driver, addresses, the link |
//! | `traffic` | frames between VFs, and what the card counts of them |
//! | `filters` | who gets what: groups, VLANs, addresses; and spoofing |
//! | `offload` | checksums and segmentation |
//! | `interrupts` | vectors |
//! | `recovery` | resets |
//! | `guests` | TCP/IP on the VFs, and stations on the wire |
//!
//! A check that the run has no functions for is skipped with its reason. A card may differ from the datasheet where
//! the drivers do not depend on it: that is told, and is no failure.
//!
//! Left out: how fast anything is.

mod deed;
mod filters;
mod frames;
mod guests;
mod interrupts;
mod offload;
mod packets;
mod recovery;
mod report;
mod start;
mod traffic;

pub use deed::audit;
pub use guests::{Echoes, GuestStack, StackError};
pub use report::{CheckReport, FunctionReport, Report, Verdict};

use crate::DirectError;
use crate::hal::Subject;
use crate::port::Port;
use deed::{Examine, with_world};
use driver::Vf;
use driver::pf::PfError;
use driver::vf::{Config, VfError};
use frames::Amiss;
use guests::GuestWorld;
use host::poll::Clock;
use host::vfio::{Pci, PciAddress};
use i82576::MacAddress;
use policy::PolicyError;
use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// How long the PF's driver may take to let a VF start.
const PF_PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(20);

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What to drive.
    pub functions: Functions,
    /// Whom to look for on the wire.
    pub wire: Option<Wire>,
}

/// A station on the wire that answers pings.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    /// Its address.
    pub peer: Ipv4Addr,
    /// The first VF's, in the same /24. The second has the next.
    pub own: Ipv4Addr,
}

/// Which functions to drive.
#[derive(Debug, Clone)]
pub enum Functions {
    /// The PF, and so many VFs of it.
    Port {
        /// The PF.
        pf: PciAddress,
        /// How many VFs it is to have, 1 to 7.
        vfs: u8,
    },
    /// VFs of a PF that somebody else drives.
    Vfs(Vec<PciAddress>),
    /// VFs behind vfio-user sockets: those of our own card, without a machine around them.
    Sockets(Vec<PathBuf>),
}

/// Opens the functions, makes every check, and gives the functions back. The checks of TCP/IP use the stack `G`. `report` is
/// called after each check and returns whether to go on.
///
/// # Errors
/// [`DirectError`]: the drivers do not get as far as to be checked.
pub fn run<G: GuestStack>(
    pci: &Pci,
    plan: &Plan,
    report: impl FnMut(&CheckReport) -> ControlFlow<()>,
) -> Result<Report, DirectError> {
    with_world(pci, plan, Examine::<G, _> { report, stack: PhantomData })
}

/// A row of the table.
struct Check<W> {
    name: &'static str,
    expected: &'static str,
    make: fn(&mut W) -> Found,
}

const fn check<W>(name: &'static str, expected: &'static str, make: fn(&mut W) -> Found) -> Check<W> {
    Check { name, expected, make }
}

impl<B: Subject> World<B> {
    /// Checks of the drivers, in order: later ones depend on earlier ones.
    const CHECKS: &[Check<Self>] = &[
        check("handshake", "the PF answers VF_RESET, again and again", start::handshake),
        check("address", "each VF has the address it was given, or one that it can have", start::address),
        check("link", "a link within 10 s", start::link),
        check("unicast", "frames of 60 to 1514 bytes arrive unchanged", traffic::unicast),
        check("broadcast", "a broadcast reaches the other VFs, and not its sender", traffic::broadcast),
        check("burst", "1,024 frames arrive unchanged and in order", traffic::burst),
        check("jumbo", "frames of up to 9,000 bytes arrive where they were asked for", traffic::jumbo),
        check("statistics", "the card counts what was sent and received", traffic::statistics),
        check(
            "loopback-statistics",
            "the card counts frames between VFs as such",
            traffic::loopback_statistics,
        ),
        check("multicast", "a group's frames arrive as long as the VF is a member", filters::multicast),
        check("all-multicast", "every group's frames arrive when they are asked for", filters::all_multicast),
        check(
            "vlan",
            "a VLAN's frames arrive, tag beside them, as long as the VF is a member",
            filters::vlan,
        ),
        check(
            "port-vlan",
            "VFs on one port VLAN reach each other untagged, and nobody else",
            filters::port_vlan,
        ),
        check(
            "change-address",
            "the VF's new address receives, the old one no more",
            filters::change_address,
        ),
        check("added-address", "an added address receives until it is dropped", filters::added_address),
        check(
            "spoofed-address",
            "a frame with a foreign source address goes nowhere",
            filters::spoofed_address,
        ),
        check("spoofed-vlan", "a frame of a foreign VLAN goes nowhere", filters::spoofed_vlan),
        check(
            "checksum",
            "TCP and UDP over IPv4 and IPv6 leave complete and are found right",
            offload::checksum,
        ),
        check("bad-checksum", "a wrong checksum is told", offload::bad_checksum),
        check(
            "segmentation",
            "20,000 bytes are cut into segments that TCP puts together",
            offload::segmentation,
        ),
        check("interrupts", "each of the three vectors signals", interrupts::each_vector),
        check("masking", "a vector that signalled is silent until it is unmasked", interrupts::masking),
        check(
            "moderation",
            "a vector signals no more often than its interval lets it",
            interrupts::moderation,
        ),
        check(
            "vf-reset",
            "the VF driver finds its way back after a function-level reset",
            recovery::vf_reset,
        ),
        check("pf-reset", "the VF drivers find their way back after a reset of the port", recovery::pf_reset),
    ];

    fn examine<G: GuestStack>(
        mut self,
        mut report: impl FnMut(&CheckReport) -> ControlFlow<()>,
    ) -> Result<Report, DirectError> {
        let functions = self.functions();
        let mut checks = Vec::new();
        let mut keep = |check: CheckReport| {
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
            let mut guests = GuestWorld::<B, G>::new(&mut self);
            // Nothing follows the last check that could be left out.
            let _ = GuestWorld::CHECKS.iter().try_for_each(|check| keep(check.run(&mut guests)));
        }
        Ok(Report { functions, checks })
    }
}

impl<W> Check<W> {
    fn run(&self, world: &mut W) -> CheckReport {
        let Outcome { result, saw } = (self.make)(world).unwrap_or_else(Outcome::from);
        CheckReport { check: self.name, expected: self.expected, saw, result }
    }
}

/// What a check found.
struct Outcome {
    result: Verdict,
    saw: String,
}

/// What a check ends with: a finding, or what came in its way.
type Found = Result<Outcome, Trouble>;

fn passes(saw: impl Into<String>) -> Found {
    Ok(Outcome { result: Verdict::Passes, saw: saw.into() })
}

fn differs(saw: impl Into<String>) -> Found {
    Ok(Outcome { result: Verdict::Differs, saw: saw.into() })
}

/// What comes in the way of a check.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The run has not got what the check takes.
    #[error("{0}")]
    NotHere(&'static str),
    /// A frame did not do what it should.
    #[error(transparent)]
    Frame(#[from] Amiss),
    /// The driver could not do what it was asked.
    #[error(transparent)]
    Vf(#[from] VfError),
    /// The PF driver could not.
    #[error(transparent)]
    Pf(#[from] PfError),
    /// The PF driver does not take a policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A guest could not do what it was asked.
    #[error("guest: {0}")]
    Guest(StackError),
    /// Something else came than was expected.
    #[error("{0}")]
    Instead(String),
}

impl From<Trouble> for Outcome {
    fn from(trouble: Trouble) -> Self {
        let result = if matches!(trouble, Trouble::NotHere(_)) { Verdict::Skipped } else { Verdict::Fails };
        Self { result, saw: trouble.to_string() }
    }
}

fn instead<T>(saw: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Instead(saw.into()))
}

/// The functions that are driven. VFs come first: they are given back before their PF.
struct World<B: Subject> {
    stations: Vec<Station<B>>,
    port: Option<Port>,
    wire: Option<Wire>,
}

/// A VF and its driver.
struct Station<B> {
    hal: B,
    vf: Vf,
}

impl<B: Subject> World<B> {
    fn start(buses: Vec<B>, port: Option<Port>, wire: Option<Wire>) -> Result<Self, DirectError> {
        let mut world = Self { stations: Vec::with_capacity(buses.len()), port, wire };
        for bus in buses {
            world.stations.push(Station::start(bus)?);
        }
        Ok(world)
    }

    fn functions(&self) -> Vec<FunctionReport> {
        let report =
            |address: String, role, mac: MacAddress| FunctionReport { address, role, mac: mac.to_string() };
        let pf = self.port.iter().map(|port| report(port.address().to_string(), "pf", port.lock().pf.mac()));
        let vf = |station: &Station<B>| report(station.hal.name(), "vf", station.vf.mac());
        pf.chain(self.stations.iter().map(vf)).collect()
    }

    /// Two VFs, if there are.
    fn pair(&mut self) -> Result<(&mut Station<B>, &mut Station<B>), Trouble> {
        match self.stations.as_mut_slice() {
            [a, b, ..] => Ok((a, b)),
            _ => Err(Trouble::NotHere("it takes two VFs")),
        }
    }

    /// The PF, if it is ours.
    fn port(&self) -> Result<&Port, Trouble> {
        self.port.as_ref().ok_or(Trouble::NotHere("it takes our PF driver"))
    }

    /// Frames that came late for the check before are not the next one's.
    fn drain(&mut self) {
        for station in &mut self.stations {
            station.drain();
        }
    }
}

/// A VF that no guest took over (guests stop theirs) is left as it was found: at rest.
impl<B: Subject> Drop for World<B> {
    fn drop(&mut self) {
        for station in &mut self.stations {
            station.vf.stop(&mut station.hal);
        }
    }
}

impl<B: Subject> Station<B> {
    fn start(mut hal: B) -> Result<Self, DirectError> {
        let config = Config { seed: Clock.now_ns(), ..Config::default() };
        let vf = probe(&mut hal, &config).map_err(|error| DirectError::Vf { name: hal.name(), error })?;
        Ok(Self { hal, vf })
    }
}

/// Probes and starts. A PF whose driver is on its way is waited for.
fn probe<B: Subject>(hal: &mut B, config: &Config) -> Result<Vf, VfError> {
    let end = Clock.now_ns() + PF_PATIENCE.as_nanos() as u64;
    let mut vf = loop {
        match Vf::probe(hal, config) {
            Err(VfError::PfInReset | VfError::Mailbox(_)) if Clock.now_ns() < end => {
                std::thread::sleep(RETRY);
            }
            other => break other?,
        }
    };
    vf.start(hal)?;
    Ok(vf)
}
