//! The bytes that a peer of a stream uplink sends, in any pieces.
//!
//! The first four bytes give the pieces, the fifth the longest frame of the port. The rest is the stream: records of a short
//! length and as many bytes, or raw bytes. Checked: no panic, and the frames that a simple reader of the whole stream finds.
#![cfg_attr(not(test), no_main)]

use daemon::port::frames_of_stream;
use softiov_fuzz::FuzzerInput;

softiov_fuzz::target!(run);

/// Longest and shortest frame that a peer may send, in bytes.
const LONGEST: usize = 4096 + 65536;
const SHORTEST: usize = 14;

/// Reads the frames of a whole stream: the same result as [`frames_of_stream`] has.
fn expected(mut stream: &[u8], room: usize) -> (Vec<Vec<u8>>, u64, bool) {
    let (mut frames, mut malformed) = (Vec::new(), 0);
    while let Some((length, rest)) = stream.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return (frames, malformed, true);
        }
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        if (SHORTEST..=room).contains(&length) {
            frames.push(frame.to_vec());
        } else {
            malformed += 1;
        }
        stream = rest;
    }
    (frames, malformed, false)
}

fn run(data: &[u8]) {
    let mut input = FuzzerInput(data);
    let Some([a, b, c, d, room]) = input.array() else { return };
    let pieces = [a, b, c, d].map(|piece| usize::from(piece) * usize::from(piece) / 16 + 1);
    let mut stream = Vec::new();
    while let Some([kind]) = input.array() {
        match kind {
            0..0xe0 => {
                let length = u32::from(kind) * 3;
                stream.extend(length.to_be_bytes());
                stream.resize(stream.len() + length as usize, kind);
            }
            0xe0..0xf0 => {
                let length = u32::from(kind & 15) * 6_000;
                stream.extend(length.to_be_bytes());
                stream.resize(stream.len() + length as usize, kind);
            }
            _ => stream.extend(input.bytes(usize::from(kind & 15))),
        }
    }
    let room = usize::from(room) * 40;
    assert_eq!(frames_of_stream(&stream, &pieces, room), expected(&stream, room));
}
