//! Opens the functions of a plan and starts their drivers for a task: the checks, or an audit.

use super::{CheckReport, Functions, GuestStack, Plan, Report, World};
use crate::DirectError;
use crate::audit::AuditReport;
use crate::hal::{MEMORY, Subject, VfHal};
use crate::port::Port;
use driver::any_vf::Family;
use host::vfio::Pci;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use vfio_client::VfioUserHal;

/// Opens the functions, starts the drivers, runs the task, and returns the functions to Linux.
pub(super) fn with_world<T: Task>(pci: &Pci, plan: &Plan, task: T) -> Result<T::Report, DirectError> {
    match &plan.functions {
        Functions::Port { pf, vfs } => {
            let port = Port::open(pci, *pf, *vfs)?;
            let open = |(place, address)| VfHal::open(pci, address, Some(port.token()), place);
            let buses: Result<_, _> = (0..).zip(port.virtual_functions()).map(open).collect();
            task.run(World::start(buses?, Some(port), plan.wire)?)
        }
        Functions::Vfs(vfs) => {
            let open = |(place, address)| VfHal::open(pci, address, None, place);
            let buses: Result<_, _> = (0..).zip(vfs.iter().copied()).map(open).collect();
            task.run(World::start(buses?, None, plan.wire)?)
        }
        Functions::Sockets(sockets) => {
            let buses: Result<_, _> = sockets.iter().map(|socket| attach(socket)).collect();
            task.run(World::start(buses?, None, plan.wire)?)
        }
    }
}

/// Attaches to a VF behind a socket.
fn attach(socket: &Path) -> Result<VfioUserHal, DirectError> {
    let hal = VfioUserHal::attach(socket, MEMORY)?;
    if hal.family() == Family::I82576 { Ok(hal) } else { Err(DirectError::OtherFamily(socket.to_owned())) }
}

/// Opens the functions, starts the drivers, and lists the registers whose value is a sensitive resource.
///
/// # Errors
/// [`DirectError`]: the drivers cannot be started.
pub fn audit(pci: &Pci, functions: &Functions) -> Result<AuditReport, DirectError> {
    let plan = Plan { functions: functions.clone(), wire: None };
    with_world(pci, &plan, Audit)
}

/// Task for the drivers that were started.
pub(super) trait Task {
    type Report;

    fn run<B: Subject>(self, world: World<B>) -> Result<Self::Report, DirectError>;
}

struct Audit;

impl Task for Audit {
    type Report = AuditReport;

    fn run<B: Subject>(self, mut world: World<B>) -> Result<AuditReport, DirectError> {
        let mut registers = Vec::new();
        if let Some(port) = &world.port {
            let name = port.address().to_string();
            let hal = &mut port.lock().hal;
            let known = hal.known();
            registers.extend(crate::audit::pf(&name, hal, &known));
        }
        for station in &mut world.stations {
            registers.extend(crate::audit::vf(&mut station.hal));
        }
        Ok(AuditReport::new(registers))
    }
}

/// Runs the checks, those of TCP/IP with a guest's stack `G`, and reports each.
pub(super) struct Examine<G, T> {
    pub(super) report: T,
    pub(super) stack: PhantomData<G>,
}

impl<G: GuestStack, T: FnMut(&CheckReport) -> ControlFlow<()>> Task for Examine<G, T> {
    type Report = Report;

    fn run<B: Subject>(self, world: World<B>) -> Result<Report, DirectError> {
        world.examine::<G>(self.report)
    }
}
