//! Checks `softiov demo --linux` with the second and the third family: its report shows iavf or virtio_net beside igbvf.
//! `cargo xtask test` runs the installed demo with the first family.

use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;

/// Throughput of bulk TCP in Mb/s above which fewer than 1 message per 1,000 packets is expected. iavf requests
/// statistics from its PF every 2 s, which costs about ten accesses a second for both guests.
const FAST: f64 = 200.0;
/// Maximum messages per 1,000 packets at a throughput below [`FAST`], where statistics requests weigh more. Doorbells
/// as messages would still exceed this bound.
const SLOW: f64 = 50.0;

/// Checks that both guests have iavf, that bulk TCP between them causes less than one VM exit per 1,000 packets, and
/// that igbvf's figures of the same guests are shown too.
pub(crate) fn iavf_is_shown_beside_igbvf(_: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let figures = shown_beside_igbvf("avf", "iavf")?;
    let number = |key: &str| figures[key].as_f64().with_context(|| format!("no {key}: {figures}"));
    let bound = if number("mbps")? < FAST { SLOW } else { 1.0 };
    ensure!(number("trapped_per_1000_packets")? < bound, "{bound} are too many: {figures}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that both guests have virtio_net, whose traffic causes no message, and that igbvf's figures of the same guests
/// are shown too.
pub(crate) fn virtio_is_shown_beside_igbvf(_: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let figures = shown_beside_igbvf("virtio", "virtio_net")?;
    ensure!(figures["trapped_per_1000_packets"] == 0.0, "{figures}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Runs the demo with virtual machines and a card family. Checks the drivers, and returns the family's figures.
fn shown_beside_igbvf(family: &str, driver: &str) -> Result<Value> {
    let options = ["demo", "--linux", "--family", family, "--mapped", "--seconds=5", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_softiov")).args(options).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "softiov {options:?} ended with {}: {said}", output.status);
    let demo: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(demo["family"] == family && demo["mapped"] == true, "{demo}");
    let drivers = |list: &str| -> Result<Vec<Value>> {
        let list = demo[list].as_array().with_context(|| format!("no {list}: {demo}"))?;
        Ok(list.iter().map(|entry| entry["driver"].clone()).collect())
    };
    ensure!(drivers("guests")? == [json!(driver), json!(driver)], "{demo}");
    ensure!(drivers("figures")? == [json!(driver), json!("igbvf")], "{demo}");
    for figures in demo["figures"].as_array().into_iter().flatten() {
        println!("    {figures}");
    }
    Ok(demo["figures"][0].clone())
}
