//! Watches the network interface that is a port's uplink. Its thread may block on the kernel's lock on interfaces, so
//! that the port's thread need not. It detects that the interface goes down or up, loses its carrier, changes its
//! MTU, or is deleted. It attaches again when an interface of the configured name exists.
//!
//! The watcher does not create a deleted tap again, even if the host had created it: the administrator has deleted
//! it on purpose, and creates it again to bring it back. A renamed interface stays the uplink. So does a tap that
//! is moved to another network namespace, since its descriptor stays attached. There only up and down can be
//! detected, by polling.
//!
//! The port handles the changes (`interface`).

mod links;
mod messages;
#[cfg(test)]
mod tests;

use super::UplinkError;
use super::backend::UplinkResources;
use super::claimed_name::ClaimedName;
use super::device::{UplinkDevice, kept_as};
use super::state::InterfaceState;
use crate::vault::ClaimRank;
use host::links::{LinkMonitor, LinkNotifications};
use host::poll::{PollInterest, Poller, ThreadWaker};
use host::tap::InterfaceName;
use links::{InterfaceLinks, state_of};
pub(super) use messages::InterfaceReport;
use messages::{InterfaceWatcherAction, InterfaceWatcherCommand};
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which an uplink's interface in another network namespace is polled.
const ELSEWHERE: Duration = Duration::from_millis(500);
/// Delay of the next attempt to attach to an interface that could not be used.
const RETRY: Duration = Duration::from_secs(2);

/// Poller token of the waker, in the thread that watches the interface.
const WAKER: u64 = 0;
/// Poller token of the kernel's link notifications, in the thread that watches the interface.
const LINKS: u64 = 1;

/// Handle of a port to the thread that watches its uplink's interface. Dropping it has the thread end, which closes the device.
#[derive(Debug)]
pub(super) struct InterfaceWatcherHandle<D: UplinkDevice> {
    orders: mpsc::Sender<InterfaceWatcherCommand<D>>,
    waker: ThreadWaker,
    news: mpsc::Receiver<InterfaceReport<D>>,
    thread: Option<JoinHandle<()>>,
    /// Name under which the device's file descriptor is kept for the successor process.
    kept: Arc<ClaimedName>,
}

impl<D: UplinkDevice> InterfaceWatcherHandle<D> {
    /// Starts the watcher of an interface, and returns the interface's present state. The watcher wakes the port with
    /// each report. Without a device the watcher attaches as soon as the interface exists.
    pub(super) fn start(
        name: &InterfaceName,
        (device, terms): (Option<Arc<D>>, &D::Terms),
        with: &UplinkResources<'_>,
    ) -> Result<(InterfaceState, Self), UplinkError> {
        let (port, name) = (with.vault.port(), name.clone());
        let (links, poller, waker) = Self::descriptors().map_err(UplinkError::Watch)?;
        let ((orders, receiver), (sender, news)) = (mpsc::channel(), mpsc::channel());
        let kept = Arc::new(ClaimedName::new(with.vault, &kept_as::<D>(&name)));
        let mut watcher = InterfaceWatcher {
            port: port.to_owned(),
            kept: kept.clone(),
            name,
            terms: terms.clone(),
            links,
            poller,
            waker: waker.clone(),
            orders: receiver,
            news: sender,
            port_waker: with.port.clone(),
            device: None,
            returned: None,
            index: None,
            reported: None,
            complaint: None,
        };
        // The socket for news of links is open already, so no change is missed.
        let seen = match device {
            Some(device) => {
                kept.keep_if_free(device.kept());
                // Earlier versions used this name.
                with.vault.forget_named(D::KIND);
                watcher.watch_device(device)
            }
            None => {
                watcher.drop_device();
                watcher.gone()
            }
        };
        let thread = with.spawn_for_device(&format!("{port}-uplink"), move || watcher.run())?;
        Ok((seen, Self { orders, waker, news, thread: Some(thread), kept }))
    }

    /// Creates the file descriptors on which the watching thread waits.
    fn descriptors() -> io::Result<(LinkMonitor, Poller, ThreadWaker)> {
        let (links, poller, waker) = (LinkMonitor::new()?, Poller::new()?, ThreadWaker::new()?);
        poller.add(&waker, WAKER, PollInterest::READ)?;
        poller.add(&links, LINKS, PollInterest::READ)?;
        Ok((links, poller, waker))
    }

    /// Returns the next report about the interface, or `None`. Never blocks.
    pub(super) fn report(&self) -> Option<InterfaceReport<D>> {
        self.news.try_recv().ok()
    }

    /// Gives a device back that the port does not use any more. The watcher closes the device, and attaches again when
    /// it can.
    pub(super) fn give_back(&self, device: Arc<D>) {
        self.order(InterfaceWatcherCommand::Close(device));
    }

    /// Keeps the device's file descriptor for the successor process, in place of a former uplink's.
    pub(super) fn own(&self) {
        self.order(InterfaceWatcherCommand::Own(ClaimRank::next()));
    }

    /// Ends the watching thread, and releases its file descriptor that is kept for the successor process.
    pub(super) fn retire(mut self) {
        self.order(InterfaceWatcherCommand::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the watcher of an uplink has panicked");
        }
        self.kept.forget();
    }

    fn order(&self, order: InterfaceWatcherCommand<D>) {
        // A watcher that has ended has logged the reason.
        let _ = self.orders.send(order);
        self.waker.wake();
    }
}

impl<D: UplinkDevice> Drop for InterfaceWatcherHandle<D> {
    /// Orders the watching thread to end. Does not wait for it: the thread may wait for the kernel, or for another process
    /// that uses the interface.
    fn drop(&mut self) {
        self.order(InterfaceWatcherCommand::Stop);
    }
}

/// State of the thread that watches an uplink's interface.
struct InterfaceWatcher<D: UplinkDevice, L> {
    port: String,
    kept: Arc<ClaimedName>,
    /// Name of the interface, as configured.
    name: InterfaceName,
    terms: D::Terms,
    links: L,
    poller: Poller,
    waker: ThreadWaker,
    orders: mpsc::Receiver<InterfaceWatcherCommand<D>>,
    news: mpsc::Sender<InterfaceReport<D>>,
    port_waker: ThreadWaker,
    device: Option<Arc<D>>,
    /// Device that the port has given back although its interface exists, if only this device can be attached again.
    returned: Option<Arc<D>>,
    /// Last known index of the attached interface in the host's network namespace; 0, which no interface has, if it was never
    /// seen there. `None` until the kernel has answered.
    index: Option<u32>,
    /// State of the interface that was last reported to the port.
    reported: Option<InterfaceState>,
    /// Last logged reason why attaching to the interface failed.
    complaint: Option<String>,
}

impl<D: UplinkDevice, L: InterfaceLinks> InterfaceWatcher<D, L> {
    fn run(mut self) {
        // The first check is due at once, because an interface in another namespace sends no news here.
        let mut now = Instant::now();
        let mut due = Some(now);
        loop {
            let woken = match self.wait(due.map(|due| due.saturating_duration_since(now))) {
                Ok(woken) => woken,
                Err(error) => {
                    let (port, name) = (&self.port, self.name.as_str());
                    tracing::error!(
                        port,
                        name,
                        %error,
                        "cannot watch the uplink any more; changes of its link are ignored"
                    );
                    return;
                }
            };
            now = Instant::now();
            if !woken && due.is_none_or(|due| now < due) {
                continue;
            }
            due = match self.carry_out_orders() {
                InterfaceWatcherAction::Stop => return,
                InterfaceWatcherAction::Later => Some(now + RETRY),
                InterfaceWatcherAction::Look => self.check().map(|time| now + time),
            };
        }
    }

    /// Sleeps until an event, or until the timeout is over. Returns `true` after an order of the port, or news of the
    /// interface.
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
            self.links.hear(|index, name| ours == Some(index) || name == named)?
        } else {
            LinkNotifications::Unrelated
        };
        Ok(orders || heard != LinkNotifications::Unrelated)
    }

    /// Carries out the port's orders to the watching thread. Returns the thread's next action.
    fn carry_out_orders(&mut self) -> InterfaceWatcherAction {
        let mut next = InterfaceWatcherAction::Look;
        while let Ok(order) = self.orders.try_recv() {
            match order {
                InterfaceWatcherCommand::Close(device) => {
                    if self.device.as_ref().is_some_and(|ours| Arc::ptr_eq(ours, &device)) {
                        self.drop_device();
                        // The port could not use an interface that exists. An immediate retry would fail again.
                        if device.interface().is_some() {
                            next = InterfaceWatcherAction::Later;
                            self.returned = Some(device).filter(|_| D::ONE_ATTACHMENT);
                        }
                    }
                }
                InterfaceWatcherCommand::Own(rank) => {
                    self.kept.claim(rank);
                    self.device.iter().for_each(|device| self.kept.keep(device.kept()));
                }
                InterfaceWatcherCommand::Stop => return InterfaceWatcherAction::Stop,
            }
        }
        next
    }

    /// Checks the interface, and reports a change to the port. Returns the delay until the next check, if it must
    /// be polled or the kernel did not answer.
    fn check(&mut self) -> Option<Duration> {
        if let Some(device) = self.device.clone() {
            if let Some(seen) = state_of(&*device, &mut self.index, &mut self.links) {
                // The kernel did not answer: the port keeps its link and its addresses until it does.
                let Ok(seen) = seen else { return Some(RETRY) };
                let elsewhere = seen.mtu.is_none();
                if self.reported.as_ref() != Some(&seen) {
                    self.log_change(&seen);
                    self.reported = Some(seen.clone());
                    self.send(InterfaceReport::Changed(seen));
                }
                return elsewhere.then_some(ELSEWHERE);
            }
            self.drop_device();
            self.send(InterfaceReport::Gone);
        }
        self.attach()
    }

    /// Attaches to the port's interface if it exists. Returns the delay until the next attempt.
    fn attach(&mut self) -> Option<Duration> {
        let returned = self.returned.take().filter(|device| device.interface().is_some());
        if let Some(device) = returned {
            return self.report_attached(device);
        }
        // The port's interface may have been renamed while no device was attached to it.
        let kept = self.kept.copy().and_then(|fd| D::kept_name(fd.as_fd()));
        let (is_kept, name) = (kept.is_some(), kept.unwrap_or_else(|| self.name.clone()));
        let taken = match self.links.look_up(name.as_str()) {
            Ok(Some(_)) => D::open_existing(&name, &self.terms),
            Ok(None) => {
                self.complaint = None;
                // A kept interface was renamed just now, and the news of its new name is ignored.
                return is_kept.then_some(RETRY);
            }
            Err(error) => {
                self.complain(error.to_string());
                return Some(RETRY);
            }
        };
        match taken {
            // It was deleted just now, or is being created.
            Ok(None) => Some(RETRY),
            Ok(Some(device)) => {
                device.set_up();
                self.report_attached(Arc::new(device))
            }
            Err((why, for_good)) => {
                self.complain(why);
                (!for_good).then_some(RETRY)
            }
        }
    }

    /// Begins to watch an attached device, and reports it to the port. Returns the delay until the next check, if the interface
    /// must be polled.
    fn report_attached(&mut self, device: Arc<D>) -> Option<Duration> {
        self.kept.keep(device.kept());
        let seen = self.watch_device(device.clone());
        let (port, name, up, mtu) = (&self.port, self.name.as_str(), seen.up, seen.mtu);
        tracing::info!(port, name, up, mtu, "the port is attached to the {} again", D::KIND);
        self.complaint = None;
        let elsewhere = seen.mtu.is_none();
        self.send(InterfaceReport::Attached(device, seen));
        elsewhere.then_some(ELSEWHERE)
    }

    /// Closes the device after its interface was deleted. A kept copy of its file descriptor shows a successor process
    /// that the port had a device.
    fn drop_device(&mut self) {
        (self.device, self.reported, self.index) = (None, None, None);
        let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
        tracing::warn!(port, name, "the {kind} is gone; the port attaches again when the {kind} is back");
    }

    /// Begins to watch the interface of a newly attached device. Returns the interface's state.
    fn watch_device(&mut self, device: Arc<D>) -> InterfaceState {
        self.index = None;
        let seen = match state_of(&*device, &mut self.index, &mut self.links) {
            Some(Ok(seen)) => seen,
            // The next check asks the kernel again.
            Some(Err(_)) => InterfaceState::unknown(self.name.to_string(), device.is_up_elsewhere()),
            // The interface was deleted meanwhile, and news of that will follow.
            None => self.gone(),
        };
        if !seen.up {
            let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
            tracing::warn!(
                port,
                name,
                "the {kind} is down, and no frame passes; run `ip link set {name} up`"
            );
        }
        (self.device, self.reported) = (Some(device), Some(seen.clone()));
        seen
    }

    /// Returns the state that is reported for an interface that does not exist.
    fn gone(&self) -> InterfaceState {
        InterfaceState::unknown(self.name.to_string(), false)
    }

    fn send(&self, news: InterfaceReport<D>) {
        // A port that has ended will stop this thread, so a failed send has no consequence.
        let _ = self.news.send(news);
        self.port_waker.wake();
    }

    fn log_change(&self, seen: &InterfaceState) {
        let InterfaceState { interface, up, carrier, mtu, parent } = seen;
        let parent = parent.map(|parent| parent.index);
        let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
        tracing::info!(
            port,
            name,
            interface,
            up,
            carrier,
            mtu,
            parent,
            "the state of the {kind} has changed"
        );
    }

    /// Logs why the interface cannot be attached to, once for each reason.
    fn complain(&mut self, why: String) {
        if self.complaint.as_ref() != Some(&why) {
            let (port, name, kind) = (&self.port, self.name.as_str(), D::KIND);
            tracing::warn!(
                port,
                name,
                why,
                "cannot attach to the {kind}; the port waits for a {kind} of this name"
            );
            self.complaint = Some(why);
        }
    }
}
