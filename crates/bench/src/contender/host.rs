//! `softiov serve` as a separate process with real sockets, and with a policy that uses the card's features.
//! [`super::stations`] has its guests.

use super::ContenderKind;
use super::card::CardVariant;
use super::stations::address;
use crate::machine::process::LoggedProcess;
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Number of VFs of the served port, unless more exchange frames. Each has a port VLAN and checked addresses. VFs that
/// exchange no frames have a rate limit; the limit of an 82576's VF is at most 1 Gb/s, so the exchanging ones have
/// none.
const VFS: usize = 7;
/// Text before the reason in the last line of a host that refuses its configuration.
const REFUSAL: &str = "softiov: invalid setting ";
const PATIENCE: Duration = Duration::from_secs(60);

/// Error: `softiov serve` refuses settings of the port. The text has the setting and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RefusedSettings(String);

/// Process of `softiov serve` that serves one port.
#[derive(Debug)]
pub struct HostProcess {
    process: LoggedProcess,
    processors: ProcessorAssignment,
    folder: TempDir,
}

impl HostProcess {
    /// Starts a host on the forwarder's processor. The first `exchanging` VFs have no rate limit.
    ///
    /// # Errors
    /// [`RefusedSettings`], or the host does not start for another reason.
    pub fn start(
        options: &BenchmarkOptions,
        card: CardVariant,
        mode: ContenderKind,
        processors: ProcessorAssignment,
        exchanging: usize,
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        let settings = (options.wait(mode), options.variation.settings.as_str());
        let configuration = configuration(card, settings, exchanging);
        let several = options.variation.has_workers();
        let process = serve(&options.program()?, &configuration, (processors, several), &folder)?;
        Ok(Self { process, processors, folder })
    }

    /// Returns the path of the vfio-user socket of VF `vf`.
    #[must_use]
    pub fn socket(&self, vf: usize) -> PathBuf {
        self.folder.path().join(format!("run/pf0vf{vf}/vf.sock"))
    }

    /// Returns the text of the host's log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Returns the host's process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Stops the host's process (SIGSTOP) until [`Self::running`] continues it.
    ///
    /// # Errors
    /// The host has ended.
    pub fn pause(&self) -> Result<()> {
        Ok(self.process.stop(true)?)
    }

    /// Continues the stopped host while `work` runs, with this thread on the generator's processor.
    ///
    /// # Errors
    /// The host has ended.
    pub fn running<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.process.stop(false)?;
        let done = ProcessorAssignment::held(self.processors.generator, work)?;
        self.pause()?;
        Ok(done)
    }
}

/// Returns the host's configuration as TOML: number of VFs, family, doorbell mode, the port's other settings, separated by `;`, and
/// a table for each VF.
fn configuration(card: CardVariant, (wait, others): (&str, &str), exchanging: usize) -> String {
    let vf = |index: usize| {
        let rate = if index < exchanging { "" } else { "max_tx_rate = 1000\n" };
        let mac = address(index);
        format!("[[port.vf]]\nindex = {index}\nmac = \"{mac}\"\nvlan = 100\nspoofchk = true\n{rate}")
    };
    let others = others.replace(';', "\n");
    let (vfs, family) = (exchanging.max(VFS), card.family());
    let port = format!(
        "[[port]]\nname = \"pf0\"\nvfs = {vfs}\nfamily = \"{family}\"\nwait = \"{wait}\"\n{others}\n"
    );
    (0..vfs).map(vf).fold(port, |text, table| text + &table)
}

/// Starts `softiov serve` on the forwarder's processor, or on all but the generator's if its port has `several` threads. Waits
/// until its log reports that it serves.
fn serve(
    program: &Path,
    configuration: &str,
    (processors, several): (ProcessorAssignment, bool),
    folder: &TempDir,
) -> Result<LoggedProcess> {
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::create_dir(at("etc"))?;
    fs::write(at("etc/softiov.toml"), configuration)?;
    let mut command = Command::new(program);
    command.args(["serve", "--no-keeper", "--config"]).arg(at("etc/softiov.toml"));
    command.arg("--runtime-dir").arg(at("run")).arg("--state-dir").arg(at("state"));
    command
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(at("log"))?);
    let child = if several {
        processors.spawn_beside_generator(&mut command)
    } else {
        ProcessorAssignment::spawn(processors.forwarder, &mut command)
    };
    let child = child.with_context(|| format!("cannot start {}", program.display()))?;
    let mut process = LoggedProcess::new(child, at("log"));
    let begun = Instant::now();
    while !process.log().contains("serving") {
        if process.has_ended() || begun.elapsed() > PATIENCE {
            let log = process.log();
            if let Some((_, reason)) = log.split_once(REFUSAL) {
                return Err(RefusedSettings(reason.trim().to_owned()).into());
            }
            bail!("`softiov serve` did not start; its log:\n{log}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(process)
}
