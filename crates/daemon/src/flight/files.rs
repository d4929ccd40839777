//! Files with the flight recordings of quarantined VFs: `flight/VF-TIME.json` in the state folder. A separate thread
//! writes the files, so that no port waits. The thread keeps [`MOST`] files, and deletes the oldest of the VF with the most.

use super::recording::{FlightRecording, PendingFlightRecording};
use crate::file_calls::{FileCallMarker, FileCalls};
use host::confine::{PreparedSandbox, SandboxError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Maximum number of flight recordings in the folder; older ones are deleted.
const MOST: usize = 32;
/// Maximum number of flight recordings that wait to be written. The folder keeps no more, so further recordings would
/// only delete others.
const WAITING: usize = MOST;

/// Sender of flight recordings to the thread that writes them; `None` without a state folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlightRecordingSender(Option<SyncSender<PendingFlightRecording>>);

impl FlightRecordingSender {
    /// Starts the thread that writes flight recordings, and marks its file calls in `files`. The thread ends when the last sender
    /// is dropped.
    pub(crate) fn start(
        state_dir: Option<&Path>,
        files: &FileCalls,
        confined: &PreparedSandbox,
    ) -> Result<Self, SandboxError> {
        let Some(folder) = state_dir.map(|folder| folder.join("flight")) else { return Ok(Self(None)) };
        let (sender, receiver) = sync_channel(WAITING);
        let calls = files.marker("flight", &folder);
        confined.spawn("flight", move || write_all(&folder, &calls, &receiver))?;
        Ok(Self(Some(sender)))
    }

    /// Sends a flight recording to the writing thread without waiting. Returns false if too many are pending.
    pub(crate) fn write(&self, taken: PendingFlightRecording) -> bool {
        let Some(sender) = &self.0 else { return true };
        !matches!(sender.try_send(taken), Err(TrySendError::Full(_)))
    }
}

/// Writes the received flight recordings to files until the last sender is dropped.
fn write_all(folder: &Path, calls: &FileCallMarker, receiver: &Receiver<PendingFlightRecording>) {
    while let Ok(taken) = receiver.recv() {
        let recording = taken.named();
        let function = &recording.vf;
        match calls.during(|| write(folder, &recording)) {
            Ok(path) => {
                let file = path.display();
                tracing::warn!(
                    function,
                    %file,
                    "wrote a flight recording of the VF; print the file with `softiov vf flight --read`"
                );
            }
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(
                    function,
                    %error,
                    "cannot write the VF's flight recording to {folder}; print the recording with `softiov \
                     vf flight`"
                );
            }
        }
    }
}

/// Writes the file of a flight recording, whole or not at all.
fn write(folder: &Path, recording: &FlightRecording) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    make_room(folder)?;
    // The configuration may put any character into a VF's name.
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = recording.vf.chars().map(safe).collect();
    // All times have the same number of digits, so that names sort by time.
    let path = folder.join(format!("{name}-{:020}.json", recording.time_ns));
    let mut file = tempfile::Builder::new().prefix(".flight-").tempfile_in(folder)?;
    let mut text = serde_json::to_vec(recording)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.persist(&path)?;
    Ok(path)
}

/// Removes flight recordings from the folder, to make room for one more: each time the oldest one of the VF with the most.
fn make_room(folder: &Path) -> io::Result<()> {
    let mut files: BTreeMap<String, VecDeque<(u64, PathBuf)>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some((vf, time)) = named(&path) {
            files.entry(vf).or_default().push_back((time, path));
        }
    }
    let of_vf = |files: &mut VecDeque<(u64, PathBuf)>| {
        files.make_contiguous().sort();
        files.len()
    };
    let count: usize = files.values_mut().map(of_vf).sum();
    for _ in MOST..=count {
        // Of VFs with equally many, the one with the oldest file.
        let oldest = |files: &VecDeque<(u64, PathBuf)>| Reverse(files.front().map(|(time, _)| *time));
        let most = files.values_mut().max_by_key(|files| (files.len(), oldest(files)));
        if let Some((_, path)) = most.and_then(VecDeque::pop_front) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the name of the VF and the time of a flight recording's file, or `None` for another file.
fn named(path: &Path) -> Option<(String, u64)> {
    let (vf, time) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some((vf.to_owned(), time.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{FlightRecordingSender, MOST, write};
    use crate::config::HostConfig;
    use crate::confine::ThreadSandboxes;
    use crate::file_calls::FileCalls;
    use crate::flight::recording::FlightRecording;
    use std::fs;

    fn recording(time_ns: u64) -> FlightRecording {
        FlightRecording { vf: "../pf0vf0".into(), time_ns, because: None, lost: 0, entries: Vec::new() }
    }

    #[test]
    fn file_calls_of_the_flight_recordings_are_marked() {
        let (folder, files) = (tempfile::tempdir().unwrap(), FileCalls::default());
        let config = HostConfig::check(HostConfig::parse("").unwrap(), folder.path()).unwrap();
        let threads = ThreadSandboxes::prepare(&config).unwrap();
        let sender = FlightRecordingSender::start(Some(folder.path()), &files, &threads.control).unwrap();
        assert!(files.has(&folder.path().join("flight")));
        drop(sender);
    }

    #[test]
    fn oldest_flight_recordings_are_removed_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        for time in 1..=MOST as u64 + 5 {
            let path = write(folder.path(), &recording(time)).unwrap();
            assert_eq!(path.parent(), Some(folder.path()), "a name cannot leave the folder");
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), MOST);
        assert_eq!(names[0].to_str(), Some("___pf0vf0-00000000000000000006.json"));
    }

    #[test]
    fn flight_file_is_written_while_another_program_removes_some() {
        let folder = tempfile::tempdir().unwrap();
        for time in 1..=MOST as u64 {
            write(folder.path(), &recording(time)).unwrap();
        }
        // Each thread finds the same oldest files.
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let folder = folder.path();
                scope.spawn(move || {
                    for time in 0..100 {
                        write(folder, &recording(1000 * thread + time)).unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn flight_files_of_one_vf_leave_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let of = |vf: &str, time_ns| FlightRecording { vf: vf.into(), ..recording(time_ns) };
        for time in 1..=3 {
            write(folder.path(), &of("pf0vf1", time)).unwrap();
        }
        for time in 10..10 + 2 * MOST as u64 {
            write(folder.path(), &of("pf0vf2", time)).unwrap();
        }
        let count = |vf: &str| {
            let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_str().unwrap().starts_with(vf)).count()
        };
        assert_eq!((count("pf0vf1"), count("pf0vf2")), (3, MOST - 3));
    }

    #[test]
    fn flight_recording_to_an_unusable_folder_returns_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flight");
        fs::write(&file, "in its place").unwrap();
        assert!(write(&file, &recording(1)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "in its place");
    }
}
