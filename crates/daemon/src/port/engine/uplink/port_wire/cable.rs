//! Wires of a host by name, each with its two rings and the state that its two ports share.

use super::super::addresses::LinkAddresses;
use crate::port::engine::bell::RingWakeFlag;
use host::poll::ThreadWaker;
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of each ring of a wire, room for some 340 long frames or 7,700 of the shortest.
pub(super) const CAPACITY: usize = 512 * 1024;

/// Wires between a host's ports, by name. A wire without a port is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireRegistry(Arc<Mutex<BTreeMap<String, Weak<PortPairWire>>>>);

impl WireRegistry {
    /// Returns the number of wires to which at least one port is connected.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.0).values().filter(|wire| wire.strong_count() > 0).count()
    }

    pub(super) fn get(&self, name: &str) -> io::Result<Arc<PortPairWire>> {
        let mut wires = lock(&self.0);
        wires.retain(|_, wire| wire.strong_count() > 0);
        if let Some(wire) = wires.get(name).and_then(Weak::upgrade) {
            return Ok(wire);
        }
        let wire = Arc::new(PortPairWire::new()?);
        wires.insert(name.to_owned(), Arc::downgrade(&wire));
        Ok(wire)
    }
}

/// Wire between two ports: its two rings, and the state that the ports share.
#[derive(Debug)]
pub(super) struct PortPairWire {
    free_ends: Mutex<FreeWireEnds>,
    /// Number of times that a port has returned its end of the wire. Ports that wait for a free end try again when the
    /// number changes.
    pub(super) given_back: AtomicUsize,
    pub(super) sides: [WireEndState; 2],
    pub(super) addresses: Arc<LinkAddresses>,
}

/// Ends of a wire that no port uses.
#[derive(Debug)]
struct FreeWireEnds {
    plugs: [Option<WireEndRings>; 2],
    /// Wakers of ports that wait for an end of the wire.
    waiting: Vec<ThreadWaker>,
}

/// Rings of a wire at one of its ends: one to send frames, one to receive them.
#[derive(Debug)]
pub(super) struct WireEndRings {
    pub(super) side: usize,
    pub(super) sender: Producer<u8>,
    pub(super) receiver: Consumer<u8>,
}

#[derive(Debug)]
pub(super) struct WireEndState {
    /// True if a port uses this end of the wire.
    pub(super) taken: AtomicBool,
    pub(super) bell: RingWakeFlag,
}

impl PortPairWire {
    fn new() -> io::Result<Self> {
        let ((there, from_there), (back, from_back)) = (RingBuffer::new(CAPACITY), RingBuffer::new(CAPACITY));
        let plugs = [
            Some(WireEndRings { side: 0, sender: there, receiver: from_back }),
            Some(WireEndRings { side: 1, sender: back, receiver: from_there }),
        ];
        let side =
            || Ok::<_, io::Error>(WireEndState { taken: AtomicBool::new(false), bell: RingWakeFlag::new()? });
        Ok(Self {
            free_ends: Mutex::new(FreeWireEnds { plugs, waiting: Vec::new() }),
            given_back: AtomicUsize::new(0),
            sides: [side()?, side()?],
            addresses: Arc::default(),
        })
    }

    /// Takes a free end of the wire for a port, and drops old frames in that end's receive ring. If both ends are
    /// taken, wakes `port` when one is returned.
    pub(super) fn take(&self, port: &ThreadWaker) -> Option<WireEndRings> {
        let mut free_ends = lock(&self.free_ends);
        let Some(mut plug) = free_ends.plugs.iter_mut().find_map(Option::take) else {
            free_ends.waiting.push(port.clone());
            return None;
        };
        if let Ok(stale) = plug.receiver.read_chunk(plug.receiver.slots()) {
            stale.commit_all();
        }
        self.set_taken(plug.side, true);
        Some(plug)
    }

    pub(super) fn give_back(&self, plug: WireEndRings) {
        let mut free_ends = lock(&self.free_ends);
        self.set_taken(plug.side, false);
        let side = plug.side;
        free_ends.plugs[side] = Some(plug);
        self.given_back.fetch_add(1, Ordering::Release);
        free_ends.waiting.drain(..).for_each(|port| port.wake());
    }

    /// Records that a port uses or has returned this end of the wire, and wakes the port at the other end.
    fn set_taken(&self, side: usize, taken: bool) {
        self.sides[side].taken.store(taken, Ordering::Release);
        self.sides[1 - side].bell.waker().wake();
    }
}

/// Locks a mutex and ignores poison, because no code panics while data under these locks is half updated.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
