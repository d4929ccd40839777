//! What is expected of the drivers on such a card, and what came: a table of checks, each a conversation with the
//! card through the drivers alone.
//!
//! | module | what it checks |
//! |---|---|
//! | `start` | the handshake with the PF's driver, addresses, the link |
//! | `traffic` | frames between VFs |
//!
//! A check that the run has no functions for is skipped with its reason. A card may differ from the datasheet where
//! the drivers do not depend on it: that is told, and is no failure.
//!
//! Left out: how fast anything is.

mod frames;
mod report;
mod start;
mod traffic;

pub use report::{CheckReport, FunctionReport, Report, Verdict};

use crate::DirectError;
use crate::hal::VfHal;
use crate::port::Port;
use driver::Vf;
use driver::vf::{Config, VfError};
use host::poll::Clock;
use host::vfio::{Pci, PciAddress};
use i82576::MacAddress;
use std::time::Duration;

/// How long the PF's driver may take to let a VF start.
const PF_PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(20);

/// Which functions to drive.
#[derive(Debug, Clone)]
pub enum Plan {
    /// The PF, and so many VFs of it.
    Port {
        /// The PF.
        pf: PciAddress,
        /// How many VFs it is to have, 1 to 7.
        vfs: u8,
    },
    /// VFs of a PF that somebody else drives.
    Vfs(Vec<PciAddress>),
}

/// Opens the functions, makes every check, and gives the functions back. `tell` hears of each check when it is made.
///
/// # Errors
/// [`DirectError`]: the drivers do not get as far as to be checked.
pub fn run(pci: &Pci, plan: &Plan, mut tell: impl FnMut(&CheckReport)) -> Result<Report, DirectError> {
    let mut world = World::open(pci, plan)?;
    let functions = world.functions();
    let mut checks = Vec::with_capacity(CHECKS.len());
    for check in CHECKS {
        let Outcome { result, saw } = (check.make)(&mut world);
        let report = CheckReport { check: check.name, expected: check.expected, saw, result };
        tell(&report);
        checks.push(report);
    }
    Ok(Report { functions, checks })
}

/// A row of the table.
struct Check {
    name: &'static str,
    expected: &'static str,
    make: fn(&mut World) -> Outcome,
}

/// Every check, in the order it is made: what comes later depends on what comes first.
const CHECKS: &[Check] = &[
    Check { name: "handshake", expected: "the PF answers VF_RESET, again and again", make: start::handshake },
    Check {
        name: "address",
        expected: "each VF has the station's address it should have",
        make: start::address,
    },
    Check { name: "link", expected: "a link within 5 s", make: start::link },
    Check {
        name: "unicast",
        expected: "frames of 60 to 1514 bytes arrive unchanged",
        make: traffic::unicast,
    },
];

/// What a check answers.
struct Outcome {
    result: Verdict,
    saw: String,
}

impl Outcome {
    fn passes(saw: impl Into<String>) -> Self {
        Self { result: Verdict::Passes, saw: saw.into() }
    }

    fn fails(saw: impl Into<String>) -> Self {
        Self { result: Verdict::Fails, saw: saw.into() }
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self { result: Verdict::Skipped, saw: why.into() }
    }
}

/// Something failed: what came instead.
impl<E: std::fmt::Display> From<Result<String, E>> for Outcome {
    fn from(result: Result<String, E>) -> Self {
        match result {
            Ok(saw) => Self::passes(saw),
            Err(error) => Self::fails(error.to_string()),
        }
    }
}

/// The functions that are driven. VFs come first: they are given back before their PF.
struct World {
    stations: Vec<Station>,
    port: Option<Port>,
    pf: Option<PciAddress>,
}

/// A VF and its driver.
struct Station {
    hal: VfHal,
    vf: Vf,
}

impl World {
    fn open(pci: &Pci, plan: &Plan) -> Result<Self, DirectError> {
        let (pf, port, addresses) = match plan {
            Plan::Port { pf, vfs } => {
                let port = Port::open(pci, *pf, *vfs)?;
                let addresses = port.virtual_functions();
                (Some(*pf), Some(port), addresses)
            }
            Plan::Vfs(addresses) => (None, None, addresses.clone()),
        };
        let mut world = Self { stations: Vec::with_capacity(addresses.len()), port, pf };
        for (place, address) in (0..).zip(addresses) {
            let token = world.port.as_ref().map(Port::token);
            let hal = VfHal::open(pci, address, token, place)?;
            world.stations.push(Station::start(hal)?);
        }
        Ok(world)
    }

    fn functions(&self) -> Vec<FunctionReport> {
        let report = |address: PciAddress, role, mac: MacAddress| FunctionReport {
            address: address.to_string(),
            role,
            mac: mac.to_string(),
        };
        let pf = self.port.iter().zip(self.pf).map(|(port, pf)| report(pf, "pf", port.lock().pf.mac()));
        let vf = |s: &Station| report(s.hal.function().address(), "vf", s.vf.mac());
        pf.chain(self.stations.iter().map(vf)).collect()
    }

    /// Two VFs, if there are.
    fn pair(&mut self) -> Result<(&mut Station, &mut Station), Outcome> {
        match self.stations.as_mut_slice() {
            [a, b, ..] => Ok((a, b)),
            _ => Err(Outcome::skipped("it takes two VFs")),
        }
    }
}

impl Station {
    fn start(mut hal: VfHal) -> Result<Self, DirectError> {
        let address = hal.function().address();
        let config = Config { seed: Clock.now_ns(), ..Config::default() };
        let vf = probe(&mut hal, &config).map_err(|error| DirectError::Vf { address, error })?;
        Ok(Self { hal, vf })
    }
}

/// Probes and starts. A PF whose driver is on its way is waited for.
fn probe(hal: &mut VfHal, config: &Config) -> Result<Vf, VfError> {
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
