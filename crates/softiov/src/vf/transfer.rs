//! `softiov vf export` and `softiov vf import`: carry a VF's policy and counters to another host, to which its guest moves.

use crate::ask::{self, OutputOptions};
use crate::output;
use crate::target::TargetHost;
use anyhow::{Context, bail};
use daemon::control::client;
use daemon::control::export::{VfExport, VfImport};
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Arguments of `softiov vf export`.
#[derive(Debug, clap::Args)]
pub(crate) struct VfExportArgs {
    /// The VF, such as pf0vf0.
    vf: String,
    #[command(flatten)]
    target: TargetHost,
}

/// Arguments of `softiov vf import`.
#[derive(Debug, clap::Args)]
pub(crate) struct VfImportArgs {
    /// The VF that takes over policy and counters, such as pf0vf0.
    vf: String,
    /// File that `softiov vf export` has printed; - for standard input.
    #[arg(long, value_name = "FILE|-")]
    file: PathBuf,
    /// Drop the settings when the host ends (default: they survive a restart).
    #[arg(long)]
    volatile: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Prints the policy and the counters of a VF as JSON.
pub(crate) fn export(args: VfExportArgs) -> anyhow::Result<ExitCode> {
    let VfExportArgs { vf, target } = args;
    match client::ask(&target.load()?.control_socket(), ControlRequest::VfShow { vf: vf.clone() })? {
        ControlAnswer::Vf(status) => {
            output::print(&(serde_json::to_string_pretty(&VfExport::of(&status))? + "\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(
            "{vf} is a PF that a guest drives, and its policy is the guest's: name a VF, such as pf0vf0"
        ),
    }
}

/// Has the host apply an exported VF's policy and counters to a VF.
pub(crate) fn import(args: VfImportArgs) -> anyhow::Result<ExitCode> {
    let VfImportArgs { vf, file, volatile, output } = args;
    let import = VfImport { export: load(&file)?, volatile };
    ask::ask(ControlRequest::VfImport { vf, import }, &output)
}

fn load(file: &Path) -> anyhow::Result<VfExport> {
    let text =
        if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let text = text.with_context(|| format!("cannot read the exported VF {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{} is not an exported VF: write it with `softiov vf export NAME`", file.display())
    })
}
