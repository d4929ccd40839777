//! State that all request handlers share (`service` has the handlers).

use super::capture::CaptureService;
use super::requests::ControlRequestSender;
use super::stream;
use crate::control::tcp::BearerToken;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Timeout of a control client: for the head of a request, its body, an unread response, and an idle connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// State that the handlers of control requests share.
#[derive(Debug, Clone)]
pub(super) struct ControlHandlerContext {
    pub(super) sender: ControlRequestSender,
    pub(super) stop: watch::Receiver<bool>,
    /// Permits that limit the number of open event streams.
    pub(super) stream_permits: Arc<Semaphore>,
    /// Token that TCP clients must send; `None` for the control socket.
    pub(super) token: Option<BearerToken>,
    pub(super) captures: CaptureService,
}

impl ControlHandlerContext {
    pub(super) fn new(
        sender: ControlRequestSender,
        stop: watch::Receiver<bool>,
        token: Option<BearerToken>,
        captures: CaptureService,
    ) -> Self {
        Self { sender, stop, stream_permits: Arc::new(Semaphore::new(stream::MOST)), token, captures }
    }
}

/// Flag that a control client has sent a permitted request. Over TCP that is a request with the token.
#[derive(Debug, Clone, Default)]
pub(super) struct PermittedRequestFlag(Arc<AtomicBool>);

impl PermittedRequestFlag {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
