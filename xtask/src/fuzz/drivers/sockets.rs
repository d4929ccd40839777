//! Inputs of the vfio-user server: the messages of a VMM, each kind once.

use std::collections::BTreeSet;

use super::moves::Moves;
use super::recording::{DriverRecording, RecordedMessage, number};

/// vfio-user commands (specification, "Commands").
const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
/// Flag of a message without a reply, in its header.
const NO_REPLY: u64 = 1 << 4;
/// Longest body of a move.
const LONGEST_BODY: usize = 255;

/// Makes inputs of the target `vfio_user_server`, which negotiates the version itself.
pub(super) fn vfio_user_server(recording: &DriverRecording) -> Vec<Vec<u8>> {
    let mut seen = BTreeSet::new();
    let mut moves = Moves::default();
    for message in &recording.messages {
        if message.command() != VERSION && message.body().len() <= LONGEST_BODY && seen.insert(kind(message))
        {
            moves.add(move_of(message));
        }
    }
    moves.joined(&[1])
}

/// Returns the parts of a message that select the code which handles it: all but the id, the data and, in windows, the
/// address.
fn kind(message: &RecordedMessage) -> (u16, u8, usize, Vec<u8>) {
    let body = message.body();
    let selects = match message.command() {
        DMA_MAP | DMA_UNMAP => 8,
        _ => 16,
    };
    (message.command(), message.fds, body.len(), body[..body.len().min(selects)].to_vec())
}

/// Returns the move that sends a message: its descriptors come with the header's first byte.
fn move_of(message: &RecordedMessage) -> Vec<u8> {
    let (command, body) = (message.command() as u8, message.body());
    let style = u8::from(number(&message.bytes, 8, 4) & NO_REPLY != 0);
    [&[1, message.fds, command, style, body.len() as u8], body, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(command: u8, flags: u8, body: &[u8]) -> RecordedMessage {
        let header = [9, 0, command, 0, 16 + body.len() as u8, 0, 0, 0, flags, 0, 0, 0, 0, 0, 0, 0];
        RecordedMessage { fds: 1, bytes: [&header[..], body].concat() }
    }

    #[test]
    fn vmm_messages_of_one_kind_are_one_move() {
        let messages = vec![
            message(1, 0, b"{}"),
            message(10, 0x10, &[7; 20]),
            message(10, 0x10, &[7; 20]),
            message(13, 0, &[]),
        ];
        let recording = DriverRecording { messages, ..DriverRecording::default() };
        let write = [&[1, 1, 10, 1, 20][..], &[7; 20], &[0]].concat();
        assert_eq!(vfio_user_server(&recording), [[&[1][..], &write, &[1, 1, 13, 0, 0, 0]].concat()]);
    }
}
