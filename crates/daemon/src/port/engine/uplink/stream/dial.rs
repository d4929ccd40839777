//! Thread that finds peers for a stream uplink: it connects, or listens and accepts, and closes peers that the port
//! returns. After a peer has gone, it waits for the next one or connects again. The pauses grow while peers do not
//! stay.
//!
//! The port moves the bytes.

use crate::clock::now;
use crate::config::uplink::StreamUplinkSocket as Place;
use crate::limit::LogRateLimit;
use crate::port::engine::uplink::UplinkError;
use crate::port::engine::uplink::backend::UplinkResources;
use crate::port::engine::uplink::claimed_name::ClaimedName;
use crate::socket_access;
use crate::vault::{ClaimRank, PortFileDescriptorStore};
use host::folder;
use host::poll::{PollInterest, Poller, ThreadWaker};
use host::socket::{ReceivedFds, SocketFilePermissions, SocketListener, StreamSocket};
use i82576::Time;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// First pause before another attempt to connect, after a connection has ended or failed. Each further pause is twice
/// as long. A connection that lasts longer than the longest pause resets it.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause before another attempt to connect.
const MOST: Duration = Duration::from_secs(5);
/// Maximum number of log lines per minute that a peer can cause.
const LOG_BURST: u32 = 20;

/// Name under which the stream uplink's listening socket is kept for the successor process.
pub(in crate::port::engine::uplink) const LISTENER: &str = "stream";

/// Poller token of the waker, in the thread that connects to the stream's peer.
const WAKER: u64 = 0;
const CALLERS: u64 = 1;

/// Order of a port to the thread that connects its stream uplink to a peer.
#[derive(Debug)]
enum DialerCommand {
    /// Close the connection to this stream peer, for this reason. Closing may block, because file descriptors may have
    /// come with the bytes.
    Close(StreamSocket, ReceivedFds, &'static str),
    /// Keep the listening socket for the successor process, and delete its file when the thread ends. No other process
    /// serves the socket.
    Own(ClaimRank),
    /// Leave the listening socket's file to the successor process, which listens on it.
    Leave,
    Stop,
}

/// Handle of a port to the thread that connects its stream uplink to a peer. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct DialerHandle {
    orders: mpsc::Sender<DialerCommand>,
    waker: ThreadWaker,
    peers: mpsc::Receiver<StreamSocket>,
    thread: Option<JoinHandle<()>>,
    /// Name under which the listening socket is kept for the successor process.
    kept: Arc<ClaimedName>,
}

impl DialerHandle {
    /// Starts the thread that finds the stream's peer. It wakes the port with each new peer.
    pub(super) fn start(
        place: &Place,
        access: SocketFilePermissions,
        with: &UplinkResources<'_>,
    ) -> Result<Self, UplinkError> {
        let (poller, waker) = (Poller::new()?, ThreadWaker::new()?);
        poller.add(&waker, WAKER, PollInterest::READ)?;
        let kept = Arc::new(ClaimedName::new(with.vault, LISTENER));
        let listener = match place {
            Place::Connect(_) => None,
            Place::Listen(path) => Some(listen(path, access, with, &kept)?),
        };
        let ((orders, receiver), (sender, peers)) = (mpsc::channel(), mpsc::channel());
        let dialer = StreamDialer {
            port: with.vault.port().to_owned(),
            place: place.clone(),
            listener,
            kept: kept.clone(),
            poller,
            waker: waker.clone(),
            orders: receiver,
            peers: sender,
            port_waker: with.port.clone(),
            since: None,
            due: with.now,
            pause: FIRST,
            complaint: None,
            log: LogRateLimit::per_minute(LOG_BURST),
        };
        dialer.wait_for_callers()?;
        let name = format!("{}-uplink", with.vault.port());
        let thread = with.spawn_for_device(&name, move || dialer.run())?;
        Ok(Self { orders, waker, peers, thread: Some(thread), kept })
    }

    /// Returns a newly connected stream peer, if there is one. Never blocks.
    pub(super) fn peer(&self) -> Option<StreamSocket> {
        self.peers.try_recv().ok()
    }

    /// Passes a stream peer that the port does not use any more to the connecting thread, which closes it. Another peer
    /// may then connect.
    pub(super) fn give_back(&self, stream: StreamSocket, fds: ReceivedFds, why: &'static str) {
        self.order(DialerCommand::Close(stream, fds, why));
    }

    /// Keeps the listening socket for the successor process in place of a former uplink's, and deletes the socket's file
    /// when this handle is dropped.
    pub(super) fn own(&self) {
        self.order(DialerCommand::Own(ClaimRank::next()));
    }

    /// Leaves the listening socket's file to another process, which listens on it.
    pub(super) fn leave(&self) {
        self.order(DialerCommand::Leave);
    }

    /// Ends the connecting thread, and releases its socket that is kept for the successor process.
    pub(super) fn retire(mut self) {
        self.order(DialerCommand::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that connects an uplink has panicked");
        }
        self.kept.forget();
    }

    fn order(&self, order: DialerCommand) {
        // A thread that has ended has logged the reason.
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}

impl Drop for DialerHandle {
    /// Orders the connecting thread to end. Does not wait for it: it may be closing a descriptor that a peer has sent.
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The port is opened again and resumes with this socket, so its file must stay.
            self.leave();
        }
        self.order(DialerCommand::Stop);
    }
}

/// Returns the stream uplink's listening socket of the previous host process, or opens a new one.
fn listen(
    path: &Path,
    access: SocketFilePermissions,
    with: &UplinkResources<'_>,
    kept: &ClaimedName,
) -> Result<SocketListener, UplinkError> {
    if let Some(listener) = with.vault.copy_named(LISTENER).and_then(|fd| SocketListener::adopt(fd, path)) {
        return Ok(listener);
    }
    folder::make(path.parent().unwrap_or(Path::new("/")), folder::PASSABLE)
        .map_err(host::socket::SocketFileError::from)?;
    let listener = SocketListener::bind(path, access)?;
    kept.keep_if_free(listener.as_fd());
    Ok(listener)
}

/// Gives the kept listening socket of a stream uplink the access that the configuration grants now. The connecting thread may not
/// have the privilege to change the file.
pub(in crate::port::engine::uplink) fn renew_access(
    place: &Place,
    access: SocketFilePermissions,
    vault: &PortFileDescriptorStore,
) {
    let Place::Listen(path) = place else { return };
    let listener = vault.copy_named(LISTENER).and_then(|fd| SocketListener::adopt(fd, path));
    listener.iter().for_each(|listener| socket_access::renew(listener, access));
}

/// State of the thread that connects a stream uplink to a peer.
struct StreamDialer {
    port: String,
    place: Place,
    listener: Option<SocketListener>,
    kept: Arc<ClaimedName>,
    poller: Poller,
    waker: ThreadWaker,
    orders: mpsc::Receiver<DialerCommand>,
    peers: mpsc::Sender<StreamSocket>,
    port_waker: ThreadWaker,
    /// Time at which the port got its present peer.
    since: Option<Time>,
    /// Time of the next attempt to connect to the peer.
    due: Time,
    /// Pause after the next attempt to connect, if that fails.
    pause: Duration,
    /// Last logged reason why the stream has no peer.
    complaint: Option<String>,
    log: LogRateLimit,
}

impl StreamDialer {
    fn run(mut self) {
        let mut time = now();
        loop {
            let left = self.due.since(time);
            let timeout = if self.since.is_some() {
                None
            } else if self.listener.is_some() && left.is_zero() {
                // A connecting peer makes the listening socket readable.
                None
            } else {
                Some(left)
            };
            let called = match self.wait(timeout) {
                Ok(called) => called,
                Err(error) => {
                    let port = &self.port;
                    return tracing::error!(
                        port,
                        %error,
                        "cannot wait for peers; the uplink stays without a new peer"
                    );
                }
            };
            time = now();
            if !self.carry_out_orders(time) {
                return;
            }
            if self.since.is_none() && time >= self.due {
                let met = self.connect_or_accept(called);
                self.pass_on(met, time);
            }
        }
    }

    /// Sleeps until an event, or until the timeout is over. Returns `true` if a peer has connected to the listening
    /// socket.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let (mut ordered, mut called) = (false, false);
        for event in self.poller.wait(timeout)? {
            ordered |= event.token == WAKER;
            called |= event.token == CALLERS;
        }
        if ordered {
            self.waker.drain();
        }
        Ok(called)
    }

    /// Carries out the port's orders to the connecting thread. Returns `false` if the thread has to end.
    fn carry_out_orders(&mut self, now: Time) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                DialerCommand::Close(stream, fds, why) => {
                    drop((stream, fds));
                    self.lose(why, now);
                }
                DialerCommand::Own(rank) => self.own(rank),
                DialerCommand::Leave => self.listener.take().into_iter().for_each(SocketListener::leave),
                DialerCommand::Stop => return false,
            }
        }
        true
    }

    /// Keeps the listening socket for the successor process in place of a former uplink's, and makes dropping it delete its
    /// file.
    fn own(&mut self, rank: ClaimRank) {
        if let Some(listener) = &mut self.listener {
            listener.own();
            self.kept.claim(rank);
            self.kept.keep(listener.as_fd());
        }
    }

    /// Logs the loss of the stream's peer, and schedules the next attempt to connect.
    fn lose(&mut self, why: &str, now: Time) {
        let lasted = self.since.take().map_or(Duration::ZERO, |since| now.since(since));
        if lasted > MOST {
            self.pause = FIRST;
        }
        if let Some(suppressed) = self.log.allow(now) {
            let port = &self.port;
            tracing::warn!(
                port,
                why,
                suppressed,
                "the uplink has lost its peer; the port waits for another peer"
            );
        }
        self.later(now);
    }

    /// Schedules the next attempt to connect after a pause.
    fn later(&mut self, now: Time) {
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(MOST);
        // During the pause the thread accepts no connection.
        if let Some(listener) = &self.listener {
            let _ = self.poller.remove(listener);
        }
    }

    /// Watches the listening socket in the poller again, so that the poller reports connecting peers.
    fn wait_for_callers(&self) -> io::Result<()> {
        match &self.listener {
            Some(listener) => match self.poller.add(listener, CALLERS, PollInterest::READ) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    /// Connects to the stream's peer, or accepts its connection. Returns `None` if no peer has connected yet.
    fn connect_or_accept(&mut self, called: bool) -> io::Result<Option<StreamSocket>> {
        match (&self.place, &mut self.listener) {
            (Place::Connect(path), _) => StreamSocket::connect(path).map(Some),
            (Place::Listen(_), Some(listener)) if called => listener.accept(),
            (Place::Listen(_), _) => self.wait_for_callers().map(|()| None),
        }
    }

    /// Passes a connected stream peer to the port. If connecting failed, logs the reason and schedules another
    /// attempt.
    fn pass_on(&mut self, met: io::Result<Option<StreamSocket>>, now: Time) {
        let port = &self.port;
        match met {
            Ok(None) => {}
            Ok(Some(stream)) => {
                let pid = stream.peer().map(|peer| peer.pid).unwrap_or_default();
                if let Some(suppressed) = self.log.allow(now) {
                    tracing::info!(port, pid, suppressed, "a peer is connected to the uplink");
                }
                (self.since, self.complaint) = (Some(now), None);
                if let Some(listener) = &self.listener {
                    // The port has one peer at a time. Others wait in the socket's backlog.
                    let _ = self.poller.remove(listener);
                }
                // A port that has ended will stop this thread, so a failed send has no consequence.
                let _ = self.peers.send(stream);
                self.port_waker.wake();
            }
            Err(error) => {
                let why = error.to_string();
                if self.complaint.as_ref() != Some(&why) {
                    tracing::warn!(port, why, "the uplink cannot connect to a peer; the host keeps trying");
                    self.complaint = Some(why);
                }
                self.later(now);
            }
        }
    }
}
