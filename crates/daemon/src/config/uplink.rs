//! What carries a port's frames beyond the card, as the file says it. Left out: carrying them (`crate::port`).

use super::{ConfigError, Unique, check_absolute, value, well_formed};
use host::tap::InterfaceName;
use host::xdp::Mode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What carries frames beyond the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Uplink {
    /// No uplink: VFs exchange frames with each other alone.
    #[default]
    None,
    /// The tap device of this name: attached to if it exists, else created.
    Tap(String),
    /// The macvtap of this name, which is there.
    Macvtap(String),
    /// The wire of this name, whose other end another port of this host has.
    Wire(String),
    /// A stream socket to another process.
    Stream(Stream),
    /// The network interface of this name, which is there.
    Interface(String),
    /// The same, by AF_XDP.
    Xdp(String, Xdp),
    /// The recording in this file.
    Replay(PathBuf),
}

/// By which of AF_XDP's modes an interface's frames are to pass; the words are Open vSwitch's (`xdp-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Xdp {
    /// The first of the others that can be had, in this order; else by a packet socket.
    BestEffort,
    /// The driver moves frames to and from the host's memory.
    NativeWithZerocopy,
    /// The driver runs the program, and the kernel copies.
    Native,
    /// The kernel runs the program and copies, whatever the driver.
    Generic,
}

impl Xdp {
    /// Which modes are tried, in this order.
    pub(crate) fn modes(self) -> &'static [Mode] {
        match self {
            Self::BestEffort => &Mode::ALL,
            Self::NativeWithZerocopy => &[Mode::NativeWithZerocopy],
            Self::Native => &[Mode::Native],
            Self::Generic => &[Mode::Generic],
        }
    }
}

/// A UNIX stream socket that carries frames, each behind its length in four bytes, big end first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The other process listens there.
    Connect(PathBuf),
    /// The host listens there.
    Listen(PathBuf),
}

/// As the status has it.
impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Macvtap(name) => write!(f, "macvtap:{name}"),
            Self::Wire(name) => write!(f, "wire:{name}"),
            Self::Stream(Stream::Connect(path)) => write!(f, "stream:connect={}", path.display()),
            Self::Stream(Stream::Listen(path)) => write!(f, "stream:listen={}", path.display()),
            Self::Interface(name) | Self::Xdp(name, _) => write!(f, "interface:{name}"),
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
        }
    }
}

impl Uplink {
    /// What of it can be checked port by port.
    pub(super) fn check(&self, port: &str, unique: &mut Unique) -> Result<(), ConfigError> {
        let key = format!("{port}.uplink");
        let interface = |name: &str| {
            name.parse::<InterfaceName>().map(drop).map_err(|error| value(&key, error.to_string()))
        };
        match self {
            Self::None => Ok(()),
            Self::Tap(name) => {
                interface(name)?;
                unique.claim("tap", name, &key)
            }
            Self::Interface(name) | Self::Xdp(name, _) | Self::Macvtap(name) => {
                interface(name)?;
                unique.claim("interface", name, &key)
            }
            Self::Wire(name) => well_formed(name)
                .map_err(|problem| value(key, format!("the wire's name {name:?} is not {problem}"))),
            Self::Stream(Stream::Connect(path)) | Self::Replay(path) => check_absolute(path, &key),
            Self::Stream(Stream::Listen(path)) => {
                check_absolute(path, &key)?;
                unique.claim("socket", &path.display().to_string(), &key)
            }
        }
    }
}

/// A file that a port records to is absolute, and no other port's.
pub(super) fn check_record(path: Option<&Path>, port: &str, unique: &mut Unique) -> Result<(), ConfigError> {
    let Some(path) = path else { return Ok(()) };
    let key = format!("{port}.record");
    check_absolute(path, &key)?;
    unique.claim("file", &path.display().to_string(), &key)
}

/// Every wire has two ends.
pub(super) fn check_wires<'a>(ports: impl Iterator<Item = (&'a str, &'a Uplink)>) -> Result<(), ConfigError> {
    let mut wires: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (port, uplink) in ports {
        if let Uplink::Wire(wire) = uplink {
            wires.entry(wire).or_default().push(port);
        }
    }
    let Some((wire, ports)) = wires.into_iter().find(|(_, ports)| ports.len() != 2) else { return Ok(()) };
    let key = format!("{}.uplink", ports.last().copied().unwrap_or_default());
    Err(value(
        key,
        match ports[..] {
            [_] => format!("the wire {wire:?} ends nowhere: give it to one more port"),
            _ => format!(
                "the wire {wire:?} is given to {}, and it has two ends: give the others wires of their own",
                ports.join(", ")
            ),
        },
    ))
}

/// Written by hand: the error of a derived implementation speaks of enum variants, and not of the keys of the file.
impl<'de> Deserialize<'de> for Uplink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrTable)
    }
}

/// An uplink as it is written.
struct WordOrTable;

const KINDS: &str = concat!(
    r#""none", { tap = "NAME" }, { macvtap = "NAME" }, { wire = "NAME" }, { interface = "NAME", xdp = "MODE" }, "#,
    r#"{ replay = "PATH" }, { stream = { connect = "PATH" } } or { stream = { listen = "PATH" } }"#
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    tap: Option<String>,
    macvtap: Option<String>,
    wire: Option<String>,
    stream: Option<Stream>,
    interface: Option<String>,
    xdp: Option<Xdp>,
    replay: Option<PathBuf>,
}

impl<'de> Visitor<'de> for WordOrTable {
    type Value = Uplink;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Uplink, E> {
        match word {
            "none" => Ok(Uplink::None),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Uplink, A::Error> {
        let Table { tap, macvtap, wire, stream, interface, xdp, replay } =
            Deserialize::deserialize(MapAccessDeserializer::new(table))?;
        let is_interface = interface.is_some();
        let given = [
            tap.map(Uplink::Tap),
            macvtap.map(Uplink::Macvtap),
            wire.map(Uplink::Wire),
            stream.map(Uplink::Stream),
            interface.map(|name| xdp.map_or(Uplink::Interface(name.clone()), |xdp| Uplink::Xdp(name, xdp))),
            replay.map(Uplink::Replay),
        ];
        let mut given = given.into_iter().flatten();
        if xdp.is_some() && !is_interface {
            return Err(A::Error::custom("xdp says how an interface's frames pass: name the interface"));
        }
        match (given.next(), given.next()) {
            (Some(uplink), None) => Ok(uplink),
            (None, _) => Err(A::Error::custom(format!("no uplink is named: it is {KINDS}"))),
            (Some(_), Some(_)) => Err(A::Error::custom(format!("a port has one uplink: {KINDS}"))),
        }
    }
}
