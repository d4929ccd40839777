//! Saves a back end's session as bytes, and continues it in a successor process over the same connection.
//!
//! The bytes hold what the front end has negotiated and set, never descriptors: the host passes the socket, the files of
//! the memory regions and the eventfds itself. The successor maps the regions before it steps the session. The session
//! then reports features and rings by the events of a new connection, so that a host needs no second way to start rings. The
//! host continues a ring that has run before at its own position, which it saves itself.

use alloc::vec::Vec;

use thiserror::Error;

use super::offer::BackendOffer;
use super::ring::RingState;
use super::session::BackendSession;
use super::{BackendEvent, MemoryTable};
use crate::decoder::StreamError;
use crate::features::device;
use crate::message::{MAX_BODY, MemoryRegion, MessageHeader, RegionError, RingAddresses};

/// Version of the encoding, its first byte.
const VERSION: u8 = 1;

/// Reason why a session cannot continue in a successor process: its front end has to connect again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionSaveError {
    /// A request is not finished, or the session has failed.
    #[error("a vhost-user request is not finished")]
    Unfinished,
    /// An incomplete message has brought descriptors, which the saved bytes cannot hold.
    #[error("an incomplete vhost-user message has {0} file descriptors")]
    PartialDescriptors(usize),
    /// The front end logs writes to guest memory.
    #[error("a migration log is active")]
    MigrationLog,
}

/// Reason why saved bytes do not describe a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionRestoreError {
    /// The bytes end inside a field.
    #[error("the saved session ends inside its {0}")]
    Truncated(&'static str),
    /// A field has a value that no session can have.
    #[error("{field} of the saved session is invalid: {value:#x}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// A memory region is invalid.
    #[error("memory region of the saved session: {0}")]
    Region(#[from] RegionError),
    /// The incomplete message is invalid.
    #[error("incomplete message of the saved session: {0}")]
    Message(#[from] StreamError),
}

impl<F> BackendSession<F> {
    /// Returns the session as bytes for a successor process.
    ///
    /// # Errors
    /// The session cannot be saved now, and is unchanged.
    pub fn save(&self) -> Result<Vec<u8>, SessionSaveError> {
        let state = &self.state;
        let (message, fds) = self.decoder.received();
        if !self.is_at_rest() {
            return Err(SessionSaveError::Unfinished);
        }
        if fds > 0 {
            return Err(SessionSaveError::PartialDescriptors(fds));
        }
        if state.features.unwrap_or(0) & device::LOG_ALL != 0 {
            return Err(SessionSaveError::MigrationLog);
        }
        let mut bytes = Vec::from([VERSION, state.owned.into(), state.status]);
        put_option(&mut bytes, state.features);
        put(&mut bytes, state.protocol_features);
        put(&mut bytes, state.memory.regions().len() as u64);
        for region in state.memory.regions() {
            let MemoryRegion { guest_address, size, user_address, file_offset } = *region;
            [guest_address, size, user_address, file_offset]
                .into_iter()
                .for_each(|value| put(&mut bytes, value));
        }
        put(&mut bytes, state.rings.len() as u64);
        state.rings.iter().for_each(|ring| put_ring(&mut bytes, ring));
        put(&mut bytes, message.len() as u64);
        bytes.extend_from_slice(message);
        Ok(bytes)
    }

    /// Returns true if the session has no unfinished request and no event, so that it may be saved. Otherwise
    /// [`step`](Self::step) continues the request, or returns the events, whose number is bounded by that of the rings.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !self.is_unfinished() && self.state.events.is_empty()
    }

    /// Creates a session that continues a saved one. Its next events are the accepted features and the live rings.
    ///
    /// # Errors
    /// No session with this offer can have saved the bytes.
    pub fn restore(offer: BackendOffer, bytes: &[u8]) -> Result<Self, SessionRestoreError> {
        let offer = offer.limited();
        let mut session = Self::new(offer);
        let mut fields = SavedFields(bytes);
        let version = fields.byte("version")?;
        valid("version", version.into(), version == VERSION)?;
        let state = &mut session.state;
        state.owned = fields.flag("owner")?;
        state.status = fields.byte("status")?;
        let features = fields.option("features")?;
        let known = offer.features & !device::LOG_ALL;
        valid("features", features.unwrap_or(0), features.unwrap_or(0) & !known == 0)?;
        state.features = features;
        let protocol = fields.number("protocol features")?;
        valid("protocol features", protocol, protocol & !offer.protocol_features == 0)?;
        state.protocol_features = protocol;
        state.memory = fields.memory(offer.memory_regions)?;
        let rings = fields.number("number of rings")?;
        valid("number of rings", rings, rings == state.rings.len() as u64)?;
        for (ring, settings) in (0..).zip(&mut state.rings) {
            *settings = fields.ring(ring, offer.ring_size)?;
        }
        let message = fields.message()?;
        valid("length", bytes.len() as u64, fields.0.is_empty())?;
        // The decoder takes a header alone, and then the body.
        let (header, body) = message.split_at(message.len().min(MessageHeader::LEN));
        session.decoder.push(header, &mut Vec::new())?;
        session.decoder.push(body, &mut Vec::new())?;
        if let Some(features) = features {
            session.state.events.push_back(BackendEvent::FeaturesSet(features));
        }
        session.state.start_all();
        Ok(session)
    }
}

fn put(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put_option(bytes: &mut Vec<u8>, value: Option<u64>) {
    bytes.push(value.is_some().into());
    put(bytes, value.unwrap_or(0));
}

fn put_ring(bytes: &mut Vec<u8>, ring: &RingState) {
    bytes.extend_from_slice(&[ring.kicked, ring.enabled, ring.started].map(u8::from));
    put_option(bytes, ring.size.map(u64::from));
    put_option(bytes, ring.base.map(u64::from));
    let RingAddresses { logged, descriptors, used, available, log, .. } = ring.addresses.unwrap_or_default();
    bytes.extend_from_slice(&[ring.addresses.is_some(), logged].map(u8::from));
    [descriptors, used, available, log].into_iter().for_each(|value| put(bytes, value));
}

fn valid(field: &'static str, value: u64, is_valid: bool) -> Result<(), SessionRestoreError> {
    if is_valid { Ok(()) } else { Err(SessionRestoreError::Invalid { field, value }) }
}

/// Rest of the saved bytes.
struct SavedFields<'a>(&'a [u8]);

impl<'a> SavedFields<'a> {
    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], SessionRestoreError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SessionRestoreError::Truncated(field))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, SessionRestoreError> {
        Ok(self.take(field, 1)?[0])
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, SessionRestoreError> {
        let value = self.byte(field)?;
        valid(field, value.into(), value <= 1).map(|()| value == 1)
    }

    fn number(&mut self, field: &'static str) -> Result<u64, SessionRestoreError> {
        let taken = self.take(field, 8)?;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn option(&mut self, field: &'static str) -> Result<Option<u64>, SessionRestoreError> {
        let is_set = self.flag(field)?;
        let value = self.number(field)?;
        valid(field, value, is_set || value == 0).map(|()| is_set.then_some(value))
    }

    fn word(&mut self, field: &'static str) -> Result<Option<u32>, SessionRestoreError> {
        let Some(value) = self.option(field)? else { return Ok(None) };
        u32::try_from(value).map(Some).map_err(|_| SessionRestoreError::Invalid { field, value })
    }

    fn memory(&mut self, limit: usize) -> Result<MemoryTable, SessionRestoreError> {
        let count = self.number("number of memory regions")?;
        valid("number of memory regions", count, count <= limit as u64)?;
        let mut table = MemoryTable::new(limit);
        for _ in 0..count {
            table.add(MemoryRegion {
                guest_address: self.number("guest address of a memory region")?,
                size: self.number("size of a memory region")?,
                user_address: self.number("user address of a memory region")?,
                file_offset: self.number("file offset of a memory region")?,
            })?;
        }
        Ok(table)
    }

    fn ring(&mut self, ring: u32, limit: u32) -> Result<RingState, SessionRestoreError> {
        let (kicked, enabled) = (self.flag("kick of a ring")?, self.flag("state of a ring")?);
        let started = self.flag("start of a ring")?;
        let size = self.word("size of a ring")?;
        valid("size of a ring", size.unwrap_or(1).into(), (1..=limit).contains(&size.unwrap_or(1)))?;
        let base = self.word("position of a ring")?;
        let has_addresses = self.flag("addresses of a ring")?;
        let addresses = RingAddresses {
            ring,
            logged: self.flag("log flag of a ring")?,
            descriptors: self.number("descriptor address of a ring")?,
            used: self.number("used address of a ring")?,
            available: self.number("available address of a ring")?,
            log: self.number("log address of a ring")?,
        };
        let addresses = has_addresses.then_some(addresses);
        Ok(RingState { size, addresses, base, kicked, enabled, started, live: false })
    }

    fn message(&mut self) -> Result<&'a [u8], SessionRestoreError> {
        let field = "incomplete message";
        let length = self.number(field)?;
        valid(field, length, length <= (MessageHeader::LEN + MAX_BODY) as u64)?;
        self.take(field, length as usize)
    }
}
