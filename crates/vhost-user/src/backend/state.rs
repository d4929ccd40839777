//! State of a back end's session, except its message streams: offer, negotiated features, memory and rings.

use alloc::{collections::VecDeque, vec, vec::Vec};

use super::event::BackendEvent;
use super::memory::MemoryTable;
use super::offer::BackendOffer;
use super::ring::RingState;
use crate::features::{device, protocol};
use crate::message::{RequestError, RingBase};

/// Counters of a session since its connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendCounters {
    /// Number of messages that the session has handled, of any kind.
    pub messages: u64,
    /// Number of requests that the session has refused with an error.
    pub refused: u64,
    /// Number of descriptors returned to be closed without a use.
    pub unused_fds: u64,
    /// Number of times that a ring went live.
    pub ring_starts: u64,
}

/// State of a back end's session, except the decoder and the queued replies.
#[derive(Debug)]
pub(super) struct SessionState<F> {
    pub(super) offer: BackendOffer,
    pub(super) owned: bool,
    /// Feature bits that the driver accepted, or `None` before `SET_FEATURES`.
    pub(super) features: Option<u64>,
    pub(super) protocol_features: u64,
    /// Device status that the front end stored by `SET_STATUS`.
    pub(super) status: u8,
    pub(super) memory: MemoryTable,
    pub(super) rings: Vec<RingState>,
    pub(super) events: VecDeque<BackendEvent<F>>,
    pub(super) counters: BackendCounters,
}

impl<F> SessionState<F> {
    /// Creates the state of a new connection. The offer must be [limited](BackendOffer::limited).
    pub(super) fn new(offer: BackendOffer) -> Self {
        Self {
            offer,
            owned: false,
            features: None,
            protocol_features: 0,
            status: 0,
            memory: MemoryTable::new(offer.memory_regions),
            rings: vec![RingState::default(); 2 * offer.queue_pairs as usize],
            events: VecDeque::new(),
            counters: BackendCounters::default(),
        }
    }

    /// Returns true if the front end has set a protocol feature.
    pub(super) fn has_protocol_feature(&self, bit: u32) -> bool {
        self.protocol_features >> bit & 1 != 0
    }

    /// Returns true if the front end has negotiated acknowledgements (`REPLY_ACK`), by which a refused
    /// request can be reported.
    pub(super) fn acknowledges(&self) -> bool {
        self.has_protocol_feature(protocol::REPLY_ACK)
    }

    pub(super) fn packed(&self) -> bool {
        self.features.unwrap_or(0) & device::RING_PACKED != 0
    }

    /// Returns the state of the ring with this number.
    ///
    /// # Errors
    /// The device has no such ring.
    pub(super) fn ring(&mut self, ring: u32) -> Result<&mut RingState, RequestError> {
        let rings = self.rings.len() as u32;
        self.rings.get_mut(ring as usize).ok_or(RequestError::RingOutOfRange { ring, rings })
    }

    /// Pauses a live ring: the host must not access the ring from then on.
    pub(super) fn pause(&mut self, ring: u32) {
        let state = self.rings.get_mut(ring as usize);
        if let Some(state) = state.filter(|state| state.live) {
            state.live = false;
            self.events.push_back(BackendEvent::RingPaused { ring });
        }
    }

    pub(super) fn pause_all(&mut self) {
        (0..self.rings.len() as u32).for_each(|ring| self.pause(ring));
    }

    /// Makes a ring live, if the front end has set all its parameters and all are valid.
    pub(super) fn start(&mut self, ring: u32) {
        let Some(features) = self.features else { return };
        let Some(state) = self.rings.get_mut(ring as usize).filter(|state| !state.live) else { return };
        match state.setup(ring, features, &self.memory) {
            Ok(Some(setup)) => {
                // The host has the position from here on.
                state.base = None;
                state.started = true;
                state.live = true;
                self.counters.ring_starts += 1;
                self.events.push_back(BackendEvent::RingLive(setup));
            }
            Ok(None) => {}
            Err(fault) => self.events.push_back(BackendEvent::RingFaulty { ring, fault }),
        }
    }

    pub(super) fn start_all(&mut self) {
        (0..self.rings.len() as u32).for_each(|ring| self.start(ring));
    }

    /// Enables or disables a ring, and reports the change to the host if the host uses the ring.
    pub(super) fn enable(&mut self, ring: u32, enabled: bool) {
        let Some(state) = self.rings.get_mut(ring as usize) else { return };
        let changed = state.enabled != enabled;
        state.enabled = enabled;
        if changed && state.live {
            self.events.push_back(BackendEvent::RingEnabled { ring, enabled });
        }
    }

    pub(super) fn enable_all(&mut self, enabled: bool) {
        (0..self.rings.len() as u32).for_each(|ring| self.enable(ring, enabled));
    }

    /// Records that the host has stopped a ring, and the position at which it stopped.
    pub(super) fn stopped(&mut self, ring: u32, base: RingBase) {
        if let Some(state) = self.rings.get_mut(ring as usize) {
            state.stop(base);
        }
    }

    /// Resets features, status and rings, and reports to the host that each live ring has ended.
    pub(super) fn reset_device(&mut self) {
        self.pause_all();
        self.features = None;
        self.status = 0;
        self.rings.fill(RingState::default());
        self.events.push_back(BackendEvent::DeviceReset);
    }

    /// Reports unused descriptors to the host, which must close them.
    pub(super) fn give_back(&mut self, fds: Vec<F>) {
        if !fds.is_empty() {
            self.counters.unused_fds += fds.len() as u64;
            self.events.push_back(BackendEvent::UnusedDescriptors(fds));
        }
    }
}
