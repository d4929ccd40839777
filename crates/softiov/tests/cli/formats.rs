//! Tests the output for other programs: `softiov metrics`, `completions` and `man`.

use crate::process::{SOFTIOV, ServeProcess, finish, softiov};
use std::process::Command;
use tempfile::tempdir;

#[test]
fn metrics_keep_their_published_names() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let text = softiov(serve.folder(), &["metrics"]).out;
    for line in [
        "# TYPE sriov_vf_rx_bytes counter",
        "# TYPE sriov_vf_tx_errors counter",
        "softiov_port_link_up{pf=\"pf0\"} 1",
        "# TYPE softiov_port_pf_answer_seconds histogram",
        "softiov_port_pf_answer_seconds_bucket{pf=\"pf0\",le=\"0.00005\"} 0",
        "softiov_port_pf_answer_seconds_bucket{pf=\"pf0\",le=\"+Inf\"} 0",
        "softiov_port_pf_answer_seconds_count{pf=\"pf0\"} 0",
        "softiov_vf_client_connected{pf=\"pf0\",vf=\"6\"} 0",
        "softiov_vf_drops_total{pf=\"pf0\",reason=\"spoofed\",vf=\"0\"} 0",
        "softiov_vf_interventions_total{kind=\"read\",pf=\"pf0\",vf=\"0\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let known = text.lines().filter(|line| line.starts_with("sriov_vf_tx_packets{")).count();
    assert_eq!(known, 7, "one for each VF: {text}");
}

#[test]
fn completions_and_manual_pages_need_no_host() {
    let folder = tempdir().unwrap();
    let output_of = |words: &str| {
        let output = finish(Command::new(SOFTIOV).args(words.split(' ')));
        assert_eq!((output.status, output.err.as_str()), (Some(0), ""), "{words}");
        output.out
    };
    for shell in ["bash", "zsh", "fish"] {
        assert!(output_of(&format!("completions {shell}")).contains("max-tx-rate"), "{shell}");
    }
    assert!(output_of("man vf set").contains("max\\-tx\\-rate"));
    let pages = folder.path().join("pages");
    std::fs::create_dir(&pages).unwrap();
    output_of(&format!("man --dir {}", pages.display()));
    for page in ["softiov.1", "softiov-vf-set.1", "softiov-lab-run.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
}
