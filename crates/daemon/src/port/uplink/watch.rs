//! The watcher of a port's tap: a thread that may wait for the kernel's lock on interfaces, so that the port's need
//! not. It sees the tap go down and up, lose its carrier, change its MTU, and go; and it attaches again when an
//! interface of the configured name is there.
//!
//! A tap that somebody has deleted is not created again, even if the host had created it: whoever deleted it wants it
//! gone, and brings it back when it is to be back. A tap that is renamed, or moved to another network namespace, stays
//! the uplink, since its descriptor stays attached. In another namespace only up and down can be seen, by looking now
//! and then.
//!
//! Left out: what is made of all this, which is the port's (`tap`).

use super::{TAP, UplinkError};
use crate::vault::PortVault;
use host::confine::Prepared;
use host::links::{Heard, Links};
use host::poll::{Interest, Poller, Waker};
use host::tap::{InterfaceName, Tap, TapError};
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a tap in another namespace is looked at.
const ELSEWHERE: Duration = Duration::from_millis(500);
/// When attaching is tried again, if the tap is there and could not be had.
const RETRY: Duration = Duration::from_secs(2);

/// Tokens of the watcher's poller.
const WAKER: u64 = 0;
const LINKS: u64 = 1;

/// An attached tap's interface as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its name.
    pub(super) interface: String,
    /// It is set up.
    pub(super) up: bool,
    /// It has a carrier; `None` in another namespace.
    pub(super) carrier: Option<bool>,
    /// Its MTU; `None` in another namespace.
    pub(super) mtu: Option<u32>,
}

/// What the watcher tells the port.
#[derive(Debug)]
pub(super) enum News {
    /// The attached tap has changed.
    Seen(Seen),
    /// The attached tap was deleted.
    Gone,
    /// The tap is there again.
    Attached(Arc<Tap>, Seen),
}

/// What the port tells the watcher.
#[derive(Debug)]
enum Order {
    /// The port does not use this tap any more: close it. That may take its time.
    Close(Arc<Tap>),
    Stop,
}

/// The port's end of its watcher. Dropping it ends the thread, which lets go of the tap.
#[derive(Debug)]
pub(super) struct Watch {
    orders: mpsc::Sender<Order>,
    waker: Waker,
    news: mpsc::Receiver<News>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches an attached tap from now on, and answers how it is now. `port` is woken when there is news.
    pub(super) fn start(
        vault: &PortVault,
        tap: Arc<Tap>,
        port: Waker,
        confined: &Prepared,
    ) -> Result<(Seen, Self), UplinkError> {
        let name = vault.port();
        let (links, poller, waker) = Self::descriptors().map_err(UplinkError::Watch)?;
        let ((orders, receiver), (sender, news)) = (mpsc::channel(), mpsc::channel());
        let mut watcher = Watcher {
            port: name.to_owned(),
            vault: vault.clone(),
            name: tap.name().clone(),
            links,
            poller,
            waker: waker.clone(),
            orders: receiver,
            news: sender,
            port_waker: port,
            tap: None,
            index: 0,
            told: None,
            complaint: None,
        };
        // After the links are heard of, so that no change is missed.
        let seen = watcher.hold(tap);
        let thread = confined.spawn(&format!("{name}-uplink"), move || watcher.run())?;
        Ok((seen, Self { orders, waker, news, thread: Some(thread) }))
    }

    /// What the thread waits for.
    fn descriptors() -> io::Result<(Links, Poller, Waker)> {
        let (links, poller, waker) = (Links::new()?, Poller::new()?, Waker::new()?);
        poller.add(&waker, WAKER, Interest::READ)?;
        poller.add(&links, LINKS, Interest::READ)?;
        Ok((links, poller, waker))
    }

    /// What has happened, if something has. Never waits.
    pub(super) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// The port is done with a tap; the watcher closes it, and attaches again when it can.
    pub(super) fn give_back(&self, tap: Arc<Tap>) {
        self.order(Order::Close(tap));
    }

    fn order(&self, order: Order) {
        // A watcher that has ended has said why.
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.order(Order::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the watcher of an uplink had panicked");
        }
    }
}

/// Sets a tap up if that is allowed. May wait for the kernel's lock on interfaces.
pub(super) fn set_up(tap: &Tap) {
    // Somebody else may set the interface up, and may be the only one who is allowed to.
    if let Err(error) = tap.set_up() {
        tracing::info!(tap = tap.name().as_str(), %error, "the tap is left as it is");
    }
}

/// The thread.
struct Watcher {
    port: String,
    vault: PortVault,
    /// As configured.
    name: InterfaceName,
    links: Links,
    poller: Poller,
    waker: Waker,
    orders: mpsc::Receiver<Order>,
    news: mpsc::Sender<News>,
    port_waker: Waker,
    tap: Option<Arc<Tap>>,
    /// The attached interface's number in the host's namespace; 0, which no interface has, if it was never there.
    index: u32,
    /// What the port was last told of the attached tap.
    told: Option<Seen>,
    /// Why attaching failed, as it was last said.
    complaint: Option<String>,
}

impl Watcher {
    fn run(mut self) {
        // At once: a tap in another namespace makes no news here.
        let mut due = Some(Instant::now());
        loop {
            match self.wait(due) {
                Ok(true) => {}
                Ok(false) if due.is_none_or(|due| Instant::now() < due) => continue,
                Ok(false) => {}
                Err(error) => {
                    let (port, tap) = (&self.port, self.name.as_str());
                    tracing::error!(port, tap, %error, "the uplink is not watched any more");
                    return;
                }
            }
            match self.obey() {
                Next::Stop => return,
                Next::Later => due = Some(Instant::now() + RETRY),
                Next::Look => due = self.look().map(|time| Instant::now() + time),
            }
        }
    }

    /// Sleeps until something happens or is due; `true` if the tap is to be looked at or there are orders.
    fn wait(&mut self, due: Option<Instant>) -> io::Result<bool> {
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let (mut orders, mut news) = (false, false);
        for event in self.poller.wait(timeout)? {
            orders |= event.token == WAKER;
            news |= event.token == LINKS;
        }
        if orders {
            self.waker.drain();
        }
        let (ours, named) = (self.index, self.name.as_str());
        let heard = if news {
            self.links.hear(|index, name| index == ours || name == named)?
        } else {
            Heard::Unrelated
        };
        Ok(orders || heard != Heard::Unrelated)
    }

    /// Does what the port has ordered.
    fn obey(&mut self) -> Next {
        let mut next = Next::Look;
        while let Ok(order) = self.orders.try_recv() {
            let Order::Close(tap) = order else { return Next::Stop };
            if self.tap.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, &tap)) {
                self.forget();
                // The port could not use a tap that is there: at once it could not again.
                if tap.attachment().is_ok() {
                    next = Next::Later;
                }
            }
        }
        next
    }

    /// Sees how the tap is, and tells the port if that is new. Answers when to look again though nothing is heard.
    fn look(&mut self) -> Option<Duration> {
        if let Some(tap) = self.tap.clone() {
            if let Some(seen) = self.see(&tap) {
                let elsewhere = seen.mtu.is_none();
                if self.told.as_ref() != Some(&seen) {
                    self.say(&seen);
                    self.told = Some(seen.clone());
                    self.tell(News::Seen(seen));
                }
                return elsewhere.then_some(ELSEWHERE);
            }
            self.forget();
            self.vault.forget_named(TAP);
            self.tell(News::Gone);
        }
        self.attach()
    }

    /// Attaches to the tap if it is there. Answers when to try again.
    fn attach(&mut self) -> Option<Duration> {
        let taken = match self.links.look_up(self.name.as_str()) {
            Ok(Some(_)) => Tap::open_existing(&self.name),
            Ok(None) => {
                self.complaint = None;
                return None;
            }
            Err(error) => {
                self.complain(error.to_string());
                return Some(RETRY);
            }
        };
        match taken {
            // Deleted just now.
            Ok(None) => None,
            Ok(Some(tap)) => {
                set_up(&tap);
                let tap = Arc::new(tap);
                let seen = self.hold(tap.clone());
                let (port, tap_name) = (&self.port, self.name.as_str());
                tracing::info!(
                    port,
                    tap = tap_name,
                    up = seen.up,
                    mtu = seen.mtu,
                    "the tap is the uplink again"
                );
                self.complaint = None;
                let elsewhere = seen.mtu.is_none();
                self.tell(News::Attached(tap, seen));
                elsewhere.then_some(ELSEWHERE)
            }
            Err(error) => {
                let final_answer = matches!(error, TapError::NotATap { .. });
                self.complain(error.to_string());
                (!final_answer).then_some(RETRY)
            }
        }
    }

    /// Lets go of the tap, which is gone.
    fn forget(&mut self) {
        (self.tap, self.told, self.index) = (None, None, 0);
        let (port, tap) = (&self.port, self.name.as_str());
        tracing::warn!(port, tap, "the tap is gone; the port attaches to it again when it is back");
    }

    /// Watches this tap from now on.
    fn hold(&mut self, tap: Arc<Tap>) -> Seen {
        let found = tap.attachment().and_then(|interface| self.links.look_up(&interface.name));
        self.index = found.ok().flatten().map_or(0, |link| link.index);
        // If it is gone already, the news of that are under way.
        let gone = Seen { interface: self.name.to_string(), up: false, carrier: None, mtu: None };
        let seen = self.see(&tap).unwrap_or(gone);
        if !seen.up {
            let (port, tap) = (&self.port, self.name.as_str());
            tracing::warn!(port, tap, "the tap is down, and no frame passes: ip link set {tap} up");
        }
        self.vault.keep_named(TAP, tap.as_fd());
        (self.tap, self.told) = (Some(tap), Some(seen.clone()));
        seen
    }

    /// How the tap's interface is now; `None` if it was deleted.
    fn see(&mut self, tap: &Tap) -> Option<Seen> {
        let interface = tap.attachment().ok()?.name;
        // Another number means another interface, of the name that ours has elsewhere.
        let here = self.links.look_up(&interface).ok().flatten().filter(|link| link.index == self.index);
        Some(match here {
            Some(link) => Seen { interface, up: link.up, carrier: Some(link.carrier), mtu: Some(link.mtu) },
            None => Seen { interface, up: tap.is_up().unwrap_or(false), carrier: None, mtu: None },
        })
    }

    fn tell(&self, news: News) {
        // A port that has ended will stop this thread.
        let _ = self.news.send(news);
        self.port_waker.wake();
    }

    fn say(&self, seen: &Seen) {
        let Seen { interface, up, carrier, mtu } = seen;
        tracing::info!(
            port = self.port,
            tap = self.name.as_str(),
            interface,
            up,
            carrier,
            mtu,
            "the tap has changed"
        );
    }

    /// Says why the tap cannot be attached to, once for each reason.
    fn complain(&mut self, why: String) {
        if self.complaint.as_ref() != Some(&why) {
            let (port, tap) = (&self.port, self.name.as_str());
            tracing::warn!(
                port,
                tap,
                why,
                "cannot attach to the tap; the port waits for another of this name"
            );
            self.complaint = Some(why);
        }
    }
}

/// What to do after the port's orders.
enum Next {
    Look,
    /// Look when a while is over.
    Later,
    Stop,
}
