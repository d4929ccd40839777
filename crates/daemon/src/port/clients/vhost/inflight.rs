//! Records of unfinished descriptors, which a front end keeps for the next process (`INFLIGHT_SHMFD`).
//!
//! The card completes chains in the order in which it takes them, so a ring continues at its used index, and the chains
//! behind it are not lost: the card fetches them again. So there is nothing to record. A front end gets memory of zeros,
//! which stand for no record. The memory that it returns is only read, to refuse records of another back end.

use super::VhostUserConnection;
use crate::flight::FlightRecordKind;
use crate::port::clients::device::VfioFunction;
use host::shared::create_memory_file;
use host::worker::DeferredCloseFd;
use vhost_user::backend::HostOperationOutcome;
use vhost_user::features::device::RING_PACKED;
use vhost_user::inflight::{InflightError, InflightLayout};
use vhost_user::message::InflightArea;

impl VhostUserConnection {
    /// Creates memory for a front end's records of unfinished descriptors. The host keeps nothing of it. Records of packed
    /// rings are longer, so a front end that has not accepted features yet gets memory for those.
    pub(super) fn create_inflight(
        &self,
        queues: u16,
        queue_size: u16,
        device: &mut VfioFunction<'_>,
    ) -> HostOperationOutcome<DeferredCloseFd> {
        let packed = self.session.features().is_none_or(|features| features & RING_PACKED != 0);
        let size = InflightLayout::new(queues, queue_size, packed).size();
        match create_memory_file(size) {
            Ok(file) => {
                let area = InflightArea { size, offset: 0, queues, queue_size };
                HostOperationOutcome::Inflight { area, fd: device.errands().keep(file) }
            }
            Err(error) => {
                device.own.ring_fault = Some(error.to_string());
                HostOperationOutcome::Failed
            }
        }
    }

    /// Has the worker thread check the records of unfinished descriptors that a front end returns. The client waits for it.
    pub(super) fn begin_inflight(
        &mut self,
        area: InflightArea,
        fd: DeferredCloseFd,
        device: &mut VfioFunction<'_>,
    ) {
        let Some(features) = self.session.features() else {
            device.own.ring_fault = Some("SET_INFLIGHT_FD came before SET_FEATURES".to_owned());
            return self.session.complete(HostOperationOutcome::Failed);
        };
        let layout = InflightLayout::new(area.queues, area.queue_size, features & RING_PACKED != 0);
        device.errands().check_inflight(layout, area, fd);
        self.waiting = true;
    }

    /// Answers the front end whose records of unfinished descriptors the worker thread has checked.
    pub(super) fn checked_inflight(
        &mut self,
        checked: Result<(), InflightError>,
        device: &mut VfioFunction<'_>,
    ) {
        let outcome = match checked {
            Ok(()) => HostOperationOutcome::Done,
            Err(error) => {
                device.own.flight.event(device.now, FlightRecordKind::Said("inflight records refused"), 0);
                device.own.ring_fault = Some(error.to_string());
                HostOperationOutcome::Failed
            }
        };
        self.session.complete(outcome);
    }
}
