//! Thread for the sockets of a port with virtio functions. The port's thread opens no socket and waits for none.
//!
//! No order waits for the close of a socket: a client in its queue may have sent a descriptor whose close blocks. A worker closes
//! sockets that are not needed.
//!
//! For functions with `socket_mode = "client"` it connects to the sockets on which VMMs listen. It tries again while no VMM
//! listens, at growing intervals. For other functions it shuts and opens the doors of listening sockets.

use super::dialer_event::{DialerEvent, LONGEST, SHORTEST};
use super::shut_door::ShutDoor;
use crate::clock::now;
use host::confine::{PreparedSandbox, SandboxError};
use host::poll::ThreadWaker;
use host::socket::{ListenerDoor, SocketFilePermissions, StreamSocket};
use host::worker::BlockingWorker;
use i82576::Time;
use pcie::Function;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Socket of a VMM to connect to, for a function.
#[derive(Debug)]
pub(super) struct VmmSocketDial {
    pub(super) function: Function,
    /// Number of this order, by which the port recognizes the outcome.
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// Users whose sockets may be connected to.
    pub(super) access: SocketFilePermissions,
    /// Pause before the first attempt.
    pub(super) pause: Duration,
}

/// Outcome of an order to the thread.
#[derive(Debug)]
pub(super) struct DialerOutcome {
    pub(super) function: Function,
    /// Number of the order.
    pub(super) number: u64,
    pub(super) event: DialerEvent,
}

/// Order of a port to the thread.
#[derive(Debug)]
enum DialOrder {
    /// Connect to a VMM's socket, and try again until it succeeds.
    Connect(VmmSocketDial),
    /// Shut the door of a function's listening socket.
    Shut(Function, u64, ListenerDoor),
    /// Open the door of a function's listening socket.
    Open(Function, u64, ListenerDoor),
    /// Stop the attempts for a function, and forget the function's door.
    Stop(Function),
}

/// Sender of orders to the thread, and receiver of the outcomes. The thread ends when this value is dropped.
#[derive(Debug)]
pub(in crate::port) struct VmmDialer {
    orders: DialOrderSender,
    outcomes: mpsc::Receiver<DialerOutcome>,
}

/// Sender of orders to the thread.
#[derive(Debug)]
enum DialOrderSender {
    /// Thread, and the worker that closes sockets.
    Thread(mpsc::Sender<DialOrder>, BlockingWorker),
    /// In a simulation, each order is a job of a worker without a thread. Attempts are not repeated there.
    Job(BlockingWorker, Arc<Mutex<DialerTasks>>),
}

impl VmmDialer {
    /// Starts the thread. It wakes the port with each outcome, and gives up the rights that `confined` names.
    pub(in crate::port) fn start(
        port: &str,
        waker: &ThreadWaker,
        confined: &PreparedSandbox,
    ) -> Result<Self, SandboxError> {
        let (sender, outcomes) = mpsc::channel();
        let mut tasks = DialerTasks {
            outcomes: sender,
            waker: waker.clone(),
            closer: None,
            dials: Vec::new(),
            doors: Vec::new(),
        };
        let name = format!("dial {port}");
        if let Some(worker) = BlockingWorker::of_simulation(&name, confined) {
            return Ok(Self { orders: DialOrderSender::Job(worker, Arc::new(Mutex::new(tasks))), outcomes });
        }
        let closer = BlockingWorker::start_confined(&format!("close {port}"), confined)?;
        tasks.closer = Some(closer.clone());
        let (orders, receiver) = mpsc::channel();
        confined.spawn(&name, move || tasks.run(&receiver))?;
        Ok(Self { orders: DialOrderSender::Thread(orders, closer), outcomes })
    }

    /// Connects to a VMM's socket, and tries again until it succeeds or is stopped.
    pub(super) fn connect(&self, dial: VmmSocketDial) {
        self.order(DialOrder::Connect(dial));
    }

    /// Shuts the door of a function's listening socket, so that clients wait in connect(2). `number` recognizes the outcome.
    pub(super) fn shut(&self, function: Function, number: u64, door: ListenerDoor) {
        self.order(DialOrder::Shut(function, number, door));
    }

    /// Opens the door of a function's listening socket. `number` recognizes the outcome.
    pub(super) fn open(&self, function: Function, number: u64, door: ListenerDoor) {
        self.order(DialOrder::Open(function, number, door));
    }

    /// Stops the attempts for a function, and forgets the function's door. An outcome may still come.
    pub(super) fn stop(&self, function: Function) {
        self.order(DialOrder::Stop(function));
    }

    /// Closes connections, which may block, for whose function the port has no worker any more.
    pub(super) fn discard(&self, streams: Vec<StreamSocket>) {
        match &self.orders {
            DialOrderSender::Thread(_, worker) | DialOrderSender::Job(worker, _) => worker.discard(streams),
        }
    }

    /// Returns the next outcome, if there is one. Never blocks.
    pub(super) fn outcome(&self) -> Option<DialerOutcome> {
        self.outcomes.try_recv().ok()
    }

    fn order(&self, order: DialOrder) {
        match &self.orders {
            // The thread ends only with this value, or by a panic, which was reported.
            DialOrderSender::Thread(orders, _) => drop(orders.send(order)),
            DialOrderSender::Job(worker, tasks) => {
                let tasks = Arc::clone(tasks);
                worker.run(move || {
                    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
                    tasks.take(order);
                    tasks.attempt_all();
                });
            }
        }
    }
}

/// Attempts to connect to one VMM's socket.
#[derive(Debug)]
struct PendingDial {
    dial: VmmSocketDial,
    /// Time of the next attempt.
    due: Time,
    /// Interval to the attempt after that.
    interval: Duration,
    /// Reason of the last failed attempt, as the port was told.
    told: Option<String>,
}

/// Tasks of the thread.
#[derive(Debug)]
struct DialerTasks {
    outcomes: mpsc::Sender<DialerOutcome>,
    waker: ThreadWaker,
    /// Worker that closes sockets; none in a simulation.
    closer: Option<BlockingWorker>,
    dials: Vec<PendingDial>,
    /// Doors that are shut or are being shut, which end with this value.
    doors: Vec<ShutDoor>,
}

impl DialerTasks {
    fn run(&mut self, orders: &mpsc::Receiver<DialOrder>) {
        while self.wait(orders) {
            self.attempt_all();
        }
    }

    /// Makes all attempts that are due, and reports what has happened.
    fn attempt_all(&mut self) {
        let time = now();
        let mut events = Vec::new();
        self.dials.retain_mut(|pending| {
            let Some(event) = pending.attempt(time) else { return true };
            let connected = matches!(event, DialerEvent::Connected(_));
            events.push((pending.dial.function, pending.dial.number, event));
            !connected
        });
        for door in &mut self.doors {
            let happened = door.attempt(time);
            events.extend(happened.into_iter().map(|event| (door.function, door.number, event)));
        }
        for (function, number, event) in events {
            self.report(function, number, event);
        }
    }

    /// Waits for an order or for the time of the next attempt. Returns false if the port has ended.
    fn wait(&mut self, orders: &mpsc::Receiver<DialOrder>) -> bool {
        let doors = self.doors.iter().filter_map(ShutDoor::due);
        let due = self.dials.iter().map(|pending| pending.due).chain(doors).min();
        let order = match due {
            Some(due) => orders.recv_timeout(due.since(now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(order) => self.take(order),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }

    /// Takes an order. An attempt that it asks for follows by [`Self::attempt_all`].
    fn take(&mut self, order: DialOrder) {
        match order {
            DialOrder::Connect(dial) => {
                let due = now() + dial.pause;
                self.dials.push(PendingDial { dial, due, interval: SHORTEST, told: None });
            }
            DialOrder::Shut(function, number, door) => {
                self.doors.push(ShutDoor::new(function, number, door, now()));
            }
            DialOrder::Open(function, number, door) => {
                self.doors.retain(|door| door.function != function);
                let event = door.open().map_or_else(DialerEvent::Unopened, |()| DialerEvent::Opened);
                self.report(function, number, event);
            }
            DialOrder::Stop(function) => {
                self.dials.retain(|pending| pending.dial.function != function);
                let ended: Vec<_> = self.doors.extract_if(.., |door| door.function == function).collect();
                if let Some(closer) = self.closer.as_ref().filter(|_| !ended.is_empty()) {
                    closer.discard(ended);
                }
            }
        }
    }

    fn report(&self, function: Function, number: u64, event: DialerEvent) {
        // If the port has ended meanwhile, the connections are closed here.
        let _ = self.outcomes.send(DialerOutcome { function, number, event });
        self.waker.wake();
    }
}

impl PendingDial {
    /// Makes an attempt that is due. Returns the connection, or a reason for the failure that the port does not know.
    fn attempt(&mut self, now: Time) -> Option<DialerEvent> {
        if now < self.due {
            return None;
        }
        match StreamSocket::connect_to_peer(&self.dial.path, self.dial.access) {
            Ok(stream) => Some(DialerEvent::Connected(stream)),
            Err(error) => {
                self.due = now + self.interval;
                self.interval = (self.interval * 2).min(LONGEST);
                let why = error.to_string();
                if self.told.as_ref() == Some(&why) {
                    return None;
                }
                self.told = Some(why.clone());
                Some(DialerEvent::Unconnected(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DialerEvent, PendingDial, SHORTEST, VmmSocketDial};
    use host::socket::SocketFilePermissions;
    use i82576::Time;
    use pcie::Function;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    #[test]
    fn attempts_become_rarer_and_report_each_reason_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let dial = VmmSocketDial {
            function: Function::Vf(0),
            number: 0,
            path: path.clone(),
            access: SocketFilePermissions::PRIVATE,
            pause: Duration::ZERO,
        };
        let mut pending = PendingDial { dial, due: Time::ZERO, interval: SHORTEST, told: None };
        let (mut attempts, mut reasons) = (0, Vec::new());
        for ms in 0..10_000 {
            let time = Time::ZERO + Duration::from_millis(ms);
            attempts += u32::from(time >= pending.due);
            match pending.attempt(time) {
                Some(DialerEvent::Unconnected(why)) => reasons.push(why),
                other => assert!(other.is_none(), "{other:?}"),
            }
        }
        let [reason] = &reasons[..] else { panic!("{reasons:?}") };
        assert!(
            attempts == 13 && reason.starts_with("the socket does not exist yet"),
            "{attempts}: {reason}"
        );
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(matches!(pending.attempt(pending.due), Some(DialerEvent::Connected(_))));
    }
}
