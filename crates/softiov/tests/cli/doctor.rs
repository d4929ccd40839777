//! Tests `softiov doctor` with and without a host. The crate's unit tests cover the causes of each finding.

use crate::process::{ServeProcess, softiov};
use serde_json::Value;
use std::path::Path;
use tempfile::tempdir;

#[test]
fn doctor_lists_findings_and_exits_with_1_on_a_problem() {
    let folder = tempdir().unwrap();
    let found = |place: &Path, status| -> Vec<(String, String)> {
        let said = softiov(place, &["doctor", "--json", "--qemu", "/bin/true"]);
        assert_eq!((said.status, said.err.as_str()), (Some(status), ""), "{}", said.out);
        let findings: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        findings.iter().map(|finding| (word(finding, "check"), word(finding, "verdict"))).collect()
    };
    let pair = |check: &str, verdict: &str| (check.to_owned(), verdict.to_owned());
    let without = found(&folder.path().join("none"), 1);
    assert!(
        without.contains(&pair("host", "problem")) && without.contains(&pair("qemu", "problem")),
        "{without:?}"
    );
    let serve = ServeProcess::start(&folder, &[]);
    let with = found(serve.folder(), 1);
    for check in ["host", "port"] {
        assert!(with.contains(&pair(check, "ok")), "{with:?}");
    }
    let text = softiov(serve.folder(), &["doctor", "--qemu", "/bin/true"]).out;
    assert!(text.contains("PROBLEM  qemu") && text.contains("remedy: "), "{text}");
}
