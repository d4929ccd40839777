//! The notes on one function: its client, windows and eventfds.

use super::layout::{self, IRQ, IRQ_TYPES, IRQS_A_TYPE, MOST_WINDOWS, WINDOW};
use super::{get, put, words};
use host::dma::Permissions;
use host::shared::SharedMemory;
use host::socket::Extent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a client has been served. All of it counts at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::port) struct Progress {
    /// The numbers of the socket and of the file of replies; 0 if there is no client.
    pub(in crate::port) stream: u64,
    pub(in crate::port) replies: u64,
    /// What of the replies is written.
    pub(in crate::port) extent: Extent,
    /// Bytes at the front of the socket that are handled and may not be consumed yet, and how they begin.
    pub(in crate::port) handled: u64,
    pub(in crate::port) front: [u8; 16],
    /// Part of a message was consumed before all of it had come: nobody else can go on from here.
    pub(in crate::port) torn: bool,
    /// What was agreed on: the minor version, and whether several writes may come at once.
    pub(in crate::port) agreed: Option<(u16, bool)>,
}

/// A DMA window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct Window {
    pub(in crate::port) iova: u64,
    pub(in crate::port) size: u64,
    pub(in crate::port) permissions: Permissions,
    /// The number of the file behind it, and the offset of its first byte; number 0 without a file.
    pub(in crate::port) file: u64,
    pub(in crate::port) offset: u64,
}

/// An eventfd: interrupt type, vector, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct Irq {
    pub(in crate::port) index: u32,
    pub(in crate::port) vector: u32,
    pub(in crate::port) number: u64,
}

/// What a predecessor has noted.
#[derive(Debug, Default)]
pub(in crate::port) struct Noted {
    pub(in crate::port) progress: Progress,
    pub(in crate::port) windows: Vec<Window>,
    pub(in crate::port) irqs: Vec<Irq>,
}

/// One function's notes.
#[derive(Debug)]
pub(in crate::port) struct FunctionJournal {
    memory: Arc<SharedMemory>,
    at: layout::Function,
    progress: Progress,
    /// The step that counts. What is noted now belongs to the next.
    step: u64,
    /// The place of each window by its first address.
    places: BTreeMap<u64, u64>,
    /// Places for new windows, and places whose windows count until the next step.
    free: Vec<u64>,
    released: Vec<u64>,
    /// All windows are in places below this.
    used: u64,
    /// Something was noted since the last step.
    touched: bool,
    /// The notes are as another process left them, with what it noted for a step it did not make.
    inherited: bool,
}

const USED: usize = 1;
/// Where a window's record has the step that took it away, and the number of its file, in bytes.
const REMOVED: u64 = 8;
const FILE: u64 = 40;

impl FunctionJournal {
    pub(super) fn open(memory: Arc<SharedMemory>, at: layout::Function) -> Self {
        let record: [u64; 11] = words(&memory, at.progress[(get(&memory, at.which) % 2) as usize]);
        let mut journal = Self {
            memory,
            at,
            progress: decode(&record),
            step: record[0],
            places: BTreeMap::new(),
            free: Vec::new(),
            released: Vec::new(),
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

    /// What is noted of the client.
    pub(in crate::port) fn noted(&self) -> Noted {
        let windows = self.places.values().filter_map(|place| self.window(*place)).collect();
        let irqs = (0..IRQ_TYPES as u32).flat_map(|index| {
            (0..IRQS_A_TYPE as u32).filter_map(move |vector| {
                let number = self.irq_number(index, vector);
                (number != 0).then_some(Irq { index, vector, number })
            })
        });
        Noted { progress: self.progress, windows, irqs: irqs.collect() }
    }

    /// How far the client has been served, as noted last.
    pub(in crate::port) fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether windows or eventfds were noted since the last step: they count with the next.
    pub(in crate::port) fn is_touched(&self) -> bool {
        self.touched
    }

    /// A step: everything noted since the last one counts from now on.
    pub(in crate::port) fn step(&mut self, progress: Progress) {
        self.forget_unfinished();
        self.step += 1;
        (self.progress, self.touched) = (progress, false);
        let record = encode(&progress, self.step, self.used);
        let place = self.step % 2;
        put(&self.memory, self.at.progress[place as usize], &record);
        put(&self.memory, self.at.which, &[place]);
        self.free.append(&mut self.released);
    }

    /// A window was made; `false` if there is no room to note it.
    pub(in crate::port) fn add_window(&mut self, window: &Window) -> bool {
        self.forget_unfinished();
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.used < MOST_WINDOWS => {
                self.used += 1;
                self.used - 1
            }
            None => return false,
        };
        let Permissions { read, write } = window.permissions;
        let permissions = u64::from(read) | u64::from(write) << 1;
        let Window { iova, size, file, offset, .. } = *window;
        // The step comes first: with it, nothing else in the record counts.
        let record = [self.step + 1, 0, iova, size, offset, file, permissions];
        put(&self.memory, self.window_at(place), &record);
        self.places.insert(iova, place);
        self.touched = true;
        true
    }

    /// The windows that begin in these `size` bytes are gone: the numbers of their files.
    pub(in crate::port) fn remove_windows(&mut self, iova: u64, size: u64) -> Vec<u64> {
        self.forget_unfinished();
        let last = iova.saturating_add(size.saturating_sub(1));
        let gone: Vec<(u64, u64)> =
            self.places.range(iova..=last).map(|(first, place)| (*first, *place)).collect();
        self.touched = true;
        let remove = |(first, place): (u64, u64)| {
            self.places.remove(&first);
            put(&self.memory, self.window_at(place) + REMOVED, &[self.step + 1]);
            // Until the step this window counts, so nothing may overwrite it.
            self.released.push(place);
            get(&self.memory, self.window_at(place) + FILE)
        };
        gone.into_iter().map(remove).filter(|number| *number != 0).collect()
    }

    /// All windows are gone.
    pub(in crate::port) fn clear_windows(&mut self) {
        self.remove_windows(0, u64::MAX);
    }

    /// A vector has another eventfd, or none (number 0).
    pub(in crate::port) fn set_irq(&mut self, irq: Irq) {
        let Irq { index, vector, number } = irq;
        self.forget_unfinished();
        let inside = u64::from(vector) < IRQS_A_TYPE && u64::from(index) < IRQ_TYPES;
        if !inside || self.irq_number(index, vector) == number {
            return;
        }
        let at = self.irq_at(index, vector);
        let [one, _, other, _]: [u64; 4] = words(&self.memory, at);
        // What counts until the step is left alone.
        let place = if one > self.step || (one <= other && other <= self.step) { at } else { at + 16 };
        put(&self.memory, place + 8, &[number]);
        put(&self.memory, place, &[self.step + 1]);
        self.touched = true;
    }

    /// A process that died within a step left notes for a step it never made. They must not count with the step of
    /// that number which its successor makes: before the first note of its own, the successor wipes them out.
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

    /// The window in a place, if it counts. Step 0 is none.
    fn window(&self, place: u64) -> Option<Window> {
        let [added, removed, iova, size, offset, file, permissions] =
            words(&self.memory, self.window_at(place));
        let counts = added != 0 && added <= self.step && (removed == 0 || removed > self.step);
        let permissions = Permissions { read: permissions & 1 != 0, write: permissions & 2 != 0 };
        counts.then_some(Window { iova, size, permissions, file, offset })
    }

    fn window_at(&self, place: u64) -> u64 {
        self.at.windows + place * WINDOW
    }

    fn irq_at(&self, index: u32, vector: u32) -> u64 {
        self.at.irqs + (u64::from(index) * IRQS_A_TYPE + u64::from(vector)) * IRQ
    }

    /// The number of a vector's eventfd, 0 for none: of the two places the one of the later step that counts.
    pub(in crate::port) fn irq_number(&self, index: u32, vector: u32) -> u64 {
        let [one, first, other, second] = words(&self.memory, self.irq_at(index, vector));
        let current = if self.touched { self.step + 1 } else { self.step };
        let newer =
            if one >= other { [(one, first), (other, second)] } else { [(other, second), (one, first)] };
        newer.into_iter().find(|(step, _)| *step <= current).map_or(0, |(_, number)| number)
    }
}

fn encode(progress: &Progress, step: u64, used: u64) -> [u64; 11] {
    let Progress { stream, replies, extent, handled, front, torn, agreed } = *progress;
    let half = |from: usize| u64::from_ne_bytes(std::array::from_fn(|i| front[from + i]));
    let agreed = agreed.map_or(0, |(minor, several)| 1 | u64::from(several) << 1 | u64::from(minor) << 16);
    let flags = u64::from(torn);
    [step, used, stream, replies, extent.begin, extent.end, handled, half(0), half(8), flags, agreed]
}

fn decode(record: &[u64; 11]) -> Progress {
    let [.., stream, replies, begin, end, handled, low, high, flags, agreed] = *record;
    let mut front = [0; 16];
    front[..8].copy_from_slice(&low.to_ne_bytes());
    front[8..].copy_from_slice(&high.to_ne_bytes());
    let agreed = (agreed & 1 != 0).then_some(((agreed >> 16) as u16, agreed & 2 != 0));
    let extent = Extent { begin, end };
    Progress { stream, replies, extent, handled, front, torn: flags & 1 != 0, agreed }
}
