//! Migration log of a front end: shared memory in which the function marks each page of guest memory that it has written, while
//! the front end copies the guest to another machine.

use super::VhostUserConnection;
use crate::flight::FlightRecordKind;
use crate::port::clients::device::VfioFunction;
use host::dma::{LogAlias, MapDmaRegionError, MappedLog};
use host::worker::DeferredCloseFd;
use vhost_user::backend::{HostOperationOutcome, LiveRingParameters};
use vhost_user::features::device::LOG_ALL;
use vhost_user::message::LogArea;

impl VhostUserConnection {
    /// Has the worker thread map a new log. The client waits for it.
    pub(super) fn begin_log(&mut self, area: LogArea, fd: DeferredCloseFd, device: &mut VfioFunction<'_>) {
        let memory = device.engine.reach(device.function).memory();
        match memory.admit_log(area.size, area.offset) {
            Ok(pending) => {
                device.errands().map_log(pending, fd);
                self.waiting = true;
            }
            Err(error) => self.logged(Err(error), device),
        }
    }

    /// Uses a log that the worker thread has mapped, in place of the log before.
    pub(super) fn logged(
        &mut self,
        log: Result<MappedLog, MapDmaRegionError>,
        device: &mut VfioFunction<'_>,
    ) {
        let outcome = match log {
            Ok(log) => {
                device.own.flight.event(device.now, FlightRecordKind::Said("migration log set"), 0);
                device.engine.reach_mut(device.function).change_log(|memory| memory.set_log(log));
                HostOperationOutcome::Done
            }
            Err(error) => {
                device.own.refused = Some(error);
                HostOperationOutcome::Failed
            }
        };
        self.session.complete(outcome);
    }
}

/// Switches logging on or off as the accepted features of a front end say.
pub(super) fn enable(features: u64, device: &mut VfioFunction<'_>) {
    let on = features & LOG_ALL != 0;
    device.engine.reach_mut(device.function).change_log(|memory| memory.enable_log(on));
}

/// Logs writes to the used ring of a ring where its front end wants them: at its own address too, if that differs from the
/// ring's guest address. QEMU's addresses do not differ.
pub(super) fn place_used_ring(setup: &LiveRingParameters, device: &mut VfioFunction<'_>) {
    let used = setup.used;
    let logged_at = setup.used_log.filter(|logged_at| *logged_at != used.address);
    let alias = logged_at.map(|logged_at| LogAlias { address: used.address, size: used.size, logged_at });
    let memory = device.engine.reach_mut(device.function).memory_mut();
    memory.alias_log(setup.ring, alias);
    if setup.base.is_some() {
        memory.note_ring_start();
    }
}
