//! Keys of the configuration file, as the parser reads them and before checks. The settings of ports and VFs are
//! declared once for all their uses (`settings`).

use super::access::{AccessConfigKeys, ControlConfigKeys};
use super::confine::SandboxConfigKeys;
use super::http::HttpConfigKeys;
use super::impair::ImpairmentConfigKeys;
use super::size::MemorySize;
use super::uplink::UplinkConfig;
use crate::settings::{ConductThresholds, LinkLocalPolicy, MirrorRule, StormControlSettings, VfSettings};
use policy::CardFamilyLimits;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Keys of a whole configuration file, with a list of ports.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Folder of the sockets that have no path of their own.
    pub runtime_dir: Option<PathBuf>,
    /// Access rights to the sockets of VFs, and of PFs that guests drive.
    #[serde(default)]
    pub access: AccessConfigKeys,
    /// Access rights to the control socket, beside those of the host's user.
    #[serde(default)]
    pub control: ControlConfigKeys,
    /// Table `http`: the control interface over TCP.
    #[serde(default)]
    pub http: HttpConfigKeys,
    /// Folder in which changes by command are stored. Default: the system's folder for state.
    pub state_dir: Option<PathBuf>,
    /// Table `confine`: rights that the host gives up after its start.
    #[serde(default)]
    pub confine: SandboxConfigKeys,
    /// Limit of the memory that one client may share with its function, such as "64G". Default: the machine's memory
    /// and swap space.
    pub client_memory: Option<MemorySize>,
    /// Tables `[[port]]`. Without any there is one port, with default values.
    #[serde(default)]
    pub port: Vec<PortConfigKeys>,
}

/// Keys of a port: a physical function, its virtual functions and an uplink.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortConfigKeys {
    /// Name of the port in commands. Default: pf0, pf1, ... in the order of the file.
    pub name: Option<String>,
    /// Ethernet address of the port. Default: derived from the machine and the name.
    pub mac: Option<String>,
    /// Uplink of the port. Default: none.
    #[serde(default)]
    pub uplink: UplinkConfig,
    /// Impairment of frames on the uplink: delay, loss, reordering. Default: none.
    pub impair: Option<ImpairmentConfigKeys>,
    /// File to record the uplink's frames to, as pcapng. Default: none.
    pub record: Option<PathBuf>,
    /// Rule for the port's link: "uplink" for the link of the uplink, or "up" for a link that is always up. Default:
    /// uplink. A port without an uplink always has a link.
    #[serde(default)]
    pub link: PortLinkRule,
    /// Policy for link-local frames of guests: "drop" or "forward". Default: drop.
    pub link_local: Option<LinkLocalPolicy>,
    /// Card family: "82576", which guests drive by igbvf, "avf", which they drive by iavf, or "virtio", network devices
    /// behind vhost-user. VFs of the port may be of another family, by their own key. Default: 82576.
    #[serde(default)]
    pub family: CardFamily,
    /// Doorbell mode: "sleep", "mapped" or "busy". Default: sleep.
    #[serde(default)]
    pub wait: DoorbellMode,
    /// Processors that the port's thread may run on. Default: all that the host may run on.
    pub cpus: Option<Vec<u32>>,
    /// Number of threads that share the port's VFs, 1 to 8, with family "virtio", or "avf" and doorbells in memory. Default: 1.
    pub workers: Option<u8>,
    /// Dispatcher of the VFs to the workers: "balanced", which leaves all VFs to one worker while traffic is low, "spread", or
    /// "off". Default: balanced.
    pub dispatcher: Option<DispatcherMode>,
    /// Joining of TCP segments into larger packets for guests that take them, with family "virtio". Default: false.
    pub gro: Option<bool>,
    /// Least time between two interrupts of a receive ring in microseconds, 0 to 10,000, with family "virtio". Default: 0.
    pub rx_usecs: Option<u32>,
    /// Least time between two interrupts of a transmit ring in microseconds, 0 to 10,000, with family "virtio". Default: 0.
    pub tx_usecs: Option<u32>,
    /// Driver of the physical function: "host", which offers the VFs to guests, or "guest". Default: host.
    #[serde(default)]
    pub pf: PfAssignment,
    /// Path of the PF's own vfio-user socket, for a PF that a guest drives. Default: NAME/pf.sock in the runtime
    /// directory, such as pf0/pf.sock.
    pub socket: Option<PathBuf>,
    /// Role of the host at the VFs' sockets: "server", which listens, or with family "virtio" "client", which connects to the
    /// sockets on which VMMs listen. Default: server.
    pub socket_mode: Option<SocketRole>,
    /// Access rights to the port's sockets; a missing key has the host's value.
    #[serde(default)]
    pub access: AccessConfigKeys,
    /// Number of VFs: 1 to 8, with family "avf" or "virtio" 1 to 64. Default: 7; none if a guest drives the PF.
    pub vfs: Option<u8>,
    /// Thresholds for offences of VFs by kind, events per second. A missing kind keeps its default; a missing threshold
    /// of a kind that is named is never reached.
    #[serde(default)]
    pub limits: BTreeMap<String, ConductThresholds>,
    /// Storm control: limits of broadcasts and multicasts to the VFs. Default: no limit.
    pub storm: Option<StormControlSettings>,
    /// Mirror rules of the port, at most four, numbered from 0 in the order of the file.
    #[serde(default)]
    pub mirror: Vec<MirrorRule>,
    /// Tables `[[port.vf]]`: VFs whose settings differ from the defaults.
    #[serde(default)]
    pub vf: Vec<VfConfigKeys>,
}

/// Dispatcher of a port's VFs to its workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DispatcherMode {
    /// The port's own thread serves all VFs.
    Off,
    /// The VFs are spread over all workers, whatever the traffic is.
    Spread,
    /// While traffic is low one worker serves all VFs. Above a threshold they are spread, and below a lower one they fold
    /// back.
    #[default]
    Balanced,
}

/// Card family of a port, which decides the guests' driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CardFamily {
    /// Intel 82576 Gigabit Ethernet controller, with 8 VFs; guests use the driver igbvf.
    #[default]
    #[serde(rename = "82576")]
    I82576,
    /// Intel Adaptive Virtual Function (AVF), with 64 VFs; guests use the driver iavf.
    #[serde(rename = "avf")]
    Avf,
    /// Virtio network devices behind vhost-user, 64 of them; guests use the driver virtio_net.
    #[serde(rename = "virtio")]
    Virtio,
}

impl CardFamily {
    /// Returns the family's name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf => "avf",
            Self::Virtio => "virtio",
        }
    }

    /// Returns the limits that the family sets for policies of its ports and VFs.
    #[must_use]
    pub const fn limits(self) -> &'static CardFamilyLimits {
        match self {
            Self::I82576 => &driver::pf::LIMITS,
            Self::Avf => &driver::avf::pf::LIMITS,
            Self::Virtio => &crate::virtio_limits::LIMITS,
        }
    }

    /// Returns the name of Linux's driver for VFs of this family.
    #[must_use]
    pub const fn vf_driver(self) -> &'static str {
        match self {
            Self::I82576 => "igbvf",
            Self::Avf => "iavf",
            Self::Virtio => "virtio_net",
        }
    }

    /// Returns the name of Linux's driver for PFs of this family, or of this program for a family without such a device.
    #[must_use]
    pub const fn pf_driver(self) -> &'static str {
        match self {
            Self::I82576 => "igb",
            Self::Avf => "i40e",
            Self::Virtio => "softiov",
        }
    }

    /// Returns the number of interrupt vectors of a VF of this family. A virtio device has one for each ring.
    #[must_use]
    pub const fn vf_vectors(self) -> usize {
        match self {
            Self::I82576 => i82576::ids::VF_VECTORS,
            Self::Avf => avf::ids::MAX_VECTORS,
            Self::Virtio => 2 * virtio_nic::MAX_PAIRS,
        }
    }
}

/// Doorbell mode of a port: the way in which its thread waits for guests' doorbell writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoorbellMode {
    /// The port's thread sleeps. Each guest's store into a VF's registers is a message that wakes the thread. A virtio
    /// guest's notification does the same.
    #[default]
    Sleep,
    /// Guests map the register pages with doorbells, so their stores send no messages. The port's thread polls these
    /// pages: without a pause while there is traffic, then at growing intervals.
    Mapped,
    /// Like "mapped", but the port's thread polls without ever pausing, and so occupies a processor. It polls the rings of
    /// virtio guests too, which then send no notifications.
    Busy,
}

/// Role of the host at a function's socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SocketRole {
    /// The host listens on the socket, and a VMM connects.
    #[default]
    Server,
    /// A VMM listens on the socket, and the host connects.
    Client,
}

/// Driver of a port's physical function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PfAssignment {
    /// The host drives the PF, and offers its VFs to guests.
    #[default]
    Host,
    /// A guest drives the PF, and so owns the whole port.
    Guest,
}

/// Rule for the link of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortLinkRule {
    /// The port's link is up while its uplink exists, is set up and has a carrier. Without an uplink the link is always
    /// up.
    #[default]
    Uplink,
    /// The port's link is always up, even without a working uplink.
    Up,
}

/// Keys of a table `[[port.vf]]`, which configures one virtual function.
#[derive(Debug, Clone, Default)]
pub struct VfConfigKeys {
    /// Keys that commands cannot change: index, socket and family of the VF.
    pub place: FixedVfConfigKeys,
    /// Settings of the VF, which commands can change, too.
    pub settings: VfSettings,
}

/// Index, socket and family of a VF: the keys of `[[port.vf]]` that commands cannot change.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedVfConfigKeys {
    /// Index of the VF within its port, from 0.
    pub index: u8,
    /// Path of the VF's vfio-user socket. Default: NAME/vf.sock in the runtime directory, such as pf0vf3/vf.sock.
    pub socket: Option<PathBuf>,
    /// Card family of the VF, if it differs from the port's: "avf" or "virtio". Default: the port's value.
    pub family: Option<CardFamily>,
    /// Role of the host at the VF's socket. Default: the port's value.
    pub socket_mode: Option<SocketRole>,
    /// Access rights to the VF's socket; a missing key has the port's value.
    #[serde(default)]
    pub access: AccessConfigKeys,
}

/// Names of the keys in a VF's table that are not settings: the fields of [`FixedVfConfigKeys`].
const PLACE: [&str; 5] = ["index", "socket", "family", "socket_mode", "access"];

/// Deserializes the keys of a VF by hand, because serde's `flatten` loses the line of an error and accepts unknown
/// keys.
impl<'de> Deserialize<'de> for VfConfigKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VfConfigKeysVisitor)
    }
}

/// Visitor that reads [`VfConfigKeys`] from a TOML table.
struct VfConfigKeysVisitor;

impl<'de> Visitor<'de> for VfConfigKeysVisitor {
    type Value = VfConfigKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the VF's index and settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VfConfigKeys, A::Error> {
        let mut place = toml::Table::new();
        let rest = VfSettingsMapAccess { map, place: &mut place };
        let settings = VfSettings::deserialize(MapAccessDeserializer::new(rest))?;
        let place = place.try_into().map_err(|error: toml::de::Error| A::Error::custom(error.message()))?;
        Ok(VfConfigKeys { place, settings })
    }
}

/// Map access to a VF's table that yields its settings, and collects the keys of [`PLACE`] in `place`.
struct VfSettingsMapAccess<'a, A> {
    map: A,
    place: &'a mut toml::Table,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for VfSettingsMapAccess<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            match self.map.next_key_seed(VfConfigKeySeed(&mut seed))? {
                None => return Ok(None),
                Some(VfConfigKey::Setting(key)) => return Ok(Some(key)),
                Some(VfConfigKey::Place(key)) => {
                    self.place.insert(key, self.map.next_value()?);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Deserializer of a key in a VF's table. It passes the first key that is a setting to the contained seed.
struct VfConfigKeySeed<'a, K>(&'a mut Option<K>);

/// Key in a VF's table: of [`FixedVfConfigKeys`] (`Place`), or of a setting.
enum VfConfigKey<T> {
    Place(String),
    Setting(T),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for VfConfigKeySeed<'_, K> {
    type Value = VfConfigKey<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for VfConfigKeySeed<'_, K> {
    type Value = VfConfigKey<K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key of [[port.vf]]")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if PLACE.contains(&key) {
            return Ok(VfConfigKey::Place(key.to_owned()));
        }
        let seed = self.0.take().ok_or_else(|| E::custom("a key without a value"))?;
        let key: StrDeserializer<'_, E> = key.into_deserializer();
        seed.deserialize(key).map(VfConfigKey::Setting)
    }
}
