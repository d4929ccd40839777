//! Runs the embedded guests of the campaign: a pair that exchanges a request and an answer every millisecond, and a
//! pair that sends streams.

use crate::served::HostWithKeeper;
use anyhow::{Result, ensure};
use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig, PathInterruptionMeasurement};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Numbers of the embedded guests' VFs: the first two guests exchange requests, the others send streams.
pub(crate) const VFS: [u8; 4] = [0, 1, 2, 3];
const PULSE: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// Number of bytes in one stream of an embedded guest.
const STREAM: u64 = 4 << 20;

/// Control and results of the embedded guests' streams: flags to start and end them, bytes compared, and losses.
#[derive(Debug, Default)]
struct GuestStreamResults {
    flowing: AtomicBool,
    over: AtomicBool,
    bytes: AtomicU64,
    losses: Mutex<Vec<String>>,
}

/// Four embedded guests of the campaign, and the threads that send streams.
#[derive(Debug)]
pub(crate) struct EmbeddedGuests {
    guests: Vec<Arc<EmbeddedGuest>>,
    streams: Arc<GuestStreamResults>,
    senders: Vec<JoinHandle<()>>,
}

impl EmbeddedGuests {
    pub(crate) fn attach(served: &HostWithKeeper) -> Result<Self> {
        let guests = VFS.map(|vf| {
            let config = EmbeddedGuestConfig {
                socket: served.socket(&format!("pf0vf{vf}")),
                name: format!("pf0vf{vf}"),
                ip: address(vf),
            };
            EmbeddedGuest::start(config).map(Arc::new)
        });
        let guests = guests.into_iter().collect::<Result<Vec<_>, _>>()?;
        let streams = Arc::new(GuestStreamResults::default());
        let senders = [(2, VFS[3]), (3, VFS[2])].map(|(place, to): (usize, u8)| {
            let (guest, streams) = (Arc::clone(&guests[place]), Arc::clone(&streams));
            std::thread::spawn(move || send(&guest, address(to), &streams))
        });
        let embedded = Self { guests, streams, senders: senders.into() };
        embedded.wait_links()?;
        Ok(embedded)
    }

    pub(crate) fn count(&self) -> usize {
        self.guests.len()
    }

    /// Waits until every embedded guest has a link.
    pub(crate) fn wait_links(&self) -> Result<()> {
        for guest in &self.guests {
            ensure!(guest.wait_link(PATIENCE), "{}: the link stays down", guest.name());
        }
        Ok(())
    }

    /// Makes the second pair of embedded guests send streams, or stops them when their pending streams are complete.
    pub(crate) fn let_flow(&self, flowing: bool) {
        self.streams.flowing.store(flowing, Ordering::Release);
    }

    /// Sends a request every millisecond between the first two guests, and measures interruptions of the answers.
    pub(crate) fn pulse(&self) -> Result<PathInterruptionMeasurement> {
        Ok(self.guests[0].pulse(address(VFS[1]), PULSE)?)
    }

    /// Waits until `answers` further answers to the requests have arrived.
    pub(crate) fn wait_answers(&self, pulse: &PathInterruptionMeasurement, answers: u64) -> Result<()> {
        let (goal, deadline) = (pulse.answers() + answers, Instant::now() + 3 * PATIENCE);
        while pulse.answers() < goal {
            ensure!(Instant::now() < deadline, "no answers for {:?}", pulse.silence());
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns the number of bytes that streams have carried and that were compared.
    pub(crate) fn bytes(&self) -> u64 {
        self.streams.bytes.load(Ordering::Acquire)
    }

    /// Returns descriptions of the embedded guests that have ended, and the errors of streams since the last call.
    pub(crate) fn losses(&self) -> [Vec<String>; 2] {
        let ended = |guest: &Arc<EmbeddedGuest>| Some(format!("{}: {}", guest.name(), guest.stats().err()?));
        let ended = self.guests.iter().filter_map(ended).collect();
        [ended, std::mem::take(&mut self.streams.losses.lock().unwrap_or_else(PoisonError::into_inner))]
    }

    /// Ends the streams of the embedded guests, after every byte was compared.
    pub(crate) fn finish(&mut self) {
        self.streams.over.store(true, Ordering::Release);
        for sender in self.senders.drain(..) {
            // The panic hook has reported the thread's panic.
            let _ = sender.join();
        }
    }
}

impl Drop for EmbeddedGuests {
    fn drop(&mut self) {
        self.finish();
    }
}

fn address(vf: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + vf)
}

fn send(guest: &EmbeddedGuest, to: Ipv4Addr, streams: &GuestStreamResults) {
    while !streams.over.load(Ordering::Acquire) {
        if !streams.flowing.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            continue;
        }
        let loss = match guest.send_tcp(to, STREAM) {
            Ok(flow) => {
                streams.bytes.fetch_add(flow.received, Ordering::AcqRel);
                (!flow.is_intact()).then(|| format!("{}: {flow:?}", guest.name()))
            }
            Err(error) => {
                std::thread::sleep(LOOK);
                Some(format!("{}: a stream fails: {error}", guest.name()))
            }
        };
        streams.losses.lock().unwrap_or_else(PoisonError::into_inner).extend(loss);
    }
}
