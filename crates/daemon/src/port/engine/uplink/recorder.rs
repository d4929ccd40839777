//! Records the frames of an uplink to a pcapng file, on a thread of its own. The port's thread puts frames into a
//! ring and continues. If the writer is too slow or its disk is full, the recording loses frames, and the port
//! loses none.
//!
//! An existing file gets one more section, so that a restarted host continues the recording. The file's length has
//! no limit.

use super::UplinkError;
use super::backend::UplinkResources;
use crate::pcapng::{self, PacketDirection, PcapngPacket};
use crate::ring;
use rtrb::{Consumer, Producer, RingBuffer};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the ring between the port and the thread that writes the recording.
const RING: usize = 4 << 20;
/// Maximum bytes of a recorded packet, which may be one before segmentation.
const LONGEST: usize = 1 << 17;
/// Bytes of blocks that the recording thread collects before it writes them to the file.
const BATCH: usize = 1 << 18;
/// Longest sleep of the recording thread without a wake-up.
const NAP: Duration = Duration::from_millis(500);
/// Longest wait for the rest of a recording that a change ends, and the interval between two looks. The ring is written in
/// milliseconds if the disk works.
const FINISH: Duration = Duration::from_millis(500);
const FINISH_INTERVAL: Duration = Duration::from_millis(1);
/// First bytes of each pcapng file (type of the Section Header Block).
const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Bytes before each frame in the recording's ring: its time in nanoseconds since 1970, and its direction.
const HEAD: usize = 9;

/// State that a port and the thread that writes its recording share.
#[derive(Debug, Default)]
struct SharedRecorderState {
    stops: AtomicBool,
    /// Number of frames that the recording thread has failed to write.
    failed: AtomicU64,
}

/// Recording of an uplink, at the port's end: passes frames to the thread that writes the file.
#[derive(Debug)]
pub(crate) struct UplinkRecorder {
    sender: Producer<u8>,
    /// True if frames were added since the recording thread was last woken.
    put: bool,
    /// Number of frames for which the recording's ring had no room.
    full: u64,
    shared: Arc<SharedRecorderState>,
    writer: Option<JoinHandle<()>>,
}

impl UplinkRecorder {
    pub(super) fn start(path: &Path, with: &UplinkResources<'_>) -> Result<Self, UplinkError> {
        let named = |source| UplinkError::Record { path: path.to_owned(), source };
        let name = format!("{}-record", with.vault.port());
        let mut file = with.files.open(&name, path, |path| open(path).map(RollbackFile)).map_err(named)?;
        beginning().and_then(|begin| file.write_all(&begin)).map_err(named)?;
        let (sender, receiver) = RingBuffer::new(RING);
        let shared = Arc::new(SharedRecorderState::default());
        let (path, theirs) = (path.to_owned(), shared.clone());
        let writer = with.spawn_for_file(&name, move || write(file, &path, receiver, &theirs))?;
        Ok(Self { sender, put: false, full: 0, shared, writer: Some(writer) })
    }

    /// Passes a frame to the recording thread.
    pub(super) fn note(&mut self, way: PacketDirection, frame: &[u8]) {
        let put = ring::put(&mut self.sender, [&pcapng::time().to_ne_bytes(), &[way as u8], frame]);
        self.put |= put;
        self.full += u64::from(!put);
    }

    /// Wakes the recording thread if frames were added.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.put)
            && let Some(writer) = &self.writer
        {
            // Unparking makes a system call only if the writer sleeps.
            writer.thread().unpark();
        }
    }

    /// Ends the recording, and waits up to [`FINISH`] until it is written. Must not run on a port's thread.
    pub(super) fn retire(mut self) {
        let writer = self.writer.take();
        self.shared.stops.store(true, Ordering::Release);
        let Some(writer) = writer else { return };
        writer.thread().unpark();
        let deadline = Instant::now() + FINISH;
        while !writer.is_finished() && Instant::now() < deadline {
            std::thread::sleep(FINISH_INTERVAL);
        }
    }

    /// Returns the number of frames that are missing in the recording.
    pub(super) fn lost(&self) -> u64 {
        self.full + self.shared.failed.load(Ordering::Relaxed)
    }
}

impl Drop for UplinkRecorder {
    /// Orders the recording thread to write what it has and to end. Does not wait for it: the disk may be slow, or hang.
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }
}

/// Recording file that has each write whole or not at all. Half a block would spoil the blocks that a later host
/// appends.
#[derive(Debug)]
struct RollbackFile(File);

impl Write for RollbackFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = self.0.metadata()?.len();
        // If the file cannot be truncated either, the disk has failed, and the file stays as it is.
        self.0.write_all(bytes).inspect_err(|_| drop(self.0.set_len(length)))
    }
}

/// Opens a recording to append to, or creates one. It will hold guests' frames, so only its owner may read it.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("the path is not a regular file; name another file"));
    }
    let mut begin = [0; MAGIC.len()];
    match file.read(&mut begin)? {
        0 => Ok(file),
        _ if begin == MAGIC => Ok(file),
        _ => Err(io::Error::other(
            "the file exists and is not pcapng; name another file, or move this one away",
        )),
    }
}

/// Returns the blocks that begin a recording: a pcapng section with its one interface.
fn beginning() -> io::Result<Vec<u8>> {
    Ok([pcapng::section()?, pcapng::interface(None)?].concat())
}

/// Returns the pcapng block of a frame from the ring.
fn block(noted: &[u8]) -> io::Result<Vec<u8>> {
    let (head, frame) = noted.split_first_chunk::<HEAD>().ok_or(io::ErrorKind::InvalidData)?;
    let [time @ .., way] = head;
    pcapng::packet(&PcapngPacket {
        interface: 0,
        time: u64::from_ne_bytes(*time),
        way: if *way == PacketDirection::In as u8 { PacketDirection::In } else { PacketDirection::Out },
        length: frame.len() as u32,
        data: frame,
        comment: None,
        missing: 0,
    })
}

/// Runs the thread that writes the recording. Counts frames that cannot be written, and logs the first failure.
fn write(mut file: impl Write, path: &Path, mut receiver: Consumer<u8>, shared: &SharedRecorderState) {
    let (mut place, mut batch, mut failed) = (vec![0; LONGEST], Vec::with_capacity(BATCH + LONGEST), false);
    loop {
        let stops = shared.stops.load(Ordering::Acquire);
        let mut frames = 0;
        batch.clear();
        while batch.len() < BATCH
            && let Some(length) = ring::take(&mut receiver, &mut place)
        {
            frames += 1;
            if let Ok(block) = block(&place[..length]) {
                batch.extend(block);
            }
        }
        // After a failure nothing more is written. A recording with gaps would be misleading.
        let written = if failed { Err(io::ErrorKind::Other.into()) } else { file.write_all(&batch) };
        if let Err(error) = written
            && frames > 0
        {
            shared.failed.fetch_add(frames, Ordering::Relaxed);
            if !std::mem::replace(&mut failed, true) {
                tracing::error!(
                    path = %path.display(),
                    %error,
                    "cannot write to the recording of the uplink; the recording ends"
                );
            }
        }
        match (frames, stops) {
            (0, true) => return,
            (0, false) => std::thread::park_timeout(NAP),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
