//! The watcher of a port's interface: a thread that may wait for the kernel's lock on interfaces, so that the port's need
//! not. It sees the interface go down and up, lose its carrier, change its MTU, and go; and it attaches again when an
//! interface of the configured name is there.
//!
//! A tap that somebody has deleted is not created again, even if the host had created it: whoever deleted it wants it
//! gone, and brings it back when it is to be back. An interface that is renamed stays the uplink. So does a tap that is
//! moved to another network namespace, since its descriptor stays attached. There only up and down can be seen, by looking
//! now and then.
//!
//! Left out: what is made of all this, which is the port's (`device`).

use super::UplinkError;
use super::interface::{Device, kept_as};
use super::kind::Maker;
use crate::vault::PortVault;
use host::links::{Heard, Links};
use host::poll::{Interest, Poller, Waker};
use host::tap::InterfaceName;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often an interface in another namespace is looked at.
const ELSEWHERE: Duration = Duration::from_millis(500);
/// When attaching is tried again, if the interface is there and could not be had.
const RETRY: Duration = Duration::from_secs(2);

/// Tokens of the watcher's poller.
const WAKER: u64 = 0;
const LINKS: u64 = 1;

/// An attached interface as it was seen.
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
pub(super) enum News<D> {
    /// The attached interface has changed.
    Seen(Seen),
    /// The attached interface was deleted.
    Gone,
    /// The interface is there again.
    Attached(Arc<D>, Seen),
}

/// What the port tells the watcher.
#[derive(Debug)]
enum Order<D> {
    /// The port does not use this device any more: close it. That may take its time.
    Close(Arc<D>),
    Stop,
}

/// The port's end of its watcher. Dropping it ends the thread, which lets go of the device.
#[derive(Debug)]
pub(super) struct Watch<D: Device> {
    orders: mpsc::Sender<Order<D>>,
    waker: Waker,
    news: mpsc::Receiver<News<D>>,
    thread: Option<JoinHandle<()>>,
    vault: PortVault,
    /// As configured.
    name: InterfaceName,
}

impl<D: Device> Watch<D> {
    /// Watches the interface of this name from now on, and answers how it is now. The port is woken when there is news.
    /// What was not attached to is attached to as soon as it is there.
    pub(super) fn start(
        name: &InterfaceName,
        (device, terms): (Option<Arc<D>>, &D::Terms),
        with: &Maker<'_>,
    ) -> Result<(Seen, Self), UplinkError> {
        let (port, name) = (with.vault.port(), name.clone());
        let (links, poller, waker) = Self::descriptors().map_err(UplinkError::Watch)?;
        let ((orders, receiver), (sender, news)) = (mpsc::channel(), mpsc::channel());
        let mut watcher = Watcher {
            port: port.to_owned(),
            vault: with.vault.clone(),
            name: name.clone(),
            terms: terms.clone(),
            links,
            poller,
            waker: waker.clone(),
            orders: receiver,
            news: sender,
            port_waker: with.port.clone(),
            device: None,
            index: 0,
            told: None,
            complaint: None,
        };
        // After the links are heard of, so that no change is missed.
        let seen = match device {
            Some(device) => watcher.hold(device),
            None => {
                watcher.forget();
                watcher.gone()
            }
        };
        let thread = with.watcher.spawn(&format!("{port}-uplink"), move || watcher.run())?;
        let vault = with.vault.clone();
        Ok((seen, Self { orders, waker, news, thread: Some(thread), vault, name }))
    }

    /// What the thread waits for.
    fn descriptors() -> io::Result<(Links, Poller, Waker)> {
        let (links, poller, waker) = (Links::new()?, Poller::new()?, Waker::new()?);
        poller.add(&waker, WAKER, Interest::READ)?;
        poller.add(&links, LINKS, Interest::READ)?;
        Ok((links, poller, waker))
    }

    /// What has happened, if something has. Never waits.
    pub(super) fn news(&self) -> Option<News<D>> {
        self.news.try_recv().ok()
    }

    /// The port is done with a device; the watcher closes it, and attaches again when it can.
    pub(super) fn give_back(&self, device: Arc<D>) {
        self.order(Order::Close(device));
    }

    /// Ends the thread, and gives up what is kept for a successor.
    pub(super) fn retire(mut self) {
        self.stop();
        self.vault.forget_named(&kept_as::<D>(&self.name));
    }

    fn order(&self, order: Order<D>) {
        // A watcher that has ended has said why.
        let _ = self.orders.send(order);
        self.waker.wake();
    }

    fn stop(&mut self) {
        self.order(Order::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the watcher of an uplink had panicked");
        }
    }
}

impl<D: Device> Drop for Watch<D> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread.
struct Watcher<D: Device> {
    port: String,
    vault: PortVault,
    /// As configured.
    name: InterfaceName,
    terms: D::Terms,
    links: Links,
    poller: Poller,
    waker: Waker,
    orders: mpsc::Receiver<Order<D>>,
    news: mpsc::Sender<News<D>>,
    port_waker: Waker,
    device: Option<Arc<D>>,
    /// The attached interface's number in the host's namespace; 0, which no interface has, if it was never there.
    index: u32,
    /// What the port was last told of the attached tap.
    told: Option<Seen>,
    /// Why attaching failed, as it was last said.
    complaint: Option<String>,
}

impl<D: Device> Watcher<D> {
    fn run(mut self) {
        // At once: an interface in another namespace makes no news here.
        let mut now = Instant::now();
        let mut due = Some(now);
        loop {
            let woken = match self.wait(due.map(|due| due.saturating_duration_since(now))) {
                Ok(woken) => woken,
                Err(error) => {
                    let (port, name) = (&self.port, self.name.as_str());
                    tracing::error!(port, name, %error, "the uplink is not watched any more");
                    return;
                }
            };
            now = Instant::now();
            if !woken && due.is_none_or(|due| now < due) {
                continue;
            }
            due = match self.obey() {
                Next::Stop => return,
                Next::Later => Some(now + RETRY),
                Next::Look => self.look().map(|time| now + time),
            };
        }
    }

    /// Sleeps until something happens or the time is over; `true` if the interface is to be looked at or there are orders.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
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
            let Order::Close(device) = order else { return Next::Stop };
            if self.device.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, &device)) {
                self.forget();
                // The port could not use an interface that is there: at once it could not again.
                if device.interface().is_some() {
                    next = Next::Later;
                }
            }
        }
        next
    }

    /// Sees how the interface is, and tells the port if that is new. Answers when to look again though nothing is heard.
    fn look(&mut self) -> Option<Duration> {
        if let Some(device) = self.device.clone() {
            if let Some(seen) = self.see(&device) {
                let elsewhere = seen.mtu.is_none();
                if self.told.as_ref() != Some(&seen) {
                    self.say(&seen);
                    self.told = Some(seen.clone());
                    self.tell(News::Seen(seen));
                }
                return elsewhere.then_some(ELSEWHERE);
            }
            self.forget();
            self.tell(News::Gone);
        }
        self.attach()
    }

    /// Attaches to the interface if it is there. Answers when to try again.
    fn attach(&mut self) -> Option<Duration> {
        let taken = match self.links.look_up(self.name.as_str()) {
            Ok(Some(_)) => D::open_existing(&self.name, &self.terms),
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
            // Deleted just now, or about to be made.
            Ok(None) => Some(RETRY),
            Ok(Some(device)) => {
                device.set_up();
                let device = Arc::new(device);
                // Where systemd keeps it, a name may have two descriptors.
                self.vault.forget_named(&kept_as::<D>(&self.name));
                let seen = self.hold(device.clone());
                let (port, name, up, mtu) = (&self.port, self.name.as_str(), seen.up, seen.mtu);
                tracing::info!(port, name, up, mtu, "the {} is the uplink again", D::KIND);
                self.complaint = None;
                let elsewhere = seen.mtu.is_none();
                self.tell(News::Attached(device, seen));
                elsewhere.then_some(ELSEWHERE)
            }
            Err((why, for_good)) => {
                self.complain(why);
                (!for_good).then_some(RETRY)
            }
        }
    }

    /// Lets go of the device, which is gone. The vault keeps it: a successor knows by it that there was one.
    fn forget(&mut self) {
        (self.device, self.told, self.index) = (None, None, 0);
        let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
        tracing::warn!(port, name, "the {kind} is gone; the port attaches to it again when it is back");
    }

    /// Watches this device from now on.
    fn hold(&mut self, device: Arc<D>) -> Seen {
        let found = device.interface().and_then(|name| self.links.look_up(&name).ok().flatten());
        self.index = found.map_or(0, |link| link.index);
        // If it is gone already, the news of that are under way.
        let seen = self.see(&device).unwrap_or_else(|| self.gone());
        if !seen.up {
            let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
            tracing::warn!(port, name, "the {kind} is down, and no frame passes: ip link set {name} up");
        }
        self.vault.keep_named(&kept_as::<D>(&self.name), device.kept());
        // What a host of an earlier version called it.
        self.vault.forget_named(D::KIND);
        (self.device, self.told) = (Some(device), Some(seen.clone()));
        seen
    }

    /// How an interface is that is gone.
    fn gone(&self) -> Seen {
        Seen { interface: self.name.to_string(), up: false, carrier: None, mtu: None }
    }

    /// How the interface is now; `None` if it was deleted.
    fn see(&mut self, device: &D) -> Option<Seen> {
        let interface = device.interface()?;
        // Another number means another interface, of the name that ours has elsewhere.
        let here = self.links.look_up(&interface).ok().flatten().filter(|link| link.index == self.index);
        Some(match here {
            Some(link) => Seen { interface, up: link.up, carrier: Some(link.carrier), mtu: Some(link.mtu) },
            None => Seen { interface, up: device.is_up_elsewhere(), carrier: None, mtu: None },
        })
    }

    fn tell(&self, news: News<D>) {
        // A port that has ended will stop this thread.
        let _ = self.news.send(news);
        self.port_waker.wake();
    }

    fn say(&self, seen: &Seen) {
        let Seen { interface, up, carrier, mtu } = seen;
        let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
        tracing::info!(port, name, interface, up, carrier, mtu, "the {kind} has changed");
    }

    /// Says why the interface cannot be attached to, once for each reason.
    fn complain(&mut self, why: String) {
        if self.complaint.as_ref() != Some(&why) {
            let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
            tracing::warn!(
                port,
                name,
                why,
                "cannot attach to the {kind}; the port waits for one of this name"
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
