//! Opens the functions of a plan, starts their drivers, and runs a task with them: the checks or an audit.

use super::{
    CardCheckContext, CardCheckPlan, CardCheckReport, CardCheckRunReport, GuestNetworkStack,
    PciFunctionSelection,
};
use crate::DriverStartError;
use crate::audit::RegisterAuditReport;
use crate::hal::{CheckedVfBus, MEMORY, VfioVfHal};
use crate::port::DrivenPf;
use driver::any_vf::DeviceFamily;
use host::vfio::PciSysfs;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use vfio_client::VfioUserHal;

/// Opens the functions of a plan, starts their drivers, runs the task, and returns the functions to Linux.
pub(super) fn with_world<T: StartedDriverTask>(
    pci: &PciSysfs,
    plan: &CardCheckPlan,
    task: T,
) -> Result<T::Report, DriverStartError> {
    match &plan.functions {
        PciFunctionSelection::Port { pf, vfs } => {
            let port = DrivenPf::open(pci, *pf, *vfs)?;
            let open = |(place, address)| VfioVfHal::open(pci, address, Some(port.token()), place);
            let buses: Result<_, _> = (0..).zip(port.virtual_functions()).map(open).collect();
            task.run(CardCheckContext::start(buses?, Some(port), plan.wire)?)
        }
        PciFunctionSelection::Vfs(vfs) => {
            let open = |(place, address)| VfioVfHal::open(pci, address, None, place);
            let buses: Result<_, _> = (0..).zip(vfs.iter().copied()).map(open).collect();
            task.run(CardCheckContext::start(buses?, None, plan.wire)?)
        }
        PciFunctionSelection::Sockets(sockets) => {
            let buses: Result<_, _> = sockets.iter().map(|socket| attach(socket)).collect();
            task.run(CardCheckContext::start(buses?, None, plan.wire)?)
        }
    }
}

/// Attaches to an 82576 VF behind a vfio-user socket.
fn attach(socket: &Path) -> Result<VfioUserHal, DriverStartError> {
    let hal = VfioUserHal::attach(socket, MEMORY)?;
    if hal.family() == DeviceFamily::I82576 {
        Ok(hal)
    } else {
        Err(DriverStartError::OtherFamily(socket.to_owned()))
    }
}

/// Opens the functions, starts their drivers, and returns the registers whose value is a sensitive resource.
///
/// # Errors
/// [`DriverStartError`]: the drivers cannot be started.
pub fn audit(
    pci: &PciSysfs,
    functions: &PciFunctionSelection,
) -> Result<RegisterAuditReport, DriverStartError> {
    let plan = CardCheckPlan { functions: functions.clone(), wire: None };
    with_world(pci, &plan, RegisterAuditTask)
}

/// Task to run with started drivers: the checks or an audit.
pub(super) trait StartedDriverTask {
    type Report;

    fn run<B: CheckedVfBus>(self, world: CardCheckContext<B>) -> Result<Self::Report, DriverStartError>;
}

struct RegisterAuditTask;

impl StartedDriverTask for RegisterAuditTask {
    type Report = RegisterAuditReport;

    fn run<B: CheckedVfBus>(
        self,
        mut world: CardCheckContext<B>,
    ) -> Result<RegisterAuditReport, DriverStartError> {
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
        Ok(RegisterAuditReport::new(registers))
    }
}

/// Task that performs the checks, those of TCP/IP with the stack `G`, and reports each.
pub(super) struct CardCheckTask<G, T> {
    pub(super) report: T,
    pub(super) stack: PhantomData<G>,
}

impl<G: GuestNetworkStack, T: FnMut(&CardCheckReport) -> ControlFlow<()>> StartedDriverTask
    for CardCheckTask<G, T>
{
    type Report = CardCheckRunReport;

    fn run<B: CheckedVfBus>(
        self,
        world: CardCheckContext<B>,
    ) -> Result<CardCheckRunReport, DriverStartError> {
        world.examine::<G>(self.report)
    }
}
