//! Progress of a client in its stream of messages, and its words in the journal.

use host::socket::{IncompleteMessageRange, UnsentReplyRange};
use vfio_user::wire::MAX_MESSAGE_FDS;

/// Progress of a client in its stream of messages, saved in the journal. All fields become valid at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::port) struct ClientMessageProgress {
    /// Numbers under which the client's socket and its file are kept; 0 if there is no client. The file holds pending replies,
    /// or a vhost-user client's saved state.
    pub(in crate::port) stream: u64,
    pub(in crate::port) replies: u64,
    /// Range of the reply file that holds replies not sent yet.
    pub(in crate::port) extent: UnsentReplyRange,
    /// Number of bytes at the front of the socket that this process is consuming: their messages are handled, or stored
    /// in the reply file.
    pub(in crate::port) consuming: u64,
    /// Peek offset of the socket before the `consuming` bytes are consumed. The kernel reduces the offset by one for
    /// each consumed byte.
    pub(in crate::port) peeked: u64,
    /// Range of the reply file that holds the consumed first part of an incomplete message.
    pub(in crate::port) held: IncompleteMessageRange,
    /// Number of bytes of the incomplete message after its stored part that were consumed and dropped, because the
    /// message is too long.
    pub(in crate::port) skipped: u64,
    /// Numbers of the file descriptors that came with the first unfinished message, [`NOT_KEPT`] for unusable ones. 0
    /// ends the list.
    pub(in crate::port) fds: [u64; MAX_MESSAGE_FDS],
    /// Negotiated minor version of vfio-user, and true if one message may carry several writes.
    pub(in crate::port) agreed: Option<(u16, bool)>,
    /// True if an earlier version of softiov has consumed part of a message without keeping it. Set for vhost-user clients, so
    /// that an earlier version, which cannot resume them, disconnects them.
    pub(in crate::port) torn: bool,
}

/// Number that stands for a file descriptor that is not kept for the successor process.
pub(in crate::port) const NOT_KEPT: u64 = u64::MAX;

impl ClientMessageProgress {
    /// Returns the numbers of the kept file descriptors of the incomplete message.
    pub(in crate::port) fn fds(&self) -> impl Iterator<Item = u64> {
        self.fds.into_iter().take_while(|number| *number != 0)
    }

    /// Returns the client's progress without the incomplete message, which is handled, or no longer at the front of the
    /// socket.
    pub(in crate::port) fn without_held(self) -> Self {
        Self { held: IncompleteMessageRange::default(), skipped: 0, fds: [0; MAX_MESSAGE_FDS], ..self }
    }
}

/// Words of a [`ClientMessageProgress`] in the journal. The first eleven are those of earlier versions; two of them have
/// changed their meaning.
pub(super) type ProgressWords = [u64; FDS + MAX_MESSAGE_FDS];

/// Index of the first file descriptor's number in the words of a saved [`ClientMessageProgress`].
pub(super) const FDS: usize = 13;
// Each place of a record has 256 bytes (`layout::FunctionJournalOffsets::progress`).
const _: () = assert!(size_of::<ProgressWords>() <= 256);

/// Flags of a saved [`ClientMessageProgress`]. If an earlier version of softiov reads [`TORN`], it disconnects the
/// client, because that version could not resume the client.
const TORN: u64 = 1;
const BY_PEEK_OFFSET: u64 = 2;

/// Returns the words of a client's progress: the record of commit `step` of a journal that uses `used` entries of windows.
pub(super) fn encode(progress: &ClientMessageProgress, step: u64, used: u64) -> ProgressWords {
    let ClientMessageProgress {
        stream,
        replies,
        extent,
        consuming,
        peeked,
        held,
        skipped,
        fds,
        agreed,
        torn,
    } = *progress;
    let agreed = agreed.map_or(0, |(minor, several)| 1 | u64::from(several) << 1 | u64::from(minor) << 16);
    let flags = match torn {
        true => TORN,
        false => BY_PEEK_OFFSET | if consuming > 0 || held.length > 0 { TORN } else { 0 },
    };
    let UnsentReplyRange { begin, end } = extent;
    let mut record = [0; FDS + MAX_MESSAGE_FDS];
    record[..FDS].copy_from_slice(&[
        step,
        used,
        stream,
        replies,
        begin,
        end,
        consuming,
        peeked,
        held.length,
        flags,
        agreed,
        held.begin,
        skipped,
    ]);
    record[FDS..].copy_from_slice(&fds);
    record
}

/// Returns a client's progress from its words.
pub(super) fn decode(record: &ProgressWords) -> ClientMessageProgress {
    let [_, _, stream, replies, begin, end, consuming, peeked, length, flags, agreed, at, skipped, ..] =
        *record;
    let agreed = (agreed & 1 != 0).then_some(((agreed >> 16) as u16, agreed & 2 != 0));
    let known = ClientMessageProgress {
        stream,
        replies,
        extent: UnsentReplyRange { begin, end },
        agreed,
        ..ClientMessageProgress::default()
    };
    if flags & BY_PEEK_OFFSET == 0 {
        return ClientMessageProgress { torn: flags & TORN != 0 || consuming > 0, ..known };
    }
    let mut fds = [0; MAX_MESSAGE_FDS];
    // Words behind the end of the list belong to an earlier message.
    let listed = record[FDS..].iter().take_while(|number| **number != 0);
    fds.iter_mut().zip(listed).for_each(|(place, number)| *place = *number);
    let held = IncompleteMessageRange { begin: at, length };
    ClientMessageProgress { consuming, peeked, held, skipped, fds, ..known }
}
