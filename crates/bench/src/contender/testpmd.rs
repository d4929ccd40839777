//! Process of DPDK's testpmd, started on both processors of the benchmark. One of the processors moves the frames.

use super::telemetry::{DpdkTelemetry, folder};
use crate::machine::process::LoggedProcess;
use crate::machine::processors::ProcessorAssignment;
use anyhow::{Context, Result, bail};
use linux_guest::HostDpdk;
use std::fs::{self, File};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Text in testpmd's log after the start of its ports. DPDK 22.11 crashes if the counters of a vhost port are requested
/// before this text appears.
const STARTED: &str = "Checking link statuses";

/// Parameters of a testpmd process.
#[derive(Debug)]
pub(super) struct TestpmdConfig<'a> {
    pub(super) dpdk: &'a HostDpdk,
    pub(super) huge_pages: bool,
    pub(super) processors: ProcessorAssignment,
    /// DPDK's file prefix of the process, unique on the machine.
    pub(super) prefix: String,
    /// True to work on the forwarder's processor; false to work on the generator's.
    pub(super) forwards: bool,
    pub(super) devices: [String; 2],
    /// Arguments of testpmd after `--`.
    pub(super) arguments: Vec<String>,
}

/// Process of testpmd that moves frames at two ports.
#[derive(Debug)]
pub(super) struct Testpmd {
    pub(super) process: LoggedProcess,
    telemetry: DpdkTelemetry,
    /// Standard input of testpmd: testpmd ends when the input is closed.
    _stdin: Option<ChildStdin>,
    prefix: String,
}

impl Testpmd {
    pub(super) fn start(start: &TestpmdConfig<'_>, logs: &Path) -> Result<Self> {
        let ProcessorAssignment { generator, forwarder } = start.processors;
        let (works, waits) = if start.forwards { (forwarder, generator) } else { (generator, forwarder) };
        let mut command = start.dpdk.testpmd();
        command.args(["--lcores", &format!("0@{waits},1@{works}"), "--no-pci", "-m", "256"]);
        command.args(["--single-file-segments", "--file-prefix", &start.prefix]);
        command.args((!start.huge_pages).then_some("--no-huge"));
        command.args(start.devices.iter().map(|device| format!("--vdev={device}")));
        command.args(["--", "--auto-start", "--no-lsc-interrupt", "--total-num-mbufs=32768", "--burst=32"]);
        command.args(&start.arguments);
        let log = logs.join(format!("{}.log", start.prefix));
        let file = File::create(&log)?;
        command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let mut child = command.spawn().context("cannot start testpmd")?;
        let stdin = child.stdin.take();
        let mut process = LoggedProcess::new(child, log);
        let begun = Instant::now();
        let telemetry = loop {
            if process.log().contains(STARTED)
                && let Some(telemetry) = ready(&start.prefix)
            {
                break telemetry;
            }
            if process.has_ended() || begun.elapsed() > PATIENCE {
                bail!("testpmd did not start; its log:\n{}", process.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Ok(Self { process, telemetry, _stdin: stdin, prefix: start.prefix.clone() })
    }

    /// Returns the number of frames that testpmd's two ports have received.
    pub(super) fn received(&self) -> Result<u64> {
        let port = |at| {
            self.telemetry
                .received(at)?
                .context("DPDK's telemetry has no counter for one of testpmd's two ports")
        };
        Ok(port(0)? + port(1)?)
    }
}

/// Connects to testpmd's telemetry socket, once testpmd has two ports.
fn ready(prefix: &str) -> Option<DpdkTelemetry> {
    let telemetry = DpdkTelemetry::connect(&folder(prefix)).ok()?;
    telemetry.received(1).ok()??;
    Some(telemetry)
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // DPDK leaves files behind that are of no further use.
        let _ = fs::remove_dir_all(folder(&self.prefix));
    }
}
