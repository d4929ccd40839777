//! Costs of a front end's messages by their kind, beside that of receiving a message. The function's account pays them.

use crate::port::tokens::RINGS;
use host::worker::DeferredCloseFd;
use units::WorkCost;
use vhost_user::backend::{BackendEvent, HostOperation, LiveRingParameters};
use virtio::packed::dropped::MOST_DROPPED_SLOTS;

/// Cost of a change in the port's poller, which is a call of the kernel.
const POLLER: WorkCost = WorkCost(10);
/// Cost of forgetting a ring's saved position.
const POSITION: WorkCost = WorkCost(2);

/// Returns the cost of applying an event of the session.
pub(super) fn of_event(event: &BackendEvent<DeferredCloseFd>) -> WorkCost {
    match event {
        BackendEvent::DeviceReset => WorkCost::RESET + times(POSITION, RINGS as usize),
        BackendEvent::RingLive(setup) => WorkCost::RESET + of_dropped(setup),
        BackendEvent::KickSet { fd, .. } | BackendEvent::CallSet { fd, .. } => {
            POLLER + if fd.is_some() { WorkCost::ERRAND } else { WorkCost::default() }
        }
        BackendEvent::ErrorSet { fd: Some(_), .. } | BackendEvent::LogEventSet(_) => POLLER,
        BackendEvent::UnusedDescriptors(fds) => times(POLLER, fds.len()),
        BackendEvent::FeaturesSet(_) | BackendEvent::RingEnabled { .. } | BackendEvent::RingPaused { .. } => {
            POSITION
        }
        BackendEvent::RingFaulty { .. }
        | BackendEvent::ErrorSet { fd: None, .. }
        | BackendEvent::SendRarp(_)
        | BackendEvent::StatusSet(_)
        | BackendEvent::OwnerSet
        | BackendEvent::OwnerReset
        | BackendEvent::ProtocolFeaturesSet(_) => WorkCost::ACCESS,
    }
}

/// Returns the cost of looking for a chain that the front end has dropped, and of returning those before it. Only a packed transmit
/// ring can have one.
fn of_dropped(setup: &LiveRingParameters) -> WorkCost {
    let may_have_one = setup.packed && !setup.ring.is_multiple_of(2);
    let slots = if may_have_one { setup.size.min(MOST_DROPPED_SLOTS.into()) } else { 0 };
    WorkCost::of_units(slots as usize >> 2)
}

/// Returns the cost of a task of the session on the port's thread. `windows` is the number of the function's regions.
pub(super) fn of_task(task: &HostOperation<DeferredCloseFd>, windows: usize) -> WorkCost {
    match task {
        HostOperation::ReplaceMemory(regions) => {
            WorkCost::of_windows(windows, 0) + times(WorkCost::ERRAND, regions.len())
        }
        HostOperation::RemoveRegion(_) => WorkCost::of_windows(1, windows) + POLLER,
        HostOperation::AddRegion(_)
        | HostOperation::SetLog { .. }
        | HostOperation::RestoreInflight { .. } => WorkCost::ERRAND,
        HostOperation::StopRing { .. } => POLLER + POLLER + POSITION,
        // Creates a file of shared memory, and maps it.
        HostOperation::CreateInflight { .. } => WorkCost::ACCEPT,
        HostOperation::SetMtu(_) | HostOperation::ReadConfig { .. } | HostOperation::WriteConfig(_) => {
            WorkCost::ACCESS
        }
    }
}

fn times(cost: WorkCost, count: usize) -> WorkCost {
    WorkCost::of_units((cost.0 as usize).saturating_mul(count))
}
