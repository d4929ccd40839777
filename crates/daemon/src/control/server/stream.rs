//! Events as they happen, as server-sent events. Nothing is kept for a client: the stream reads the host's list of events
//! ([`crate::events`]) as fast as the client reads the stream. A client that falls behind is told how many it has missed,
//! and one that does not read at all is cut off. When the host ends, or another process takes over, streams end behind the
//! last event. Left out: which events there are.

use crate::control::problem::Kind;
use crate::control::protocol::Failure;
use crate::events::{self, Mark};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How often the list is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often a silent stream says that it lives.
const ALIVE: Duration = Duration::from_secs(10);
/// Streams at a time.
pub(super) const MOST: usize = 16;

/// How far a client has read.
#[derive(Debug)]
struct Reader {
    after: u64,
    /// Read from the list, and not by the client.
    ready: VecDeque<Event>,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Events after this number, and then those that happen, until the host ends.
pub(super) fn open(
    after: u64,
    stop: watch::Receiver<bool>,
    places: Arc<Semaphore>,
) -> Result<Response, Failure> {
    let Ok(place) = places.try_acquire_owned() else {
        let message = format!("{MOST} streams of events are open already; close one, or read GET /v1/events");
        return Err(Failure::new(Kind::Busy, message));
    };
    let reader = Reader { after, ready: VecDeque::new(), stop, _place: place };
    let events = unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}

impl Reader {
    /// The next event; none when the host ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let over = *self.stop.borrow();
            self.look();
            match self.ready.is_empty() {
                true if over => return None,
                true => drop(timeout(LOOK, self.stop.changed()).await),
                false => {}
            }
        }
    }

    fn look(&mut self) {
        let recent = events::after(self.after);
        if recent.lost > 0 {
            let lost = format!("{{\"lost\":{}}}", recent.lost);
            self.ready.push_back(Event::default().event("lost").data(lost));
        }
        for event in recent.events {
            self.after = event.number;
            let Ok(data) = serde_json::to_string(&event) else { continue };
            let id = Mark::behind(event.number).to_string();
            self.ready.push_back(Event::default().id(id).event("event").data(data));
        }
    }
}
