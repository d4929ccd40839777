//! Replays a recording, pcap or pcapng, to the port. A thread of its own reads the file, and passes on each frame
//! at its recorded time after the first. Frames that the port sends are dropped. After the last frame the link
//! stays up. A recording is played once.
//!
//! The file is not trusted. A broken block ends the replay and is logged.

mod recording;

use super::UplinkError;
use super::backend::{UplinkBackend, UplinkResources};
use super::state::UplinkStateCounters;
use crate::control::uplink::{UplinkState, UplinkStatus};
use crate::ring;
use host::poll::ThreadWaker;
use i82576::Time;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};
use recording::{RecordingBlockContent, RecordingDecoder};
use rtrb::{Consumer, Producer, RingBuffer};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the ring between the replay thread and the port.
const RING: usize = 1 << 20;
/// Bytes of the recording that the replay holds in memory. No block of the file may be longer.
const WINDOW: usize = 1 << 20;
/// Length of the shortest pcapng block in bytes: its type, and its length twice.
const SHORTEST_BLOCK: u32 = 12;
/// Pause of the replay thread before it tries again to hand a frame to a busy port.
const NAP: Duration = Duration::from_millis(1);

/// State that a port and the thread that replays a recording share.
#[derive(Debug, Default)]
struct SharedReplayState {
    stops: AtomicBool,
    /// Number of recorded packets that are not whole Ethernet frames.
    malformed: AtomicU64,
}

/// Uplink that replays a recording, at the port's end: receives the frames from the replay thread.
#[derive(Debug)]
pub(super) struct ReplayUplink {
    path: PathBuf,
    receiver: Consumer<u8>,
    record: UplinkStateCounters,
    shared: Arc<SharedReplayState>,
    reader: JoinHandle<()>,
}

/// Reader of a recording's blocks.
struct RecordingReader {
    pcap: Box<dyn PcapReaderIterator + Send>,
    /// True once a block of pcapng was read.
    is_pcapng: bool,
}

impl ReplayUplink {
    pub(super) fn open(path: &Path, with: &UplinkResources<'_>) -> Result<Self, UplinkError> {
        let named = |source| UplinkError::Replay { path: path.to_owned(), source };
        let name = format!("{}-replay", with.vault.port());
        let file = with.files.open(&name, path, regular).map_err(named)?;
        let pcap = RecordingReader::new(file).map_err(|error| named(problem(&error)))?;
        let (sender, receiver) = RingBuffer::new(RING);
        let shared = Arc::new(SharedReplayState::default());
        let player = RecordingPlayer {
            sender,
            shared: shared.clone(),
            port: with.port.clone(),
            path: path.to_owned(),
            begin: None,
            is_foreign: false,
        };
        let reader = with.spawn_for_file(&name, move || player.run(pcap))?;
        let record = UplinkStateCounters::new("replay", UplinkState::Up, with.now);
        Ok(Self { path: path.to_owned(), receiver, record, shared, reader })
    }
}

impl Drop for ReplayUplink {
    /// Orders the reading thread to end. Does not wait for it: the disk may be slow, or hang.
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        self.reader.thread().unpark();
    }
}

impl UplinkBackend for ReplayUplink {
    fn link(&self) -> bool {
        true
    }

    fn status(&self, now: Time) -> Option<UplinkStatus> {
        let mut status = self.record.status(self.path.display().to_string(), now);
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

/// Opens a recording to replay, which must be a regular file. Opening a pipe would block until there is a writer.
fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("the path is not a regular file"));
    }
    File::open(path)
}

/// Converts an error of the recording's reader to an error with the reason in words.
fn problem<T>(error: &PcapError<T>) -> io::Error {
    io::Error::other(match error {
        PcapError::HeaderNotRecognized | PcapError::Eof => "the file is neither pcap nor pcapng",
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => "the file ends in the middle of a block",
        PcapError::BufferTooSmall => "a block of the file is longer than a megabyte",
        PcapError::ReadError => "the file cannot be read",
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "a block of the file is invalid",
    })
}

impl RecordingReader {
    fn new(file: impl io::Read + Send + 'static) -> Result<Self, PcapError<&'static [u8]>> {
        Ok(Self { pcap: create_reader(WINDOW, file)?, is_pcapng: false })
    }

    /// Passes the next block of the recording to `play`, or reads more of the file. Returns `false` at the end of the
    /// recording.
    fn next_block(&mut self, play: impl FnOnce(&PcapBlockOwned<'_>)) -> io::Result<bool> {
        let exhausted = self.pcap.reader_exhausted();
        if self.is_pcapng && is_shorter_than_its_frame(self.pcap.data()) {
            return Err(io::Error::other("a block of the file is invalid"));
        }
        match self.pcap.next() {
            Ok((length, block)) => {
                self.is_pcapng |= matches!(block, PcapBlockOwned::NG(_));
                play(&block);
                self.pcap.consume(length);
            }
            Err(PcapError::Eof) => return Ok(false),
            Err(PcapError::Incomplete(_)) if !exhausted => {
                self.pcap.refill().map_err(|error| problem(&error))?;
            }
            Err(error) => return Err(problem(&error)),
        }
        Ok(true)
    }
}

/// Returns true if the pcapng block at the beginning of `data` has a length that does not cover its type and its two lengths,
/// in either byte order. `pcap-parser` checks that for most types of blocks, and computes with the length of the others.
fn is_shorter_than_its_frame(data: &[u8]) -> bool {
    let Some([_, _, _, _, length @ ..]) = data.first_chunk::<8>() else { return false };
    u32::from_le_bytes(*length).min(u32::from_be_bytes(*length)) < SHORTEST_BLOCK
}

/// Reads a recording (pcap or pcapng) as a replay does. Returns its frames, and the number of malformed packets; a broken
/// block ends the recording and counts as one. The fuzz target of recordings calls it.
#[must_use]
pub fn frames_of_recording(file: Vec<u8>) -> (Vec<Vec<u8>>, u64) {
    let (mut recording, mut frames, mut malformed) = (RecordingDecoder::default(), Vec::new(), 0);
    let Ok(mut pcap) = RecordingReader::new(io::Cursor::new(file)) else { return (frames, 1) };
    loop {
        let next = pcap.next_block(|block| match recording.take(block) {
            RecordingBlockContent::Frame(frame, _) => frames.push(frame.to_vec()),
            RecordingBlockContent::Malformed => malformed += 1,
            RecordingBlockContent::Nothing => {}
        });
        match next {
            Ok(true) => {}
            Ok(false) => return (frames, malformed),
            Err(_) => return (frames, malformed + 1),
        }
    }
}

/// Player of a recording, on a thread of its own.
struct RecordingPlayer {
    sender: Producer<u8>,
    shared: Arc<SharedReplayState>,
    port: ThreadWaker,
    path: PathBuf,
    /// Time when the first frame with a time was played, and the frame's recorded time in nanoseconds.
    begin: Option<(Instant, i128)>,
    /// True once packets of another link type than Ethernet were reported.
    is_foreign: bool,
}

impl RecordingPlayer {
    fn run(mut self, mut pcap: RecordingReader) {
        let mut recording = RecordingDecoder::default();
        let path = self.path.display().to_string();
        while !self.stops() {
            match pcap.next_block(|block| self.play(block, &mut recording)) {
                Ok(true) => {}
                Ok(false) => {
                    tracing::info!(path, "replayed the whole recording");
                    return;
                }
                Err(why) => return self.give_up(&why),
            }
        }
    }

    fn give_up(&self, why: &io::Error) {
        self.shared.malformed.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            path = %self.path.display(),
            %why,
            "the replay of a recording ends with an error; the port continues without frames of the recording"
        );
    }

    fn stops(&self) -> bool {
        self.shared.stops.load(Ordering::Acquire)
    }

    /// Replays the frame of a pcapng block, if it has one.
    fn play(&mut self, block: &PcapBlockOwned<'_>, recording: &mut RecordingDecoder) {
        match recording.take(block) {
            RecordingBlockContent::Frame(frame, time) => self.frame(frame, time),
            RecordingBlockContent::Malformed => drop(self.shared.malformed.fetch_add(1, Ordering::Relaxed)),
            RecordingBlockContent::Nothing => {}
        }
        if let Some(link_type) = recording.foreign_link_type().filter(|_| !self.is_foreign) {
            self.is_foreign = true;
            let path = self.path.display();
            tracing::warn!(%path, link_type, "the replay skips packets whose link type is not 1 (Ethernet)");
        }
    }

    /// Passes a frame to the port when the frame's time has come and the port has room. A frame without a time is
    /// passed immediately.
    fn frame(&mut self, frame: &[u8], time: Option<i128>) {
        let mut now = Instant::now();
        let due = time.and_then(|time| {
            let (begin, first) = *self.begin.get_or_insert((now, time));
            let since = u64::try_from((time - first).max(0)).unwrap_or(u64::MAX);
            begin.checked_add(Duration::from_nanos(since))
        });
        let due = due.unwrap_or(now);
        while !self.stops() {
            let early = due.saturating_duration_since(now);
            if !early.is_zero() {
                std::thread::park_timeout(early);
            } else if ring::put(&mut self.sender, [frame]) {
                return self.port.wake();
            } else {
                std::thread::park_timeout(NAP);
            }
            now = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests;
