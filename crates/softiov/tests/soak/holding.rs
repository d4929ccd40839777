//! Reads the resources that keeper and host hold, and the machine's processor time.

use crate::served::HostWithKeeper;
use anyhow::{Context, Result};
use rustix::process::Pid;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Open file descriptors and memory of the keeper's or the host's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ProcessResources {
    /// Number of open file descriptors, by kind of target.
    pub(crate) descriptors: BTreeMap<String, usize>,
    /// Memory of the process's own (anonymous), without guests' memory, in KiB.
    pub(crate) own_kib: u64,
    /// Resident memory of the process, guests' included, in KiB.
    pub(crate) rss_kib: u64,
    /// Resident memory of the process with each shared page counted by its share, in KiB.
    pub(crate) pss_kib: u64,
}

impl ProcessResources {
    /// Reads the resources of the keeper process and of its host process.
    pub(crate) fn of(served: &HostWithKeeper, host: Pid) -> Result<[Self; 2]> {
        Ok([of(served.keeper.id().cast_signed())?, of(host.as_raw_nonzero().get())?])
    }

    pub(crate) fn open(&self) -> usize {
        self.descriptors.values().sum()
    }
}

fn of(pid: i32) -> Result<ProcessResources> {
    let process = Path::new("/proc").join(pid.to_string());
    let mut descriptors = BTreeMap::new();
    for entry in fs::read_dir(process.join("fd"))? {
        // A descriptor may be closed meanwhile.
        if let Ok(target) = fs::read_link(entry?.path()) {
            *descriptors.entry(kind(&target)).or_default() += 1;
        }
    }
    let rollup = fs::read_to_string(process.join("smaps_rollup"))?;
    let status = fs::read_to_string(process.join("status"))?;
    Ok(ProcessResources {
        descriptors,
        own_kib: kib(&status, "RssAnon:")?,
        rss_kib: kib(&rollup, "Rss:")?,
        pss_kib: kib(&rollup, "Pss:")?,
    })
}

/// Returns the kind of a file descriptor's target, without the number that makes it unique: `socket:`,
/// `anon_inode:[eventfd]`.
fn kind(target: &Path) -> String {
    let text = target.to_string_lossy();
    text.split_once(":[")
        .filter(|(kind, _)| *kind != "anon_inode")
        .map_or(text.as_ref(), |(kind, _)| kind)
        .into()
}

fn kib(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Processor time of this machine since its boot (/proc/stat): all, idle and stolen, ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessorTicks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl ProcessorTicks {
    pub(crate) fn now() -> Result<Self> {
        let text = fs::read_to_string(PathBuf::from("/proc/stat"))?;
        let line = text.lines().next().context("/proc/stat is empty")?;
        let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        let [.., idle, waiting, _, _, stolen] = ticks[..] else {
            anyhow::bail!("/proc/stat begins with {line}")
        };
        Ok(Self { all: ticks.iter().sum(), idle: idle + waiting, stolen })
    }

    /// Returns the shares of time since `before` in which the processors were in use, and in which they served another
    /// machine, percent.
    pub(crate) fn since(self, before: Self) -> [f64; 2] {
        let percent = |ticks: u64| 100.0 * ticks as f64 / (self.all - before.all).max(1) as f64;
        let idle = percent(self.idle.saturating_sub(before.idle));
        [100.0 - idle, percent(self.stolen.saturating_sub(before.stolen))]
    }
}
