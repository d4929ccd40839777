//! What the host is to be: the configuration file, checked as a whole before anything is made. What commands change
//! later is laid over it (`resolve`).
//!
//! Left out: whether names and paths can be had; that shows when they are opened.

pub mod access;
mod check;
pub mod confine;
mod cpus;
pub mod file;
pub mod http;
pub mod impair;
mod mac;
mod resolve;
pub mod size;
#[cfg(test)]
mod tests;
pub mod uplink;
mod vf_count;
pub mod vlans;

use crate::settings::{Layers, Limit, PortSettings};
use access::AccessKeys;
pub use check::ConfigError;
use check::{Unique, check_absolute, value, well_formed};
use file::{Family, File, LinkLocal, Pf, Port, PortLink, Vf, Wait};
use host::cpus::Cpus;
use host::socket::Access;
use i82576::MacAddress;
use impair::Impair;
use pcie::VfIndex;
use policy::{PortPolicy, VfPolicy};
use size::Size;
use std::path::{Path, PathBuf};
use uplink::Uplink;

/// A configuration that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where sockets are made that are given no path of their own.
    pub runtime_dir: PathBuf,
    /// Who may give commands.
    pub control_access: Access,
    /// The control interface over TCP, if there is one.
    pub http: Option<http::Http>,
    /// Where changes by command are kept; without a place nothing can be kept.
    pub state_dir: Option<PathBuf>,
    /// The text of the configuration file that the host was started with, or has loaded again since.
    pub text: String,
    /// The text of another file that was applied in its place.
    pub applied: Option<String>,
    /// What the host gives up once it has started.
    pub confine: confine::Confine,
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
    /// What is done to frames on their way over it.
    pub impair: Option<Impair>,
    /// Where it is recorded what passes the uplink.
    pub record: Option<PathBuf>,
    /// What its link is.
    pub link: PortLink,
    /// Policy for link-local frames of its guests.
    pub link_local: LinkLocal,
    /// What its card is.
    pub family: Family,
    /// How it waits for its guests.
    pub wait: Wait,
    /// The processors that its thread may run on; none named is any.
    pub cpus: Cpus,
    /// The vfio-user socket of the PF, if a guest drives it; there are no VFs then.
    pub pf_socket: Option<PathBuf>,
    /// Who may connect to that socket.
    pub access: Access,
    /// What is set for it, and where.
    pub layers: Layers,
    /// The policy that this makes, if the host drives the PF.
    pub policy: PortPolicy,
    /// The VFs that it offers, by index.
    pub vfs: Vec<VfConfig>,
    /// VFs that it could offer beyond these, if `vfs` were more.
    pub withheld: Vec<VfConfig>,
    /// The most memory that one client may share with its function, bytes. Without a word of it, what the machine has.
    pub client_memory: Option<u64>,
}

/// A VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfConfig {
    /// Its name: the port's with "vf" and the index.
    pub name: String,
    /// Which one.
    pub index: VfIndex,
    /// The address it starts with.
    pub mac: MacAddress,
    /// The address it starts with if none is set.
    own_mac: MacAddress,
    /// What is set for it, and where.
    pub layers: Layers,
    /// The policy that this makes.
    pub policy: VfPolicy,
    /// The administrator has shut it in.
    pub quarantine: bool,
    /// The vfio-user socket.
    pub socket: PathBuf,
    /// Who may connect to it.
    pub access: Access,
}

impl Config {
    /// The text of a file; without one, everything is left to the defaults.
    ///
    /// # Errors
    /// [`ConfigError::Read`].
    pub fn text(path: Option<&Path>) -> Result<String, ConfigError> {
        let Some(path) = path else { return Ok(String::new()) };
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })
    }

    /// Parses the text of a file that errors are to name, if it has a name.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn read(path: Option<&Path>, text: &str) -> Result<File, ConfigError> {
        let path = path.unwrap_or(Path::new("configuration"));
        Self::parse(text).map_err(|message| ConfigError::Syntax { path: path.into(), message })
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
        if let Some(folder) = &file.state_dir {
            check_absolute(folder, "state_dir")?;
        }
        let mut unique = Unique::default();
        let control_access = access::control(&file.control)?;
        let (confine, http) = (confine::check(&file.confine)?, http::check(&file.http)?);
        let mut ports = Vec::new();
        for (number, port) in file.port.into_iter().enumerate() {
            let port = check_port(number, port, (&runtime_dir, &file.access), &mut unique)?;
            ports.push(PortConfig { client_memory: file.client_memory.map(|Size(bytes)| bytes), ..port });
        }
        uplink::check_wires(ports.iter().map(|port| (port.name.as_str(), &port.uplink)))?;
        let (text, applied) = (String::new(), None);
        let state_dir = file.state_dir;
        let mut config = Self { runtime_dir, control_access, http, state_dir, text, applied, confine, ports };
        config.resolve()?;
        Ok(config)
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        access::control_socket(&self.runtime_dir)
    }
}

fn check_port(
    number: usize,
    port: Port,
    (runtime_dir, host_access): (&Path, &AccessKeys),
    unique: &mut Unique,
) -> Result<PortConfig, ConfigError> {
    let name = port.name.clone().unwrap_or_else(|| format!("pf{number}"));
    well_formed(&name).map_err(|problem| value("port.name", format!("{name:?} is not {problem}")))?;
    if name == access::CONTROL {
        let why = "name control is also given to the host itself, for commands; choose another";
        return Err(value("port.name", why));
    }
    if unique.claim("name", &name, "port.name").is_err() {
        let problem = format!("two ports are called {name:?}; give one of them another name");
        return Err(value("port.name", problem));
    }
    check_family(&name, &port)?;
    let pf_socket = check_pf(&name, &port, runtime_dir, unique)?;
    let layers = Layers::of_file(&port_settings(&port));
    port.uplink.check(&name, unique)?;
    uplink::check_record(port.record.as_deref(), &name, unique)?;
    let cpus = cpus::check(port.cpus.as_deref(), &name)?;
    let mac = mac::address(port.mac.as_deref(), &format!("{name}.mac"), (runtime_dir, &name))?;
    let withheld = match &pf_socket {
        Some(_) => Vec::new(),
        None => {
            let places = (runtime_dir, [&port.access, host_access]);
            check_vfs(&name, (port.family, port.vfs), port.vf, places, unique)?
        }
    };
    let access = access::access(&[&port.access, host_access], &name)?;
    Ok(PortConfig {
        impair: port.impair.as_ref().map(|keys| Impair::check(keys, &name)).transpose()?,
        name,
        mac,
        uplink: port.uplink,
        record: port.record,
        link: port.link,
        link_local: port.link_local,
        family: port.family,
        wait: port.wait,
        cpus,
        pf_socket,
        access,
        layers,
        policy: PortPolicy::default(),
        vfs: Vec::new(),
        withheld,
        client_memory: None,
    })
}

/// Every VF that a port of the family can offer, with what the file says of it.
fn check_vfs(
    port: &str,
    (family, count): (Family, Option<u8>),
    vfs: Vec<Vf>,
    places: (&Path, [&AccessKeys; 2]),
    unique: &mut Unique,
) -> Result<Vec<VfConfig>, ConfigError> {
    let count = vf_count::vf_count(port, family, count)?;
    let mut given: Vec<Option<Vf>> = vec![None; family.limits().vfs];
    for vf in vfs {
        let key = format!("{port}.vf.index");
        let index = vf.place.index;
        let place = given
            .get_mut(usize::from(index))
            .filter(|_| usize::from(index) < count)
            .ok_or_else(|| value(&key, format!("{index} is beyond the port's {count} VFs; raise vfs")))?;
        if place.replace(vf).is_some() {
            return Err(value(key, format!("{index} is given twice")));
        }
    }
    let vfs = VfIndex::first(family.limits().vfs).zip(given);
    vfs.map(|(index, vf)| check_vf(port, (index, vf.unwrap_or_default()), places, unique)).collect()
}

/// What a family does not have. What can be set by command as well is checked with the settings (`resolve`).
fn check_family(name: &str, port: &Port) -> Result<(), ConfigError> {
    if port.family == Family::Avf && port.pf == Pf::Guest {
        let why =
            "family = \"avf\" has no PF that a guest could drive; leave pf out, or use family = \"82576\"";
        return Err(value(format!("{name}.pf"), why));
    }
    Ok(())
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
    if (PortSettings { vfs: None, ..port_settings(port) }) != PortSettings::default() {
        let why =
            "limits, storm and mirror are the host's PF driver's, and a guest drives this PF; leave them out";
        return Err(value(key("pf"), why));
    }
    if port.wait != Wait::Sleep {
        return Err(value(
            key("wait"),
            "VFs alone have doorbells to map, and this port has none; leave it out",
        ));
    }
    if port.vfs.is_some() || !port.vf.is_empty() {
        let why = "a port with pf = \"guest\" has no VFs: its guest drives the whole port, and VMMs hide \
                   SR-IOV from guests; leave them out, or give them a port of their own";
        return Err(value(key("vfs"), why));
    }
    access::socket(port.socket.clone(), (runtime_dir, name, "pf.sock"), unique).map(Some)
}

fn check_vf(
    port: &str,
    (index, vf): (VfIndex, Vf),
    (runtime_dir, [port_access, host_access]): (&Path, [&AccessKeys; 2]),
    unique: &mut Unique,
) -> Result<VfConfig, ConfigError> {
    let name = format!("{port}{index}");
    let access = access::access(&[&vf.place.access, port_access, host_access], &name)?;
    let socket = access::socket(vf.place.socket, (runtime_dir, &name, "vf.sock"), unique)?;
    let layers = Layers::of_file(&vf.settings);
    let (mac, policy) = (mac::derived(runtime_dir, &name), VfPolicy::default());
    Ok(VfConfig { name, index, mac, own_mac: mac, layers, policy, quarantine: false, socket, access })
}

/// What the file sets for a port. There may be more mirror rules than the card has numbers for.
fn port_settings(port: &Port) -> PortSettings {
    let never = |limit: &Limit| Limit {
        warn: limit.warn.or(Some(0)),
        throttle: limit.throttle.or(Some(0)),
        quarantine: limit.quarantine.or(Some(0)),
    };
    let rules = port.mirror.iter().enumerate();
    PortSettings {
        vfs: port.vfs,
        limits: port.limits.iter().map(|(kind, limit)| (kind.clone(), never(limit))).collect(),
        storm: port.storm,
        mirror: rules.map(|(n, rule)| (n.to_string(), Some(rule.clone()))).collect(),
    }
}
