//! Files with the flight recordings of quarantined VFs: `flight/VF-TIME.json` in the state folder. A separate thread
//! writes the files, so that no port waits. The thread keeps [`MOST`] files, and deletes the oldest.

use super::recording::{FlightRecording, PendingFlightRecording};
use host::confine::{PreparedSandbox, SandboxError};
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
    /// Starts the thread that writes flight recordings. The thread ends when the last sender is dropped.
    pub(crate) fn start(state_dir: Option<&Path>, confined: &PreparedSandbox) -> Result<Self, SandboxError> {
        let Some(folder) = state_dir.map(|folder| folder.join("flight")) else { return Ok(Self(None)) };
        let (sender, receiver) = sync_channel(WAITING);
        confined.spawn("flight", move || write_all(&folder, &receiver))?;
        Ok(Self(Some(sender)))
    }

    /// Sends a flight recording to the writing thread without waiting. Returns false if too many are pending.
    pub(crate) fn write(&self, taken: PendingFlightRecording) -> bool {
        let Some(sender) = &self.0 else { return true };
        !matches!(sender.try_send(taken), Err(TrySendError::Full(_)))
    }
}

/// Writes the received flight recordings to files until the last sender is dropped.
fn write_all(folder: &Path, receiver: &Receiver<PendingFlightRecording>) {
    while let Ok(taken) = receiver.recv() {
        let recording = taken.named();
        let function = &recording.vf;
        match write(folder, &recording) {
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

/// Removes the oldest flight recordings from the folder, to make room for one more.
fn make_room(folder: &Path) -> io::Result<()> {
    let time = |path: &Path| path.file_stem()?.to_str()?.rsplit_once('-')?.1.parse::<u64>().ok();
    let entries = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<(u64, PathBuf)> = entries.filter_map(|path| Some((time(&path)?, path))).collect();
    files.sort();
    let surplus = (files.len() + 1).saturating_sub(MOST);
    files.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
}

#[cfg(test)]
mod tests {
    use super::{MOST, write};
    use crate::flight::recording::FlightRecording;
    use std::fs;

    fn recording(time_ns: u64) -> FlightRecording {
        FlightRecording { vf: "../pf0vf0".into(), time_ns, because: None, lost: 0, entries: Vec::new() }
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
    fn flight_recording_to_an_unusable_folder_returns_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flight");
        fs::write(&file, "in its place").unwrap();
        assert!(write(&file, &recording(1)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "in its place");
    }
}
