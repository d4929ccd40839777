//! A disk that is read and written in commands, one after the other, with a buffer that it fills ahead of a reader. Time
//! is an argument. Left out: where on the surface sectors are, queues that the disk sorts, and errors of its own.

use sim::{Instant, Span};
use std::collections::VecDeque;
use thiserror::Error;

/// Bytes of a sector.
pub(crate) const SECTOR: u64 = 512;
/// Commands that it takes at once.
pub(crate) const COMMANDS: usize = 32;
/// Sectors of a command at most.
pub(crate) const LONGEST: u32 = 256;
/// What its surface gives a second, what its cable does, and its buffer: a SATA disk of 2008 with 7,200 turns a minute.
const SURFACE: u64 = 100_000_000;
const CABLE: u64 = 300_000_000;
const BUFFER: u64 = 16 << 20;
/// What it takes to look at a command and to tell of its end; to find another place.
const COMMAND: Span = Span::from_micros(40);
const SEEK: Span = Span::from_millis(8);

/// What it is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    /// For whoever sends it to know it by; none of those under way.
    pub(crate) tag: u8,
    pub(crate) write: bool,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

impl Command {
    fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR
    }
}

/// A command is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Refused {
    /// There are as many as it takes.
    #[error("it has {COMMANDS} commands")]
    Full,
    /// One of that tag is under way.
    #[error("there is a command of that tag")]
    Tag,
    /// No sectors, or more than a command can have.
    #[error("a command has from 1 to {LONGEST} sectors")]
    Length,
    /// Sectors beyond its end.
    #[error("the disk does not have those sectors")]
    Range,
}

/// The disk.
#[derive(Debug)]
pub(crate) struct Disk {
    sectors: u64,
    /// Commands, and since when it has them.
    line: VecDeque<(Command, Instant)>,
    /// When the first of the line is done.
    due: Option<Instant>,
    /// The sector that a reader would go on with, the bytes from there on that were in the buffer, and when.
    next: u64,
    ahead: u64,
    since: Instant,
    /// Commands taken, and done.
    pub(crate) taken: u64,
    pub(crate) done: u64,
}

impl Disk {
    /// A disk of so many sectors, its head at the first and nothing in its buffer.
    pub(crate) fn new(sectors: u64) -> Self {
        let (line, due) = (VecDeque::with_capacity(COMMANDS), None);
        Self { sectors, line, due, next: 0, ahead: 0, since: Instant::ZERO, taken: 0, done: 0 }
    }

    /// Takes a command.
    pub(crate) fn submit(&mut self, command: Command, now: Instant) -> Result<(), Refused> {
        if self.line.len() == COMMANDS {
            return Err(Refused::Full);
        }
        if self.line.iter().any(|(other, _)| other.tag == command.tag) {
            return Err(Refused::Tag);
        }
        if !(1..=LONGEST).contains(&command.sectors) {
            return Err(Refused::Length);
        }
        let end = command.sector.checked_add(command.sectors.into());
        if end.is_none_or(|end| end > self.sectors) {
            return Err(Refused::Range);
        }
        self.line.push_back((command, now));
        self.taken += 1;
        if self.line.len() == 1 {
            self.begin(now);
        }
        Ok(())
    }

    /// When the next command is done.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The command that is done by now, if one is, and whether its data went where it was to go. `memory` moves the data
    /// and says whether it may: what it refuses ends the command and nothing else.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        memory: &mut impl FnMut(&Command) -> bool,
    ) -> Option<(Command, bool)> {
        let at = self.due.filter(|due| *due <= now)?;
        let (command, _) = self.line.pop_front()?;
        self.done += 1;
        self.due = None;
        self.begin(at);
        Some((command, memory(&command)))
    }

    /// Begins with the first of the line: it is done when the surface and the cable are.
    fn begin(&mut self, free: Instant) {
        let Some((command, since)) = self.line.front().copied() else { return };
        let now = free.max(since);
        let looked_at = now + COMMAND;
        let moved = looked_at + takes(command.bytes(), CABLE);
        let follows = command.sector == self.next && !command.write;
        let ahead = if follows { self.ahead_at(now) } else { 0 };
        let begins = if follows { now } else { looked_at + SEEK };
        let missing = command.bytes().saturating_sub(ahead);
        let read = begins + takes(missing, SURFACE);
        let due = moved.max(read);
        self.next = command.sector + u64::from(command.sectors);
        // A reader's buffer goes on filling while the cable is busy; a writer leaves nothing in it.
        (self.ahead, self.since) = if command.write {
            (0, due)
        } else {
            (ahead.saturating_sub(command.bytes()), if missing > 0 { read } else { now })
        };
        self.due = Some(due);
    }

    /// What is in the buffer of what a reader would go on with.
    fn ahead_at(&self, now: Instant) -> u64 {
        let passed = now.since(self.since).picos();
        let read = u128::from(passed) * u128::from(SURFACE) / u128::from(sim::time::PICOS_PER_SECOND);
        let left = (self.sectors - self.next) * SECTOR;
        (u128::from(self.ahead) + read).min(u128::from(BUFFER.min(left))) as u64
    }
}

/// How long so many bytes take at so many a second.
fn takes(bytes: u64, per_second: u64) -> Span {
    Span::of_bits(bytes * 8, per_second * 8)
}

#[cfg(test)]
mod tests {
    use super::{BUFFER, COMMANDS, Command, Disk, LONGEST, Refused, SECTOR, SEEK, SURFACE, takes};
    use sim::{Generator, Instant, Span};

    const SECTORS: u64 = 1 << 20;

    fn read(tag: u8, sector: u64, sectors: u32) -> Command {
        Command { tag, write: false, sector, sectors }
    }

    /// Lets the disk finish what it is at: when that was.
    fn finish(disk: &mut Disk) -> (Instant, Command) {
        let due = disk.due().unwrap();
        assert_eq!(disk.finish(Instant::from_picos(due.picos() - 1), &mut |_| true), None, "not before");
        let (command, good) = disk.finish(due, &mut |_| true).unwrap();
        assert!(good);
        (due, command)
    }

    #[test]
    fn commands_are_done_in_order_and_each_once() {
        let mut disk = Disk::new(SECTORS);
        let all: Vec<_> = (0..COMMANDS as u8).map(|tag| read(tag, u64::from(tag) * 8, 8)).collect();
        for command in &all {
            disk.submit(*command, Instant::ZERO).unwrap();
        }
        let mut last = Instant::ZERO;
        for command in all {
            let (at, done) = finish(&mut disk);
            assert!(done == command && at > last);
            last = at;
        }
        assert_eq!((disk.due(), disk.taken, disk.done), (None, 32, 32));
        assert_eq!(disk.finish(Instant::NEVER, &mut |_| true), None);
    }

    #[test]
    fn what_cannot_be_is_refused_and_disturbs_nobody() {
        let mut disk = Disk::new(SECTORS);
        disk.submit(read(1, 0, 8), Instant::ZERO).unwrap();
        let due = disk.due();
        for (command, refused) in [
            (read(1, 8, 8), Refused::Tag),
            (read(2, 8, 0), Refused::Length),
            (read(2, 8, LONGEST + 1), Refused::Length),
            (read(2, 8, u32::MAX), Refused::Length),
            (read(2, SECTORS - 7, 8), Refused::Range),
            (read(2, u64::MAX, 1), Refused::Range),
        ] {
            assert_eq!(disk.submit(command, Instant::ZERO), Err(refused));
        }
        for tag in 2..=COMMANDS as u8 {
            disk.submit(read(tag, SECTORS - 1, 1), Instant::ZERO).unwrap();
        }
        assert_eq!(disk.submit(read(0, 0, 1), Instant::ZERO), Err(Refused::Full));
        assert_eq!((disk.due(), disk.taken), (due, COMMANDS as u64));
    }

    #[test]
    fn memory_that_refuses_ends_its_command_alone() {
        let mut disk = Disk::new(SECTORS);
        disk.submit(read(0, 0, 8), Instant::ZERO).unwrap();
        disk.submit(read(1, 8, 8), Instant::ZERO).unwrap();
        let far = Instant::from_nanos(1 << 40);
        let mut memory = |command: &Command| command.tag != 0;
        let ends: Vec<_> = (0..2).map(|_| disk.finish(far, &mut memory).unwrap().1).collect();
        assert_eq!(ends, [false, true]);
    }

    #[test]
    fn a_reader_that_was_away_finds_what_is_next_in_the_buffer() {
        let mut disk = Disk::new(SECTORS);
        disk.submit(read(0, 0, LONGEST), Instant::ZERO).unwrap();
        let (first, _) = finish(&mut disk);
        let later = first + Span::from_millis(50);
        disk.submit(read(0, LONGEST.into(), LONGEST), later).unwrap();
        let (second, _) = finish(&mut disk);
        assert!(second.since(later).picos() * 2 < first.since(Instant::ZERO).picos(), "over the cable alone");
        disk.submit(read(0, 0, 1), second).unwrap();
        assert!(finish(&mut disk).0.since(second) > SEEK, "another place");
    }

    #[test]
    fn what_was_written_is_not_read_ahead() {
        let mut disk = Disk::new(SECTORS);
        disk.submit(Command { write: true, ..read(0, 0, 8) }, Instant::ZERO).unwrap();
        let (written, _) = finish(&mut disk);
        disk.submit(read(0, 8, LONGEST), written).unwrap();
        assert!(finish(&mut disk).0.since(written) >= takes(u64::from(LONGEST) * SECTOR, SURFACE));
    }

    /// Whatever is asked for, and when: nothing comes faster than the surface gives it, but for what the buffer holds.
    #[test]
    fn no_reader_is_faster_than_the_surface() {
        for seed in 0..50 {
            let mut chance = Generator::named(seed, "reader");
            let mut disk = Disk::new(SECTORS);
            let (mut now, mut bytes, mut sector) = (Instant::ZERO, 0, 0);
            for _ in 0..300 {
                now += Span::from_nanos(chance.below(2_000_000));
                if chance.below(20) == 0 {
                    sector = chance.below(SECTORS / 2);
                }
                let sectors = 1 + chance.below(LONGEST.into()) as u32;
                disk.submit(read(0, sector, sectors), now).unwrap();
                sector += u64::from(sectors);
                now = finish(&mut disk).0;
                bytes += u64::from(sectors) * SECTOR;
                let most = now.since(Instant::ZERO).as_secs_f64() * SURFACE as f64 + BUFFER as f64;
                assert!(bytes as f64 <= most);
            }
        }
    }
}
