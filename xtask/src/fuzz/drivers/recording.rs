//! Recording of one connection of a VMM: lines `message FDS BYTES` and `memory ADDRESS BYTES`, in the order of time.

use std::collections::BTreeMap;

/// Bytes of a vfio-user message's header.
pub(super) const HEADER: usize = 16;

/// vfio-user commands (specification, "Commands").
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const REGION_WRITE_MULTI: u16 = 15;
/// Region of BAR 0.
const BAR0: u64 = 0;
/// Bytes of one write of a REGION_WRITE_MULTI.
const ENTRY: usize = 24;

/// Message of a VMM, with the number of its descriptors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordedMessage {
    pub(super) fds: u8,
    pub(super) bytes: Vec<u8>,
}

/// Access of a driver to BAR 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RegisterAccess {
    Read(u32),
    /// Write of a dword, and the memory that was recorded before it, by address.
    Write(u32, u32, BTreeMap<u64, Vec<u8>>),
}

/// Messages of one connection, and the accesses to BAR 0 in them.
#[derive(Debug, Default)]
pub(super) struct DriverRecording {
    pub(super) messages: Vec<RecordedMessage>,
    pub(super) accesses: Vec<RegisterAccess>,
}

/// Returns a little-endian number; bytes beyond the end count as zero.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.iter().skip(at).take(length).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl RecordedMessage {
    pub(super) fn command(&self) -> u16 {
        number(&self.bytes, 2, 2) as u16
    }

    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }
}

impl DriverRecording {
    /// Reads a recording.
    ///
    /// # Errors
    /// Number of the first line that is invalid, from 1 on.
    pub(super) fn parse(text: &str) -> Result<Self, usize> {
        let mut recording = Self::default();
        let mut memory = BTreeMap::new();
        for (line, words) in (1_usize..).zip(text.lines()) {
            recording.add(words, &mut memory).ok_or(line)?;
        }
        Ok(recording)
    }

    fn add(&mut self, line: &str, memory: &mut BTreeMap<u64, Vec<u8>>) -> Option<()> {
        let mut words = line.split(' ');
        let (kind, detail, bytes) = (words.next()?, words.next()?, parse_bytes(words.next()?)?);
        if kind == "memory" {
            memory.insert(u64::from_str_radix(detail, 16).ok()?, bytes);
            return Some(());
        }
        let message = RecordedMessage { fds: detail.parse().ok().filter(|_| kind == "message")?, bytes };
        match message.command() {
            REGION_READ if number(message.body(), 8, 4) == BAR0 => {
                self.accesses.push(RegisterAccess::Read(number(message.body(), 0, 8) as u32));
            }
            REGION_WRITE => self.add_write(message.body(), memory),
            REGION_WRITE_MULTI => {
                let writes = message.body().get(8..).unwrap_or_default().chunks(ENTRY);
                writes.for_each(|write| self.add_write(write, memory));
            }
            _ => {}
        }
        self.messages.push(message);
        Some(())
    }

    /// Adds a write of offset, region, length and data.
    fn add_write(&mut self, write: &[u8], memory: &mut BTreeMap<u64, Vec<u8>>) {
        if number(write, 8, 4) == BAR0 && number(write, 12, 4) == 4 {
            let (offset, value) = (number(write, 0, 8) as u32, number(write, 16, 4) as u32);
            self.accesses.push(RegisterAccess::Write(offset, value, std::mem::take(memory)));
        }
    }
}

fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_gives_register_writes_with_the_memory_before_them() {
        let text = "memory 1f00 0102\n\
                    message 0 01000a0024000000100000000000000000840000000000000000000004000000_05000000\n\
                    message 0 02000900200000000000000000000000000c0000000000000000000004000000\n";
        let recording = DriverRecording::parse(&text.replace('_', "")).unwrap();
        let memory = BTreeMap::from([(0x1f00, vec![1, 2])]);
        assert_eq!(
            recording.accesses,
            [RegisterAccess::Write(0x8400, 5, memory), RegisterAccess::Read(0xc00)]
        );
        assert_eq!(DriverRecording::parse("message 0 00\nmessage 0 0g\n").unwrap_err(), 2);
    }
}
