//! `softiov vf export` and `softiov vf import`: carry a VF's policy and counters to another host, to which its guest moves.

use crate::output;
use crate::target::HostSelectionOptions;
use anyhow::{Context, anyhow, bail};
use daemon::control::client;
use daemon::control::export::VfExport;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// Prints the policy and the counters of a VF as JSON.
pub(crate) fn export(vf: &str, target: &HostSelectionOptions) -> anyhow::Result<ExitCode> {
    let request = ControlRequest::VfShow { vf: vf.to_owned() };
    match client::ask(&target.load()?.control_socket(), request)? {
        ControlAnswer::Vf(status) => {
            output::print(&(serde_json::to_string_pretty(&VfExport::of(&status))? + "\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(
            "{vf} is a PF that a guest drives, and its policy is the guest's: name a VF, such as pf0vf0"
        ),
    }
}

/// Largest export in bytes. The host takes no longer request.
const LARGEST: u64 = 1 << 20;

/// Reads a text of at most [`LARGEST`] bytes.
fn read_limited(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(LARGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST {
        return Err(io::Error::other(format!("it is longer than {LARGEST} bytes")));
    }
    Ok(text)
}

/// Reads a file that `softiov vf export` has printed; `-` is standard input.
pub(crate) fn load(file: &Path) -> anyhow::Result<VfExport> {
    let read = if file == Path::new("-") {
        read_limited(io::stdin())
    } else {
        fs::File::open(file).and_then(read_limited)
    };
    let text = read.with_context(|| format!("cannot read the exported VF {}", file.display()))?;
    VfExport::parse(&text).map_err(|error| anyhow!("{} {error}", file.display()))
}
