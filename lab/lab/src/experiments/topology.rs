//! Topology of an experiment's server: the files of the papers' machines, and settings that change their values.

use crate::catalogue::SettingDefinition;
use crate::experiment::{PointRunError, PointRunInputs};
use crate::machine::ServerTopology;
use crate::machine::topology::{ThreadAssignment, WireProperties};
use crate::value::ParameterValue;
use hypervisor::cost::MachineModel;
use sim::VirtualDuration;
use std::borrow::Cow;

/// Value of a number in the topology that leaves that of the paper's machine; no number is negative.
pub(super) const FROM_PAPER: i64 = -1;
/// Text that leaves that of the paper's machine.
pub(super) const FROM_PAPER_TEXT: &str = "paper";

/// Setting of a number in the topology.
pub(super) struct TopologyNumber {
    pub(super) key: &'static str,
    unit: &'static str,
    what: &'static str,
    /// Permitted values, both ends included.
    range: (i64, i64),
}

pub(super) const fn number(
    key: &'static str,
    unit: &'static str,
    what: &'static str,
    range: (i64, i64),
) -> TopologyNumber {
    TopologyNumber { key, unit, what, range }
}

const SOCKETS: TopologyNumber =
    number("machine.sockets", "", "sockets, or other units with a last-level cache of their own", (1, 16));
const CORES: TopologyNumber = number("machine.cores_per_socket", "", "cores of a socket", (1, 64));
const THREADS: TopologyNumber = number("machine.threads_per_core", "", "hardware threads of a core", (1, 2));
const SERVICE_CPUS: TopologyNumber =
    number("machine.service_cpus", "", "virtual CPUs of the service domain", (1, 128));
const SERVICE_TICK: TopologyNumber = number(
    "machine.service_tick_us",
    "us",
    "period of the timer tick in the service domain",
    (100, 1_000_000),
);
// The papers' experiments have at most seven guests on a port.
const GUESTS_PER_PORT: TopologyNumber =
    number("machine.guests_per_port", "", "most guests that share a port", (1, 7));
/// Speed of each port's wire.
pub(super) const MBPS: TopologyNumber =
    number("wire.mbps", "Mb/s", "speed of each port's wire", (10, 400_000));
const SEGMENTS: TopologyNumber = number(
    "wire.segments",
    "",
    "segments of a stream that a client's stack passes to its card at a time",
    (1, 44),
);
const SOCKET: TopologyNumber =
    number("wire.socket", "", "datagrams that a client's socket holds", (1, 65_536));
const RING: TopologyNumber =
    number("wire.ring", "", "datagrams that the transmit ring of the clients' card holds", (1, 4_096));
/// Time that a client takes to answer a frame.
pub(super) const TURNAROUND: TopologyNumber = number(
    "wire.turnaround_us",
    "us",
    "time from a frame's arrival at a client to the client's next segment or request",
    (0, 10_000),
);

/// Buffers of a network card's receive ring.
pub(super) const RECEIVE_RING: TopologyNumber = number(
    "card.receive_ring",
    "",
    "buffers of a VF's or an assigned card's receive ring, a multiple of 8",
    (64, 2_048),
);

const MACHINE: [TopologyNumber; 6] = [SOCKETS, CORES, THREADS, SERVICE_CPUS, SERVICE_TICK, GUESTS_PER_PORT];
const WIRE: [TopologyNumber; 5] = [MBPS, SEGMENTS, SOCKET, RING, TURNAROUND];

const SERVICE_HOME: (&str, &str) = (
    "machine.service_home",
    "hardware threads of the service domain: thread-N of each core, or cores-FIRST-LAST",
);
const GUEST_HOME: (&str, &str) =
    ("machine.guest_home", "hardware threads of the guests: thread-N of each core, or cores-FIRST-LAST");

/// Files of the papers' machines, with the machine whose column of the cost table each names.
const FILES: [(MachineModel, &str); MachineModel::ALL.len()] = [
    (MachineModel::Nehalem, include_str!("../../data/machines/nehalem.toml")),
    (MachineModel::Modern, include_str!("../../data/machines/modern.toml")),
    (MachineModel::Opteron, include_str!("../../data/machines/opteron.toml")),
    (MachineModel::Skylake, include_str!("../../data/machines/skylake.toml")),
    (MachineModel::Harpertown, include_str!("../../data/machines/harpertown.toml")),
    (MachineModel::Prestonia, include_str!("../../data/machines/prestonia.toml")),
    (MachineModel::Server2009, include_str!("../../data/machines/server-2009.toml")),
];

/// Returns names and texts of the papers' machine files.
pub(crate) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().map(|(machine, text)| (machine.name(), *text))
}

/// Returns the settings of the topology.
pub(super) fn definitions() -> Vec<SettingDefinition> {
    let home = |(key, what): (&str, &str)| SettingDefinition {
        name: key.to_owned(),
        default: ParameterValue::name(FROM_PAPER_TEXT),
        unit: "",
        what: format!("{what}; {FROM_PAPER_TEXT}: as in the paper's machine"),
        choices: &[],
    };
    let machine = MACHINE.iter().map(definition).chain([SERVICE_HOME, GUEST_HOME].map(home));
    machine.chain(WIRE.iter().map(definition)).collect()
}

/// Returns the setting of a number of a machine.
pub(super) fn definition(number: &TopologyNumber) -> SettingDefinition {
    let TopologyNumber { key, unit, what, range: (least, most) } = number;
    SettingDefinition {
        name: (*key).to_owned(),
        default: ParameterValue::Int(FROM_PAPER),
        unit,
        what: format!("{what} ({least} to {most}); {FROM_PAPER}: as in the paper's machine"),
        choices: &[],
    }
}

/// Returns the paper's machine whose server the experiments have on the machine of a file with these keys, where `own` is
/// the machine whose table it names. Returns `None` for a machine with one processor, whose experiments read no topology.
pub(crate) fn server<'a>(own: MachineModel, mut keys: impl Iterator<Item = &'a str>) -> Option<MachineModel> {
    let of_server =
        |key: &str| key.starts_with("machine.") || [SEGMENTS.key, SOCKET.key, RING.key].contains(&key);
    if paper_values(own).is_ok_and(|values| values.contains_key("machine")) {
        return Some(own);
    }
    // The current machine has no experiments of its own. A file may give a server the table of any machine.
    (own == MachineModel::Modern || keys.any(of_server)).then_some(MachineModel::Nehalem)
}

/// Returns a number of the wire that the papers' machines have: their files describe none.
fn gigabit(key: &str) -> Option<i64> {
    let value = wire_values(&WireProperties::GIGABIT).into_iter().find(|(known, _)| *known == key);
    value.and_then(|(_, value)| i64::try_from(value).ok())
}

/// Returns the values of a wire's settings.
fn wire_values(wire: &WireProperties) -> [(&'static str, u64); WIRE.len()] {
    [
        (MBPS.key, wire.bits_per_second / 1_000_000),
        (SEGMENTS.key, wire.segments.into()),
        (SOCKET.key, wire.socket.into()),
        (RING.key, wire.ring.into()),
        (TURNAROUND.key, micros(wire.turnaround)),
    ]
}

fn micros(duration: VirtualDuration) -> u64 {
    duration.picos() / VirtualDuration::from_micros(1).picos()
}

/// Returns the values of a topology's settings.
pub(crate) fn values(topology: &ServerTopology) -> Vec<(&'static str, ParameterValue)> {
    let int =
        |key: &'static str, value: u64| (key, ParameterValue::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    let home = |(key, _): (&'static str, _), home: ThreadAssignment| {
        (key, ParameterValue::Text(Cow::Owned(home.to_string())))
    };
    let machine = [
        int(SOCKETS.key, topology.sockets.into()),
        int(CORES.key, topology.cores_per_socket.into()),
        int(THREADS.key, topology.threads_per_core.into()),
        int(SERVICE_CPUS.key, topology.service_cpus.into()),
        int(SERVICE_TICK.key, micros(topology.service_tick)),
        int(GUESTS_PER_PORT.key, topology.guests_per_port.into()),
        int(RECEIVE_RING.key, topology.receive_ring.into()),
        home(SERVICE_HOME, topology.service_home),
        home(GUEST_HOME, topology.guest_home),
    ];
    machine.into_iter().chain(wire_values(&topology.wire).map(|(key, value)| int(key, value))).collect()
}

/// Returns the topology of an experiment's server: the values of the file of `own`, the paper's machine, unless settings
/// change them.
pub(crate) fn topology(context: &PointRunInputs, own: MachineModel) -> Result<ServerTopology, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let mbps: u64 = source.wire(&MBPS)?;
    let receive_ring: u16 = source.number(&RECEIVE_RING)?;
    if !receive_ring.is_multiple_of(8) {
        let message = format!("{} is {receive_ring}; it must be a multiple of 8", RECEIVE_RING.key);
        return Err(PointRunError::Refused(message));
    }
    let topology = ServerTopology {
        sockets: source.number(&SOCKETS)?,
        cores_per_socket: source.number(&CORES)?,
        threads_per_core: source.number(&THREADS)?,
        service_cpus: source.number(&SERVICE_CPUS)?,
        service_home: source.home(SERVICE_HOME.0)?,
        guest_home: source.home(GUEST_HOME.0)?,
        service_tick: source.micros(&SERVICE_TICK)?,
        guests_per_port: source.number(&GUESTS_PER_PORT)?,
        receive_ring,
        wire: WireProperties {
            bits_per_second: mbps * 1_000_000,
            segments: source.wire(&SEGMENTS)?,
            socket: source.wire(&SOCKET)?,
            ring: source.wire(&RING)?,
            turnaround: VirtualDuration::from_micros(source.wire(&TURNAROUND)?),
        },
    };
    for (key, home) in [(SERVICE_HOME.0, topology.service_home), (GUEST_HOME.0, topology.guest_home)] {
        topology.check(home).map_err(|error| PointRunError::Refused(format!("{key} is {home}: {error}")))?;
    }
    Ok(topology)
}

/// Returns the values of a paper's machine file.
fn paper_values(machine: MachineModel) -> Result<toml::Table, PointRunError> {
    let text = FILES.iter().find(|(own, _)| *own == machine).map_or("", |(_, text)| text);
    text.parse().map_err(|error| PointRunError::Refused(format!("machine {}: {error}", machine.name())))
}

/// Values of a topology: settings, and the file of the paper's machine.
pub(super) struct TopologySource<'a> {
    context: &'a PointRunInputs,
    paper: toml::Table,
    own: MachineModel,
}

impl<'a> TopologySource<'a> {
    pub(super) fn new(context: &'a PointRunInputs, own: MachineModel) -> Result<Self, PointRunError> {
        Ok(Self { context, paper: paper_values(own)?, own })
    }

    /// Returns a number: the setting's value, or that of the paper's machine.
    pub(super) fn number<T: TryFrom<i64>>(&self, number: &TopologyNumber) -> Result<T, PointRunError> {
        self.number_if_given(number)?.ok_or_else(|| self.missing(number.key))
    }

    /// Returns a number, or `None` if neither a setting nor the file of the paper's machine gives it.
    pub(super) fn number_if_given<T: TryFrom<i64>>(
        &self,
        number: &TopologyNumber,
    ) -> Result<Option<T>, PointRunError> {
        let TopologyNumber { key, range: (least, most), .. } = number;
        let value = match self.context.settings.int(key)? {
            FROM_PAPER => {
                let own = self.in_paper(key).and_then(toml::Value::as_integer);
                let Some(own) = own else { return Ok(None) };
                own
            }
            value => value,
        };
        let refused =
            || PointRunError::Refused(format!("{key} is {value}; it must be from {least} to {most}"));
        let permitted = Some(value).filter(|value| (*least..=*most).contains(value));
        permitted.and_then(|value| T::try_from(value).ok()).map(Some).ok_or_else(refused)
    }

    /// Returns a number of a server's wire: as [`TopologySource::number`], else that of a gigabit wire.
    fn wire<T: TryFrom<i64>>(&self, number: &TopologyNumber) -> Result<T, PointRunError> {
        let value = match self.number_if_given(number)? {
            Some(value) => value,
            None => gigabit(number.key).ok_or_else(|| self.missing(number.key))?,
        };
        T::try_from(value).map_err(|_| self.missing(number.key))
    }

    /// Returns a time that is given in microseconds.
    pub(super) fn micros(&self, number: &TopologyNumber) -> Result<VirtualDuration, PointRunError> {
        Ok(VirtualDuration::from_micros(self.number(number)?))
    }

    /// Returns a text: the setting's value, or that of the paper's machine if the setting is `default`. A truth value of
    /// the file is "true" or "false". Returns `None` if neither gives it.
    pub(super) fn text_if_given(
        &self,
        key: &str,
        default: &str,
    ) -> Result<Option<Cow<'_, str>>, PointRunError> {
        let text = self.context.settings.text(key)?;
        if text != default {
            return Ok(Some(Cow::Borrowed(text)));
        }
        Ok(self.in_paper(key).and_then(|value| match value {
            toml::Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            toml::Value::Boolean(value) => Some(Cow::Owned(value.to_string())),
            _ => None,
        }))
    }

    fn home(&self, key: &str) -> Result<ThreadAssignment, PointRunError> {
        let text = self.text_if_given(key, FROM_PAPER_TEXT)?.ok_or_else(|| self.missing(key))?;
        text.parse().map_err(|error| PointRunError::Refused(format!("{key} is {text}: {error}")))
    }

    /// Returns the value of a key `SECTION.NAME` in the paper's machine file.
    fn in_paper(&self, key: &str) -> Option<&toml::Value> {
        let (section, name) = key.split_once('.')?;
        self.paper.get(section)?.get(name)
    }

    pub(super) fn missing(&self, key: &str) -> PointRunError {
        PointRunError::Refused(format!("the file of machine {} has no {key}", self.own.name()))
    }
}

/// Returns the topology of a paper's server.
#[cfg(test)]
pub(crate) fn of_paper(machine: MachineModel) -> ServerTopology {
    let all = definitions().into_iter().chain([definition(&RECEIVE_RING)]);
    let defaults = all.map(|setting| (setting.name, setting.default)).collect();
    let settings = crate::experiment::RunSettings::new(defaults);
    topology(&PointRunInputs { seed: 1, settings }, machine).unwrap()
}
