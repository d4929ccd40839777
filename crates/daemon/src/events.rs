//! Recent events of the host: the lines of its log as records, for `softiov events`. A process has one list of events,
//! as it has one log, which fills the list.
//!
//! The list is bounded in records and bytes. When it is full, it loses the oldest event of the function, port or interface
//! with the most events or bytes, so that a guest whose events never end does not remove those of others. A client that
//! asks too late receives the number of lost events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of events that the host keeps in its list.
const MOST: usize = 4096;
/// Maximum total bytes of names and values of the kept events.
const ROOM: usize = 1 << 20;
/// Maximum number of events in one answer, so that the answer stays small and the lock is held briefly.
const IN_ONE_ANSWER: usize = 256;
/// Maximum size of one event in bytes. A longer event is shortened.
const LONGEST: usize = 1024;

/// Event of the host: one line of its log, as a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostEvent {
    /// Number of the event, counted from 1 since the start of the host process.
    pub number: u64,
    /// Time of the event in UTC, as in RFC 3339.
    pub time: String,
    /// Level of the event: "error", "warn" or "info".
    pub level: String,
    /// Name of the function, port or interface that the event concerns; missing if it concerns the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Text of the event.
    pub event: String,
    /// Details of the event, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// Answer to a request for the events after a number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecentEvents {
    /// Requested events in the order of their numbers, at most 256.
    pub events: Vec<HostEvent>,
    /// Number of requested events that the host does not keep any more.
    pub lost: u64,
    /// True if the host has more events after these: request them with the last number received.
    pub more: bool,
}

/// Position in the list of events, after an event. It is written `RUN-NUMBER`: the process that has counted the event,
/// and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPosition {
    run: u64,
    number: u64,
}

/// Start of this process, microseconds since 1970. This time identifies the process, because process ids are reused.
static RUN: LazyLock<u64> = LazyLock::new(|| {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
});

impl EventPosition {
    /// Returns the position after the event of this process with this number.
    #[must_use]
    pub fn behind(number: u64) -> Self {
        Self { run: *RUN, number }
    }

    /// Returns the number of this process's last event before the position: 0 if the position is of another process,
    /// which ran before this one.
    #[must_use]
    pub fn number(self) -> u64 {
        if self.run == *RUN { self.number } else { 0 }
    }
}

impl fmt::Display for EventPosition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{}", self.run, self.number)
    }
}

impl FromStr for EventPosition {
    type Err = std::num::ParseIntError;

    /// Parses the position of an event in the list. A number alone means an event of this process.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('-') {
            Some((run, number)) => Ok(Self { run: run.parse()?, number: number.parse()? }),
            None => Ok(Self::behind(text.parse()?)),
        }
    }
}

#[derive(Debug)]
struct EventHistory {
    /// Kept events by number.
    events: BTreeMap<u64, HostEvent>,
    /// Kept events about each function, port or interface, or about the whole host.
    about: BTreeMap<Option<String>, KeptEvents>,
    bytes: usize,
    last: u64,
}

/// Kept events about one function, port or interface, or about the whole host.
#[derive(Debug, Default)]
struct KeptEvents {
    numbers: VecDeque<u64>,
    bytes: usize,
}

static KEPT: Mutex<EventHistory> = Mutex::new(EventHistory::new());

/// Gives an event its number, and adds the event to the host's list.
pub fn note(event: HostEvent) {
    with(|kept| kept.note(event));
}

/// Returns the kept events after the one with this number, or all kept events for 0.
#[must_use]
pub fn after(number: u64) -> RecentEvents {
    with(|kept| kept.after(number))
}

/// Calls a function with the locked list of events. The lock is held while one record moves, or while one answer's
/// records are copied.
fn with<T>(what: impl FnOnce(&mut EventHistory) -> T) -> T {
    what(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

impl EventHistory {
    const fn new() -> Self {
        Self { events: BTreeMap::new(), about: BTreeMap::new(), bytes: 0, last: 0 }
    }

    fn note(&mut self, mut event: HostEvent) {
        self.last += 1;
        event.number = self.last;
        cut(&mut event);
        self.bytes += size(&event);
        let kept = self.about.entry(event.about.clone()).or_default();
        kept.bytes += size(&event);
        kept.numbers.push_back(event.number);
        self.events.insert(event.number, event);
        while self.events.len() > MOST || self.bytes > ROOM {
            self.drop_one();
        }
    }

    /// Drops the oldest event about the function, port or interface with the most bytes, or with the most events if these
    /// are what is beyond the limit.
    fn drop_one(&mut self) {
        let by_bytes = self.bytes > ROOM;
        let weight = |kept: &KeptEvents| if by_bytes { kept.bytes } else { kept.numbers.len() };
        let Some((about, kept)) = self.about.iter_mut().max_by_key(|(_, kept)| weight(kept)) else { return };
        let oldest = kept.numbers.pop_front();
        let dropped = oldest.and_then(|number| self.events.remove(&number));
        let bytes = dropped.as_ref().map_or(0, size);
        kept.bytes -= bytes;
        self.bytes -= bytes;
        if kept.numbers.is_empty() {
            let emptied = about.clone();
            self.about.remove(&emptied);
        }
    }

    fn after(&self, number: u64) -> RecentEvents {
        // A number beyond the last is of a predecessor, so all events of this process are new.
        let before = if number > self.last { 0 } else { number };
        let mut kept = self.events.range(before + 1..).map(|(_, event)| event);
        let events: Vec<HostEvent> = kept.by_ref().take(IN_ONE_ANSWER).cloned().collect();
        let more = kept.next().is_some();
        let end = events.last().filter(|_| more).map_or(self.last, |event| event.number);
        RecentEvents { lost: if before == 0 { 0 } else { end - before - events.len() as u64 }, more, events }
    }
}

/// Returns the approximate size of an event in the host's list, bytes.
fn size(event: &HostEvent) -> usize {
    let fields = event.fields.iter().map(|(name, value)| {
        name.len() + value.as_str().map_or(size_of::<Value>(), str::len) + size_of::<Value>()
    });
    size_of::<HostEvent>() + event.event.len() + event.time.len() + fields.sum::<usize>()
}

/// Shortens an event that is too long: drops its fields, then the end of its message.
fn cut(event: &mut HostEvent) {
    if size(event) > size_of::<HostEvent>() + LONGEST {
        event.fields.clear();
    }
    if event.event.len() > LONGEST / 2 {
        let end = (0..=LONGEST / 2).rev().find(|at| event.event.is_char_boundary(*at)).unwrap_or(0);
        event.event.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::{EventHistory, EventPosition, HostEvent, IN_ONE_ANSWER, LONGEST, MOST, ROOM};
    use serde_json::{Map, Value};

    fn event(text: &str) -> HostEvent {
        let (time, level) = ("2026-01-01T00:00:00Z".to_owned(), "info".to_owned());
        HostEvent { number: 0, time, level, about: None, event: text.to_owned(), fields: Map::new() }
    }

    fn numbers(kept: &EventHistory, after: u64) -> (Option<u64>, Option<u64>, u64, bool) {
        let recent = kept.after(after);
        let number = |event: Option<&HostEvent>| event.map(|event| event.number);
        (number(recent.events.first()), number(recent.events.last()), recent.lost, recent.more)
    }

    #[test]
    fn event_position_of_another_process_parses_as_number_zero() {
        let mark = EventPosition::behind(7);
        assert_eq!(mark.to_string().parse(), Ok(mark));
        assert_eq!((mark.number(), "7".parse::<EventPosition>().unwrap().number()), (7, 7));
        assert_eq!("1-7".parse::<EventPosition>().unwrap().number(), 0);
        for text in ["", "-7", "7-", "x", "1-2-3"] {
            assert!(text.parse::<EventPosition>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn events_after_a_number_are_read_with_the_lost_event_count() {
        let mut kept = EventHistory::new();
        assert_eq!(numbers(&kept, 0), (None, None, 0, false));
        for _ in 0..3 {
            kept.note(event("x"));
        }
        assert_eq!(numbers(&kept, 0), (Some(1), Some(3), 0, false));
        assert_eq!(numbers(&kept, 2), (Some(3), Some(3), 0, false));
        assert_eq!(numbers(&kept, 3), (None, None, 0, false));
        for _ in 0..MOST {
            kept.note(event("x"));
        }
        let most = MOST as u64;
        assert_eq!(numbers(&kept, 3), (Some(4), Some(3 + IN_ONE_ANSWER as u64), 0, true));
        assert_eq!(numbers(&kept, 1), (Some(4), Some(3 + IN_ONE_ANSWER as u64), 2, true));
        assert_eq!(numbers(&kept, most + 2), (Some(most + 3), Some(most + 3), 0, false));
    }

    #[test]
    fn noisy_function_evicts_no_events_of_others() {
        let mut kept = EventHistory::new();
        let about = |vf: &str| HostEvent { about: Some(vf.to_owned()), ..event("x") };
        kept.note(event("started"));
        (0..10).for_each(|_| kept.note(about("pf0vf0")));
        (0..2 * MOST).for_each(|_| kept.note(about("pf0vf1")));
        let of = |vf: Option<&str>| kept.events.values().filter(|event| event.about.as_deref() == vf).count();
        assert_eq!([of(None), of(Some("pf0vf0")), of(Some("pf0vf1"))], [1, 10, MOST - 11]);
        let first = kept.after(11).events[0].number;
        assert_eq!(
            numbers(&kept, 11),
            (Some(first), Some(first + 255), first - 12, true),
            "the lost ones between"
        );
        assert_eq!(numbers(&kept, 5), (Some(6), Some(first + 249), first - 12, true));
        assert_eq!(numbers(&kept, first).2, 0);
    }

    #[test]
    fn function_with_long_events_keeps_no_more_bytes_than_others() {
        let mut kept = EventHistory::new();
        let about = |vf: &str, length| HostEvent { about: Some(vf.to_owned()), ..event(&"x".repeat(length)) };
        // Long enough that the list has room for the bytes of fewer events than MOST.
        let short = ROOM / MOST;
        (0..2 * MOST).for_each(|_| {
            kept.note(about("pf0vf0", LONGEST / 2));
            kept.note(about("pf0vf1", short));
        });
        let bytes = |vf: &str| kept.about[&Some(vf.to_owned())].bytes;
        let [long, short] = ["pf0vf0", "pf0vf1"].map(bytes);
        assert!(long.abs_diff(short) <= 2 * LONGEST, "{long}, {short}");
        assert_eq!(kept.bytes, kept.events.values().map(super::size).sum::<usize>());
    }

    #[test]
    fn event_number_beyond_the_newest_event_lists_all_events() {
        let mut kept = EventHistory::new();
        kept.note(event("x"));
        assert_eq!(numbers(&kept, 900), (Some(1), Some(1), 0, false));
    }

    #[test]
    fn event_history_drops_fields_of_events_beyond_the_size_limit() {
        let mut kept = EventHistory::new();
        let mut long = event(&"ä".repeat(LONGEST));
        long.fields.insert("why".to_owned(), Value::from("y".repeat(LONGEST)));
        for _ in 0..MOST {
            kept.note(long.clone());
        }
        assert!(kept.bytes <= ROOM && kept.events.len() > 100, "{} bytes", kept.bytes);
        let first = &kept.after(0).events[0];
        assert!(first.fields.is_empty() && first.event.starts_with('ä'));
    }
}
