//! Saved state of one function's client: its progress, DMA windows and eventfds.

use super::configuration;
use super::layout::{self, COUNT_LIMIT, IRQ, IRQ_TYPES, IRQS_A_TYPE, MOST_WINDOWS, WINDOW};
use super::memory::{get, put, words};
use super::progress::{ClientMessageProgress, FDS, ProgressWords, decode, encode};
use host::dma::DmaPermissions;
use host::shared::SharedMemory;
use std::collections::BTreeMap;
use std::sync::Arc;

/// DMA window of a client, as saved in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct SavedDmaWindow {
    pub(in crate::port) iova: u64,
    pub(in crate::port) size: u64,
    pub(in crate::port) permissions: DmaPermissions,
    /// Number of the DMA window's file, 0 if it has none, and the offset of the window's first byte in the file.
    pub(in crate::port) file: u64,
    pub(in crate::port) offset: u64,
}

/// Eventfd of an interrupt vector, as saved in the journal: interrupt type, vector, and number of the kept file
/// descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct SavedEventfd {
    pub(in crate::port) index: u32,
    pub(in crate::port) vector: u32,
    pub(in crate::port) number: u64,
}

/// Saved state of a function's client that the previous host process left.
#[derive(Debug, Default)]
pub(in crate::port) struct SavedClient {
    pub(in crate::port) progress: ClientMessageProgress,
    pub(in crate::port) windows: Vec<SavedDmaWindow>,
    pub(in crate::port) irqs: Vec<SavedEventfd>,
}

/// Part of the journal for one function's client.
#[derive(Debug)]
pub(in crate::port) struct FunctionJournal {
    memory: Arc<SharedMemory>,
    at: layout::FunctionJournalOffsets,
    progress: ClientMessageProgress,
    /// Number of the last commit (`step`) of this part of the journal. Entries saved since then become valid with the
    /// next commit.
    step: u64,
    /// Index of each valid DMA window's entry in the journal, by the window's first address.
    places: BTreeMap<u64, u64>,
    /// Indices of free window entries (`free`), and of entries whose windows stay valid until the next commit
    /// (`released`).
    free: Vec<u64>,
    released: Vec<u64>,
    /// Indices of the entries of all windows, by address, if all are removed with the next commit.
    cleared: BTreeMap<u64, u64>,
    /// Number of the journal's DMA window entries in use so far. Every window's index is below this number.
    used: u64,
    /// True if a DMA window or an eventfd was saved since the last journal commit.
    touched: bool,
    /// True if the previous host process left this part of the journal, perhaps with entries that it had not committed.
    inherited: bool,
}

const USED: usize = 1;
/// Offsets in a DMA window's journal entry: number of the commit that removed the window, and number of the window's
/// file.
const REMOVED: u64 = 8;
const FILE: u64 = 40;

impl FunctionJournal {
    pub(super) fn open(memory: Arc<SharedMemory>, at: layout::FunctionJournalOffsets) -> Self {
        let mut record: ProgressWords = words(&memory, at.progress[(get(&memory, at.which) % 2) as usize]);
        if record[0] >= COUNT_LIMIT {
            // A damaged record is none: the function has no client.
            record = [0; _];
        }
        let mut journal = Self {
            memory,
            at,
            progress: decode(&record),
            step: record[0],
            places: BTreeMap::new(),
            free: Vec::new(),
            released: Vec::new(),
            cleared: BTreeMap::new(),
            used: record[USED].min(MOST_WINDOWS),
            touched: false,
            inherited: true,
        };
        for place in (0..journal.used).rev() {
            match journal.window(place) {
                Some(window) => drop(journal.places.insert(window.iova, place)),
                None => journal.free.push(place),
            }
        }
        journal
    }

    /// Returns the saved state of the function's client.
    pub(in crate::port) fn noted(&self) -> SavedClient {
        let windows = self.places.values().filter_map(|place| self.window(*place)).collect();
        SavedClient { progress: self.progress, windows, irqs: self.irqs() }
    }

    /// Returns the saved eventfds of the function's interrupt vectors.
    pub(in crate::port) fn irqs(&self) -> Vec<SavedEventfd> {
        let irqs = (0..IRQ_TYPES as u32).flat_map(|index| {
            (0..IRQS_A_TYPE as u32).filter_map(move |vector| {
                let number = self.irq_number(index, vector);
                (number != 0).then_some(SavedEventfd { index, vector, number })
            })
        });
        irqs.collect()
    }

    /// Returns the progress of the client that was saved last.
    pub(in crate::port) fn progress(&self) -> ClientMessageProgress {
        self.progress
    }

    /// Returns true if DMA windows or eventfds were saved since the last journal commit. The next commit makes them
    /// valid.
    pub(in crate::port) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Commits the client's progress to the journal. Everything saved since the last commit becomes valid with it.
    pub(in crate::port) fn step(&mut self, progress: ClientMessageProgress) {
        self.forget_unfinished();
        self.step += 1;
        (self.progress, self.touched) = (progress, false);
        if self.places.is_empty() {
            (self.used, self.cleared) = (0, BTreeMap::new());
            (self.free, self.released) = (Vec::new(), Vec::new());
        }
        let record = encode(&progress, self.step, self.used);
        let place = self.step % 2;
        // Words behind the end of the list of descriptors are ignored, so they need not be written.
        let words = (FDS + progress.fds().count() + 1).min(record.len());
        put(&self.memory, self.at.progress[place as usize], &record[..words]);
        put(&self.memory, self.at.which, &[place]);
        self.free.append(&mut self.released);
    }

    /// Saves the function's PCI configuration beside the port's driver state, valid at once. Returns `false` if the
    /// whole driver state has to be saved instead.
    pub(in crate::port) fn note_configuration(&self, bytes: &[u8]) -> bool {
        configuration::write(&self.memory, &self.at, bytes)
    }

    /// Saves a new DMA window in the journal. Returns `false` if the journal has no room.
    pub(in crate::port) fn add_window(&mut self, window: &SavedDmaWindow) -> bool {
        self.forget_unfinished();
        self.remove_cleared();
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.used < MOST_WINDOWS => {
                self.used += 1;
                self.used - 1
            }
            None => return false,
        };
        let DmaPermissions { read, write } = window.permissions;
        let permissions = u64::from(read) | u64::from(write) << 1;
        let SavedDmaWindow { iova, size, file, offset, .. } = *window;
        // The step comes first in memory: while it is in the future, the rest of the record is ignored.
        let record = [self.step + 1, 0, iova, size, offset, file, permissions];
        put(&self.memory, self.window_at(place), &record);
        self.places.insert(iova, place);
        self.touched = true;
        true
    }

    /// Removes from the journal the DMA windows that begin in the `size` bytes from `iova` on. Returns the numbers of
    /// their files.
    pub(in crate::port) fn remove_windows(&mut self, iova: u64, size: u64) -> Vec<u64> {
        self.forget_unfinished();
        let last = iova.saturating_add(size.saturating_sub(1));
        let gone: Vec<(u64, u64)> =
            self.places.range(iova..=last).map(|(first, place)| (*first, *place)).collect();
        self.touched = true;
        let remove = |(first, place): (u64, u64)| {
            self.places.remove(&first);
            self.remove_entry(place);
            get(&self.memory, self.window_at(place) + FILE)
        };
        gone.into_iter().map(remove).filter(|number| *number != 0).collect()
    }

    fn remove_entry(&mut self, place: u64) {
        put(&self.memory, self.window_at(place) + REMOVED, &[self.step + 1]);
        // The window stays valid until the step, so its place must not be reused before.
        self.released.push(place);
    }

    /// Removes all DMA windows of the function from the journal. Stores nothing: the next commit says that no entry is in use.
    pub(in crate::port) fn clear_windows(&mut self) {
        self.forget_unfinished();
        self.cleared.append(&mut self.places);
        self.touched = true;
    }

    /// Removes the entries of all windows one by one, for a new window that the same commit makes valid.
    fn remove_cleared(&mut self) {
        for place in std::mem::take(&mut self.cleared).into_values() {
            self.remove_entry(place);
        }
    }

    /// Saves the eventfd of an interrupt vector in the journal, or its removal (number 0).
    pub(in crate::port) fn set_irq(&mut self, irq: SavedEventfd) {
        let SavedEventfd { index, vector, number } = irq;
        self.forget_unfinished();
        let inside = u64::from(vector) < IRQS_A_TYPE && u64::from(index) < IRQ_TYPES;
        if !inside || self.irq_number(index, vector) == number {
            return;
        }
        let at = self.irq_at(index, vector);
        let [one, _, other, _]: [u64; 4] = words(&self.memory, at);
        // The place that is valid until the step is not overwritten.
        let place = if one > self.step || (one <= other && other <= self.step) { at } else { at + 16 };
        put(&self.memory, place + 8, &[number]);
        put(&self.memory, place, &[self.step + 1]);
        self.touched = true;
    }

    /// Erases journal entries that a killed process has not committed. Otherwise this process's commit of the same
    /// number would make these entries valid. Runs before this process first saves something.
    fn forget_unfinished(&mut self) {
        if !std::mem::take(&mut self.inherited) {
            return;
        }
        for place in 0..self.used {
            let at = self.window_at(place);
            let [added, removed] = words(&self.memory, at);
            if added > self.step {
                put(&self.memory, at + REMOVED, &[1]);
                put(&self.memory, at, &[0]);
            } else if removed > self.step {
                put(&self.memory, at + REMOVED, &[0]);
            }
        }
        for entry in 0..IRQ_TYPES * IRQS_A_TYPE {
            let at = self.at.irqs + entry * IRQ;
            for place in [at, at + 16] {
                if get(&self.memory, place) > self.step {
                    put(&self.memory, place, &[0, 0]);
                }
            }
        }
    }

    /// Returns the DMA window in an entry of the journal, if the entry is valid. Commit number 0 in an entry stands for
    /// no commit.
    fn window(&self, place: u64) -> Option<SavedDmaWindow> {
        let [added, removed, iova, size, offset, file, permissions] =
            words(&self.memory, self.window_at(place));
        let counts = added != 0 && added <= self.step && (removed == 0 || removed > self.step);
        let permissions = DmaPermissions { read: permissions & 1 != 0, write: permissions & 2 != 0 };
        counts.then_some(SavedDmaWindow { iova, size, permissions, file, offset })
    }

    fn window_at(&self, place: u64) -> u64 {
        self.at.windows + place * WINDOW
    }

    fn irq_at(&self, index: u32, vector: u32) -> u64 {
        self.at.irqs + (u64::from(index) * IRQS_A_TYPE + u64::from(vector)) * IRQ
    }

    /// Returns the number under which an interrupt vector's eventfd is kept, or 0. Of the two saved numbers, the one of
    /// the later valid commit applies. Commit number 0 stands for no commit.
    pub(in crate::port) fn irq_number(&self, index: u32, vector: u32) -> u64 {
        let [one, first, other, second] = words(&self.memory, self.irq_at(index, vector));
        let current = if self.touched { self.step + 1 } else { self.step };
        let newer =
            if one >= other { [(one, first), (other, second)] } else { [(other, second), (one, first)] };
        newer.into_iter().find(|(step, _)| (1..=current).contains(step)).map_or(0, |(_, number)| number)
    }
}
