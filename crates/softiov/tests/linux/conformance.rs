//! Compares the table of docs/conformance.md with the results of each stock driver on the card, and of our drivers
//! elsewhere. With `SOFTIOV_RECORD=1` a run of all checks writes the table. A skipped check keeps its row.
//! `cargo xtask tidy` checks that every check has a row, without a boot.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance.md");
const BEGIN: &str = "<!-- printed by the Linux tests -->\n";
const END: &str = "<!-- end -->\n";

/// Driver whose conformance a check tests, by the beginning of the check's name; the first match counts.
const JUDGES: [(&str, &str); 33] = [
    ("demo::virtio", "virtio_net and igbvf of Linux 6.1"),
    ("demo::", "iavf and igbvf of Linux 6.1"),
    ("measure::pairs::", "virtio_net of Linux 6.1"),
    ("measure::queues::", "iavf of Linux 6.1"),
    ("measure::versions::", "iavf and igbvf of Linux 6.1"),
    ("measure::", "iavf, igbvf and virtio_net of Linux 6.1"),
    ("survival::avf", "iavf of Linux 6.1"),
    ("survival::virtio", "virtio_net of Linux 6.1"),
    ("avf::", "iavf of Linux 6.1"),
    ("virtio::kernels::of_trixie", "virtio_net of Linux 6.12"),
    ("virtio::kernels::of_backports", "virtio_net of trixie-backports"),
    ("virtio::", "virtio_net of Linux 6.1"),
    ("attack::qemus_igb", "`attack-guest` on QEMU's igb device"),
    ("attack::", "`attack-guest` on our card"),
    ("vfio::our_drivers_drive_qemus", "QEMU's igb device"),
    ("vfio::our_vf_driver_works_under", "igb of Linux 6.1, on QEMU's igb device"),
    ("vfio::", "our card, through VFIO of Linux 6.1"),
    ("dpdk::pf", "DPDK 22.11's igb driver"),
    ("dpdk::iavf::of_trixie", "DPDK 24.11's iavf driver"),
    ("dpdk::iavf", "DPDK 22.11's iavf driver"),
    ("dpdk::virtio", "DPDK 22.11's virtio driver"),
    ("dpdk::", "DPDK 22.11's igbvf driver"),
    ("ipxe::fetches_a_file_over_a_vf", "iPXE's driver of Adaptive Virtual Functions"),
    ("ipxe::fetches_a_file_over_virtio", "iPXE's driver of virtio"),
    ("ipxe::", "iPXE's driver of the 82576"),
    ("igb::", "igb of Linux 6.1"),
    ("hub::", "QEMU's netdev stream"),
    ("ip::", "iproute2 6.1 and igb of Linux 6.1, on QEMU's igb device"),
    ("kernels::vf_drivers_of_trixie", "igbvf and iavf of Linux 6.12"),
    ("kernels::vf_drivers_of_backports", "igbvf and iavf of trixie-backports"),
    ("kernels::igb_of_trixie", "igb of Linux 6.12"),
    ("kernels::igb_of_backports", "igb of trixie-backports"),
    ("", "igbvf of Linux 6.1"),
];

/// Compares the outcomes of all checks with the table; `None` is a skipped check.
pub(crate) fn follow(outcomes: &[(&str, Option<bool>)]) -> Result<()> {
    let page = fs::read_to_string(PAGE).context(PAGE)?;
    let (before, rest) = page.split_once(BEGIN).context("no table begins in docs/conformance.md")?;
    let (kept, after) = rest.split_once(END).context("the table of docs/conformance.md does not end")?;
    let seen = table(outcomes, &recorded(kept));
    if std::env::var_os("SOFTIOV_RECORD").is_some() {
        fs::write(PAGE, [before, BEGIN, &seen, END, after].concat()).context(PAGE)?;
    } else {
        ensure!(
            kept == seen,
            "docs/conformance.md does not have these results; run the Linux tests with SOFTIOV_RECORD=1. Results:\n{seen}"
        );
    }
    Ok(())
}

fn table(outcomes: &[(&str, Option<bool>)], recorded: &BTreeMap<&str, &str>) -> String {
    let mut text = String::from("| check | judge | result |\n|---|---|---|\n");
    for (name, outcome) in outcomes {
        let result = match outcome {
            Some(true) => "passes",
            Some(false) => "fails",
            None => recorded.get(name).copied().unwrap_or("not seen yet"),
        };
        let judge =
            JUDGES.iter().find(|(beginning, _)| name.starts_with(beginning)).map_or("", |pair| pair.1);
        text += &format!("| `{name}` | {judge} | {result} |\n");
    }
    text
}

/// Returns the results in the conformance table of a page, by check.
fn recorded(table: &str) -> BTreeMap<&str, &str> {
    let row = |line| {
        let mut cells = str::split(line, " | ");
        let name = cells.next()?.strip_prefix("| `")?.strip_suffix('`')?;
        Some((name, cells.nth(1)?.strip_suffix(" |")?))
    };
    table.lines().filter_map(row).collect()
}
