//! Reads and writes the kept instruction counts, and complains about counts that differ from them: more is a
//! loss, much less has to be kept.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::callgrind::InstructionCounts;
use crate::metadata;

/// Path of the file with the kept instruction counts, relative to the workspace.
const PATH: &str = "crates/nic/benches/instructions.json";
const REMEDY: &str = "find the cause, or keep the new counts: cargo xtask instructions --keep";
/// Tolerated change of a frame's instruction count, as a share, since another compiler generates other code.
const FRAME: f64 = 0.03;
/// Tolerated increase of the instruction count of one part of the frame's path, as a share, since inlining
/// moves code between parts.
const STOP: f64 = 0.10;
/// Tolerated increase of the instruction count of one part of the frame's path, in instructions, in addition
/// to the share.
const STOP_LEAST: f64 = 4.0;

/// Kept instruction counts of all cases, and the compiler that they belong to.
#[derive(Debug)]
pub(super) struct InstructionBaseline {
    pub(super) compiler: String,
    cases: Vec<(String, InstructionCounts)>,
}

pub(super) fn load() -> Result<InstructionBaseline> {
    let path = metadata::workspace_root()?.join(PATH);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PATH}"))?;
    read(&text).with_context(|| {
        format!("{PATH} has no instruction counts; cargo xtask instructions --keep writes the file")
    })
}

fn read(text: &str) -> Option<InstructionBaseline> {
    let value: Value = serde_json::from_str(text).ok()?;
    let counts = |stops: &Value| {
        let stops = stops.as_object()?.iter();
        Some(InstructionCounts(
            stops.map(|(stop, count)| Some((stop.clone(), count.as_f64()?))).collect::<Option<_>>()?,
        ))
    };
    let cases = value["instructions"].as_object()?.iter();
    let cases = cases.map(|(case, stops)| Some((case.clone(), counts(stops)?))).collect::<Option<_>>()?;
    Some(InstructionBaseline { compiler: value["compiler"].as_str()?.to_owned(), cases })
}

pub(super) fn keep(counted: &[(String, InstructionCounts)]) -> Result<()> {
    let cases: Map<String, Value> =
        counted.iter().map(|(case, counts)| (case.clone(), json!(counts.0))).collect();
    let value = json!({ "compiler": metadata::compiler()?, "instructions": cases });
    let path = metadata::workspace_root()?.join(PATH);
    fs::write(&path, serde_json::to_string_pretty(&value)? + "\n")
        .with_context(|| format!("cannot write {PATH}"))
}

/// Returns a complaint for each instruction count that differs from the kept one by more than is tolerated.
pub(super) fn compare(kept: &InstructionBaseline, counted: &[(String, InstructionCounts)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (case, counts) in counted {
        let Some((_, before)) = kept.cases.iter().find(|(kept, _)| kept == case) else {
            complaints.push(format!("{case}: no instruction count is kept; {REMEDY}"));
            continue;
        };
        let (total, kept_total) = (counts.total(), before.total());
        if (total - kept_total).abs() > FRAME * kept_total {
            complaints.push(format!(
                "{case}: {total:.0} instructions per frame instead of the kept {kept_total:.0}"
            ));
        }
        for (stop, count) in &counts.0 {
            let kept = before.0.get(stop).copied().unwrap_or(0.0);
            if *count > kept * (1.0 + STOP) + STOP_LEAST {
                complaints
                    .push(format!("{case}: {count} instructions in `{stop}` instead of the kept {kept}"));
            }
        }
    }
    if !complaints.is_empty() {
        complaints.push(format!("the counts were kept with {}; {REMEDY}", kept.compiler));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(stops: &[(&str, f64)]) -> InstructionCounts {
        InstructionCounts(stops.iter().map(|&(stop, count)| (stop.to_owned(), count)).collect())
    }

    fn said(of: &[(&str, f64)]) -> Vec<String> {
        let text = r#"{"compiler": "rustc 1", "instructions": {"a": {"queue": 300.0, "switch": 100.0}}}"#;
        compare(&read(text).unwrap(), &[("a".to_owned(), counts(of))])
    }

    #[test]
    fn small_difference_of_instruction_counts_is_not_reported() {
        assert!(said(&[("queue", 305.0), ("switch", 97.0)]).is_empty());
    }

    #[test]
    fn more_instructions_in_one_frame_path_part_are_reported() {
        let said = said(&[("queue", 280.0), ("switch", 120.0)]);
        assert_eq!(said[0], "a: 120 instructions in `switch` instead of the kept 100");
        assert!(said[1].starts_with("the counts were kept with rustc 1"), "{said:?}");
    }

    #[test]
    fn lower_instruction_counts_and_new_paths_must_be_recorded() {
        assert_eq!(
            said(&[("queue", 200.0), ("switch", 100.0)])[0],
            "a: 300 instructions per frame instead of the kept 400"
        );
        let text = r#"{"compiler": "rustc 1", "instructions": {}}"#;
        let said = compare(&read(text).unwrap(), &[("b".to_owned(), counts(&[]))]);
        assert!(said[0].starts_with("b: no instruction count is kept"), "{said:?}");
    }

    /// Rows of docs/performance.md, and the cases whose totals they state.
    const DOCUMENTED: [(&str, &[&str]); 17] = [
        (
            "**all**",
            &[
                "VF to VF, with policy, 64 bytes",
                "AVF to AVF, with policy, 64 bytes, legacy",
                "VF to VF, with policy, 1514 bytes",
                "VF to VF, cut into 1502 bytes",
            ],
        ),
        ("82576, guest memory in three regions", &["VF to VF in three regions, with policy, 64 bytes"]),
        ("AVF, flexible descriptors", &["AVF to AVF, with policy, 64 bytes, flexible"]),
        ("AVF, checksum inserted", &["AVF to AVF, checksum inserted, with policy, 64 bytes, legacy"]),
        ("82576, checksum inserted, one context for all", &["VF to VF, checksum inserted, 64 bytes"]),
        ("82576, a context for each frame, as Linux sends", &["VF to VF, a context each, 64 bytes"]),
        ("82576, VF to wire", &["VF to wire, 64 bytes"]),
        ("82576, wire to VF", &["wire to VF, 64 bytes"]),
        ("virtio, split rings", &["virtio to virtio, with policy, 64 bytes, split"]),
        (
            "virtio, packed rings, buffers in order",
            &["virtio to virtio, with policy, 64 bytes, packed in order"],
        ),
        (
            "virtio, packed rings, buffers in any order",
            &["virtio to virtio, with policy, 64 bytes, packed in any order"],
        ),
        (
            "virtio, split rings, to a VF of another worker",
            &["virtio to virtio of another worker, 64 bytes, split"],
        ),
        (
            "virtio, packed rings, buffers in order, to a VF of another worker",
            &["virtio to virtio of another worker, 64 bytes, packed in order"],
        ),
        (
            "no checksum requested",
            &[
                "virtio to virtio, with policy, 64 bytes, packed in order",
                "virtio to virtio, with policy, 1514 bytes, packed in order",
            ],
        ),
        (
            "checksum inserted by the card",
            &[
                "virtio to virtio, checksum inserted, with policy, 64 bytes, packed in order",
                "virtio to virtio, checksum inserted, with policy, 1514 bytes, packed in order",
            ],
        ),
        (
            "sends",
            &[
                "VF driver sends, 82576, 64 bytes",
                "VF driver sends, AVF legacy, 64 bytes",
                "VF driver sends, 82576, 1514 bytes",
                "VF driver sends, AVF legacy, 1514 bytes",
            ],
        ),
        (
            "receives",
            &[
                "VF driver receives, 82576, 64 bytes",
                "VF driver receives, AVF legacy, 64 bytes",
                "VF driver receives, 82576, 1514 bytes",
                "VF driver receives, AVF legacy, 1514 bytes",
            ],
        ),
    ];

    #[test]
    fn documented_totals_are_the_kept_ones() {
        let kept = load().unwrap();
        let path = metadata::workspace_root().unwrap().join("docs/performance.md");
        let text = fs::read_to_string(path).unwrap();
        let section = text.split("## Instructions per frame").nth(1).unwrap();
        for (row, cases) in DOCUMENTED {
            let total = |case: &&str| kept.cases.iter().find(|(name, _)| name == case).unwrap().1.total();
            let totals: Vec<String> = cases.iter().map(|case| format!("{:.0}", total(case))).collect();
            let start = format!("| {row} |");
            let line = section.lines().find(|line| line.starts_with(&start)).unwrap();
            let cells =
                line[start.len()..].split('|').map(|cell| cell.trim().trim_matches('*').replace(',', ""));
            let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
            assert_eq!(cells, totals, "{row}: docs/performance.md differs from {PATH}");
        }
    }
}
