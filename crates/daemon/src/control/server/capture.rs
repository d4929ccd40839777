//! Capture of a port's frames as pcapng, for as long as the client reads. The port copies frames into a ring and never
//! waits; filters run here. `crate::capture` has the ring, and `capture_filter` the filter language.

use super::requests::ControlRequestSender;
use crate::capture::{self, CaptureReader, CaptureSelection, CaptureWriter, LONGEST, UPLINK};
use crate::control::problem::ProblemKind;
use crate::control::protocol::{ControlAnswer, ControlRequest, ControlRequestFailure};
use crate::control::status::PortStatus;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use capture_filter::{Filter, NameDatabases};
use futures_util::stream::unfold;
use plane::PortSet;
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// Interval at which a response reads new frames from its capture's ring.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time in which a capture's response sends nothing. Then the server sends a statistics block, because only a
/// write shows that the client has gone.
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum bytes that one piece of the response takes from the capture's ring.
const PIECE: usize = 1 << 18;
/// File with names of TCP and UDP ports for filters.
const SERVICES: &str = "/etc/services";
/// File with names of IP protocols for filters.
const PROTOCOLS: &str = "/etc/protocols";
/// Maximum captured bytes of a frame, unless the client sets another number.
const SNAPLEN: usize = LONGEST;
/// Minimum number of captured bytes of a frame: the Ethernet header.
const SHORTEST: usize = 14;

/// Function that passes the port's end of a new capture to the named port.
pub(crate) type CaptureStarter =
    Arc<dyn Fn(&str, CaptureWriter) -> Result<(), ControlRequestFailure> + Send + Sync>;

/// Service that starts packet captures, and limits the number of simultaneous ones.
#[derive(Clone)]
pub(super) struct CaptureService {
    starter: CaptureStarter,
    names: Arc<NameDatabases>,
    /// Permits that limit the number of simultaneous captures of the host.
    permits: Arc<Semaphore>,
}

impl fmt::Debug for CaptureService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureService").field("permits", &self.permits).finish_non_exhaustive()
    }
}

/// Query parameters of a packet capture.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureParameters {
    /// Names of functions to capture at, and `uplink`, separated by commas; all if empty.
    #[serde(default)]
    at: String,
    /// True if only dropped frames are captured.
    #[serde(default)]
    drops: bool,
    /// Maximum captured bytes of each frame.
    snaplen: Option<usize>,
    /// Capture filter in libpcap's language.
    #[serde(default)]
    filter: String,
}

impl CaptureService {
    /// Creates the capture service, and reads the tables of port and protocol names now, because the confined server
    /// thread cannot open files later.
    pub(super) fn new(starter: CaptureStarter) -> Self {
        let table = |path| fs::read_to_string(path).unwrap_or_default();
        let names = Arc::new(NameDatabases::new(table(SERVICES), table(PROTOCOLS)));
        Self { starter, names, permits: Arc::new(Semaphore::new(capture::MOST)) }
    }

    /// Starts a capture on a port, and returns the response that streams it.
    pub(super) async fn capture(
        self,
        port: String,
        query: CaptureParameters,
        sender: &ControlRequestSender,
        stop: watch::Receiver<bool>,
    ) -> Result<Response, ControlRequestFailure> {
        let filter = compile(&query.filter, &self.names)?;
        let answer = sender.ask(ControlRequest::PortShow { port: port.clone() }).await?;
        let ControlAnswer::Port(status) = answer else {
            return Err(ControlRequestFailure::new(
                ProblemKind::Unavailable,
                "the port did not return its status; see the host's log",
            ));
        };
        let (wanted, places) = wanted(&status, &query)?;
        let Ok(permit) = self.permits.try_acquire_owned() else {
            let message = format!("{} captures are running, the most at a time; end one", capture::MOST);
            return Err(ControlRequestFailure::new(ProblemKind::Busy, message));
        };
        let (begun, mut frames) = capture::begin(wanted);
        let head = frames
            .head(&places)
            .map_err(|error| ControlRequestFailure::new(ProblemKind::Malformed, error.to_string()))?;
        (self.starter)(&port, begun)?;
        let reader = CaptureResponse { head: Some(head.into()), frames, filter, stop, _permit: permit };
        let pieces = unfold(reader, |mut reader| async move {
            let piece = reader.next().await?;
            Some((piece, reader))
        });
        let headers = [(CONTENT_TYPE, "application/x-pcapng"), (CACHE_CONTROL, "no-store")];
        Ok((headers, Body::from_stream(pieces)).into_response())
    }
}

/// Compiles a capture filter. `None` selects every frame.
fn compile(text: &str, names: &NameDatabases) -> Result<Option<Filter>, ControlRequestFailure> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let refused =
        |why| ControlRequestFailure::new(ProblemKind::Malformed, format!("filter: {text:.80}: {why}"));
    Filter::compile(text, names).map(Some).map_err(refused)
}

/// Returns the frames that a capture's query selects, and the number and name of each interface in the capture.
fn wanted(
    status: &PortStatus,
    query: &CaptureParameters,
) -> Result<(CaptureSelection, Vec<(u8, String)>), ControlRequestFailure> {
    let mut all: Vec<_> = status.vfs.iter().map(|vf| (vf.index, vf.name.clone())).collect();
    if status.pf.is_some() {
        // All ports of the plane belong to the guest that drives the PF.
        all.extend((0..64).map(|port| (port, status.name.clone())));
    }
    all.push((UPLINK, "uplink".to_owned()));
    let names: Vec<&str> = query.at.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|(_, known)| known != *name)) {
        let mut known: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
        known.dedup();
        let message =
            format!("at: port {} has no function {unknown:?}; it has {}", status.name, known.join(", "));
        return Err(ControlRequestFailure::new(ProblemKind::Malformed, message));
    }
    let places: Vec<_> =
        all.into_iter().filter(|(_, name)| names.is_empty() || names.contains(&name.as_str())).collect();
    let bit = |place: u8| if place == UPLINK { 0 } else { 1 << place };
    let wanted = CaptureSelection {
        ports: PortSet::new(places.iter().fold(0, |set, (place, _)| set | bit(*place))),
        uplink: places.iter().any(|(place, _)| *place == UPLINK),
        drops: query.drops,
        snaplen: query.snaplen.unwrap_or(SNAPLEN).clamp(SHORTEST, LONGEST),
        is_filtered: !query.filter.trim().is_empty(),
    };
    Ok((wanted, places))
}

/// Response to a capture request: reads the capture, and produces the pieces of the pcapng file.
struct CaptureResponse {
    head: Option<Bytes>,
    frames: CaptureReader,
    filter: Option<Filter>,
    stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl CaptureResponse {
    /// Returns the next piece of the pcapng file, or `None` when the port or the host ends.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(head) = self.head.take() {
            return Some(Ok(head));
        }
        let silent = Instant::now() + SILENCE;
        while Instant::now() < silent {
            let filter = self.filter.as_ref();
            let selects = |frame: &[u8], length| filter.is_none_or(|filter| filter.selects(frame, length));
            let ends = self.frames.have_ended() || *self.stop.borrow();
            match self.frames.take(PIECE, selects) {
                Ok(Some(blocks)) if !blocks.is_empty() => return Some(Ok(blocks.into())),
                Ok(_) if ends => return None,
                // The filter selected none of these frames. More are pending, and the ring would fill during a sleep.
                Ok(Some(_)) => yield_now().await,
                Ok(None) => drop(timeout(LOOK, self.stop.changed()).await),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(self.frames.sign_of_life().map(Bytes::from))
    }
}
