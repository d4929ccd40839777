//! Configuration of the host: the configuration file, checked as a whole before the host opens anything. `resolve`
//! applies later changes by command on top of the file.
//!
//! The host finds out about interfaces and paths when it opens them.

pub mod access;
mod check;
pub mod coalesce;
pub mod confine;
mod cpus;
mod families;
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
mod workers;

use crate::settings::{ConductThresholds, LinkLocalPolicy, PortSettings, SettingLayers};
use access::AccessConfigKeys;
pub use check::ConfigError;
use check::{UniqueConfigValues, absolute_path, value, well_formed};
use coalesce::CoalescingConfig;
use file::{
    CardFamily, ConfigFile, DispatcherMode, DoorbellMode, PfAssignment, PortConfigKeys, PortLinkRule,
    SocketRole, VfConfigKeys,
};
use host::cpus::CpuList;
use host::socket::SocketFilePermissions;
use i82576::MacAddress;
use impair::ImpairmentConfig;
use pcie::VfIndex;
use policy::{PortPolicy, VfPolicy};
use size::MemorySize;
use std::path::{Path, PathBuf};
use uplink::UplinkConfig;

/// Maximum number of ports. Each has threads and sockets of its own, and a file with many times more would hold the host's
/// answers to others for long.
const MAX_PORTS: usize = 256;

/// Checked configuration of the host, with its ports and their VFs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Folder of the sockets that have no path of their own.
    pub runtime_dir: PathBuf,
    /// Access rights to the control socket.
    pub control_access: SocketFilePermissions,
    /// Configuration of the control interface over TCP, if there is one.
    pub http: Option<http::HttpConfig>,
    /// Folder in which changes by command are stored. Without this folder, commands can only make volatile changes.
    pub state_dir: Option<PathBuf>,
    /// Text of the configuration file at the host's start, or at its last reload.
    pub text: String,
    /// Text of the configuration file that `softiov apply` applied instead of the host's own file, if any.
    pub applied: Option<String>,
    /// Rights that the host gives up after its start.
    pub confine: confine::SandboxConfig,
    /// Configurations of the host's ports, in the order of the file.
    pub ports: Vec<PortConfig>,
}

/// Checked configuration of one port, with its VFs and its uplink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Name of the port in commands.
    pub name: String,
    /// Ethernet address of the port.
    pub mac: MacAddress,
    /// Uplink of the port: its connection to the network, to another port or to another process.
    pub uplink: UplinkConfig,
    /// Delay, loss and reordering of the uplink's frames, if configured.
    pub impair: Option<ImpairmentConfig>,
    /// Path of the file to record the uplink's frames to, if configured.
    pub record: Option<PathBuf>,
    /// Rule by which the port's link is up or down.
    pub link: PortLinkRule,
    /// Policy for link-local frames of the port's guests.
    pub link_local: LinkLocalPolicy,
    /// Card family of the port, and of its VFs without a family of their own.
    pub family: CardFamily,
    /// Doorbell mode of the port.
    pub wait: DoorbellMode,
    /// Processors that the port's thread may run on; an empty set means any.
    pub cpus: CpuList,
    /// Number of threads that share the port's VFs.
    pub workers: usize,
    /// Dispatcher of the VFs to these threads.
    pub dispatcher: DispatcherMode,
    /// Joining of frames and interrupts, for ports of the family virtio.
    pub coalescing: CoalescingConfig,
    /// vfio-user socket of the PF, if a guest drives it. Such a port has no VFs.
    pub pf_socket: Option<PathBuf>,
    /// Access rights to the PF's socket.
    pub access: SocketFilePermissions,
    /// Settings of the port by source: file, kept commands, volatile commands.
    pub layers: SettingLayers,
    /// Policy that the port's settings give; without effect if a guest drives the PF.
    pub policy: PortPolicy,
    /// VFs that the port offers, by index.
    pub vfs: Vec<VfConfig>,
    /// VFs that the card supports beyond `vfs`. Their settings apply as soon as the administrator raises the number.
    pub withheld: Vec<VfConfig>,
    /// Limit of the memory that one client may share with its function, bytes. `None` is the machine's memory.
    pub client_memory: Option<u64>,
}

/// Checked configuration of one VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfConfig {
    /// Name of the VF: the port's name, "vf" and the index.
    pub name: String,
    /// Index of the VF within its port.
    pub index: VfIndex,
    /// Card family of the VF.
    pub family: CardFamily,
    /// MAC address of the VF after a reset.
    pub mac: MacAddress,
    /// MAC address of the VF after a reset if the settings have none.
    pub(crate) own_mac: MacAddress,
    /// Settings of the VF by source: file, kept commands, volatile commands.
    pub layers: SettingLayers,
    /// Policy that the VF's settings give.
    pub policy: VfPolicy,
    /// True if the administrator has quarantined the VF.
    pub quarantine: bool,
    /// Path of the VF's vfio-user or vhost-user socket.
    pub socket: PathBuf,
    /// Role of the host at the VF's socket.
    pub socket_mode: SocketRole,
    /// Access rights to the VF's socket.
    pub access: SocketFilePermissions,
}

impl HostConfig {
    /// Reads the text of the configuration file. Without a path the text is empty, and every key has its default.
    ///
    /// # Errors
    /// [`ConfigError::Read`].
    pub fn text(path: Option<&Path>) -> Result<String, ConfigError> {
        let Some(path) = path else { return Ok(String::new()) };
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })
    }

    /// Parses the text of a configuration file. Errors name `path`, if given.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`].
    pub fn read(path: Option<&Path>, text: &str) -> Result<ConfigFile, ConfigError> {
        let path = path.unwrap_or(Path::new("configuration"));
        Self::parse(text).map_err(|message| ConfigError::Syntax { path: path.into(), message })
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    /// Message of the parser, with line, column and key.
    pub fn parse(text: &str) -> Result<ConfigFile, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }

    /// Checks a parsed configuration file and fills in the defaults.
    ///
    /// # Errors
    /// [`ConfigError::Value`].
    pub fn check(mut file: ConfigFile, default_runtime_dir: &Path) -> Result<Self, ConfigError> {
        if file.port.is_empty() {
            file.port.push(PortConfigKeys::default());
        }
        if file.port.len() > MAX_PORTS {
            let count = file.port.len();
            let why =
                format!("{count} ports are too many (at most {MAX_PORTS}); run another host for the others");
            return Err(value("port", why));
        }
        // Addresses are derived from the text of this path.
        let runtime_dir =
            absolute_path(file.runtime_dir.as_deref().unwrap_or(default_runtime_dir), "runtime_dir")?;
        let state_dir = file.state_dir.map(|folder| absolute_path(&folder, "state_dir")).transpose()?;
        let mut unique = UniqueConfigValues::default();
        let control_access = access::control(&file.control)?;
        let (confine, http) = (confine::check(&file.confine)?, http::check(&file.http)?);
        let mut ports = Vec::new();
        for (number, port) in file.port.into_iter().enumerate() {
            let port = check_port(number, port, (&runtime_dir, &file.access), &mut unique)?;
            ports.push(PortConfig {
                client_memory: file.client_memory.map(|MemorySize(bytes)| bytes),
                ..port
            });
        }
        uplink::check_wires(ports.iter().map(|port| (port.name.as_str(), &port.uplink)))?;
        let (text, applied) = (String::new(), None);
        let mut config = Self { runtime_dir, control_access, http, state_dir, text, applied, confine, ports };
        config.resolve()?;
        Ok(config)
    }

    /// Returns the limit of the memory that one client may share with its function, which is the same for all ports.
    pub(crate) fn client_memory(&self) -> Option<u64> {
        self.ports.first().and_then(|port| port.client_memory)
    }

    /// Returns the path of the host's control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        access::control_socket(&self.runtime_dir)
    }
}

fn check_port(
    number: usize,
    mut port: PortConfigKeys,
    (runtime_dir, host_access): (&Path, &AccessConfigKeys),
    unique: &mut UniqueConfigValues,
) -> Result<PortConfig, ConfigError> {
    let name = port.name.clone().unwrap_or_else(|| format!("pf{number}"));
    well_formed(&name).map_err(|problem| value("port.name", format!("{name:?} is not {problem}")))?;
    if name == access::CONTROL {
        let why = "the name \"control\" is reserved for the control socket; choose another";
        return Err(value("port.name", why));
    }
    if unique.claim("name", &name, "port.name").is_err() {
        let problem = format!("two ports are named {name:?}; rename one");
        return Err(value("port.name", problem));
    }
    families::check(&name, &port)?;
    let pf_socket = check_pf(&name, &port, runtime_dir, unique)?;
    let layers = SettingLayers::of_file(&port_settings(&port));
    port.uplink.check(&name, unique)?;
    let record = uplink::check_record(port.record.as_deref(), &name, unique)?;
    let cpus = cpus::check(port.cpus.as_deref(), &name)?;
    let (workers, coalescing) = (workers::check(&port, &name)?, coalesce::check(&port, &name)?);
    let mac = mac::address(port.mac.as_deref(), &format!("{name}.mac"), (runtime_dir, &name))?;
    let withheld = match &pf_socket {
        Some(_) => Vec::new(),
        None => {
            let places = (runtime_dir, [&port.access, host_access]);
            let kind = (port.family, port.vfs, port.socket_mode);
            check_vfs(&name, kind, port.vf, places, unique)?
        }
    };
    let access = access::access(&[&port.access, host_access], &name)?;
    Ok(PortConfig {
        impair: port.impair.as_ref().map(|keys| ImpairmentConfig::check(keys, &name)).transpose()?,
        name,
        mac,
        uplink: port.uplink,
        record,
        link: port.link,
        link_local: LinkLocalPolicy::default(),
        family: port.family,
        wait: port.wait,
        cpus,
        workers,
        dispatcher: port.dispatcher.unwrap_or_default(),
        coalescing,
        pf_socket,
        access,
        layers,
        policy: PortPolicy::default(),
        vfs: Vec::new(),
        withheld,
        client_memory: None,
    })
}

/// Checks the configuration of every VF that the port's card family supports, also of VFs beyond the offered `count`.
fn check_vfs(
    port: &str,
    (family, count, socket_mode): (CardFamily, Option<u8>, Option<SocketRole>),
    vfs: Vec<VfConfigKeys>,
    places: (&Path, [&AccessConfigKeys; 2]),
    unique: &mut UniqueConfigValues,
) -> Result<Vec<VfConfig>, ConfigError> {
    let count = vf_count::vf_count(port, family, count)?;
    let mut given: Vec<Option<VfConfigKeys>> = vec![None; family.limits().vfs];
    for vf in vfs {
        let key = format!("{port}.vf.index");
        let index = vf.place.index;
        let place = given
            .get_mut(usize::from(index))
            .filter(|_| usize::from(index) < count)
            .ok_or_else(|| value(&key, format!("{index} is out of range (0-{}); raise vfs", count - 1)))?;
        if place.replace(vf).is_some() {
            return Err(value(key, format!("{index} is the index of two VFs of the port; change one")));
        }
    }
    let check = |(index, vf): (VfIndex, Option<VfConfigKeys>)| {
        let mut vf = vf.unwrap_or_default();
        let own = vf.place.family.unwrap_or(family);
        families::check_socket_mode(&format!("{port}{index}"), own, vf.place.socket_mode)?;
        let inherited = socket_mode.filter(|_| own == CardFamily::Virtio);
        (vf.place.family, vf.place.socket_mode) = (Some(own), vf.place.socket_mode.or(inherited));
        check_vf(port, (index, vf), places, unique)
    };
    VfIndex::first(family.limits().vfs).zip(given).map(check).collect()
}

/// Returns the socket of a PF that a guest drives, or `None`. A port with such a PF has no VFs, because no VMM supports
/// SR-IOV through vfio-user: the guest's driver could enable VFs but not pass them to guests.
fn check_pf(
    name: &str,
    port: &PortConfigKeys,
    runtime_dir: &Path,
    unique: &mut UniqueConfigValues,
) -> Result<Option<PathBuf>, ConfigError> {
    let key = |key: &str| format!("{name}.{key}");
    if port.pf == PfAssignment::Host {
        return match port.socket {
            Some(_) => Err(value(
                key("socket"),
                "only a port with pf = \"guest\" has a socket; set vf.socket instead",
            )),
            None => Ok(None),
        };
    }
    if (PortSettings { vfs: None, ..port_settings(port) }) != PortSettings::default() {
        let why = "a guest drives this PF, and limits, storm, mirror and link_local are settings for VFs, which the port \
                   does not have; leave them out";
        return Err(value(key("pf"), why));
    }
    if port.wait != DoorbellMode::Sleep {
        return Err(value(
            key("wait"),
            "wait needs doorbells of VFs, and a port with pf = \"guest\" has no VFs; leave wait out",
        ));
    }
    if port.vfs.is_some() || !port.vf.is_empty() {
        let why = "a port with pf = \"guest\" has no VFs: its guest drives the whole port, and VMMs hide SR-IOV \
                   from guests; leave vfs and vf out, or add another port";
        return Err(value(key("vfs"), why));
    }
    access::socket(port.socket.clone(), (runtime_dir, name, "pf.sock"), unique).map(Some)
}

fn check_vf(
    port: &str,
    (index, vf): (VfIndex, VfConfigKeys),
    (runtime_dir, [port_access, host_access]): (&Path, [&AccessConfigKeys; 2]),
    unique: &mut UniqueConfigValues,
) -> Result<VfConfig, ConfigError> {
    let name = format!("{port}{index}");
    let access = access::access(&[&vf.place.access, port_access, host_access], &name)?;
    let socket = access::socket(vf.place.socket, (runtime_dir, &name, "vf.sock"), unique)?;
    let socket_mode = vf.place.socket_mode.unwrap_or_default();
    let (family, layers) = (vf.place.family.unwrap_or_default(), SettingLayers::of_file(&vf.settings));
    let (mac, policy) = (mac::derived(runtime_dir, &name), VfPolicy::default());
    Ok(VfConfig {
        name,
        index,
        family,
        mac,
        own_mac: mac,
        layers,
        policy,
        quarantine: false,
        socket,
        socket_mode,
        access,
    })
}

/// Returns the settings of a port in the configuration file. `resolve` refuses more mirror rules than the card has.
fn port_settings(port: &PortConfigKeys) -> PortSettings {
    let never = |limit: &ConductThresholds| ConductThresholds {
        warn: limit.warn.or(Some(0)),
        throttle: limit.throttle.or(Some(0)),
        quarantine: limit.quarantine.or(Some(0)),
    };
    let rules = port.mirror.iter().enumerate();
    PortSettings {
        vfs: port.vfs,
        link_local: port.link_local,
        limits: port.limits.iter().map(|(kind, limit)| (kind.clone(), never(limit))).collect(),
        storm: port.storm,
        mirror: rules.map(|(n, rule)| (n.to_string(), Some(rule.clone()))).collect(),
    }
}
