//! `softiov apply`: a configuration file becomes what a running host does. Left out: how, which the host decides.

use crate::ask::{Output, show};
use crate::place::Place;
use crate::vf::print::shown;
use daemon::config::Config;
use daemon::control::client;
use daemon::control::protocol::{Apply, Changed, Difference, Request, What};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which file, and whether it is applied.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file. All of it is applied, or nothing.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Print what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    /// The folder with the host's sockets, instead of what the file says.
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// The folder where the host keeps what commands change, if it was started with this option.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Has the host apply the file, and prints the difference.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { file, dry_run, json, runtime_dir, state_dir } = args;
    let place = Place { config: Some(file.clone()), runtime_dir, state_dir };
    let socket = place.load()?.control_socket();
    let answer = client::ask(&socket, Request::Apply(request(&file, &place, dry_run)?))?;
    show(answer, &Output { json, place })
}

/// What the host is asked, with what was named beside the file.
pub(crate) fn request(file: &std::path::Path, place: &Place, dry_run: bool) -> anyhow::Result<Apply> {
    let text = Config::text(Some(file))?;
    let Place { runtime_dir, state_dir, .. } = place.clone();
    Ok(Apply { name: file.to_owned(), text, runtime_dir, state_dir, dry_run, reload: false })
}

/// The difference, a line for each port and VF.
pub(crate) fn print(difference: &Difference) -> String {
    let mut text = String::new();
    for Changed { name, what, settings } in &difference.changes {
        let steps: Vec<String> = match what {
            What::Removed => vec!["removed".to_owned()],
            What::Added => vec!["added".to_owned()],
            What::Changed => {
                let step = |(key, step): (&String, &_)| {
                    let daemon::control::protocol::Step { old, new } = step;
                    format!("{key} {} -> {}", shown(old), shown(new))
                };
                settings.iter().map(step).collect()
            }
        };
        let _ = writeln!(text, "{name}: {}", steps.join(", "));
    }
    if text.is_empty() { "nothing differs\n".to_owned() } else { text }
}
