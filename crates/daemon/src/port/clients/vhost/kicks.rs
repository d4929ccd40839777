//! Eventfds by which a guest kicks the rings of its function, in the port's poller.
//!
//! The poller reports each write to such an eventfd (edge-triggered), and the port never reads the eventfd. A read could
//! block: its open file belongs to the front end too, which may clear `O_NONBLOCK` at any time. No read is needed,
//! since the kernel reports a write also while the count is above 0, or at its maximum.

use crate::port::tokens::{self, RINGS};
use host::eventfd::EventFd;
use host::poll::{PollInterest, Poller};
use std::io;
use std::sync::Arc;

/// Eventfd by which the guest kicks a ring, with a flag: true if the poller watches the eventfd.
#[derive(Debug)]
struct KickEventfd {
    eventfd: EventFd,
    watched: bool,
}

/// Kick eventfds of all rings of a function.
#[derive(Debug)]
pub(super) struct KickEventfds {
    rings: [Option<KickEventfd>; RINGS as usize],
    /// Replaced kick eventfds that the poller still watches. Closing them would not end the watch, because the front
    /// end has copies.
    replaced: Vec<EventFd>,
    /// Poller of the worker that serves the function; none for the port's own thread.
    away: Option<Arc<Poller>>,
}

impl KickEventfds {
    /// Creates the state of rings without eventfds.
    pub(super) fn new() -> Self {
        Self { rings: [const { None }; RINGS as usize], replaced: Vec::new(), away: None }
    }

    /// Sets or removes the eventfd of a ring. [`Self::watch`] brings the change to the poller.
    pub(super) fn set(&mut self, ring: u32, eventfd: Option<EventFd>) {
        let Some(place) = self.rings.get_mut(ring as usize) else { return };
        let new = eventfd.map(|eventfd| KickEventfd { eventfd, watched: false });
        if let Some(old) = std::mem::replace(place, new).filter(|old| old.watched) {
            self.replaced.push(old.eventfd);
        }
    }

    /// Returns the eventfd of each ring that has one.
    pub(super) fn eventfds(&self) -> impl Iterator<Item = (u32, &EventFd)> {
        (0..).zip(&self.rings).filter_map(|(ring, kick)| Some((ring, &kick.as_ref()?.eventfd)))
    }

    /// Moves the eventfds to the poller of the worker that serves the function now, or to the port's own (`None`). The new
    /// poller reports the kicks that the old one has not, and repeats one of each ring that was kicked before. `place` is the
    /// index of the function. Returns false if the eventfds were in that poller.
    pub(super) fn move_to(
        &mut self,
        worker: Option<&Arc<Poller>>,
        own: &Poller,
        place: usize,
    ) -> io::Result<bool> {
        if worker.map(Arc::as_ptr) == self.away.as_ref().map(Arc::as_ptr) {
            return Ok(false);
        }
        self.forget_replaced(own);
        let before = self.away.as_deref().unwrap_or(own);
        for kick in self.rings.iter_mut().flatten().filter(|kick| kick.watched) {
            // The descriptor is in the poller, so it can be removed.
            let _ = before.remove(&kick.eventfd);
            kick.watched = false;
        }
        self.away = worker.cloned();
        self.watch(own, place).map(|()| true)
    }

    /// Adds new eventfds to the poller, and removes replaced ones. `place` is the index of the function. The poller
    /// reports a new eventfd at once if the guest has written to it before.
    pub(super) fn watch(&mut self, own: &Poller, place: usize) -> io::Result<()> {
        self.forget_replaced(own);
        let poller = self.away.as_deref().unwrap_or(own);
        for (ring, kick) in (0..).zip(&mut self.rings) {
            if let Some(kick) = kick.as_mut().filter(|kick| !kick.watched) {
                poller.add(&kick.eventfd, tokens::kick(place, ring), PollInterest::NEWS)?;
                kick.watched = true;
            }
        }
        Ok(())
    }

    /// Removes all eventfds from the poller.
    pub(super) fn unwatch(&mut self, own: &Poller) {
        (0..RINGS).for_each(|ring| self.set(ring, None));
        self.forget_replaced(own);
    }

    fn forget_replaced(&mut self, own: &Poller) {
        let poller = self.away.as_deref().unwrap_or(own);
        for eventfd in self.replaced.drain(..) {
            // The descriptor is in the poller, so it can be removed.
            let _ = poller.remove(&eventfd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EventFd, KickEventfds, Poller};
    use crate::port::tokens::WakeSource;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::time::Duration;

    /// Returns the events of a poller that are ready.
    fn ready(poller: &mut Poller) -> Vec<WakeSource> {
        poller.wait(Some(Duration::ZERO)).unwrap().map(|event| WakeSource::of(event.token)).collect()
    }

    /// Returns an eventfd, and the front end's copy of it.
    fn shared() -> (EventFd, EventFd) {
        let ours = EventFd::new().unwrap();
        let theirs = EventFd::adopt(ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
        (ours, theirs)
    }

    #[test]
    fn vhost_kick_is_reported_once_without_reading_its_eventfd() {
        let (mut poller, mut kicks) = (Poller::new().unwrap(), KickEventfds::new());
        let (ours, theirs) = shared();
        kicks.set(31, Some(ours));
        kicks.watch(&poller, 64).unwrap();
        assert_eq!(ready(&mut poller), []);
        for _ in 0..3 {
            theirs.signal();
            assert_eq!(ready(&mut poller), [WakeSource::Kick { place: 64, ring: 31 }]);
            assert_eq!(ready(&mut poller), []);
        }
    }

    #[test]
    fn vhost_kick_before_its_eventfd_is_polled_is_reported() {
        let (mut poller, mut kicks) = (Poller::new().unwrap(), KickEventfds::new());
        let (ours, theirs) = shared();
        theirs.signal();
        kicks.set(1, Some(ours));
        kicks.watch(&poller, 0).unwrap();
        assert_eq!(ready(&mut poller), [WakeSource::Kick { place: 0, ring: 1 }]);
    }

    #[test]
    fn replaced_vhost_kick_eventfd_is_no_longer_reported() {
        let (mut poller, mut kicks) = (Poller::new().unwrap(), KickEventfds::new());
        let ((first, stale), (second, theirs)) = (shared(), shared());
        kicks.set(1, Some(first));
        kicks.watch(&poller, 0).unwrap();
        kicks.set(1, Some(second));
        kicks.watch(&poller, 0).unwrap();
        stale.signal();
        assert_eq!(ready(&mut poller), []);
        theirs.signal();
        assert_eq!(ready(&mut poller).len(), 1);
        kicks.unwatch(&poller);
        theirs.signal();
        assert_eq!(ready(&mut poller), []);
    }

    #[test]
    fn vhost_kick_is_reported_to_the_worker_of_its_function() {
        let (mut own, mut kicks) = (Poller::new().unwrap(), KickEventfds::new());
        let mut worker = Poller::new().unwrap();
        let same = Arc::new(worker.same().unwrap());
        let (ours, theirs) = shared();
        kicks.set(1, Some(ours));
        kicks.watch(&own, 5).unwrap();
        theirs.signal();
        kicks.move_to(Some(&same), &own, 5).unwrap();
        let kick = [WakeSource::Kick { place: 5, ring: 1 }];
        assert_eq!(
            (ready(&mut own), ready(&mut worker)),
            (vec![], kick.to_vec()),
            "the kick before the move"
        );
        kicks.move_to(Some(&same), &own, 5).unwrap();
        assert_eq!(ready(&mut worker), [], "nothing has moved");
        let (later, their_later) = shared();
        kicks.set(3, Some(later));
        kicks.watch(&own, 5).unwrap();
        their_later.signal();
        assert_eq!(
            ready(&mut worker),
            [WakeSource::Kick { place: 5, ring: 3 }],
            "a new ring of the function"
        );
        kicks.move_to(None, &own, 5).unwrap();
        theirs.signal();
        assert_eq!(ready(&mut worker), []);
        assert_eq!(ready(&mut own).len(), 2, "eventfds that were written to are reported to a new poller");
    }
}
