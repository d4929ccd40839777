//! `softiov apply`: applies a configuration file to a running host, or prints the difference.

use crate::ask::{OutputOptions, show};
use crate::target::HostSelectionOptions;
use crate::vf::print::shown;
use daemon::config::HostConfig;
use daemon::control::client;
use daemon::control::protocol::{
    ApplyRequest, ConfigChange, ConfigChangeKind, ConfigDifference, ControlRequest,
};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `softiov apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Configuration file; applied completely or not at all.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Print the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Directory of the host's sockets (default: as in the file).
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Directory where the host stores what commands change, if the host was started with this option.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Sends the configuration file to the host, and prints the difference between the file and the host.
pub(crate) fn run(args: ApplyArgs) -> anyhow::Result<ExitCode> {
    let ApplyArgs { file, dry_run, json, runtime_dir, state_dir } = args;
    let target = HostSelectionOptions { config: Some(file.clone()), runtime_dir, state_dir };
    let socket = target.load()?.control_socket();
    let answer = client::ask(&socket, ControlRequest::Apply(request(&file, &target, dry_run)?))?;
    show(answer, &OutputOptions { json, target })
}

/// Returns the request to apply the configuration file `file`, with the directories given on the command
/// line.
pub(crate) fn request(
    file: &std::path::Path,
    target: &HostSelectionOptions,
    dry_run: bool,
) -> anyhow::Result<ApplyRequest> {
    let text = HostConfig::text(Some(file))?;
    let HostSelectionOptions { runtime_dir, state_dir, .. } = target.clone();
    Ok(ApplyRequest { name: file.to_owned(), text, runtime_dir, state_dir, dry_run, reload: false })
}

/// Returns the difference between a file and a host as text, one line per port and VF.
pub(crate) fn text(difference: &ConfigDifference) -> String {
    let mut text = String::new();
    for ConfigChange { name, what, settings } in &difference.changes {
        let steps: Vec<String> = match what {
            ConfigChangeKind::Removed => vec!["removed".to_owned()],
            ConfigChangeKind::Added => vec!["added".to_owned()],
            ConfigChangeKind::Changed => {
                let step = |(key, step): (&String, &_)| {
                    let daemon::control::protocol::SettingChange { old, new } = step;
                    format!("{key} {} -> {}", shown(old), shown(new))
                };
                settings.iter().map(step).collect()
            }
        };
        let _ = writeln!(text, "{name}: {}", steps.join(", "));
    }
    if text.is_empty() { "nothing differs\n".to_owned() } else { text }
}
