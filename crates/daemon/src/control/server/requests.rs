//! Queue of requests from the thread that serves clients to the control thread, which carries them out one at a time,
//! in the order of their arrival.

use super::gate::ControlThreadGate;
use crate::control::problem::ProblemKind;
use crate::control::protocol::{ControlAnswer, ControlRequest, ControlRequestFailure};
use crate::control::status::{ConnectedVmm, LinkState, VfStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Request to the control thread, with the channel for its answer.
#[derive(Debug)]
struct QueuedControlRequest {
    request: ControlRequest,
    answer: oneshot::Sender<Result<ControlAnswer, ControlRequestFailure>>,
    /// Permit for the request's place in the queue. It is released when the request is carried out or skipped, not
    /// when its client disconnects.
    _permit: Option<OwnedSemaphorePermit>,
}

/// Sender of requests to the control thread.
#[derive(Debug, Clone)]
pub(crate) struct ControlRequestSender {
    queue: mpsc::Sender<QueuedControlRequest>,
    /// Permits that limit the number of pending requests of one listener's clients.
    permits: Arc<Semaphore>,
    gate: ControlThreadGate,
}

/// Handle by which the watchdog checks the control thread, with a place of its own in the queue. The weak sender does
/// not keep the control thread running.
#[derive(Debug, Clone)]
pub(crate) struct WatchdogProbe(mpsc::WeakSender<QueuedControlRequest>);

/// Receiver of control requests, on the control thread.
#[derive(Debug)]
pub(crate) struct ControlRequestReceiver {
    queue: mpsc::Receiver<QueuedControlRequest>,
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

    /// Creates the probe by which the watchdog checks the control thread.
    pub(crate) fn probe(&self) -> WatchdogProbe {
        WatchdogProbe(self.queue.downgrade())
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
        let answer = send(&self.queue, request, Some(permit))?;
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
    /// Waits until the control thread and every port have answered. The queue has room for one probe at a time.
    pub(crate) fn ask(&self) -> Result<(), ControlRequestFailure> {
        let answer = {
            let queue = self.0.upgrade().ok_or_else(handed_over)?;
            send(&queue, ControlRequest::PortList, None)?
        };
        answer.blocking_recv().unwrap_or_else(|_| Err(handed_over())).map(drop)
    }
}

/// Queues a request for the control thread, and returns the receiver of the answer.
fn send(
    queue: &mpsc::Sender<QueuedControlRequest>,
    request: ControlRequest,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<oneshot::Receiver<Result<ControlAnswer, ControlRequestFailure>>, ControlRequestFailure> {
    let (sender, answer) = oneshot::channel();
    let asked = QueuedControlRequest { request, answer: sender, _permit: permit };
    queue.try_send(asked).map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => busy(),
        mpsc::error::TrySendError::Closed(_) => handed_over(),
    })?;
    Ok(answer)
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
        while let Some(QueuedControlRequest { request, answer: sender, _permit }) = self.queue.blocking_recv()
        {
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
mod tests {
    use super::{ControlRequestSender, MOST};
    use crate::control::problem::ProblemKind;
    use crate::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand, UpgradeResult};
    use crate::control::status::{
        DropCounts, TrafficCounts, VfConductStatus, VfMailboxStatus, VirtioDeviceCounts, VmmInterventions,
    };
    use crate::settings::VfSettings;
    use serde_json::json;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};
    use std::thread;

    /// Sends a control request, and returns the kind of the problem if the sender refuses the request at once.
    fn refusal(sender: &ControlRequestSender) -> Option<ProblemKind> {
        let mut asking = Box::pin(sender.ask(ControlRequest::PortList));
        match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer.err().map(|failure| failure.kind),
            Poll::Pending => {
                // The request stays pending until the end of the test, as for a client that stays.
                std::mem::forget(asking);
                None
            }
        }
    }

    #[test]
    fn control_request_beyond_the_pending_limit_is_refused() {
        let (local, queue) = ControlRequestSender::new();
        let remote = local.for_another_listener();
        for listener in [&local, &remote] {
            // A request keeps its permit until its turn, though its sender is dropped here.
            assert!((0..MOST).all(|_| refusal(listener).is_none()), "a listener uses another's permits");
            assert_eq!(refusal(listener), Some(ProblemKind::Busy));
        }
        let probe = local.probe();
        let watchdog = std::thread::spawn(move || probe.ask());
        let serving = std::thread::spawn(move || {
            queue.serve(&AtomicBool::new(false), |_| Ok(ControlAnswer::Ports(Vec::new())));
        });
        assert_eq!(watchdog.join().unwrap(), Ok(()), "clients block the watchdog");
        let probe = local.probe();
        drop((local, remote));
        serving.join().unwrap();
        assert!(probe.ask().is_err(), "the watchdog keeps the control thread running");
    }

    /// Nobody serves the guests while a host that leaves waits for a request that waits for a disk.
    #[test]
    fn shut_gate_lets_a_request_end_but_none_begin() {
        let (sender, queue) = ControlRequestSender::new();
        let (gate, runtime) = (sender.gate(), tokio::runtime::Builder::new_current_thread().build().unwrap());
        let ((begun, begins), (disk, until)) = (mpsc::channel(), mpsc::channel::<()>());
        let serving = thread::spawn(move || {
            queue.serve(&AtomicBool::new(false), |_| {
                begun.send(()).unwrap();
                let _ = until.recv();
                Ok(ControlAnswer::Ports(Vec::new()))
            });
        });
        let clients = thread::spawn(move || {
            runtime.block_on(async {
                tokio::join!(sender.ask(ControlRequest::PortList), sender.ask(ControlRequest::PortList))
            })
        });
        begins.recv().unwrap();
        assert!(!gate.shut(), "the first request is being carried out");
        disk.send(()).unwrap();
        while !gate.shut() {
            thread::yield_now();
        }
        assert!(begins.try_recv().is_err(), "the second request has begun");
        disk.send(()).unwrap();
        gate.open();
        assert!(matches!(clients.join().unwrap(), (Ok(_), Ok(_))));
        serving.join().unwrap();
    }

    #[test]
    fn control_request_after_a_hand_over_is_not_begun() {
        let (sender, queue) = ControlRequestSender::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let clients = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::join!(sender.ask(ControlRequest::Upgrade), sender.ask(ControlRequest::PortList))
            })
        });
        let mut begun = Vec::new();
        queue.serve(&AtomicBool::new(false), |request| {
            begun.push(request);
            Ok(ControlAnswer::Upgraded(UpgradeResult { pid: 1 }))
        });
        let (upgrade, list) = clients.join().unwrap();
        assert!(upgrade.is_ok() && begun == [ControlRequest::Upgrade]);
        assert_eq!(list.unwrap_err().kind, ProblemKind::HandedOver);
    }

    /// Returns the status of a disabled virtio VF, whose client may still be served.
    fn disabled_vf(has_client: bool) -> ControlAnswer {
        let peer = json!({ "pid": 7, "uid": 0, "windows": 1, "shareable": 1, "shareable_bytes": 4096 });
        let status = json!({
            "name": "pf0vf0", "index": 0, "rid": "", "mac": "02:00:00:00:00:01", "vlans": [], "link": false,
            "active": false, "settings": { "state": "disable" }, "conduct": VfConductStatus::default(),
            "socket": "/vf.sock", "peer": has_client.then_some(peer), "hint": null, "rx": TrafficCounts::default(),
            "tx": TrafficCounts::default(), "drops": DropCounts::default(),
            "interventions": VmmInterventions::default(), "mailbox": VfMailboxStatus::default(),
            "device": VirtioDeviceCounts::default(),
        });
        ControlAnswer::Vf(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn answer_that_waits_for_a_clients_end_delays_no_request() {
        let (sender, queue) = ControlRequestSender::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let clients = std::thread::spawn(move || {
            let (vf, change) = ("pf0vf0".to_owned(), SettingsCommand::volatile(VfSettings::default()));
            let set = sender.ask(ControlRequest::VfSet { vf, change });
            let list = sender.ask(ControlRequest::PortList);
            runtime.block_on(async { tokio::join!(set, list) })
        });
        let mut begun = Vec::new();
        queue.serve(&AtomicBool::new(false), |request| {
            let answer = match request {
                ControlRequest::PortList => ControlAnswer::Ports(Vec::new()),
                _ => disabled_vf(!begun.contains(&ControlRequest::PortList) || begun.len() < 4),
            };
            begun.push(request);
            Ok(answer)
        });
        let (set, list) = clients.join().unwrap();
        assert_eq!(set, Ok(disabled_vf(false)));
        assert_eq!(list, Ok(ControlAnswer::Ports(Vec::new())));
        assert!(matches!(begun[..2], [ControlRequest::VfSet { .. }, ControlRequest::PortList]), "{begun:?}");
        assert!(
            begun[2..].iter().all(|request| matches!(request, ControlRequest::VfShow { .. })),
            "{begun:?}"
        );
    }
}
