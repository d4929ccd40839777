//! What handlers of requests share. Left out: the handlers (`service`).

use super::capture::CaptureService;
use super::requests::RequestSender;
use super::stream;
use crate::control::tcp::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How long a client may take for the head of a request, for its body, and again until it reads more of a response. A
/// connection may be idle for as long.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What every handler needs.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) sender: RequestSender,
    pub(super) stop: watch::Receiver<bool>,
    /// One for each open stream of events.
    pub(super) stream_permits: Arc<Semaphore>,
    /// What those have to send who come over TCP.
    pub(super) token: Option<Token>,
    pub(super) captures: CaptureService,
}

impl Context {
    pub(super) fn new(
        sender: RequestSender,
        stop: watch::Receiver<bool>,
        token: Option<Token>,
        captures: CaptureService,
    ) -> Self {
        Self { sender, stop, stream_permits: Arc::new(Semaphore::new(stream::MOST)), token, captures }
    }
}

/// Whether a client has sent a request that it may send: over TCP, one with the token.
#[derive(Debug, Clone, Default)]
pub(super) struct HasAsked(Arc<AtomicBool>);

impl HasAsked {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
