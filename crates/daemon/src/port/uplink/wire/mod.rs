//! A wire between two ports of one host: a ring for each direction, with one port that puts frames in and one that takes
//! them out. No lock and no system call is on a frame's way; a port that sleeps is woken (`bell`).
//!
//! The rings are this process's own memory. When a port's thread fails, its end lies there until the port is opened
//! again; after a hand-over or a crash the successor makes new rings. What was in a ring then is lost, as on a cable that
//! is unplugged.

mod bell;
#[cfg(test)]
mod span;
#[cfg(test)]
mod tests;

use super::record::Record;
use super::{Kind, Maker};
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::ring;
use bell::{Bell, Sleeper, announce, may_sleep};
use host::poll::{Interest, Poller, Waker};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes on their way in one direction: some 340 long frames, or 7,700 of the shortest.
const CAPACITY: usize = 512 * 1024;

/// The wires between a host's ports, by name. One that no port has any more is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wires(Arc<Mutex<BTreeMap<String, Weak<Cable>>>>);

impl Wires {
    fn get(&self, name: &str) -> io::Result<Arc<Cable>> {
        let mut wires = lock(&self.0);
        wires.retain(|_, wire| wire.strong_count() > 0);
        if let Some(wire) = wires.get(name).and_then(Weak::upgrade) {
            return Ok(wire);
        }
        let wire = Arc::new(Cable::new()?);
        wires.insert(name.to_owned(), Arc::downgrade(&wire));
        Ok(wire)
    }
}

/// Both rings, and what the two ports know of each other.
#[derive(Debug)]
struct Cable {
    spare: Mutex<Spare>,
    /// How often an end was given back: a port that waits for one looks when this has changed.
    given_back: AtomicUsize,
    sides: [Side; 2],
}

/// What no port has.
#[derive(Debug)]
struct Spare {
    plugs: [Option<Plug>; 2],
    /// Who waits for one.
    waiting: Vec<Waker>,
}

/// One end's halves of the rings.
#[derive(Debug)]
struct Plug {
    side: usize,
    sender: Producer<u8>,
    receiver: Consumer<u8>,
}

#[derive(Debug)]
struct Side {
    /// A port has this end.
    taken: AtomicBool,
    bell: Bell,
}

impl Cable {
    fn new() -> io::Result<Self> {
        let ((there, from_there), (back, from_back)) = (RingBuffer::new(CAPACITY), RingBuffer::new(CAPACITY));
        let plugs = [
            Some(Plug { side: 0, sender: there, receiver: from_back }),
            Some(Plug { side: 1, sender: back, receiver: from_there }),
        ];
        let side = || Ok::<_, io::Error>(Side { taken: AtomicBool::new(false), bell: Bell::new()? });
        Ok(Self {
            spare: Mutex::new(Spare { plugs, waiting: Vec::new() }),
            given_back: AtomicUsize::new(0),
            sides: [side()?, side()?],
        })
    }

    /// An end that no port has. What was in the ring was for another, and is dropped. If both are taken, `port` is woken
    /// when one is given back.
    fn take(&self, port: &Waker) -> Option<Plug> {
        let mut spare = lock(&self.spare);
        let Some(mut plug) = spare.plugs.iter_mut().find_map(Option::take) else {
            spare.waiting.push(port.clone());
            return None;
        };
        if let Ok(stale) = plug.receiver.read_chunk(plug.receiver.slots()) {
            stale.commit_all();
        }
        self.set_taken(plug.side, true);
        Some(plug)
    }

    fn give_back(&self, plug: Plug) {
        let mut spare = lock(&self.spare);
        self.set_taken(plug.side, false);
        let side = plug.side;
        spare.plugs[side] = Some(plug);
        self.given_back.fetch_add(1, Ordering::Release);
        spare.waiting.drain(..).for_each(|port| port.wake());
    }

    /// The other port hears of it.
    fn set_taken(&self, side: usize, taken: bool) {
        self.sides[side].taken.store(taken, Ordering::Release);
        self.sides[1 - side].bell.waker().wake();
    }
}

/// A port's end of a wire.
#[derive(Debug)]
pub(super) struct WireEnd {
    name: String,
    cable: Arc<Cable>,
    /// There, once the port waits on it, unless two other ports have the ends as yet.
    plug: Option<Plug>,
    /// Wakes this port.
    port: Waker,
    /// [`Cable::given_back`] when an end was last asked for.
    asked: usize,
    /// Something was put in since the last flush.
    put: bool,
    /// The other port was there once.
    met: bool,
    record: Record,
}

impl WireEnd {
    pub(super) fn new(name: &str, with: &Maker<'_>) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            cable: with.wires.get(name)?,
            plug: None,
            port: with.port.clone(),
            asked: 0,
            put: false,
            met: false,
            record: Record::new("wire", UplinkState::Gone),
        })
    }

    /// Has an end from now on, if there is one.
    fn plug_in(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.asked = self.cable.given_back.load(Ordering::Acquire);
        let Some(plug) = self.cable.take(&self.port) else { return Ok(()) };
        let side = plug.side;
        self.plug = Some(plug);
        poller.add(self.cable.sides[side].bell.waker(), token, Interest::READ)
    }

    fn unplug(&mut self) {
        if let Some(plug) = self.plug.take() {
            self.cable.give_back(plug);
        }
    }

    /// Whether the other port is there.
    fn state(&self) -> UplinkState {
        let other = |plug: &Plug| self.cable.sides[1 - plug.side].taken.load(Ordering::Acquire);
        if self.plug.as_ref().is_some_and(other) { UplinkState::Up } else { UplinkState::Gone }
    }
}

impl Drop for WireEnd {
    fn drop(&mut self) {
        self.unplug();
    }
}

/// The receiving side of a port's end.
struct Asleep<'a> {
    bell: &'a Bell,
    receiver: &'a Consumer<u8>,
}

impl Sleeper for Asleep<'_> {
    fn want(&self, wanted: bool) {
        self.bell.want(wanted);
    }

    fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}

impl Kind for WireEnd {
    fn join(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.plug_in(poller, token)?;
        self.record.set_state(self.state());
        Ok(())
    }

    fn part(&mut self, poller: &Poller) {
        if let Some(plug) = &self.plug {
            // A bell that is not waited on is as good.
            let _ = poller.remove(self.cable.sides[plug.side].bell.waker());
        }
        self.unplug();
    }

    fn set_readable(&mut self) {
        if let Some(plug) = &self.plug {
            self.cable.sides[plug.side].bell.waker().drain();
        }
    }

    fn follow(&mut self, poller: &Poller, token: u64) -> bool {
        if self.plug.is_none()
            && self.cable.given_back.load(Ordering::Acquire) != self.asked
            && let Err(error) = self.plug_in(poller, token)
        {
            tracing::error!(wire = self.name, %error, "cannot wait for frames of the wire");
            self.unplug();
        }
        let (before, now) = (self.record.state(), self.state());
        if before == now {
            return false;
        }
        self.record.set_state(now);
        if now == UplinkState::Up && std::mem::replace(&mut self.met, true) {
            self.record.reattached();
        }
        true
    }

    fn link(&self) -> bool {
        self.record.state() == UplinkState::Up
    }

    fn status(&self) -> Option<UplinkStatus> {
        Some(self.record.status(self.name.clone()))
    }

    fn transmit(&mut self, frame: &[u8]) -> bool {
        let there = self.record.state() == UplinkState::Up;
        let Some(plug) = self.plug.as_mut().filter(|_| there) else {
            self.record.drops.no_link += 1;
            return false;
        };
        let sent = ring::put(&mut plug.sender, [frame]);
        self.put |= sent;
        self.record.drops.no_room += u64::from(!sent);
        sent
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.put)
            && let Some(plug) = &self.plug
        {
            announce(&self.cable.sides[1 - plug.side].bell);
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        ring::take(&mut self.plug.as_mut()?.receiver, into)
    }

    fn may_sleep(&mut self) -> bool {
        let Some(plug) = &self.plug else { return true };
        may_sleep(&Asleep { bell: &self.cable.sides[plug.side].bell, receiver: &plug.receiver })
    }
}

/// Nothing is ever left half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
