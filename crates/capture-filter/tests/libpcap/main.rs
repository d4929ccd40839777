//! Compares filters with libpcap: the frames of all kinds that each filter selects.

mod filters;
mod frames;
mod random;
mod tcpdump;

use capture_filter::{Filter, NameDatabases};
use frames::CapturedFrame;
use host::test_support::skipped;
use std::collections::BTreeSet;
use std::fs;

/// Start of the error for filters whose program in libpcap reads uninitialized memory.
const BEHIND_GENEVE: &str = "a test after geneve reads inside geneve packets only";

/// Comparison of filters with libpcap on fixed frames: the frames as a savefile, the system's names, and libpcap's
/// version.
struct LibpcapComparison {
    frames: Vec<CapturedFrame>,
    file: Vec<u8>,
    names: NameDatabases,
    /// Third number of libpcap's version: N in 1.10.N.
    patch: u32,
}

impl LibpcapComparison {
    /// Prepares a comparison for the test `what`. Without libpcap, reports the test as skipped and returns `None`.
    fn new(what: &str) -> Option<Self> {
        let patch = tcpdump::patch_level().map_err(|why| skipped(what, &why)).ok()?;
        let frames = frames::all();
        let table = |path| fs::read_to_string(path).unwrap_or_default();
        let names = NameDatabases::new(table("/etc/services"), table("/etc/protocols"));
        Some(Self { file: tcpdump::savefile(&frames), frames, names, patch })
    }

    /// Returns false for filters that versions treat differently: from 1.10.6 on, `ip multicast` does not select
    /// 240.0.0.0/4.
    fn is_the_same_in_all_versions(&self, filter: &str) -> bool {
        self.patch < 6 || !filter.contains("ip multicast")
    }

    fn select(&self, filter: &str) -> Result<BTreeSet<usize>, String> {
        let filter = Filter::compile(filter, &self.names).map_err(|error| error.to_string())?;
        let selected =
            self.frames.iter().enumerate().filter(|(_, frame)| filter.selects(&frame.data, frame.length));
        Ok(selected.map(|(number, _)| number).collect())
    }

    /// Compares the frames that a filter selects here and in libpcap's optimized program. The optimizer drops and moves
    /// loads, and refuses a filter that selects no frame. So the program may select a frame that the plain one rejects
    /// because a field is outside of it. For frames that `may_end_early` accepts, the result of either program is
    /// right.
    fn check(&self, filter: &str, may_end_early: impl Fn(&CapturedFrame) -> bool) -> Result<(), String> {
        let (ours, optimized) = match (self.select(filter), tcpdump::select(&self.file, filter, true)) {
            (Ok(ours), Ok(optimized)) => (ours, optimized),
            (Ok(ours), Err(why)) if why.contains("rejects all packets") => (ours, BTreeSet::new()),
            (Err(_), Err(_)) => return Ok(()),
            (Err(why), Ok(_)) if why.starts_with(BEHIND_GENEVE) => return Ok(()),
            (ours, optimized) => return Err(format!("{filter}: here {ours:.80?}, libpcap {optimized:.80?}")),
        };
        let mut different: Vec<_> = ours.symmetric_difference(&optimized).copied().collect();
        if different.iter().any(|number| may_end_early(&self.frames[*number])) {
            let plain = tcpdump::select(&self.file, filter, false)?;
            let agree = |number: &usize| ours.contains(number) == plain.contains(number);
            different.retain(|number| !may_end_early(&self.frames[*number]) || !agree(number));
        }
        let Some(number) = different.first() else { return Ok(()) };
        let (here, frame) = (ours.contains(number), &self.frames[*number]);
        Err(format!(
            "{filter}: {} frames differ; frame {number}, selected here: {here}, {frame:02x?}",
            different.len()
        ))
    }
}

#[test]
fn filters_select_the_frames_that_libpcap_selects() {
    let Some(comparison) = LibpcapComparison::new("filters beside libpcap") else { return };
    let filters = filters::all();
    let count = filters.len();
    let whole = comparison.frames.iter().filter(|frame| frame.is_whole).count();
    assert!(whole >= 120 && comparison.frames.len() >= 500 && count >= 600);
    let fails: Vec<_> = filters
        .into_iter()
        .filter(|filter| comparison.is_the_same_in_all_versions(filter))
        .filter_map(|filter| comparison.check(filter, |frame| !frame.is_whole).err())
        .collect();
    assert!(fails.is_empty(), "{} of {} filters:\n{}", fails.len(), count, fails.join("\n"));
}

#[test]
fn filters_that_libpcap_misoptimizes_match_unoptimized_libpcap() {
    let Some(comparison) = LibpcapComparison::new("filters beside libpcap without its optimizer") else {
        return;
    };
    for filter in filters::NOT_OPTIMIZED {
        assert_eq!(comparison.check(filter, |_| true), Ok(()));
    }
}
