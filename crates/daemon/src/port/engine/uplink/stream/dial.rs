//! The thread that has a peer for the port: it connects, or listens and accepts, and closes what the port is done with.
//! A peer that goes is waited for, or called again, less and less often while it does not stay.
//!
//! Left out: bytes, which are the port's.

use crate::clock::now;
use crate::config::uplink::Stream as Place;
use crate::limit::Limit;
use crate::port::engine::uplink::UplinkError;
use crate::port::engine::uplink::kind::Maker;
use host::folder;
use host::poll::{Interest, Poller, Waker};
use host::socket::{Access, FdBatch, Listener, Stream};
use i82576::Time;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long after a connection has ended, or could not be made, the next one is tried: at first, and at the most. It
/// doubles each time, and begins anew once a connection has lasted for longer than the most.
const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(5);
/// Messages a minute that a peer can make the host log.
const LOG_BURST: u32 = 20;

/// Under which name the vault has the listening socket.
pub(in crate::port::engine::uplink) const LISTENER: &str = "stream";

/// Tokens of the thread's poller.
const WAKER: u64 = 0;
const CALLERS: u64 = 1;

/// What the port tells the thread.
#[derive(Debug)]
enum Order {
    /// The port is done with this peer, for this reason. Closing may take its time: descriptors may have come with the
    /// bytes.
    Close(Stream, FdBatch, &'static str),
    /// The socket's file goes with the host.
    Own,
    /// A successor listens on the socket.
    Leave,
    Stop,
}

/// The port's end. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Dial {
    orders: mpsc::Sender<Order>,
    waker: Waker,
    peers: mpsc::Receiver<Stream>,
    thread: Option<JoinHandle<()>>,
    with: crate::vault::PortVault,
}

impl Dial {
    /// Has peers come from now on. The port is woken when there is one.
    pub(super) fn start(place: &Place, access: Access, with: &Maker<'_>) -> Result<Self, UplinkError> {
        let (poller, waker) = (Poller::new()?, Waker::new()?);
        poller.add(&waker, WAKER, Interest::READ)?;
        let listener = match place {
            Place::Connect(_) => None,
            Place::Listen(path) => Some(listen(path, access, with)?),
        };
        let ((orders, receiver), (sender, peers)) = (mpsc::channel(), mpsc::channel());
        let dialer = Dialer {
            port: with.vault.port().to_owned(),
            place: place.clone(),
            listener,
            poller,
            waker: waker.clone(),
            orders: receiver,
            peers: sender,
            port_waker: with.port.clone(),
            since: None,
            due: with.now,
            pause: FIRST,
            complaint: None,
            log: Limit::per_minute(LOG_BURST),
        };
        dialer.wait_for_callers()?;
        let name = format!("{}-uplink", with.vault.port());
        let thread = with.watcher.spawn(&name, move || dialer.run())?;
        Ok(Self { orders, waker, peers, thread: Some(thread), with: with.vault.clone() })
    }

    /// A peer, if there is a new one. Never waits.
    pub(super) fn peer(&self) -> Option<Stream> {
        self.peers.try_recv().ok()
    }

    /// The port is done with a peer; another one may come.
    pub(super) fn give_back(&self, stream: Stream, fds: FdBatch, why: &'static str) {
        self.order(Order::Close(stream, fds, why));
    }

    /// The socket's file goes with this from now on.
    pub(super) fn own(&self) {
        self.order(Order::Own);
    }

    /// Somebody else listens on the socket from now on.
    pub(super) fn leave(&self) {
        self.order(Order::Leave);
    }

    /// Ends the thread, and gives up what is kept for a successor.
    pub(super) fn retire(mut self) {
        self.stop();
        self.with.forget_named(LISTENER);
    }

    fn order(&self, order: Order) {
        // A thread that has ended has said why.
        let _ = self.orders.send(order);
        self.waker.wake();
    }

    fn stop(&mut self) {
        self.order(Order::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that connects an uplink had panicked");
        }
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The port is opened again, and goes on with the socket.
            self.leave();
        }
        self.stop();
    }
}

/// The predecessor's listening socket, if it is there, else a new one.
fn listen(path: &Path, access: Access, with: &Maker<'_>) -> Result<Listener, UplinkError> {
    if let Some(listener) = with.vault.copy_named(LISTENER).and_then(|fd| Listener::adopt(fd, path)) {
        return Ok(listener);
    }
    folder::make(path.parent().unwrap_or(Path::new("/")), folder::PASSABLE)
        .map_err(host::socket::BindError::from)?;
    let listener = Listener::bind(path, access)?;
    with.vault.keep_named(LISTENER, listener.as_fd());
    Ok(listener)
}

/// The thread.
struct Dialer {
    port: String,
    place: Place,
    listener: Option<Listener>,
    poller: Poller,
    waker: Waker,
    orders: mpsc::Receiver<Order>,
    peers: mpsc::Sender<Stream>,
    port_waker: Waker,
    /// The port has a peer since then.
    since: Option<Time>,
    /// When the next one is tried.
    due: Time,
    /// How long after that the one behind it is.
    pause: Duration,
    /// Why there is no peer, as it was last said.
    complaint: Option<String>,
    log: Limit,
}

impl Dialer {
    fn run(mut self) {
        let mut time = now();
        loop {
            let left = self.due.since(time);
            let timeout = if self.since.is_some() {
                None
            } else if self.listener.is_some() && left.is_zero() {
                // Callers make it readable.
                None
            } else {
                Some(left)
            };
            let called = match self.wait(timeout) {
                Ok(called) => called,
                Err(error) => {
                    let port = &self.port;
                    return tracing::error!(port, %error, "the uplink gets no other peer any more");
                }
            };
            time = now();
            if !self.obey(time) {
                return;
            }
            if self.since.is_none() && time >= self.due {
                let met = self.meet(called);
                self.settle(met, time);
            }
        }
    }

    /// Sleeps until something happens or the time is over; whether somebody calls.
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

    /// Does what the port has ordered; `false` if the thread is to end.
    fn obey(&mut self, now: Time) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Close(stream, fds, why) => {
                    drop((stream, fds));
                    self.lose(why, now);
                }
                Order::Own => self.listener.iter_mut().for_each(Listener::own),
                Order::Leave => self.listener.take().into_iter().for_each(Listener::leave),
                Order::Stop => return false,
            }
        }
        true
    }

    /// The peer is gone.
    fn lose(&mut self, why: &str, now: Time) {
        let lasted = self.since.take().map_or(Duration::ZERO, |since| now.since(since));
        if lasted > MOST {
            self.pause = FIRST;
        }
        if let Some(suppressed) = self.log.allow(now) {
            let port = &self.port;
            tracing::warn!(port, why, suppressed, "the uplink's peer is gone; the port waits for another");
        }
        self.later(now);
    }

    /// The next peer comes after a pause.
    fn later(&mut self, now: Time) {
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(MOST);
        // During the pause no connection is accepted.
        if let Some(listener) = &self.listener {
            let _ = self.poller.remove(listener);
        }
    }

    /// Accepts connections again.
    fn wait_for_callers(&self) -> io::Result<()> {
        match &self.listener {
            Some(listener) => match self.poller.add(listener, CALLERS, Interest::READ) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    /// Connects to the peer, or accepts its connection; `None` if no peer has called yet.
    fn meet(&mut self, called: bool) -> io::Result<Option<Stream>> {
        match (&self.place, &mut self.listener) {
            (Place::Connect(path), _) => Stream::connect(path).map(Some),
            (Place::Listen(_), Some(listener)) if called => listener.accept(),
            (Place::Listen(_), _) => self.wait_for_callers().map(|()| None),
        }
    }

    /// Gives the port its peer, or tries again later.
    fn settle(&mut self, met: io::Result<Option<Stream>>, now: Time) {
        let port = &self.port;
        match met {
            Ok(None) => {}
            Ok(Some(stream)) => {
                let pid = stream.peer().map(|peer| peer.pid).unwrap_or_default();
                if let Some(suppressed) = self.log.allow(now) {
                    tracing::info!(port, pid, suppressed, "the uplink has a peer");
                }
                (self.since, self.complaint) = (Some(now), None);
                if let Some(listener) = &self.listener {
                    // One at a time: others wait until it is gone.
                    let _ = self.poller.remove(listener);
                }
                // A port that has ended will stop this thread.
                let _ = self.peers.send(stream);
                self.port_waker.wake();
            }
            Err(error) => {
                let why = error.to_string();
                if self.complaint.as_ref() != Some(&why) {
                    tracing::warn!(port, why, "the uplink has no peer; it is tried again and again");
                    self.complaint = Some(why);
                }
                self.later(now);
            }
        }
    }
}
