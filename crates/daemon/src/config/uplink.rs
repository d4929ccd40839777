//! Configuration key `uplink` of a port, its connection to the network or to another process (`crate::port` opens it).

use super::{ConfigError, UniqueConfigValues, absolute_path, value, well_formed};
use host::tap::InterfaceName;
use host::xdp::XdpTransferMode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Configured uplink of a port: its connection to the network, to another port or to another process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UplinkConfig {
    /// No uplink: the port's VFs only reach each other.
    #[default]
    None,
    /// Tap device of this name. The host attaches to the device, or creates the device if there is none.
    Tap(String),
    /// Existing macvtap interface of this name.
    Macvtap(String),
    /// Wire of this name: a link inside the host process to another of its ports.
    Wire(String),
    /// UNIX stream socket to another process.
    Stream(StreamUplinkSocket),
    /// Existing network interface of this name, over a packet socket.
    Interface(String),
    /// Existing network interface of this name, over AF_XDP.
    Xdp(String, XdpMode),
    /// Path of a recording, whose frames are replayed to the port.
    Replay(PathBuf),
}

/// AF_XDP mode of an interface. The words are Open vSwitch's (`xdp-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// First available of the modes native with zero copy, native and generic; a packet socket if none is available.
    BestEffort,
    /// The interface's driver moves frames to and from the host's memory without a copy.
    NativeWithZerocopy,
    /// The interface's driver runs the XDP program, and the kernel copies frames.
    Native,
    /// The kernel runs the XDP program and copies frames; works with every driver.
    Generic,
}

impl XdpMode {
    /// Returns the AF_XDP modes to try for this setting, in order.
    pub(crate) fn modes(self) -> &'static [XdpTransferMode] {
        match self {
            Self::BestEffort => &XdpTransferMode::ALL,
            Self::NativeWithZerocopy => &[XdpTransferMode::NativeWithZerocopy],
            Self::Native => &[XdpTransferMode::Native],
            Self::Generic => &[XdpTransferMode::Generic],
        }
    }
}

/// UNIX stream socket that carries frames, each after its length in four bytes, big-endian.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamUplinkSocket {
    /// Connects to the stream socket at this path, at which another process listens.
    Connect(PathBuf),
    /// Listens at this path for the process that connects to the stream socket.
    Listen(PathBuf),
}

/// Formats the uplink as the status shows it.
impl fmt::Display for UplinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Macvtap(name) => write!(f, "macvtap:{name}"),
            Self::Wire(name) => write!(f, "wire:{name}"),
            Self::Stream(StreamUplinkSocket::Connect(path)) => write!(f, "stream:connect={}", path.display()),
            Self::Stream(StreamUplinkSocket::Listen(path)) => write!(f, "stream:listen={}", path.display()),
            Self::Interface(name) | Self::Xdp(name, _) => write!(f, "interface:{name}"),
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
        }
    }
}

impl UplinkConfig {
    /// Checks the uplink's name or path, normalizes the path, and claims a name that only one uplink may have.
    pub(super) fn check(&mut self, port: &str, unique: &mut UniqueConfigValues) -> Result<(), ConfigError> {
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
            Self::Stream(StreamUplinkSocket::Connect(path)) | Self::Replay(path) => {
                *path = absolute_path(path, &key)?;
                Ok(())
            }
            Self::Stream(StreamUplinkSocket::Listen(path)) => {
                *path = absolute_path(path, &key)?;
                unique.claim("socket", &path.display().to_string(), &key)
            }
        }
    }
}

/// Returns the path of a port's recording, if there is one. The path is absolute, and no other port records to it.
pub(super) fn check_record(
    path: Option<&Path>,
    port: &str,
    unique: &mut UniqueConfigValues,
) -> Result<Option<PathBuf>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let key = format!("{port}.record");
    let path = absolute_path(path, &key)?;
    unique.claim("file", &path.display().to_string(), &key)?;
    Ok(Some(path))
}

/// Checks that every wire of the configuration connects two ports.
pub(super) fn check_wires<'a>(
    ports: impl Iterator<Item = (&'a str, &'a UplinkConfig)>,
) -> Result<(), ConfigError> {
    let mut wires: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (port, uplink) in ports {
        if let UplinkConfig::Wire(wire) = uplink {
            wires.entry(wire).or_default().push(port);
        }
    }
    let Some((wire, ports)) = wires.into_iter().find(|(_, ports)| ports.len() != 2) else { return Ok(()) };
    let key = format!("{}.uplink", ports.last().copied().unwrap_or_default());
    Err(value(
        key,
        match ports[..] {
            [_] => format!("the wire {wire:?} has only one end; set it as the uplink of a second port"),
            _ => format!(
                "the wire {wire:?} has two ends, but is the uplink of {}; give each further port another wire",
                ports.join(", ")
            ),
        },
    ))
}

/// Deserializes an uplink by hand: the error of a derived implementation names enum variants instead of the file's
/// keys.
impl<'de> Deserialize<'de> for UplinkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UplinkConfigVisitor)
    }
}

/// Visitor that reads an [`UplinkConfig`] from a word or a table.
struct UplinkConfigVisitor;

/// Valid values of `uplink`, for error messages.
const KINDS: &str = concat!(
    r#""none", { tap = "NAME" }, { macvtap = "NAME" }, { wire = "NAME" }, { interface = "NAME", xdp = "MODE" }, "#,
    r#"{ replay = "PATH" }, { stream = { connect = "PATH" } } or { stream = { listen = "PATH" } }"#
);

/// Keys of an uplink's configuration table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UplinkConfigKeys {
    tap: Option<String>,
    macvtap: Option<String>,
    wire: Option<String>,
    stream: Option<StreamUplinkSocket>,
    interface: Option<String>,
    xdp: Option<XdpMode>,
    replay: Option<PathBuf>,
}

impl<'de> Visitor<'de> for UplinkConfigVisitor {
    type Value = UplinkConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<UplinkConfig, E> {
        match word {
            "none" => Ok(UplinkConfig::None),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<UplinkConfig, A::Error> {
        let UplinkConfigKeys { tap, macvtap, wire, stream, interface, xdp, replay } =
            Deserialize::deserialize(MapAccessDeserializer::new(table))?;
        let is_interface = interface.is_some();
        let given = [
            tap.map(UplinkConfig::Tap),
            macvtap.map(UplinkConfig::Macvtap),
            wire.map(UplinkConfig::Wire),
            stream.map(UplinkConfig::Stream),
            interface.map(|name| {
                xdp.map_or(UplinkConfig::Interface(name.clone()), |xdp| UplinkConfig::Xdp(name, xdp))
            }),
            replay.map(UplinkConfig::Replay),
        ];
        let mut given = given.into_iter().flatten();
        if xdp.is_some() && !is_interface {
            return Err(A::Error::custom("xdp needs an interface: { interface = \"NAME\", xdp = \"MODE\" }"));
        }
        match (given.next(), given.next()) {
            (Some(uplink), None) => Ok(uplink),
            (None, _) => Err(A::Error::custom(format!("no uplink is given; use one of {KINDS}"))),
            (Some(_), Some(_)) => Err(A::Error::custom(format!("two uplinks are given; use one of {KINDS}"))),
        }
    }
}
