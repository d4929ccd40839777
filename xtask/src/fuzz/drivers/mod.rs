//! `cargo xtask fuzz --drivers FOLDER`: makes inputs of the recordings of stock drivers, and keeps those that together reach
//! the most code, with the inputs of earlier recordings. The checks with Linux guests write the recordings
//! (`crates/softiov/tests/linux/recorder`).

mod cards;
mod moves;
mod recording;
mod sockets;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::keep::{self, CoverMeasure};
use super::session::{FuzzFolders, file_inputs, kept};
use recording::DriverRecording;

/// Function that makes inputs of a recording.
type MakeInputs = fn(&DriverRecording) -> Vec<Vec<u8>>;

/// Targets with inputs of drivers.
const TARGETS: [(&str, MakeInputs); 5] = [
    ("avf_guest", cards::avf_guest),
    ("i82576_guest", cards::i82576_guest),
    ("i82576_mailbox", cards::i82576_mailbox),
    ("vfio_user_server", sockets::vfio_user_server),
    ("virtchnl", cards::virtchnl),
];

/// Returns true if a target has inputs of drivers.
pub(super) fn has_inputs(target: &str) -> bool {
    TARGETS.iter().any(|(name, _)| *name == target)
}

/// Chooses the kept inputs of a target among those of the recordings in `folder` and those of earlier recordings.
///
/// # Errors
/// The folder has no recording, or a line of one is invalid.
pub(super) fn keep_inputs(folders: &FuzzFolders<'_>, target: &str, folder: &Path) -> Result<()> {
    let Some((_, make)) = TARGETS.iter().find(|(name, _)| *name == target) else { return Ok(()) };
    let mut paths = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.retain(|path| is_recording_of_vf(path));
    ensure!(!paths.is_empty(), "{} has no recording of a VF (FUNCTION-N.txt)", folder.display());
    paths.sort();
    let made = tempfile::tempdir()?;
    let mut count = 0;
    let mut offer = |input: &[u8]| {
        count += 1;
        fs::write(made.path().join(format!("{count:04}")), input)
    };
    let kept_file = folders.drivers_file(target);
    for input in file_inputs(&kept_file)? {
        offer(&input)?;
    }
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let recording = DriverRecording::parse(&text)
            .map_err(|line| anyhow::anyhow!("{}: line {line} is invalid", path.display()))?;
        for input in make(&recording) {
            offer(&input)?;
        }
    }
    // Drivers repeat themselves: with counts almost every input would be kept.
    let inputs = keep::smallest_cover(folders, target, made.path(), CoverMeasure::Edges)?;
    fs::write(&kept_file, kept::print(&inputs))
        .with_context(|| format!("cannot write {}", kept_file.display()))?;
    println!("{target}: kept {} of {count} inputs of drivers", inputs.len());
    Ok(())
}

/// Returns true for the recording of a VF. No target with inputs of drivers has the registers of a PF.
fn is_recording_of_vf(path: &Path) -> bool {
    let is_text = path.extension().is_some_and(|extension| extension == "txt");
    let function = path.file_stem().and_then(|name| name.to_str());
    is_text && function.is_some_and(|name| name.contains("vf"))
}
