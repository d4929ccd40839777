//! A recording (pcap or pcapng) with any bytes, as an uplink replays it.
//!
//! The first byte selects a valid beginning, so that the fuzzer reaches the blocks behind it. Checked: no panic, whole
//! frames only, and no more of them than the file has bytes for.
#![cfg_attr(not(test), no_main)]

use daemon::port::frames_of_recording;

softiov_fuzz::target!(run);

/// Longest frame of a port in bytes.
const MAX_FRAME: usize = i82576::ids::MAX_FRAME;

/// Returns a pcap header with this magic number, and Ethernet as the link type.
fn pcap(magic: u32) -> Vec<u8> {
    [magic, 0x0004_0002, 0, 0, 0xffff, 1].into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Returns a pcapng section header and an Ethernet interface, in either byte order.
fn pcapng(big: bool) -> Vec<u8> {
    let words: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX, 28];
    let interface: [u32; 5] = [1, 20, 1, 0, 20];
    let bytes = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let halves = |word: u32| if big { word.rotate_left(16) } else { word };
    let section = words.into_iter().enumerate().map(|(at, word)| if at == 3 { halves(word) } else { word });
    let interface =
        interface.into_iter().enumerate().map(|(at, word)| if at == 2 { halves(word) } else { word });
    section.chain(interface).flat_map(bytes).collect()
}

fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let mut file = match kind % 6 {
        0 => Vec::new(),
        1 => pcap(0xa1b2_c3d4),
        2 => pcap(0xa1b2_3c4d),
        3 => pcapng(true),
        _ => pcapng(false),
    };
    file.extend(rest);
    let length = file.len();
    let (frames, malformed) = frames_of_recording(file);
    assert!(frames.iter().all(|frame| (14..=MAX_FRAME).contains(&frame.len())));
    assert!(frames.iter().map(Vec::len).sum::<usize>() <= length && malformed <= length as u64 + 1);
}
