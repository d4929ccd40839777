//! Tests of the report in a browser, by the colours of a screenshot.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use super::ExperimentReport;
use super::tests::{records, report};
use crate::experiments;
use crate::runner::plan::ExperimentSelection;
use crate::runner::{self, ExperimentOptions};

/// Width of the window of a desktop computer.
const WIDTH: u32 = 1200;
/// Width of a phone's window.
const PHONE: u32 = 390;
/// Number of columns at the right edge of a phone's window that a page leaves free (0.75 rem are 12 pixels).
const MARGIN: usize = 8;
/// Colour of the page behind its sections in light mode.
const PAGE: u32 = 0xf4_f6_f8;
const HEIGHT: u32 = 3000;
/// Height of a window that shows the first sections and tables of a report with real experiments.
const TALL: u32 = 16_000;
/// First four colours of the report's figures in light mode, expected in the screenshot.
const LIGHT: [u32; 4] = [0x2f_6d_b3, 0xe0_8a_2e, 0x3a_94_67, 0x7d_5f_b0];
/// First four colours of the report's figures in dark mode, expected in the screenshot.
const DARK: [u32; 4] = [0x6a_a5_e8, 0xf0_a9_5c, 0x63_bd_8f, 0xab_8f_dd];

#[test]
fn browser_shows_figures_in_light_and_dark_mode() {
    let Some(browser) = browser() else {
        // Written to standard error directly, as the test harness would capture it otherwise.
        let _ = io::stderr().write_all(
            b"SKIPPED: the lab's report in a browser: chromium is not installed (Debian package chromium)\n",
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // Rows with other settings make the page more realistic.
    let page = folder.path().join("report.html");
    report([records(1, &[]), records(1, &["cpu=modern", "vms=2"])].concat()).write(&page).unwrap();
    for (scheme, colours, others) in [(1, LIGHT, DARK), (0, DARK, LIGHT)] {
        let picture = folder.path().join(format!("{scheme}.png"));
        shoot(&browser, &page, &picture, scheme, (WIDTH, HEIGHT));
        let seen: BTreeSet<_> = pixels(&picture, (WIDTH, HEIGHT)).into_iter().flatten().collect();
        for (colour, other) in colours.iter().zip(others) {
            assert!(seen.contains(colour), "colour {colour:06x} is missing in the screenshot");
            assert!(!seen.contains(&other), "colour {other:06x} of the other mode is in the screenshot");
        }
        keep(&[&picture, &page]);
    }
}

/// Checks that a page is no wider than a phone's window: sections end before the window's right edge, and what they cannot
/// break scrolls within them.
#[test]
fn report_is_no_wider_than_the_window_of_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let picture = folder.path().join("phone.png");
    report([records(1, &[]), records(1, &["cpu=modern", "vms=2"])].concat()).write(&page).unwrap();
    assert_fits_a_phone(&browser, &page, &picture, HEIGHT);
}

/// Checks a page of real experiments: tables with up to 13 metrics, long names of parameters and of constants' tables.
#[test]
fn report_of_real_experiments_fits_the_window_of_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let picture = folder.path().join("phone-real.png");
    let options = ExperimentOptions {
        set: ["measure_ms=2", "warm_up_ms=2"].map(|text| text.parse().unwrap()).to_vec(),
        unaffected: true,
        ..ExperimentOptions::default()
    };
    let names = ["fig06", "fig07", "today", "translate"].map(str::to_owned).to_vec();
    let catalogue = experiments::catalogue();
    let run = runner::run(&catalogue, &ExperimentSelection::Names(names), &options, &mut ()).unwrap();
    ExperimentReport::new(&catalogue, run.records, None).unwrap().write(&page).unwrap();
    assert_fits_a_phone(&browser, &page, &picture, TALL);
}

/// Checks that the part of a page that a phone's window of this height shows is no wider than the window.
#[track_caller]
fn assert_fits_a_phone(browser: &Path, page: &Path, picture: &Path, height: u32) {
    shoot(browser, page, picture, 1, (PHONE, height));
    keep(&[picture]);
    let lines = pixels(picture, (PHONE, height));
    let text = lines.iter().flatten().filter(|colour| **colour != PAGE).count();
    assert!(text > 10_000, "the picture shows no page");
    let wide = lines.iter().position(|line| line[line.len() - MARGIN..].iter().any(|colour| *colour != PAGE));
    assert_eq!(wide, None, "line of the picture in which the page reaches the right edge");
}

/// Copies files to the folder that `LAB_SCREENSHOTS` names, if it names one.
fn keep(files: &[&Path]) {
    if let Some(kept) = env::var_os("LAB_SCREENSHOTS") {
        for file in files {
            std::fs::copy(file, PathBuf::from(&kept).join(file.file_name().unwrap())).unwrap();
        }
    }
}

fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join("chromium")).find(|program| program.is_file())
}

/// Takes a screenshot of a page in a browser. `scheme` is Blink's: 0 dark, 1 light. The window's width and height are in
/// pixels.
fn shoot(browser: &Path, page: &Path, picture: &Path, scheme: u8, (width, height): (u32, u32)) {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--hide-scrollbars", "--force-device-scale-factor=1", "--force-color-profile=srgb"]);
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--window-size={width},{height}"));
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--screenshot={}", picture.display()));
    command.arg(format!("file://{}", page.display())).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not exit within 120 s");
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the colours of a picture's pixels, line by line.
fn pixels(picture: &Path, (width, height): (u32, u32)) -> Vec<Vec<u32>> {
    let decoder = png::Decoder::new(BufReader::new(File::open(picture).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height, info.bit_depth), (width, height, png::BitDepth::Eight));
    let colour = |pixel: &[u8]| u32::from_be_bytes([0, pixel[0], pixel[1], pixel[2]]);
    let lines = pixels.chunks_exact(info.line_size);
    lines.map(|line| line.chunks_exact(info.color_type.samples()).map(colour).collect()).collect()
}
