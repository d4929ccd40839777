//! The lines of the control channel: requests of the host and answers of the guest (see `assets/init.sh`). The
//! guest may write anything, so lines are bounded and incomplete frames are ignored.

/// Length of the longest line of a guest that is processed, in bytes: 16 MiB of output, in hexadecimal. A longer line
/// is dropped.
const LONGEST_LINE: usize = 32 << 20;

/// Message that the guest sends over the control channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GuestMessage {
    /// The guest has booted and accepts commands.
    Ready { boot_id: String, release: String },
    /// A command of the host has ended.
    Done { id: u64, status: i32, stdout: Vec<u8>, stderr: Vec<u8> },
}

/// Request that the host sends to the guest, as one line.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestToGuest<'a> {
    Run { id: u64, script: &'a str },
    Kill { id: u64 },
    Reboot,
    PowerOff,
}

impl RequestToGuest<'_> {
    pub(super) fn line(self) -> String {
        match self {
            Self::Run { id, script } => format!("run {id} {}.\n", to_line(script)),
            Self::Kill { id } => format!("kill {id}\n"),
            Self::Reboot => "reboot\n".into(),
            Self::PowerOff => "poweroff\n".into(),
        }
    }
}

/// Reader that divides the bytes from the control channel into the guest's messages.
#[derive(Debug, Default)]
pub(super) struct GuestMessageReader {
    line: Vec<u8>,
    too_long: bool,
}

impl GuestMessageReader {
    /// Takes bytes received from the guest, and calls `on_frame` with each message that is now complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut on_frame: impl FnMut(GuestMessage)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.append(&bytes[..end]);
            if let Some(frame) = (!self.too_long).then(|| parse(&self.line)).flatten() {
                on_frame(frame);
            }
            self.line.clear();
            self.too_long = false;
            bytes = &bytes[end + 1..];
        }
        self.append(bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.too_long |= self.line.len() + bytes.len() > LONGEST_LINE;
        if self.too_long {
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }
}

fn parse(line: &[u8]) -> Option<GuestMessage> {
    let line = str::from_utf8(line).ok()?.strip_suffix(" .")?;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["ready", boot_id, release] => {
            Some(GuestMessage::Ready { boot_id: boot_id.to_owned(), release: release.to_owned() })
        }
        ["done", id, status, stdout, stderr] => Some(GuestMessage::Done {
            id: id.parse().ok()?,
            status: status.parse().ok()?,
            stdout: from_hex(stdout.strip_prefix('o')?)?,
            stderr: from_hex(stderr.strip_prefix('e')?)?,
        }),
        _ => None,
    }
}

/// Returns a script as one line, which `printf %b` in the guest converts back. The guest's `read` would drop leading
/// blanks, which have no meaning in a script.
fn to_line(script: &str) -> String {
    script.trim_start().replace('\\', r"\\").replace('\n', r"\n")
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(chunks: &[&[u8]]) -> Vec<GuestMessage> {
        let mut reader = GuestMessageReader::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            reader.feed(chunk, |frame| frames.push(frame));
        }
        frames
    }

    fn done(id: u64, status: i32, stdout: &str, stderr: &str) -> GuestMessage {
        GuestMessage::Done { id, status, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn any_script_is_sent_to_the_guest_as_one_line() {
        assert_eq!(RequestToGuest::Run { id: 7, script: "a\n\"b\"" }.line(), "run 7 a\\n\"b\".\n");
        assert_eq!(
            RequestToGuest::Run { id: 7, script: " printf '\\n' " }.line(),
            "run 7 printf '\\\\n' .\n"
        );
        assert_eq!(RequestToGuest::Kill { id: 7 }.line(), "kill 7\n");
    }

    #[test]
    fn guest_answers_received_in_pieces_are_read() {
        let stream = b"\nready 5f-1 6.1.0-56-amd64 .\n\ndone 1 0 o6869 e .\n\ndone 2 130 o e6e6f .\n";
        let ready = GuestMessage::Ready { boot_id: "5f-1".into(), release: "6.1.0-56-amd64".into() };
        let expected = [ready, done(1, 0, "hi", ""), done(2, 130, "", "no")];
        assert_eq!(frames(&[stream]), expected);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(frames(&bytes), expected);
    }

    #[test]
    fn guest_answer_cut_short_by_a_reboot_is_ignored() {
        let stream: &[u8] = b"\ndone 1 0 o686\nready 5f-2 6.1 .\n\ndone 2 0 o68 e .\n";
        assert!(matches!(
            frames(&[stream])[..],
            [GuestMessage::Ready { .. }, GuestMessage::Done { id: 2, .. }]
        ));
    }

    #[test]
    fn invalid_lines_of_the_guest_are_ignored() {
        for line in
            ["done x 0 o e .", "done 1 0 oz1 e .", "done 1 0 o1 e .", "done 1 0 e o .", "ready .", " ."]
        {
            assert_eq!(frames(&[line.as_bytes(), b"\n"]), [], "{line}");
        }
        assert_eq!(frames(&[b"\xff\xfe .\n"]), []);
    }

    #[test]
    fn endless_line_of_the_guest_is_not_stored() {
        let mut reader = GuestMessageReader::default();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            reader.feed(&chunk, |_| {});
            assert!(reader.line.capacity() <= 2 * LONGEST_LINE);
        }
        let mut answers = Vec::new();
        reader.feed(b"\ndone 3 0 o e .\n", |frame| answers.push(frame));
        assert_eq!(answers, [done(3, 0, "", "")]);
    }
}
