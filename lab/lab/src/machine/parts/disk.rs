//! Model of a disk that executes commands one after the other, with a read-ahead buffer. Time is an argument. Positions
//! on the surface, command reordering and media errors are not modelled.

use sim::{VirtualDuration, VirtualInstant};
use std::collections::VecDeque;
use thiserror::Error;

/// Bytes of a disk sector.
pub(crate) const SECTOR: u64 = 512;
/// Maximum number of commands that the disk queues.
pub(crate) const COMMANDS: usize = 32;
/// Maximum number of sectors that a command reads or writes.
pub(crate) const MAX_SECTORS: u32 = 256;
/// Bytes of the disk's read-ahead buffer.
const BUFFER: u64 = 16 << 20;
/// Time of a seek of the disk's head. A sequential reader seeks once.
const SEEK: VirtualDuration = VirtualDuration::from_millis(8);

/// Rates of a disk, and its time for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskProperties {
    /// Bytes per second from the disk's surface.
    pub surface: u64,
    /// Bytes per second over the disk's cable.
    pub cable: u64,
    /// Overhead of a disk command and its completion.
    pub command: VirtualDuration,
}

#[cfg(test)]
impl DiskProperties {
    /// SATA disk of 2008 at 7,200 rpm.
    pub(crate) const SATA: Self =
        Self { surface: 100_000_000, cable: 300_000_000, command: VirtualDuration::from_micros(40) };
}

/// Command that the disk executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskCommand {
    /// Tag of the disk command, distinct from the tags of queued commands.
    pub(crate) tag: u8,
    pub(crate) write: bool,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

impl DiskCommand {
    fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR
    }
}

/// Error of submitting a disk command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum DiskSubmitError {
    /// The modelled disk's queue is full.
    #[error("the disk's command queue is full ({COMMANDS} commands)")]
    Full,
    /// A queued disk command has the same tag.
    #[error("a queued disk command has the same tag")]
    Tag,
    /// The command's number of sectors is zero or too large.
    #[error("the length of the disk command is out of range (1-{MAX_SECTORS} sectors)")]
    Length,
    /// The command's sectors are beyond the end of the disk.
    #[error("the command's sectors are beyond the end of the disk")]
    Range,
}

/// State of the modelled disk.
#[derive(Debug)]
pub(crate) struct Disk {
    properties: DiskProperties,
    sectors: u64,
    /// Queued commands with their submission times.
    line: VecDeque<(DiskCommand, VirtualInstant)>,
    /// Time at which the first queued command completes.
    due: Option<VirtualInstant>,
    /// Next sector of a sequential reader, behind the last sector read.
    next: u64,
    /// Bytes of the sequential reader's next sectors that were in the read-ahead buffer at time `since`.
    ahead: u64,
    /// Time at which the bytes in the read-ahead buffer were counted.
    since: VirtualInstant,
    /// Number of commands that the disk accepted.
    pub(crate) taken: u64,
    /// Number of commands that the disk completed.
    pub(crate) done: u64,
}

impl Disk {
    /// Creates a disk with the head at sector 0 and an empty buffer.
    pub(crate) fn new(properties: DiskProperties, sectors: u64) -> Self {
        let (line, due, since) = (VecDeque::with_capacity(COMMANDS), None, VirtualInstant::ZERO);
        Self { properties, sectors, line, due, next: 0, ahead: 0, since, taken: 0, done: 0 }
    }

    /// Appends a command to the disk's queue.
    pub(crate) fn submit(
        &mut self,
        command: DiskCommand,
        now: VirtualInstant,
    ) -> Result<(), DiskSubmitError> {
        if self.line.len() == COMMANDS {
            return Err(DiskSubmitError::Full);
        }
        if self.line.iter().any(|(other, _)| other.tag == command.tag) {
            return Err(DiskSubmitError::Tag);
        }
        if !(1..=MAX_SECTORS).contains(&command.sectors) {
            return Err(DiskSubmitError::Length);
        }
        let end = command.sector.checked_add(command.sectors.into());
        if end.is_none_or(|end| end > self.sectors) {
            return Err(DiskSubmitError::Range);
        }
        self.line.push_back((command, now));
        self.taken += 1;
        if self.line.len() == 1 {
            self.begin(now);
        }
        Ok(())
    }

    /// Returns the time at which the disk's next command completes.
    pub(crate) fn due(&self) -> Option<VirtualInstant> {
        self.due
    }

    /// Completes the disk command that is due, and returns the command and its success. `memory` transfers the data; if
    /// `memory` returns `false`, only this command fails.
    pub(crate) fn finish(
        &mut self,
        now: VirtualInstant,
        memory: &mut impl FnMut(&DiskCommand) -> bool,
    ) -> Option<(DiskCommand, bool)> {
        let at = self.due.filter(|due| *due <= now)?;
        let (command, _) = self.line.pop_front()?;
        self.done += 1;
        self.due = None;
        self.begin(at);
        Some((command, memory(&command)))
    }

    /// Starts the disk's first queued command. The command completes when the disk's surface and cable have transferred
    /// the data.
    fn begin(&mut self, free: VirtualInstant) {
        let Some((command, since)) = self.line.front().copied() else { return };
        let disk = self.properties;
        let now = free.max(since);
        let looked_at = now + disk.command;
        let moved = looked_at + transfer_time(command.bytes(), disk.cable);
        let follows = command.sector == self.next && !command.write;
        let ahead = if follows { self.ahead_at(now) } else { 0 };
        let begins = if follows { now } else { looked_at + SEEK };
        let missing = command.bytes().saturating_sub(ahead);
        let read = begins + transfer_time(missing, disk.surface);
        let due = moved.max(read);
        self.next = command.sector + u64::from(command.sectors);
        // The buffer keeps filling for a reader while the cable is busy; a write empties it.
        (self.ahead, self.since) = if command.write {
            (0, due)
        } else {
            (ahead.saturating_sub(command.bytes()), if missing > 0 { read } else { now })
        };
        self.due = Some(due);
    }

    /// Returns the bytes that the disk has read ahead, by `now`, for the next sequential read.
    fn ahead_at(&self, now: VirtualInstant) -> u64 {
        let passed = now.since(self.since).picos();
        let read = u128::from(passed) * u128::from(self.properties.surface)
            / u128::from(sim::time::PICOS_PER_SECOND);
        let left = (self.sectors - self.next) * SECTOR;
        (u128::from(self.ahead) + read).min(u128::from(BUFFER.min(left))) as u64
    }
}

/// Returns the time to transfer `bytes` at a rate of `per_second` bytes per second.
fn transfer_time(bytes: u64, per_second: u64) -> VirtualDuration {
    VirtualDuration::of_bits(bytes * 8, per_second * 8)
}

#[cfg(test)]
mod tests {
    use super::{
        BUFFER, COMMANDS, Disk, DiskCommand, DiskProperties, DiskSubmitError, MAX_SECTORS, SECTOR, SEEK,
        transfer_time,
    };
    use sim::{RandomStream, VirtualDuration, VirtualInstant};

    const SECTORS: u64 = 1 << 20;

    fn read(tag: u8, sector: u64, sectors: u32) -> DiskCommand {
        DiskCommand { tag, write: false, sector, sectors }
    }

    /// Completes the disk's current command. Returns its completion time.
    fn finish(disk: &mut Disk) -> (VirtualInstant, DiskCommand) {
        let due = disk.due().unwrap();
        assert_eq!(
            disk.finish(VirtualInstant::from_picos(due.picos() - 1), &mut |_| true),
            None,
            "the command is not complete before its time"
        );
        let (command, good) = disk.finish(due, &mut |_| true).unwrap();
        assert!(good);
        (due, command)
    }

    #[test]
    fn disk_commands_complete_once_in_order() {
        let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
        let all: Vec<_> = (0..COMMANDS as u8).map(|tag| read(tag, u64::from(tag) * 8, 8)).collect();
        for command in &all {
            disk.submit(*command, VirtualInstant::ZERO).unwrap();
        }
        let mut last = VirtualInstant::ZERO;
        for command in all {
            let (at, done) = finish(&mut disk);
            assert!(done == command && at > last);
            last = at;
        }
        assert_eq!((disk.due(), disk.taken, disk.done), (None, 32, 32));
        assert_eq!(disk.finish(VirtualInstant::NEVER, &mut |_| true), None);
    }

    #[test]
    fn invalid_disk_command_is_rejected_without_effect() {
        let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
        disk.submit(read(1, 0, 8), VirtualInstant::ZERO).unwrap();
        let due = disk.due();
        for (command, refused) in [
            (read(1, 8, 8), DiskSubmitError::Tag),
            (read(2, 8, 0), DiskSubmitError::Length),
            (read(2, 8, MAX_SECTORS + 1), DiskSubmitError::Length),
            (read(2, 8, u32::MAX), DiskSubmitError::Length),
            (read(2, SECTORS - 7, 8), DiskSubmitError::Range),
            (read(2, u64::MAX, 1), DiskSubmitError::Range),
        ] {
            assert_eq!(disk.submit(command, VirtualInstant::ZERO), Err(refused));
        }
        for tag in 2..=COMMANDS as u8 {
            disk.submit(read(tag, SECTORS - 1, 1), VirtualInstant::ZERO).unwrap();
        }
        assert_eq!(disk.submit(read(0, 0, 1), VirtualInstant::ZERO), Err(DiskSubmitError::Full));
        assert_eq!((disk.due(), disk.taken), (due, COMMANDS as u64));
    }

    #[test]
    fn failed_transfer_fails_only_its_own_disk_command() {
        let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
        disk.submit(read(0, 0, 8), VirtualInstant::ZERO).unwrap();
        disk.submit(read(1, 8, 8), VirtualInstant::ZERO).unwrap();
        let far = VirtualInstant::from_nanos(1 << 40);
        let mut memory = |command: &DiskCommand| command.tag != 0;
        let ends: Vec<_> = (0..2).map(|_| disk.finish(far, &mut memory).unwrap().1).collect();
        assert_eq!(ends, [false, true]);
    }

    #[test]
    fn sequential_disk_read_after_a_pause_hits_the_buffer() {
        let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
        disk.submit(read(0, 0, MAX_SECTORS), VirtualInstant::ZERO).unwrap();
        let (first, _) = finish(&mut disk);
        let later = first + VirtualDuration::from_millis(50);
        disk.submit(read(0, MAX_SECTORS.into(), MAX_SECTORS), later).unwrap();
        let (second, _) = finish(&mut disk);
        assert!(
            second.since(later).picos() * 2 < first.since(VirtualInstant::ZERO).picos(),
            "the read takes only the cable's time"
        );
        disk.submit(read(0, 0, 1), second).unwrap();
        assert!(finish(&mut disk).0.since(second) > SEEK, "a read of another place takes a seek");
    }

    #[test]
    fn disk_write_empties_the_read_ahead_buffer() {
        let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
        disk.submit(DiskCommand { write: true, ..read(0, 0, 8) }, VirtualInstant::ZERO).unwrap();
        let (written, _) = finish(&mut disk);
        disk.submit(read(0, 8, MAX_SECTORS), written).unwrap();
        assert!(
            finish(&mut disk).0.since(written)
                >= transfer_time(u64::from(MAX_SECTORS) * SECTOR, DiskProperties::SATA.surface)
        );
    }

    /// Checks that sequential reads are no faster than the surface for any commands and times, except for bytes in the
    /// buffer.
    #[test]
    fn sequential_disk_reads_never_exceed_the_surface_rate() {
        for seed in 0..50 {
            let mut chance = RandomStream::named(seed, "reader");
            let mut disk = Disk::new(DiskProperties::SATA, SECTORS);
            let (mut now, mut bytes, mut sector) = (VirtualInstant::ZERO, 0, 0);
            for _ in 0..300 {
                now += VirtualDuration::from_nanos(chance.below(2_000_000));
                if chance.below(20) == 0 {
                    sector = chance.below(SECTORS / 2);
                }
                let sectors = 1 + chance.below(MAX_SECTORS.into()) as u32;
                disk.submit(read(0, sector, sectors), now).unwrap();
                sector += u64::from(sectors);
                now = finish(&mut disk).0;
                bytes += u64::from(sectors) * SECTOR;
                let most = now.since(VirtualInstant::ZERO).as_secs_f64()
                    * DiskProperties::SATA.surface as f64
                    + BUFFER as f64;
                assert!(bytes as f64 <= most);
            }
        }
    }
}
