//! `softiov vf export` and `softiov vf import`: carry a VF's policy and counters to another host, to which its guest moves.

use crate::output;
use crate::target::HostSelectionOptions;
use anyhow::{Context, bail};
use daemon::control::client;
use daemon::control::export::VfExport;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
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

/// Reads a file that `softiov vf export` has printed; `-` is standard input.
pub(crate) fn load(file: &Path) -> anyhow::Result<VfExport> {
    let text =
        if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let text = text.with_context(|| format!("cannot read the exported VF {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{} is not an exported VF: write it with `softiov vf export NAME`", file.display())
    })
}
