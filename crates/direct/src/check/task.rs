//! Opens the functions of a plan, starts their drivers, and runs a task with them: the checks or an audit.

use super::{CheckContext, CheckPlan, CheckReport, CheckRunReport, FunctionSelection, GuestStack};
use crate::DirectError;
use crate::audit::AuditReport;
use crate::hal::{CheckSubject, MEMORY, VfioVfHal};
use crate::port::DrivenPf;
use driver::any_vf::DeviceFamily;
use host::vfio::PciSysfs;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use vfio_client::VfioUserHal;

/// Opens the functions of a plan, starts their drivers, runs the task, and returns the functions to Linux.
pub(super) fn with_world<T: DriverTask>(
    pci: &PciSysfs,
    plan: &CheckPlan,
    task: T,
) -> Result<T::Report, DirectError> {
    match &plan.functions {
        FunctionSelection::Port { pf, vfs } => {
            let port = DrivenPf::open(pci, *pf, *vfs)?;
            let open = |(place, address)| VfioVfHal::open(pci, address, Some(port.token()), place);
            let buses: Result<_, _> = (0..).zip(port.virtual_functions()).map(open).collect();
            task.run(CheckContext::start(buses?, Some(port), plan.wire)?)
        }
        FunctionSelection::Vfs(vfs) => {
            let open = |(place, address)| VfioVfHal::open(pci, address, None, place);
            let buses: Result<_, _> = (0..).zip(vfs.iter().copied()).map(open).collect();
            task.run(CheckContext::start(buses?, None, plan.wire)?)
        }
        FunctionSelection::Sockets(sockets) => {
            let buses: Result<_, _> = sockets.iter().map(|socket| attach(socket)).collect();
            task.run(CheckContext::start(buses?, None, plan.wire)?)
        }
    }
}

/// Attaches to an 82576 VF behind a vfio-user socket.
fn attach(socket: &Path) -> Result<VfioUserHal, DirectError> {
    let hal = VfioUserHal::attach(socket, MEMORY)?;
    if hal.family() == DeviceFamily::I82576 {
        Ok(hal)
    } else {
        Err(DirectError::OtherFamily(socket.to_owned()))
    }
}

/// Opens the functions, starts their drivers, and returns the registers whose value is a sensitive resource.
///
/// # Errors
/// [`DirectError`]: the drivers cannot be started.
pub fn audit(pci: &PciSysfs, functions: &FunctionSelection) -> Result<AuditReport, DirectError> {
    let plan = CheckPlan { functions: functions.clone(), wire: None };
    with_world(pci, &plan, AuditTask)
}

/// Task to run with started drivers: the checks or an audit.
pub(super) trait DriverTask {
    type Report;

    fn run<B: CheckSubject>(self, world: CheckContext<B>) -> Result<Self::Report, DirectError>;
}

struct AuditTask;

impl DriverTask for AuditTask {
    type Report = AuditReport;

    fn run<B: CheckSubject>(self, mut world: CheckContext<B>) -> Result<AuditReport, DirectError> {
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

/// Task that performs the checks, those of TCP/IP with the stack `G`, and reports each.
pub(super) struct CheckTask<G, T> {
    pub(super) report: T,
    pub(super) stack: PhantomData<G>,
}

impl<G: GuestStack, T: FnMut(&CheckReport) -> ControlFlow<()>> DriverTask for CheckTask<G, T> {
    type Report = CheckRunReport;

    fn run<B: CheckSubject>(self, world: CheckContext<B>) -> Result<CheckRunReport, DirectError> {
        world.examine::<G>(self.report)
    }
}
