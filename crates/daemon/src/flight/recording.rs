//! Flight recordings: accesses and events with the names of registers and requests, in order of time (`softiov vf
//! flight` prints them).

use super::{FlightRecord, FlightRecordKind, FlightRecorderCopy, RegisterLocation};
use crate::config::file::CardFamily;
use driver::pf::MailboxMessageKind;
use i82576::register::vf::VMBMEM;
use i82576::{Time, mailbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vfio_user::wire::pci_region;

/// Flight recording of a VF: the last register accesses and events of the VF and its client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlightRecording {
    /// Name of the recorded VF.
    pub vf: String,
    /// Time at which the recording was made, nanoseconds since 1970.
    pub time_ns: u64,
    /// Offence for which the VF was quarantined; missing if a command requested the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Number of earlier accesses and events that later ones have overwritten.
    pub lost: u64,
    /// Recorded accesses and events in order of time.
    pub entries: Vec<FlightEntry>,
}

/// Recorded register access or event of a VF, or several equal ones in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlightEntry {
    /// Time from the access or event, or from the last of several, to the recording, nanoseconds.
    pub before_ns: u64,
    /// Kind of the entry: `read` or `write` of a register, request `refused` by the PF driver, `dropped` frames,
    /// `offence`, or the text of an event.
    pub what: String,
    /// Name of the register, reason of the refusal or the drop, or kind of offence; missing for other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// VFIO number of the region with the register: 0 for BAR 0, 3 for the MSI-X table, 7 for configuration space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<u32>,
    /// Offset of the register in its region, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Value that was read or written last; for an offence, the number of its events per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Number of equal accesses or events that this entry stands for.
    pub times: u64,
}

/// Flight recording of a VF on its way to the thread that adds the names of registers and requests.
#[derive(Debug)]
pub struct PendingFlightRecording {
    pub(crate) vf: String,
    pub(crate) family: CardFamily,
    pub(crate) because: Option<&'static str>,
    /// Time of the recording on the monotonic clock; `time_ns` is the same by wall clock.
    pub(crate) now: Time,
    pub(crate) time_ns: u64,
    pub(crate) notes: FlightRecorderCopy,
}

impl PendingFlightRecording {
    /// Names the registers and requests of the recording. A port's thread must not do this, because it takes too long.
    #[must_use]
    pub fn named(self) -> FlightRecording {
        let Self { vf, family, because, now, time_ns, notes } = self;
        let FlightRecorderCopy { accesses, events, lost } = notes;
        let mut notes: Vec<FlightRecord> = accesses.into_iter().chain(events).collect();
        notes.sort_by_key(|note| note.time);
        let entries = notes.iter().map(|note| entry(note, family, now)).collect();
        FlightRecording { vf, time_ns, because: because.map(str::to_owned), lost, entries }
    }
}

fn entry(note: &FlightRecord, family: CardFamily, now: Time) -> FlightEntry {
    let FlightRecord { time, what, value, times } = *note;
    let before_ns = now.since(time).as_nanos() as u64;
    let plain = |what: &str, name: Option<&str>, value| {
        let (what, name) = (what.to_owned(), name.map(str::to_owned));
        FlightEntry { before_ns, what, name, region: None, offset: None, value, times }
    };
    let access = |what: &str, RegisterLocation { region, offset }| FlightEntry {
        name: name(family, region, offset, value),
        region: Some(region),
        offset: Some(offset),
        ..plain(what, None, Some(value))
    };
    match what {
        FlightRecordKind::Read(place) => access("read", place),
        FlightRecordKind::Write(place) => access("write", place),
        FlightRecordKind::Said(words) => plain(words, None, None),
        FlightRecordKind::Refused(reason) => plain("refused", Some(reason), None),
        FlightRecordKind::Dropped(reason) => plain("dropped", Some(reason), None),
        FlightRecordKind::Offence(offence) => plain("offence", Some(offence), Some(value)),
    }
}

/// Returns the name of a register, and for a mailbox's first word also the name of its message.
fn name(family: CardFamily, region: u32, offset: u64, value: u64) -> Option<String> {
    match region {
        pci_region::BAR0 => {}
        pci_region::BAR3 => return Some("MSI-X".to_owned()),
        pci_region::CONFIG => return Some("configuration space".to_owned()),
        _ => return None,
    }
    let offset = u32::try_from(offset).ok()?;
    let (name, index, count) = match family {
        CardFamily::I82576 => i82576::window::name(offset)?,
        CardFamily::Avf => {
            avf::table::find(offset).map(|(row, index)| (row.name, index.into(), row.count))?
        }
        CardFamily::Virtio => return None,
    };
    let indexed = if count > 1 { format!("{name}[{index}]") } else { name.to_owned() };
    if family == CardFamily::I82576 && offset == VMBMEM {
        let word = value as u32;
        let answer = match (word & mailbox::ACK, word & mailbox::NACK) {
            (0, 0) => "",
            (0, _) => " refused",
            _ => " granted",
        };
        return Some(format!("{indexed} {}{answer}", MailboxMessageKind::of(word).name()));
    }
    Some(indexed)
}
