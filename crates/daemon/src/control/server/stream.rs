//! Stream of events as they happen, as server-sent events. The server buffers nothing for a client: the stream reads
//! the host's list of events ([`crate::events`]) as fast as the client reads the stream. A client that falls behind
//! receives the number of missed events, and one that stops reading is disconnected. When the host ends or hands over,
//! streams end after the last event.

use crate::control::problem::ProblemKind;
use crate::control::protocol::ControlRequestFailure;
use crate::events::{self, EventPosition};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// Interval at which the stream reads the list of events.
const LOOK: Duration = Duration::from_millis(250);
/// Interval of the comments that keep a silent stream alive.
const ALIVE: Duration = Duration::from_secs(10);
/// Maximum number of open event streams at a time.
pub(super) const MOST: usize = 16;

/// Reader of the list of events for one client of the event stream.
#[derive(Debug)]
struct EventStreamReader {
    after: u64,
    /// Events that were read from the host's list of events and not yet sent to the client.
    ready: VecDeque<Event>,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Opens a stream of the events after the one with this number, until the host ends.
pub(super) fn open(
    after: u64,
    stop: watch::Receiver<bool>,
    places: Arc<Semaphore>,
) -> Result<Response, ControlRequestFailure> {
    let Ok(place) = places.try_acquire_owned() else {
        let message = format!(
            "{MOST} streams of events are open, the most at a time; close one, or read GET /v1/events"
        );
        return Err(ControlRequestFailure::new(ProblemKind::Busy, message));
    };
    let reader = EventStreamReader { after, ready: VecDeque::new(), stop, _place: place };
    let events = unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}

impl EventStreamReader {
    /// Waits for the next event of the stream. Returns `None` when the host ends.
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

    /// Reads new events from the host's list of events.
    fn look(&mut self) {
        let recent = events::after(self.after);
        if recent.lost > 0 {
            let lost = format!("{{\"lost\":{}}}", recent.lost);
            self.ready.push_back(Event::default().event("lost").data(lost));
        }
        for event in recent.events {
            self.after = event.number;
            let Ok(data) = serde_json::to_string(&event) else { continue };
            let id = EventPosition::behind(event.number).to_string();
            self.ready.push_back(Event::default().id(id).event("event").data(data));
        }
    }
}
