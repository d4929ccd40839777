//! What the host is to be: the configuration file, checked as a whole before anything is made.
//!
//! Left out: whether names and paths can be had; that shows when they are opened.

pub mod file;
#[cfg(test)]
mod tests;
pub mod vlans;

use crate::policy::{Change, ChangeError, Limit, PortChange};
use driver::pf::{PortPolicy, VfPolicy};
use file::{File, Pf, Port, PortLink, Uplink, Vf};
use host::tap::InterfaceName;
use i82576::{MacAddress, VfIndex, ids};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A configuration that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where the control socket is.
    pub runtime_dir: PathBuf,
    /// The ports.
    pub ports: Vec<PortConfig>,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Its name.
    pub name: String,
    /// Its own address.
    pub mac: MacAddress,
    /// What carries frames beyond the card.
    pub uplink: Uplink,
    /// What its link is.
    pub link: PortLink,
    /// The vfio-user socket of the PF, if a guest drives it; there are no VFs then.
    pub pf_socket: Option<PathBuf>,
    /// What the administrator decides for the port, if the host drives the PF.
    pub policy: PortPolicy,
    /// Its VFs, by index.
    pub vfs: Vec<VfConfig>,
}

/// A VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfConfig {
    /// Its name: the port's with "vf" and the index.
    pub name: String,
    /// Which one.
    pub index: VfIndex,
    /// Its address.
    pub mac: MacAddress,
    /// What the administrator decides for it.
    pub policy: VfPolicy,
    /// The vfio-user socket.
    pub socket: PathBuf,
}

/// Why a configuration is refused. Nothing has been changed then.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what a configuration looks like; the message names place and key.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What and where.
        message: String,
    },
    /// A value makes no sense.
    #[error("{key}: {problem}")]
    Value {
        /// The key, with the port and VF it stands in.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

fn value(key: impl Into<String>, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.into(), problem: problem.into() }
}

/// VFs of a port that says nothing.
const DEFAULT_VFS: u8 = 7;
/// The control socket's name in the runtime directory.
const CONTROL_SOCKET: &str = "control.sock";
/// Longest name: with "vf7.sock" it still fits anywhere.
const MAX_NAME: usize = 32;

impl Config {
    /// Reads a file; without one, everything is left to the defaults.
    ///
    /// # Errors
    /// [`ConfigError::Read`], [`ConfigError::Syntax`].
    pub fn read(path: Option<&Path>) -> Result<File, ConfigError> {
        let Some(path) = path else { return Ok(File::default()) };
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.into(), source })?;
        Self::parse(&text).map_err(|message| ConfigError::Syntax { path: path.into(), message })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// What the parser says: line, column, and the key.
    pub fn parse(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }

    /// Checks what was written and fills in what was not.
    ///
    /// # Errors
    /// [`ConfigError::Value`].
    pub fn check(mut file: File, default_runtime_dir: &Path) -> Result<Self, ConfigError> {
        if file.port.is_empty() {
            file.port.push(Port::default());
        }
        let runtime_dir = file.runtime_dir.unwrap_or_else(|| default_runtime_dir.to_owned());
        let mut unique = Unique::default();
        let control = runtime_dir.join(CONTROL_SOCKET);
        unique.claim("socket", &control.display().to_string(), "the host itself, for commands")?;
        let mut ports = Vec::new();
        for (number, port) in file.port.into_iter().enumerate() {
            ports.push(check_port(number, port, &runtime_dir, &mut unique)?);
        }
        Ok(Self { runtime_dir, ports })
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.runtime_dir.join(CONTROL_SOCKET)
    }
}

/// Values that may be given once only, with the key that gave them.
#[derive(Default)]
struct Unique(HashMap<String, String>);

impl Unique {
    fn claim(&mut self, kind: &str, what: &str, key: &str) -> Result<(), ConfigError> {
        match self.0.insert(format!("{kind} {what}"), key.to_owned()) {
            Some(other) => Err(value(key, format!("{kind} {what} is also given to {other}; choose another"))),
            None => Ok(()),
        }
    }
}

fn check_port(
    number: usize,
    port: Port,
    runtime_dir: &Path,
    unique: &mut Unique,
) -> Result<PortConfig, ConfigError> {
    let name = port.name.clone().unwrap_or_else(|| format!("pf{number}"));
    let well_formed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(well_formed) {
        return Err(value("port.name", format!("{name:?} is not 1 to {MAX_NAME} letters, digits, - or _")));
    }
    unique.claim("name", &name, "port.name")?;
    let pf_socket = check_pf(&name, &port, runtime_dir, unique)?;
    let count = match (&pf_socket, port.vfs) {
        (Some(_), _) => 0,
        (None, count) => count.unwrap_or(DEFAULT_VFS),
    };
    if pf_socket.is_none() && !(1..=ids::MAX_VFS as u8).contains(&count) {
        return Err(value(format!("{name}.vfs"), format!("{count} is not 1 to {}", ids::MAX_VFS)));
    }
    if let Uplink::Tap(tap) = &port.uplink {
        let key = format!("{name}.uplink");
        tap.parse::<InterfaceName>().map_err(|error| value(&key, error.to_string()))?;
        unique.claim("tap", tap, &key)?;
    }
    let mac = address(port.mac.as_deref(), &format!("{name}.mac"), &name)?;
    unique.claim("address", &mac.to_string(), &format!("{name}.mac"))?;
    let policy = check_policy(&port_wishes(&port), usize::from(count));
    let policy = policy.map_err(|error| value(format!("{name}.{}", error.key), error.problem))?;
    let mut given: Vec<Option<Vf>> = vec![None; usize::from(count)];
    for vf in port.vf {
        let key = format!("{name}.vf.index");
        let index = vf.index;
        let place = given
            .get_mut(usize::from(index))
            .ok_or_else(|| value(&key, format!("{index} is beyond the port's {count} VFs; raise vfs")))?;
        if place.replace(vf).is_some() {
            return Err(value(key, format!("{index} is given twice")));
        }
    }
    let vfs = VfIndex::all().zip(given);
    let vfs = vfs.map(|(index, vf)| check_vf(&name, (index, vf), runtime_dir, unique));
    let vfs = vfs.collect::<Result<_, _>>()?;
    Ok(PortConfig { name, mac, uplink: port.uplink, link: port.link, pf_socket, policy, vfs })
}

/// Where the PF is offered to a guest, if it is. Such a port has no VFs: what a guest's driver makes of the PF is
/// its own business, and no VMM passes SR-IOV on through vfio-user.
fn check_pf(
    name: &str,
    port: &Port,
    runtime_dir: &Path,
    unique: &mut Unique,
) -> Result<Option<PathBuf>, ConfigError> {
    let key = |key: &str| format!("{name}.{key}");
    if port.pf == Pf::Host {
        return match port.socket {
            Some(_) => Err(value(key("socket"), "only a PF with pf = \"guest\" has one; VFs have their own")),
            None => Ok(None),
        };
    }
    if port_wishes(port) != PortChange::default() {
        let why =
            "limits, storm and mirror are the host's PF driver's, and a guest drives this PF; leave them out";
        return Err(value(key("pf"), why));
    }
    if port.vfs.is_some() || !port.vf.is_empty() {
        let why = "a port with pf = \"guest\" has no VFs: its guest drives the whole port, and VMMs hide \
                   SR-IOV from guests; leave them out, or give them a port of their own";
        return Err(value(key("vfs"), why));
    }
    let socket = port.socket.clone().unwrap_or_else(|| runtime_dir.join(format!("{name}.sock")));
    unique.claim("socket", &socket.display().to_string(), &key("socket"))?;
    Ok(Some(socket))
}

fn check_vf(
    port: &str,
    (index, vf): (VfIndex, Option<Vf>),
    runtime_dir: &Path,
    unique: &mut Unique,
) -> Result<VfConfig, ConfigError> {
    let name = format!("{port}{index}");
    let vf = vf.unwrap_or_default();
    let mac = address(vf.mac.as_deref(), &format!("{name}.mac"), &name)?;
    unique.claim("address", &mac.to_string(), &format!("{name}.mac"))?;
    let policy = wishes(&vf).apply(VfPolicy { mac: Some(mac), ..VfPolicy::default() }, mac);
    let policy = policy.map_err(|error| value(format!("{name}.{}", error.key), error.problem))?;
    let socket = vf.socket.unwrap_or_else(|| runtime_dir.join(format!("{name}.sock")));
    unique.claim("socket", &socket.display().to_string(), &format!("{name}.socket"))?;
    Ok(VfConfig { index, mac, policy, socket, name })
}

fn check_policy(wishes: &PortChange, vfs: usize) -> Result<PortPolicy, ChangeError> {
    let policy = wishes.apply(PortPolicy::default(), vfs)?;
    policy.check()?;
    Ok(policy)
}

/// What the file says of a port's policy. There may be more rules than the card has numbers for.
fn port_wishes(port: &Port) -> PortChange {
    let never = |limit: &Limit| Limit {
        warn: limit.warn.or(Some(0)),
        throttle: limit.throttle.or(Some(0)),
        quarantine: limit.quarantine.or(Some(0)),
    };
    PortChange {
        limits: port.limits.iter().map(|(kind, limit)| (kind.clone(), never(limit))).collect(),
        storm: port.storm,
        mirrors: port
            .mirror
            .iter()
            .enumerate()
            .map(|(n, rule)| (n.to_string(), Some(rule.clone())))
            .collect(),
    }
}

/// What the file says of a VF's policy.
fn wishes(vf: &Vf) -> Change {
    Change {
        state: vf.state,
        mac: vf.mac.clone(),
        vlan: vf.vlan,
        qos: vf.qos,
        proto: vf.proto.clone(),
        vlans: vf.vlans.clone(),
        spoofchk: vf.spoofchk,
        trust: vf.trust,
        max_tx_rate: vf.max_tx_rate,
        min_tx_rate: vf.min_tx_rate,
        allmulti: vf.allmulti,
        max_mtu: vf.max_mtu,
        rss: vf.rss,
        min_interrupts: vf.min_interrupts,
        max_interrupts: vf.max_interrupts,
        coalesce: vf.coalesce,
        quarantine: None,
    }
}

/// The address that is written, or one derived from the machine and the owner's name.
fn address(text: Option<&str>, key: &str, owner: &str) -> Result<MacAddress, ConfigError> {
    let Some(text) = text else { return Ok(derived_address(owner)) };
    let mac: MacAddress = text.parse().map_err(|error| value(key, format!("{text:?}: {error}")))?;
    if mac.is_valid_unicast() {
        Ok(mac)
    } else {
        Err(value(
            key,
            format!("{mac} is no station's own address: the first byte must be even, and not all zero"),
        ))
    }
}

/// A locally administered address that stays the same on this machine and differs from other machines'.
fn derived_address(owner: &str) -> MacAddress {
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let fnv1a = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = machine.iter().chain(owner.as_bytes()).fold(0xcbf2_9ce4_8422_2325, fnv1a);
    // FNV leaves names that differ in their last letter alike in the upper bytes: mix once more.
    let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let [.., a, b, c, d, e] = mixed.to_le_bytes();
    MacAddress([0x02, a, b, c, d, e])
}
