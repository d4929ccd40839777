//! The card behind `softiov serve`: a process of its own with real sockets and the policy that makes a VF worth
//! having. Left out: what its guests do ([`super::stations`]).

use super::stations::{Pair, exchange};
use super::{Contender, Mode, Slice, WARM_UP};
use crate::machine::cycles::Cycles;
use crate::machine::process::Process;
use crate::machine::processors::Processors;
use crate::options::Options;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Seven VFs on a port VLAN, which is inserted and stripped, with addresses that are set and checked. Those that exchange
/// no frames have a rate; that of the others would end at the 1 Gb/s that an 82576 can be told.
const CONFIG: &str = r#"
[[port]]
name = "pf0"
vfs = 7
"#;
const PATIENCE: Duration = Duration::from_secs(60);

/// How many VFs there are.
const VFS: usize = 7;

/// A host and its guests.
#[derive(Debug)]
pub struct Served {
    name: String,
    /// The guests.
    pairs: Vec<Pair>,
    process: Process,
    processors: Processors,
    mode: Mode,
    _folder: TempDir,
}

impl Served {
    /// Starts a host and two guests, and stops the host for now.
    ///
    /// # Errors
    /// The host does not start, or its VFs do not.
    pub fn start(options: &Options, processors: Processors, size: usize) -> Result<Self> {
        Self::with_pairs(options, processors, size, 1)
    }

    /// The same with so many pairs of guests, three at most.
    ///
    /// # Errors
    /// Those of [`Served::start`].
    pub fn with_pairs(options: &Options, processors: Processors, size: usize, pairs: usize) -> Result<Self> {
        ensure!(
            options.mode == Mode::Posted,
            "the guests of this build ring doorbells by message: --mode posted"
        );
        let folder = TempDir::new()?;
        let process = serve(options, processors, &folder, 2 * pairs)?;
        let socket = |vf| folder.path().join(format!("run/pf0vf{vf}/vf.sock"));
        let name = if pairs == 1 { "softiov".to_owned() } else { format!("softiov, {} VFs", 2 * pairs) };
        let pairs: Result<Vec<Pair>> = (0..pairs).map(|pair| Pair::attach(2 * pair, socket, size)).collect();
        let mut pairs = pairs.with_context(|| process.log())?;
        let begun = Instant::now();
        while exchange(&mut pairs, WARM_UP).0 == 0 {
            ensure!(begun.elapsed() < PATIENCE, "no frame comes through the card:\n{}", process.log());
        }
        process.stop(true)?;
        Ok(Self { name, pairs, process, processors, mode: options.mode, _folder: folder })
    }

    /// Does `work` with the host running and this thread on the generator's processor.
    ///
    /// # Errors
    /// The host is gone.
    pub fn running<T>(&mut self, work: impl FnOnce(&mut [Pair]) -> T) -> Result<T> {
        self.process.stop(false)?;
        let done = Processors::held(self.processors.generator, || work(&mut self.pairs))?;
        self.process.stop(true)?;
        Ok(done)
    }

    /// The host's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// How doorbells reach it.
    #[must_use]
    pub fn doorbells(&self) -> Mode {
        self.mode
    }
}

impl Contender for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn slice(&mut self, length: Duration) -> Result<Slice> {
        let mut cycles = Cycles::of(self.process.id());
        self.running(|pairs| {
            exchange(pairs, WARM_UP);
            let before = cycles.read();
            let (frames, took) = exchange(pairs, length);
            let cycles = before.zip(cycles.read()).map(|(before, after)| after - before);
            Slice { frames, took, cycles }
        })
    }
}

/// [`CONFIG`] and a table for each VF.
fn configuration(exchanging: usize) -> String {
    let vf = |index: usize| {
        let rate = if index < exchanging { "" } else { "max_tx_rate = 1000\n" };
        let mac = Pair::address(index);
        format!("[[port.vf]]\nindex = {index}\nmac = \"{mac}\"\nvlan = 100\nspoofchk = true\n{rate}")
    };
    (0..VFS).map(vf).fold(CONFIG.to_owned(), |text, table| text + &table)
}

fn serve(options: &Options, processors: Processors, folder: &TempDir, exchanging: usize) -> Result<Process> {
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::create_dir(at("etc"))?;
    fs::write(at("etc/softiov.toml"), configuration(exchanging))?;
    let program = options.program()?;
    let mut command = Command::new(&program);
    command.args(["serve", "--no-keeper", "--config"]).arg(at("etc/softiov.toml"));
    command.arg("--runtime-dir").arg(at("run")).arg("--state-dir").arg(at("state"));
    command
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(at("log"))?);
    let child = Processors::spawn(processors.forwarder, &mut command)
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let mut process = Process::new(child, at("log"));
    let begun = Instant::now();
    while !process.log().contains("serving") {
        if process.has_ended() || begun.elapsed() > PATIENCE {
            bail!("`softiov serve` does not start:\n{}", process.log());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(process)
}
