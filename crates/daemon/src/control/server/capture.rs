//! A capture of a port's frames as pcapng, for as long as the client reads. The port copies frames into a ring and waits for
//! nobody; filters work here. Left out: the ring, and what is in it (`crate::capture`).

use super::requests::RequestSender;
use crate::capture::{self, Capture, Frames, LONGEST, UPLINK, Wanted};
use crate::control::problem::Kind;
use crate::control::protocol::{Answer, Failure, Request};
use crate::control::status::PortStatus;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use pktbaffle::bpf::Insn;
use pktbaffle::{LinkType, Target, vm};
use plane::Ports;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// How often the ring is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long the response may stay silent. Then the server sends a statistics block, because only a write shows that the client
/// has gone.
const SILENCE: Duration = Duration::from_secs(3);
/// Bytes of the ring that make one piece of the response.
const PIECE: usize = 1 << 18;
/// The longest filter. Its cost for a frame grows with it.
const LONGEST_FILTER: usize = 256;
/// Bytes of a frame that are captured if nothing is said.
const SNAPLEN: usize = LONGEST;
/// The fewest bytes of a frame that make sense: its addresses and type.
const SHORTEST: usize = 14;

/// Hands a capture to a port.
pub(crate) type Starter = Arc<dyn Fn(&str, Capture) -> Result<(), Failure> + Send + Sync>;

/// Begins captures, and bounds how many run.
#[derive(Clone)]
pub(super) struct CaptureService {
    starter: Starter,
    /// One for each capture of the host.
    permits: Arc<Semaphore>,
}

impl fmt::Debug for CaptureService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureService").field("permits", &self.permits).finish_non_exhaustive()
    }
}

/// What is to be captured, as the query says it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    /// Names of functions, and `uplink`, with commas between them; all if there are none.
    #[serde(default)]
    at: String,
    /// Only frames that are dropped.
    #[serde(default)]
    drops: bool,
    /// Bytes of a frame.
    snaplen: Option<usize>,
    /// A filter, as tcpdump has them.
    #[serde(default)]
    filter: String,
}

impl CaptureService {
    pub(super) fn new(starter: Starter) -> Self {
        Self { starter, permits: Arc::new(Semaphore::new(capture::MOST)) }
    }

    /// Captures on a port from now on.
    pub(super) async fn capture(
        self,
        port: String,
        query: Query,
        sender: &RequestSender,
        stop: watch::Receiver<bool>,
    ) -> Result<Response, Failure> {
        let filter = compile(&query.filter)?;
        let answer = sender.ask(Request::PortShow { port: port.clone() }).await?;
        let Answer::Port(status) = answer else {
            return Err(Failure::new(Kind::Unavailable, "the port tells nothing"));
        };
        let (wanted, places) = wanted(&status, &query)?;
        let Ok(permit) = self.permits.try_acquire_owned() else {
            let message = format!("{} captures are running already; end one", capture::MOST);
            return Err(Failure::new(Kind::Busy, message));
        };
        let (begun, mut frames) = capture::begin(wanted);
        let head = frames.head(&places).map_err(|error| Failure::new(Kind::Malformed, error.to_string()))?;
        (self.starter)(&port, begun)?;
        let reader = Reader { head: Some(head.into()), frames, filter, stop, _permit: permit };
        let pieces = unfold(reader, |mut reader| async move {
            let piece = reader.next().await?;
            Some((piece, reader))
        });
        let headers = [(CONTENT_TYPE, "application/x-pcapng"), (CACHE_CONTROL, "no-store")];
        Ok((headers, Body::from_stream(pieces)).into_response())
    }
}

/// A filter in the form in which it runs; none if there is nothing to filter.
fn compile(filter: &str) -> Result<Option<Vec<Insn>>, Failure> {
    if filter.trim().is_empty() {
        return Ok(None);
    }
    let malformed = |why: &str| Failure::new(Kind::Malformed, format!("filter: {filter:.80}: {why}"));
    if filter.len() > LONGEST_FILTER {
        return Err(malformed(&format!("it has more than {LONGEST_FILTER} bytes")));
    }
    let program = pktbaffle::compile(filter, LinkType::Ethernet, Target::Classic);
    let program = program.map_err(|error| malformed(&error.to_string()))?;
    Ok(Some(program.instructions().to_vec()))
}

/// Which frames a query asks for, and the places that it names, by number and name.
fn wanted(status: &PortStatus, query: &Query) -> Result<(Wanted, Vec<(u8, String)>), Failure> {
    let mut all: Vec<_> = status.vfs.iter().map(|vf| (vf.index, vf.name.clone())).collect();
    if status.pf.is_some() {
        // Every port of the plane is its guest's.
        all.extend((0..64).map(|port| (port, status.name.clone())));
    }
    all.push((UPLINK, "uplink".to_owned()));
    let names: Vec<&str> = query.at.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|(_, known)| known != *name)) {
        let mut known: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
        known.dedup();
        let message = format!("at: {} has no {unknown:?}; it has {}", status.name, known.join(", "));
        return Err(Failure::new(Kind::Malformed, message));
    }
    let places: Vec<_> =
        all.into_iter().filter(|(_, name)| names.is_empty() || names.contains(&name.as_str())).collect();
    let bit = |place: u8| if place == UPLINK { 0 } else { 1 << place };
    let wanted = Wanted {
        ports: Ports::new(places.iter().fold(0, |set, (place, _)| set | bit(*place))),
        uplink: places.iter().any(|(place, _)| *place == UPLINK),
        drops: query.drops,
        snaplen: query.snaplen.unwrap_or(SNAPLEN).clamp(SHORTEST, LONGEST),
    };
    Ok((wanted, places))
}

/// The frames of one capture, as pieces of a response.
struct Reader {
    head: Option<Bytes>,
    frames: Frames,
    filter: Option<Vec<Insn>>,
    stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next piece; none when the port or the host ends.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(head) = self.head.take() {
            return Some(Ok(head));
        }
        let silent = Instant::now() + SILENCE;
        while Instant::now() < silent {
            let filter = self.filter.as_deref();
            let passes = |frame: &[u8]| filter.is_none_or(|filter| vm::run(filter, frame));
            let ends = self.frames.have_ended() || *self.stop.borrow();
            match self.frames.take(PIECE, passes) {
                Ok(Some(blocks)) if !blocks.is_empty() => return Some(Ok(blocks.into())),
                Ok(_) if ends => return None,
                // The filter passes none of these frames, but more wait: the ring fills up while this sleeps.
                Ok(Some(_)) => yield_now().await,
                Ok(None) => drop(timeout(LOOK, self.stop.changed()).await),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(self.frames.sign_of_life().map(Bytes::from))
    }
}
