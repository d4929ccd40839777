//! Tests of the control thread's queue: its limits, a hand-over, the watchdog's probe.

use super::{ControlRequestFailure, ControlRequestSender, MOST};
use crate::control::problem::ProblemKind;
use crate::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand, UpgradeResult};
use crate::control::status::{
    DropCounts, TrafficCounts, VfConductStatus, VfMailboxStatus, VirtioDeviceCounts, VmmInterventions,
};
use crate::disk_wait::DiskWait;
use crate::settings::VfSettings;
use serde_json::json;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// Request of a client that waits for its answer.
type PendingRequest<'a> = Pin<Box<dyn Future<Output = Result<ControlAnswer, ControlRequestFailure>> + 'a>>;

/// Sends a control request, and returns it while it is pending, or the kind of the problem if the sender refuses it at once.
fn ask(sender: &ControlRequestSender) -> Result<PendingRequest<'_>, Option<ProblemKind>> {
    let mut asking: PendingRequest<'_> = Box::pin(sender.ask(ControlRequest::PortList));
    match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Err(answer.err().map(|failure| failure.kind)),
        Poll::Pending => Ok(asking),
    }
}

#[test]
fn control_request_beyond_the_pending_limit_is_refused() {
    let (local, queue) = ControlRequestSender::new();
    let remote = local.for_another_listener();
    let mut pending = Vec::new();
    for listener in [&local, &remote] {
        let asked: Result<Vec<_>, _> = (0..MOST).map(|_| ask(listener)).collect();
        pending.push(asked.expect("a listener uses another's permits"));
        assert_eq!(ask(listener).err(), Some(Some(ProblemKind::Busy)));
    }
    let probe = local.probe(DiskWait::default());
    let watchdog = std::thread::spawn(move || probe.ask());
    let serving = std::thread::spawn(move || {
        queue.serve(&AtomicBool::new(false), |_| Ok(ControlAnswer::Ports(Vec::new())));
    });
    assert_eq!(watchdog.join().unwrap(), Ok(()), "clients block the watchdog");
    let probe = local.probe(DiskWait::default());
    drop(pending);
    drop((local, remote));
    serving.join().unwrap();
    assert!(probe.ask().is_err(), "the watchdog keeps the control thread running");
}

/// No process serves the guests while a host that leaves waits for a request that waits for a disk.
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
    assert!(begun[2..].iter().all(|request| matches!(request, ControlRequest::VfShow { .. })), "{begun:?}");
}

/// systemd would kill a host whose guests are served, and the next host would read the same disk.
#[test]
fn control_thread_that_waits_for_a_disk_is_alive() {
    let (sender, queue) = ControlRequestSender::new();
    let (waits, runtime) =
        (DiskWait::default(), tokio::runtime::Builder::new_current_thread().build().unwrap());
    let probe = sender.probe(waits.clone());
    let ((begun, begins), (disk, until)) = (mpsc::channel(), mpsc::channel::<()>());
    let serving = thread::spawn(move || {
        queue.serve(&AtomicBool::new(false), |_| {
            waits.during(|| {
                begun.send(()).unwrap();
                let _ = until.recv();
            });
            Ok(ControlAnswer::Ports(Vec::new()))
        });
    });
    let client = thread::spawn(move || runtime.block_on(sender.ask(ControlRequest::PortList)));
    begins.recv().unwrap();
    let (answer, answers) = mpsc::channel();
    let watchdog = thread::spawn(move || {
        for _ in 0..3 {
            answer.send(probe.ask()).unwrap();
        }
        probe
    });
    for _ in 0..3 {
        assert_eq!(
            answers.recv_timeout(Duration::from_secs(60)),
            Ok(Ok(())),
            "the watchdog waits for the disk"
        );
    }
    drop(disk);
    let probe = watchdog.join().unwrap();
    assert!(client.join().unwrap().is_ok());
    serving.join().unwrap();
    // The first probe was answered at last.
    assert_eq!(probe.ask(), Ok(()));
    assert!(probe.ask().is_err(), "the control thread has ended");
}
