//! The card behind `softiov serve`: a process of its own with real sockets and the policy that makes a VF worth
//! having. Left out: what its guests do ([`super::stations`]).

use super::stations::Pair;
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

/// Seven VFs. The two that exchange frames are on a port VLAN, which is inserted and stripped, with addresses that are
/// set and checked. The others have a rate; theirs would end at the 1 Gb/s that an 82576 can be told.
const CONFIG: &str = r#"
[[port]]
name = "pf0"
vfs = 7
"#;
const PATIENCE: Duration = Duration::from_secs(60);

/// A host and its two guests.
#[derive(Debug)]
pub struct Served {
    /// The guests.
    pub pair: Pair,
    process: Process,
    cycles: Option<Cycles>,
    processors: Processors,
    mode: Mode,
    _folder: TempDir,
}

impl Served {
    /// Starts both, and stops the host for now.
    ///
    /// # Errors
    /// The host does not start, or its VFs do not.
    pub fn start(options: &Options, processors: Processors, size: usize) -> Result<Self> {
        ensure!(
            options.mode == Mode::Posted,
            "the guests of this build ring doorbells by message: --mode posted"
        );
        let folder = TempDir::new()?;
        let process = serve(options, processors, &folder)?;
        let socket = |vf: u8| folder.path().join(format!("run/pf0vf{vf}/vf.sock"));
        let pair = Pair::attach([&socket(0), &socket(1)], size)?;
        let cycles = Cycles::of(process.id());
        process.stop(true)?;
        Ok(Self { pair, process, cycles, processors, mode: options.mode, _folder: folder })
    }

    /// Does `work` with the host running and this thread on the generator's processor.
    ///
    /// # Errors
    /// The host is gone.
    pub fn running<T>(&mut self, work: impl FnOnce(&mut Pair) -> T) -> Result<T> {
        self.process.stop(false)?;
        let done = Processors::held(self.processors.generator, || work(&mut self.pair))?;
        self.process.stop(true)?;
        Ok(done)
    }

    /// How doorbells reach it.
    #[must_use]
    pub fn doorbells(&self) -> Mode {
        self.mode
    }
}

impl Contender for Served {
    fn name(&self) -> &str {
        "softiov"
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn slice(&mut self, length: Duration) -> Result<Slice> {
        let mut cycles = self.cycles.take();
        let mut spent = || cycles.as_mut().and_then(Cycles::read);
        let slice = self.running(|pair| {
            pair.exchange(WARM_UP);
            let before = spent();
            let (frames, took) = pair.exchange(length);
            let cycles = before.zip(spent()).map(|(before, after)| after - before);
            Slice { frames, took, cycles }
        })?;
        self.cycles = cycles;
        ensure!(slice.frames > 0, "no frame came through the card:\n{}", self.process.log());
        Ok(slice)
    }
}

/// The configuration: [`CONFIG`] and a table for each VF.
fn configuration() -> String {
    let vf = |index: u8| match index {
        0 | 1 => format!(
            "[[port.vf]]\nindex = {index}\nmac = \"{}\"\nvlan = 100\nspoofchk = true\n",
            Pair::ADDRESSES[usize::from(index)]
        ),
        _ => format!("[[port.vf]]\nindex = {index}\nvlan = 100\nspoofchk = true\nmax_tx_rate = 1000\n"),
    };
    (0..7).map(vf).fold(CONFIG.to_owned(), |text, table| text + &table)
}

fn serve(options: &Options, processors: Processors, folder: &TempDir) -> Result<Process> {
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::create_dir(at("etc"))?;
    fs::write(at("etc/softiov.toml"), configuration())?;
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
