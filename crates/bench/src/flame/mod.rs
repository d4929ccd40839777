//! Draws a profile of the host's cycles as a flame graph: `perf` samples the host while frames move. `perf` is in
//! Debian's linux-perf. The usual drawing program, inferno, has a licence that the project does not use.
//!
//! | module | purpose |
//! |---|---|
//! | `fold` | parses the stacks of `perf script` into a tree |
//! | `figure::flame` | draws the tree as SVG |

mod fold;

use crate::contender::ContenderKind;
use crate::contender::served::SoftiovContender;
use crate::contender::work::Workload;
use crate::machine::processors::ProcessorAssignment;
use crate::options::BenchmarkOptions;
use anyhow::{Context, Result, ensure};
use figure::flame::{FlameGraphNode, FlameGraphStyle, draw, share};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Sampling rate of `perf` in samples a second, no multiple of any periodic activity.
const FREQUENCY: &str = "997";
/// Duration of the traffic that is profiled, longer than `perf` records.
const TRAFFIC: Duration = Duration::from_secs(4);
/// Duration of the recording by `perf`, in seconds.
const RECORDED: &str = "2";

/// Samples the host under full load with frames of one length, and writes `flame.svg` into the report's folder.
///
/// # Errors
/// `perf` is missing or not allowed, or the host does not start.
pub fn record(
    options: &BenchmarkOptions,
    mode: ContenderKind,
    processors: ProcessorAssignment,
    size: usize,
) -> Result<()> {
    fs::create_dir_all(&options.out)?;
    let data = options.out.join("perf.data");
    let mut served =
        SoftiovContender::start(options, options.card(), mode, processors, Workload::Frames(size))?;
    let mut perf = Command::new("perf");
    perf.args(["record", "--freq", FREQUENCY, "--call-graph", "dwarf,16384", "--output"]).arg(&data);
    perf.args(["--pid", &served.process_id().to_string(), "--", "sleep", RECORDED]);
    let mut perf = perf
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run `perf`: install Debian's linux-perf")?;
    served.running(|circle| circle.exchange(TRAFFIC))?;
    ensure!(
        perf.wait()?.success(),
        "`perf record` cannot sample the host: see /proc/sys/kernel/perf_event_paranoid"
    );
    let mut script = Command::new("perf");
    let output = script.args(["script", "--fields", "comm,ip,sym", "--input"]).arg(&data).output()?;
    fs::remove_file(&data)?;
    let tree = fold::fold(&String::from_utf8_lossy(&output.stdout));
    ensure!(tree.weight > 0, "`perf` recorded no sample of the host");
    let title = format!("CPU cycles of the host: VF to VF, {mode}, {size} bytes, {} samples", tree.weight);
    fs::write(options.out.join("flame.svg"), draw(&tree, &title, FlameGraphStyle { colour, note: share }))?;
    Ok(())
}

/// Returns the colour of a function by its crate: the card's warm, our other crates' green, all others' grey.
fn colour(name: &str, _: &FlameGraphNode) -> &'static str {
    let ours = ["daemon", "host", "vfio_user", "driver", "iovm", "softiov"];
    if ["nic::", "i82576::", "pcie::"].iter().any(|part| name.contains(part)) {
        "#f4a259"
    } else if ours.iter().any(|part| name.starts_with(part) || name.contains(&format!("<{part}"))) {
        "#8cb369"
    } else {
        "#c8ccd4"
    }
}
