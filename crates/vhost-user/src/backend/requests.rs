//! Applies a request of the front end to the session's state.

use alloc::vec::Vec;

use super::event::{BackendEvent, HostOperation, HostOperationOutcome, SharedRegion};
use super::state::SessionState;
use crate::features::{device, protocol};
use crate::message::{
    DeviceConfigAccess, FrontendRequest, InflightArea, LogArea, MemoryRegion, RequestCode, RequestError,
    RingAddresses, RingBase,
};

/// Result of a request that is valid.
#[derive(Debug)]
pub(super) enum RequestResult<F> {
    /// Result: the request is done, and has no reply other than an acknowledgement.
    Done,
    /// Result: the request is done, and this is the body of its reply.
    Reply(Vec<u8>),
    /// Result: the host must complete a task first.
    Task(HostOperation<F>, UnfinishedRequest),
}

/// Part of a request that is applied when the host has completed its task.
#[derive(Debug)]
pub(super) enum UnfinishedRequest {
    /// To apply later: the host maps these regions instead of all others.
    ReplaceMemory(Vec<MemoryRegion>),
    /// To apply later: the host maps one more region.
    AddRegion(MemoryRegion),
    /// To apply later: the host unmaps a region, which the table no longer has.
    RemoveRegion,
    /// To apply later: the host stops a ring.
    StopRing(u32),
    /// To apply later: the host begins to log its writes; the reply repeats the request.
    SetLog(LogArea),
    /// To apply later: the host reads the configuration space.
    ReadConfig(DeviceConfigAccess),
    /// To apply later: the host creates memory for unfinished descriptors.
    CreateInflight(InflightArea),
    /// To apply later: the host does work without a result.
    Other,
}

impl<F> SessionState<F> {
    /// Checks a message and applies its request. Leaves unused descriptors in `fds`.
    ///
    /// # Errors
    /// The request is refused, and nothing has changed.
    pub(super) fn handle(
        &mut self,
        code: Option<RequestCode>,
        body: &[u8],
        fds: &mut Vec<F>,
    ) -> Result<RequestResult<F>, RequestError> {
        let code = code.ok_or(RequestError::Unknown)?;
        if let Some(bit) = code.needed_feature().filter(|bit| !self.has_protocol_feature(*bit)) {
            return Err(RequestError::NotNegotiated(bit));
        }
        let request = FrontendRequest::parse(code, body)?;
        let (expected, received) = (request.descriptors(), fds.len());
        // The specification tolerates a descriptor that old front ends send with a removal.
        let tolerated = matches!(request, FrontendRequest::RemMemReg(_)) && received == 1;
        if received != expected && !tolerated {
            return Err(RequestError::Descriptors { received, expected });
        }
        self.apply(request, fds)
    }

    /// Applies a request with the right number of descriptors.
    fn apply(
        &mut self,
        request: FrontendRequest,
        fds: &mut Vec<F>,
    ) -> Result<RequestResult<F>, RequestError> {
        use FrontendRequest as Request;
        match request {
            Request::GetFeatures => return Ok(reply(self.offer.features)),
            Request::GetProtocolFeatures => return Ok(reply(self.offer.protocol_features)),
            Request::GetQueueNum => return Ok(reply(u64::from(self.queue_number()))),
            Request::GetMaxMemSlots => return Ok(reply(self.offer.memory_regions as u64)),
            Request::GetStatus => return Ok(reply(u64::from(self.status))),
            Request::SetFeatures(features) => self.set_features(features)?,
            Request::SetProtocolFeatures(features) => self.set_protocol_features(features)?,
            Request::SetOwner if self.owned => {}
            Request::SetOwner => {
                self.owned = true;
                self.events.push_back(BackendEvent::OwnerSet);
            }
            Request::ResetOwner => {
                self.owned = false;
                self.enable_all(false);
                self.events.push_back(BackendEvent::OwnerReset);
            }
            Request::SetStatus(status) => {
                self.status = status;
                self.events.push_back(BackendEvent::StatusSet(status));
            }
            Request::SendRarp(address) => self.events.push_back(BackendEvent::SendRarp(address)),
            Request::ResetDevice => self.reset_device(),
            Request::SetLogFd => self.events.extend(fds.pop().map(BackendEvent::LogEventSet)),
            Request::SetVringNum { ring, size } => self.set_size(ring, size)?,
            Request::SetVringAddr(addresses) => self.set_addresses(addresses)?,
            Request::SetVringBase { ring, base } => self.set_base(ring, base)?,
            Request::SetVringEnable { ring, enabled } => {
                self.ring(ring)?;
                self.enable(ring, enabled);
            }
            Request::SetVringKick(kick) => {
                self.ring(kick.ring)?.kicked = true;
                self.events.push_back(BackendEvent::KickSet { ring: kick.ring, fd: fds.pop() });
                self.start(kick.ring);
            }
            Request::SetVringCall(call) => {
                self.ring(call.ring)?;
                self.events.push_back(BackendEvent::CallSet { ring: call.ring, fd: fds.pop() });
            }
            Request::SetVringErr(error) => {
                self.ring(error.ring)?;
                self.events.push_back(BackendEvent::ErrorSet { ring: error.ring, fd: fds.pop() });
            }
            task => return self.begin(task, fds),
        }
        Ok(RequestResult::Done)
    }

    /// Begins a request that needs a task of the host.
    fn begin(
        &mut self,
        request: FrontendRequest,
        fds: &mut Vec<F>,
    ) -> Result<RequestResult<F>, RequestError> {
        use FrontendRequest as Request;
        let (task, rest) = match request {
            Request::SetMemTable(regions) => return self.replace_memory(regions, fds),
            // QEMU 7.2 adds and removes each region once for every queue pair.
            Request::AddMemReg(region) if self.memory.has(&region) => return Ok(RequestResult::Done),
            Request::RemMemReg(region) if !self.memory.has_memory(&region) => return Ok(RequestResult::Done),
            Request::AddMemReg(region) => return self.add_region(region, fds),
            Request::RemMemReg(region) => {
                let removed = self.memory.remove(&region)?;
                self.pause_all();
                (HostOperation::RemoveRegion(removed), UnfinishedRequest::RemoveRegion)
            }
            Request::GetVringBase { ring } => return self.stop_ring(ring),
            Request::NetSetMtu(mtu) => (HostOperation::SetMtu(mtu), UnfinishedRequest::Other),
            Request::GetConfig(access) => {
                let (offset, size) = (access.offset, access.contents.len() as u32);
                (HostOperation::ReadConfig { offset, size }, UnfinishedRequest::ReadConfig(access))
            }
            Request::SetConfig(access) => (HostOperation::WriteConfig(access), UnfinishedRequest::Other),
            Request::GetInflightFd(area) => {
                self.check_inflight(area)?;
                let (queues, queue_size) = (area.queues, area.queue_size);
                let task = HostOperation::CreateInflight { queues, queue_size };
                (task, UnfinishedRequest::CreateInflight(area))
            }
            Request::SetInflightFd(area) => {
                self.check_inflight(area)?;
                (HostOperation::RestoreInflight { area, fd: only(fds)? }, UnfinishedRequest::Other)
            }
            Request::SetLogBase(area) => {
                (HostOperation::SetLog { area, fd: only(fds)? }, UnfinishedRequest::SetLog(area))
            }
            // `SET_BACKEND_REQ_FD` needs a protocol feature that is never offered.
            _ => return Err(RequestError::Unknown),
        };
        Ok(RequestResult::Task(task, rest))
    }

    /// Applies a request whose task the host has completed. Returns body and descriptor of the reply, if the request
    /// has one.
    ///
    /// # Errors
    /// The host has failed, or the outcome is that of another task.
    pub(super) fn finish(
        &mut self,
        request: UnfinishedRequest,
        outcome: HostOperationOutcome<F>,
    ) -> Result<(Vec<u8>, Option<F>), RequestError> {
        match (request, outcome) {
            (UnfinishedRequest::ReplaceMemory(regions), HostOperationOutcome::Done) => {
                self.memory = self.memory.with(&regions)?;
                self.start_all();
            }
            (UnfinishedRequest::AddRegion(region), outcome) => {
                let added = match outcome {
                    HostOperationOutcome::Done => self.memory.add(region).map_err(RequestError::from),
                    _ => Err(RequestError::HostFailed),
                };
                self.start_all();
                added?;
            }
            (UnfinishedRequest::RemoveRegion, _) => self.start_all(),
            (UnfinishedRequest::StopRing(ring), HostOperationOutcome::Base(base)) => {
                self.stopped(ring, base);
                return Ok((base_reply(ring, base), None));
            }
            (UnfinishedRequest::SetLog(area), HostOperationOutcome::Done) => {
                // QEMU ignores the body of the reply, and the `vhost` crate requires a log description.
                return Ok((FrontendRequest::SetLogBase(area).encode(), None));
            }
            (UnfinishedRequest::ReadConfig(access), outcome) => {
                return Ok((config_reply(&access, outcome), None));
            }
            (UnfinishedRequest::CreateInflight(asked), HostOperationOutcome::Inflight { area, fd }) => {
                let area = InflightArea { queues: asked.queues, queue_size: asked.queue_size, ..area };
                return Ok((FrontendRequest::GetInflightFd(area).encode(), Some(fd)));
            }
            (UnfinishedRequest::Other, HostOperationOutcome::Done) => {}
            _ => return Err(RequestError::HostFailed),
        }
        Ok((Vec::new(), None))
    }

    fn set_features(&mut self, features: u64) -> Result<(), RequestError> {
        let unoffered = features & !self.offer.features;
        if unoffered != 0 {
            return Err(RequestError::UnofferedFeatures(unoffered));
        }
        // The start of a migration changes the log bit; any other bit would change the layout of rings or packets.
        let changed = (self.features.unwrap_or(0) ^ features) & !device::LOG_ALL;
        if changed != 0 && self.rings.iter().any(|ring| ring.started) {
            return Err(RequestError::FeaturesWhileRunning(changed));
        }
        if self.features != Some(features) {
            self.features = Some(features);
            self.events.push_back(BackendEvent::FeaturesSet(features));
        }
        if features & device::PROTOCOL_FEATURES == 0 {
            self.enable_all(true);
        }
        self.start_all();
        Ok(())
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<(), RequestError> {
        let unoffered = features & !self.offer.protocol_features;
        if unoffered != 0 {
            return Err(RequestError::UnofferedProtocolFeatures(unoffered));
        }
        if self.protocol_features != features {
            self.protocol_features = features;
            self.events.push_back(BackendEvent::ProtocolFeaturesSet(features));
        }
        Ok(())
    }

    fn set_size(&mut self, ring: u32, size: u32) -> Result<(), RequestError> {
        let limit = self.offer.ring_size;
        let state = self.ring(ring)?;
        if size > limit {
            return Err(RequestError::RingSize { size, limit });
        }
        if state.started && state.size != Some(size) {
            return Err(RequestError::RingIsRunning(ring));
        }
        state.size = Some(size);
        self.start(ring);
        Ok(())
    }

    /// Sets the addresses of a ring. A running ring is paused and its addresses are translated again, as at the start
    /// of a migration.
    fn set_addresses(&mut self, addresses: RingAddresses) -> Result<(), RequestError> {
        self.ring(addresses.ring)?.addresses = Some(addresses);
        self.pause(addresses.ring);
        self.start(addresses.ring);
        Ok(())
    }

    /// Sets the position of a ring. A running ring is paused, and continues at this position.
    fn set_base(&mut self, ring: u32, base: u32) -> Result<(), RequestError> {
        self.ring(ring)?.base = Some(base);
        self.pause(ring);
        self.ring(ring)?.started = false;
        self.start(ring);
        Ok(())
    }

    fn replace_memory(
        &mut self,
        regions: Vec<MemoryRegion>,
        fds: &mut Vec<F>,
    ) -> Result<RequestResult<F>, RequestError> {
        // Checks the regions; the table stays empty until the host has mapped them.
        self.memory.with(&regions)?;
        self.pause_all();
        self.memory = self.memory.with(&[])?;
        let shared = regions.iter().zip(fds.drain(..)).map(|(&region, fd)| SharedRegion { region, fd });
        let task = HostOperation::ReplaceMemory(shared.collect());
        Ok(RequestResult::Task(task, UnfinishedRequest::ReplaceMemory(regions)))
    }

    fn add_region(
        &mut self,
        region: MemoryRegion,
        fds: &mut Vec<F>,
    ) -> Result<RequestResult<F>, RequestError> {
        self.memory.check_addition(&region)?;
        let fd = only(fds)?;
        self.pause_all();
        let task = HostOperation::AddRegion(SharedRegion { region, fd });
        Ok(RequestResult::Task(task, UnfinishedRequest::AddRegion(region)))
    }

    /// Stops a ring. Needs a task of the host only if the host uses the ring.
    fn stop_ring(&mut self, ring: u32) -> Result<RequestResult<F>, RequestError> {
        let packed = self.packed();
        let state = self.ring(ring)?;
        if state.started {
            let task = HostOperation::StopRing { ring };
            return Ok(RequestResult::Task(task, UnfinishedRequest::StopRing(ring)));
        }
        let base = state.stored_base(packed);
        state.stop(base);
        Ok(RequestResult::Reply(base_reply(ring, base)))
    }

    /// Returns the number for `GET_QUEUE_NUM`: queue pairs for QEMU and virtio-user, which use the device status, and
    /// rings for others. Cloud Hypervisor and the `vhost` crate compare it with their number of rings, and would refuse
    /// a device of one pair; they have no status.
    fn queue_number(&self) -> u32 {
        let pairs = self.offer.queue_pairs;
        if self.has_protocol_feature(protocol::STATUS) { pairs } else { 2 * pairs }
    }

    fn check_inflight(&self, area: InflightArea) -> Result<(), RequestError> {
        area.check_rings(self.rings.len() as u32, self.offer.ring_size)
    }
}

/// Takes the only descriptor of a message, whose number is checked already.
fn only<F>(fds: &mut Vec<F>) -> Result<F, RequestError> {
    fds.pop().ok_or(RequestError::Descriptors { received: 0, expected: 1 })
}

fn reply<F>(value: u64) -> RequestResult<F> {
    RequestResult::Reply(value.to_le_bytes().to_vec())
}

fn base_reply(ring: u32, base: RingBase) -> Vec<u8> {
    FrontendRequest::SetVringBase { ring, base: base.to_wire() }.encode()
}

/// Returns the reply to a read of the configuration space. A reply without contents reports an error.
fn config_reply<F>(access: &DeviceConfigAccess, outcome: HostOperationOutcome<F>) -> Vec<u8> {
    let contents = match outcome {
        HostOperationOutcome::Config(contents) if contents.len() == access.contents.len() => contents,
        _ => Vec::new(),
    };
    FrontendRequest::GetConfig(DeviceConfigAccess { contents, ..*access }).encode()
}
