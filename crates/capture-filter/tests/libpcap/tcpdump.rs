//! Runs libpcap itself, through tcpdump, which applies a filter to a savefile.

use crate::frames::CapturedFrame;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

/// Returns N of libpcap 1.10.N, or the reason why libpcap is not available.
pub(crate) fn patch_level() -> Result<u32, String> {
    let output = Command::new("tcpdump").arg("--version").output();
    let output =
        output.map_err(|error| format!("tcpdump cannot be run (Debian package tcpdump): {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let version = text.split_once("libpcap version 1.10.").map_or("", |(_, version)| version);
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().map_err(|_| "tcpdump has another libpcap than 1.10".to_owned())
}

/// Returns frames as the bytes of a savefile, with each frame's index as its time.
pub(crate) fn savefile(frames: &[CapturedFrame]) -> Vec<u8> {
    let mut file = Vec::new();
    let header = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, 1];
    header.iter().for_each(|word| file.extend(word.to_le_bytes()));
    for (number, CapturedFrame { data, length, .. }) in frames.iter().enumerate() {
        let record = [number, 0, data.len(), *length].map(|word| word as u32);
        record.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(data);
    }
    file
}

/// Returns the numbers of the frames in a savefile that tcpdump's filter selects, or libpcap's error.
pub(crate) fn select(file: &[u8], filter: &str, is_optimized: bool) -> Result<BTreeSet<usize>, String> {
    let mut command = Command::new("tcpdump");
    command.args(if is_optimized { &[][..] } else { &["-O"] }).args(["-r", "-", "-w", "-", "--", filter]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tcpdump = command.spawn().unwrap();
    let (mut stdin, mut stdout) = (tcpdump.stdin.take().unwrap(), tcpdump.stdout.take().unwrap());
    let mut selected = Vec::new();
    thread::scope(|scope| {
        // tcpdump ends without reading if it refuses the filter.
        scope.spawn(move || drop(stdin.write_all(file)));
        stdout.read_to_end(&mut selected).unwrap();
    });
    let output = tcpdump.wait_with_output().unwrap();
    if output.status.success() {
        return Ok(numbers(&selected));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().rev().find(|line| line.starts_with("tcpdump: ")).unwrap_or(&text).to_owned())
}

fn numbers(file: &[u8]) -> BTreeSet<usize> {
    let mut rest = file.get(24..).unwrap_or_default();
    let mut numbers = BTreeSet::new();
    while let Some((record, data)) = rest.split_first_chunk::<16>() {
        let word =
            |n: usize| u32::from_le_bytes([record[n], record[n + 1], record[n + 2], record[n + 3]]) as usize;
        numbers.insert(word(0));
        rest = &data[word(8)..];
    }
    numbers
}
