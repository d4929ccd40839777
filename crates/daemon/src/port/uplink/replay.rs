//! A recording, pcap or pcapng, that is played to the port as it was recorded: a thread of its own reads the file and hands
//! frames over when their time has come, counted from the first. What the port sends is dropped. After the last frame the
//! link stays.
//!
//! A file is somebody else's: what is broken in it ends the replay and is said. Left out: playing it twice.

use super::record::Record;
use super::{Kind, Maker, UplinkError};
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::ring;
use host::poll::Waker;
use i82576::ids::MAX_FRAME;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use rtrb::{Consumer, Producer, RingBuffer};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that wait for the port.
const RING: usize = 1 << 20;
/// Bytes of the file that are looked at; no block may be longer.
const WINDOW: usize = 1 << 20;
/// How long the reader waits for a port that takes nothing, before it looks again.
const NAP: Duration = Duration::from_millis(1);
/// The most interfaces that a file may tell of.
const INTERFACES: usize = 1024;

/// What both threads know.
#[derive(Debug, Default)]
struct Shared {
    stops: AtomicBool,
    /// What was no frame for the port.
    malformed: AtomicU64,
}

/// The port's end.
#[derive(Debug)]
pub(super) struct Replay {
    path: PathBuf,
    receiver: Consumer<u8>,
    record: Record,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

type Pcap = Box<dyn PcapReaderIterator + Send>;

impl Replay {
    pub(super) fn open(path: &Path, with: &Maker<'_>) -> Result<Self, UplinkError> {
        let named = |source| UplinkError::Replay { path: path.to_owned(), source };
        let file = regular(path).map_err(named)?;
        let pcap = create_reader(WINDOW, file).map_err(|error| named(problem(&error)))?;
        let (sender, receiver) = RingBuffer::new(RING);
        let shared = Arc::new(Shared::default());
        let player = Player {
            sender,
            shared: shared.clone(),
            port: with.port.clone(),
            path: path.to_owned(),
            begin: None,
        };
        let name = format!("{}-replay", with.vault.port());
        let reader = with.watcher.spawn(&name, move || player.run(pcap))?;
        let record = Record::new("replay", UplinkState::Up);
        Ok(Self { path: path.to_owned(), receiver, record, shared, reader: Some(reader) })
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            reader.thread().unpark();
            if reader.join().is_err() {
                tracing::error!("the reader of a replay had panicked");
            }
        }
    }
}

impl Kind for Replay {
    fn link(&self) -> bool {
        true
    }

    fn status(&self) -> Option<UplinkStatus> {
        let mut status = self.record.status(self.path.display().to_string());
        status.drops.malformed += self.shared.malformed.load(Ordering::Relaxed);
        Some(status)
    }

    fn transmit(&mut self, _frame: &[u8]) -> bool {
        self.record.drops.no_room += 1;
        false
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        ring::take(&mut self.receiver, into)
    }

    fn may_sleep(&mut self) -> bool {
        self.receiver.is_empty()
    }
}

/// Opens a regular file. To open a pipe would wait until somebody writes to it.
fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
}

/// Why a file cannot be played.
fn problem<T>(error: &PcapError<T>) -> io::Error {
    io::Error::other(match error {
        PcapError::HeaderNotRecognized | PcapError::Eof => "it is neither a pcap nor a pcapng file",
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => "it ends in the middle of a block",
        PcapError::BufferTooSmall => "it has a block of more than a megabyte",
        PcapError::ReadError => "it cannot be read",
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "a block in it is broken",
    })
}

/// An interface of the file.
#[derive(Debug, Clone, Copy)]
struct Interface {
    ethernet: bool,
    /// Units of its times in a second.
    units: u64,
}

impl Interface {
    fn time(self, high: u32, low: u32) -> Duration {
        let nanos = u128::from(u64::from(high) << 32 | u64::from(low)) * 1_000_000_000
            / u128::from(self.units.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Units of time in a second, as `if_tsresol` has them: a negative power of ten, or with bit 7 set, of two.
fn units(resolution: u8) -> Option<u64> {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) }
}

/// The thread.
struct Player {
    sender: Producer<u8>,
    shared: Arc<Shared>,
    port: Waker,
    path: PathBuf,
    /// When the first frame was played, and its time in the file.
    begin: Option<(Instant, Duration)>,
}

impl Player {
    fn run(mut self, mut pcap: Pcap) {
        let mut interfaces = Vec::new();
        let path = self.path.display().to_string();
        while !self.stops() {
            let exhausted = pcap.reader_exhausted();
            let read = match pcap.next() {
                Ok((length, block)) => {
                    self.play(&block, &mut interfaces);
                    Ok(Some(length))
                }
                Err(PcapError::Eof) => {
                    tracing::info!(path, "the replay has come to its end");
                    return;
                }
                Err(PcapError::Incomplete(_)) if !exhausted => Ok(None),
                Err(error) => Err(problem(&error)),
            };
            let gone_on = match read {
                Ok(Some(length)) => {
                    pcap.consume(length);
                    Ok(())
                }
                Ok(None) => pcap.refill().map_err(|error| problem(&error)),
                Err(error) => Err(error),
            };
            if let Err(why) = gone_on {
                return self.give_up(&why);
            }
        }
    }

    fn give_up(&self, why: &io::Error) {
        self.shared.malformed.fetch_add(1, Ordering::Relaxed);
        tracing::error!(path = %self.path.display(), %why, "the replay ends; the port goes on without");
    }

    fn stops(&self) -> bool {
        self.shared.stops.load(Ordering::Acquire)
    }

    /// Takes a block, whatever it is.
    fn play(&mut self, block: &PcapBlockOwned<'_>, interfaces: &mut Vec<Interface>) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                *interfaces = vec![Interface { ethernet: header.network == Linktype::ETHERNET, units }];
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some(interface) = interfaces.first().copied() else { return };
                let part = Interface { units: interface.units, ..interface }.time(0, packet.ts_usec);
                let time = Duration::from_secs(packet.ts_sec.into()).saturating_add(part);
                self.frame(interface, time, packet.data, packet.origlen);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(found)) if interfaces.len() < INTERFACES => {
                // One whose times cannot be told keeps its place: packets name interfaces by their order.
                let units = units(found.if_tsresol);
                let ethernet = found.linktype == Linktype::ETHERNET && units.is_some();
                interfaces.push(Interface { ethernet, units: units.unwrap_or(1) });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = interfaces.get(packet.if_id as usize).copied() else {
                    self.shared.malformed.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                let time = interface.time(packet.ts_high, packet.ts_low);
                self.frame(interface, time, packet.packet_data(), packet.origlen);
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    /// Hands a frame over when its time has come and the port has room for it.
    fn frame(&mut self, interface: Interface, time: Duration, frame: &[u8], length: u32) {
        if !interface.ethernet || frame.len() != length as usize || !(14..=MAX_FRAME).contains(&frame.len()) {
            self.shared.malformed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (begin, first) = *self.begin.get_or_insert((Instant::now(), time));
        let due = begin.checked_add(time.saturating_sub(first)).unwrap_or(begin);
        while !self.stops() {
            let early = due.saturating_duration_since(Instant::now());
            if !early.is_zero() {
                std::thread::park_timeout(early);
            } else if ring::put(&mut self.sender, [frame]) {
                return self.port.wake();
            } else {
                std::thread::park_timeout(NAP);
            }
        }
    }
}

#[cfg(test)]
mod tests;
