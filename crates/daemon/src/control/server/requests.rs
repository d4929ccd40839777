//! Queue of requests from the thread that serves clients to the control thread, which carries them out one at a time,
//! in the order of their arrival.

use super::gate::ControlThreadGate;
use crate::control::problem::ProblemKind;
use crate::control::protocol::{ControlAnswer, ControlRequest, ControlRequestFailure};
use crate::control::status::{ConnectedVmm, LinkState, VfStatus};
use crate::disk_wait::DiskWait;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::sleep;

/// Maximum number of pending requests of one listener's clients. Further requests are refused at once.
const MOST: usize = 16;
/// Maximum number of pending requests: those of two listeners' clients, and the watchdog's.
const ROOM: usize = 2 * MOST + 1;

/// Maximum time for which an answer waits for the end of a client that its request disconnects, and the interval at which the
/// port is asked. The port ends such a client within half a second.
const SETTLE: Duration = Duration::from_millis(700);
const SETTLE_INTERVAL: Duration = Duration::from_millis(10);

/// Interval at which the watchdog's probe looks whether the control thread waits for a disk.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a step of the control thread that waits for a disk is logged.
const SLOW_DISK: Duration = Duration::from_secs(10);

/// Item in the control thread's queue.
#[derive(Debug)]
enum ControlQueueItem {
    Request(Box<QueuedControlRequest>),
    /// Check of the watchdog that the control thread takes requests.
    Probe(std_mpsc::Sender<()>),
}

/// Request to the control thread, with the channel for its answer.
#[derive(Debug)]
struct QueuedControlRequest {
    request: ControlRequest,
    answer: oneshot::Sender<Result<ControlAnswer, ControlRequestFailure>>,
    /// Permit for the request's place in the queue. It is released when the request is carried out or skipped, not
    /// when its client disconnects.
    _permit: OwnedSemaphorePermit,
}

/// Sender of requests to the control thread.
#[derive(Debug, Clone)]
pub(crate) struct ControlRequestSender {
    queue: mpsc::Sender<ControlQueueItem>,
    /// Permits that limit the number of pending requests of one listener's clients.
    permits: Arc<Semaphore>,
    gate: ControlThreadGate,
}

/// Handle by which the watchdog checks the control thread, with a place of its own in the queue.
#[derive(Debug, Clone)]
pub(crate) struct WatchdogProbe {
    /// Weak, so that it does not keep the control thread running.
    queue: mpsc::WeakSender<ControlQueueItem>,
    disk: DiskWait,
    /// Answer to a probe that is still in the queue.
    pending: Arc<Mutex<Option<std_mpsc::Receiver<()>>>>,
}

/// Receiver of control requests, on the control thread.
#[derive(Debug)]
pub(crate) struct ControlRequestReceiver {
    queue: mpsc::Receiver<ControlQueueItem>,
    gate: ControlThreadGate,
}

impl ControlRequestSender {
    pub(crate) fn new() -> (Self, ControlRequestReceiver) {
        let (queue, receiver) = mpsc::channel(ROOM);
        let (permits, gate) = (Arc::new(Semaphore::new(MOST)), ControlThreadGate::default());
        (Self { queue, permits, gate: gate.clone() }, ControlRequestReceiver { queue: receiver, gate })
    }

    /// Returns the gate before the control thread.
    pub(crate) fn gate(&self) -> ControlThreadGate {
        self.gate.clone()
    }

    /// Creates a sender of control requests for the clients of another listener, with a separate limit.
    pub(crate) fn for_another_listener(&self) -> Self {
        Self { permits: Arc::new(Semaphore::new(MOST)), ..self.clone() }
    }

    /// Creates the probe by which the watchdog checks the control thread, whose waits for a disk `disk` marks.
    pub(crate) fn probe(&self, disk: DiskWait) -> WatchdogProbe {
        WatchdogProbe { queue: self.queue.downgrade(), disk, pending: Arc::default() }
    }

    /// Sends a control request and waits for the answer. The answer to a request that disconnects a VF's client waits for the
    /// end of that client, at most [`SETTLE`], while the control thread carries out other requests.
    pub(crate) async fn ask(&self, request: ControlRequest) -> Result<ControlAnswer, ControlRequestFailure> {
        let disconnection = VfDisconnection::of(&request);
        let mut answer = self.ask_once(request).await?;
        let (Some(disconnection), ControlAnswer::Vf(first)) = (disconnection, &answer) else {
            return Ok(answer);
        };
        let (first, deadline) = (first.peer.clone(), Instant::now() + SETTLE);
        while let ControlAnswer::Vf(vf) = &answer
            && disconnection.is_pending(vf, first.as_ref())
            && Instant::now() < deadline
        {
            let show = ControlRequest::VfShow { vf: vf.name.clone() };
            sleep(SETTLE_INTERVAL).await;
            // The request was carried out, so an error here is none of its own.
            if let Ok(later) = self.ask_once(show).await {
                answer = later;
            }
        }
        Ok(answer)
    }

    async fn ask_once(&self, request: ControlRequest) -> Result<ControlAnswer, ControlRequestFailure> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| busy())?;
        let (sender, answer) = oneshot::channel();
        let asked = QueuedControlRequest { request, answer: sender, _permit: permit };
        send(&self.queue, ControlQueueItem::Request(Box::new(asked)))?;
        answer.await.unwrap_or_else(|_| Err(handed_over()))
    }
}

/// Kind of a request that may disconnect a VF's client.
#[derive(Debug, Clone, Copy)]
enum VfDisconnection {
    /// The port disconnects the present client.
    Always,
    /// The port disconnects clients of a virtio VF that the request disables or quarantines.
    IfDisabled,
}

impl VfDisconnection {
    fn of(request: &ControlRequest) -> Option<Self> {
        match request {
            ControlRequest::VfDisconnect { .. } => Some(Self::Always),
            ControlRequest::VfSet { .. } => Some(Self::IfDisabled),
            _ => None,
        }
    }

    /// Returns true while the port still serves the client that it disconnects. `first` is the client at the request.
    fn is_pending(self, vf: &VfStatus, first: Option<&ConnectedVmm>) -> bool {
        match self {
            Self::Always => first.is_some() && vf.peer.as_ref() == first,
            Self::IfDisabled => vf.peer.is_some() && vf.device.is_some() && is_disabled(vf),
        }
    }
}

/// Returns true if a virtio VF of this status has no client.
fn is_disabled(vf: &VfStatus) -> bool {
    vf.settings.state == Some(LinkState::Disable) || vf.conduct.quarantine.is_some()
}

impl WatchdogProbe {
    /// Waits until the control thread has answered, or waits for a disk: then no port does. The queue has room for one probe at a
    /// time, so a later call waits for the answer to an earlier probe.
    pub(crate) fn ask(&self) -> Result<(), ControlRequestFailure> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = pending.is_none();
        let answer = match pending.take() {
            Some(answer) => answer,
            None => self.send()?,
        };
        loop {
            match answer.recv_timeout(PROBE_INTERVAL) {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(handed_over()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let Some(time) = self.disk.time() else { continue };
            // Checks follow each other within seconds, so the second one logs the wait.
            if !is_new && time >= SLOW_DISK {
                tracing::warn!(
                    ?time,
                    "a change waits for a disk that does not answer; guests are served, and other requests wait too"
                );
            }
            *pending = Some(answer);
            return Ok(());
        }
    }

    fn send(&self) -> Result<std_mpsc::Receiver<()>, ControlRequestFailure> {
        let (sender, answer) = std_mpsc::channel();
        send(&self.queue.upgrade().ok_or_else(handed_over)?, ControlQueueItem::Probe(sender))?;
        Ok(answer)
    }
}

/// Adds an item to the control thread's queue.
fn send(queue: &mpsc::Sender<ControlQueueItem>, item: ControlQueueItem) -> Result<(), ControlRequestFailure> {
    queue.try_send(item).map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => busy(),
        mpsc::error::TrySendError::Closed(_) => handed_over(),
    })
}

fn busy() -> ControlRequestFailure {
    ControlRequestFailure::new(
        ProblemKind::Busy,
        format!("{MOST} requests are pending, the most at a time; try again in a second"),
    )
}

impl ControlRequestReceiver {
    /// Carries out control requests by `handle`. It ends when no sender is left, after a hand-over, or when `leaving`
    /// is set. Requests whose clients have disconnected are skipped.
    pub(crate) fn serve(
        mut self,
        leaving: &AtomicBool,
        mut handle: impl FnMut(ControlRequest) -> Result<ControlAnswer, ControlRequestFailure>,
    ) {
        while let Some(item) = self.queue.blocking_recv() {
            let QueuedControlRequest { request, answer: sender, _permit } = match item {
                ControlQueueItem::Request(request) => *request,
                ControlQueueItem::Probe(answer) => {
                    // The watchdog may have ended.
                    let _ = answer.send(());
                    continue;
                }
            };
            let _begun = self.gate.begin();
            if leaving.load(Ordering::Acquire) {
                return;
            }
            if sender.is_closed() {
                continue;
            }
            let answer = handle(request);
            let over = matches!(answer, Ok(ControlAnswer::Upgraded(_)));
            // The client may have disconnected.
            let _ = sender.send(answer);
            if over {
                return;
            }
        }
    }
}

fn handed_over() -> ControlRequestFailure {
    ControlRequestFailure::new(
        ProblemKind::HandedOver,
        "a new process serves the host now, and the request was not carried out; send the request again",
    )
}

#[cfg(test)]
mod tests;
