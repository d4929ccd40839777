//! The configuration file as it is written: every key, and nothing that is not a key. Left out: what can be set for a
//! VF, which is declared once for all places (`settings`).

use super::access::{AccessKeys, ControlKeys};
use super::confine::ConfineKeys;
use super::http::HttpKeys;
use super::impair::ImpairKeys;
use super::size::Size;
use super::uplink::Uplink;
use crate::settings::{Limit, MirrorRule, Storm, VfSettings};
use policy::Limits;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where sockets are made that are given no path of their own.
    pub runtime_dir: Option<PathBuf>,
    /// Who may connect to the sockets of VFs, and of PFs that guests drive.
    #[serde(default)]
    pub access: AccessKeys,
    /// Who may give commands.
    #[serde(default)]
    pub control: ControlKeys,
    /// The control interface over TCP.
    #[serde(default)]
    pub http: HttpKeys,
    /// Where changes by command are kept. Default: the place that the system has for such files.
    pub state_dir: Option<PathBuf>,
    /// What the host gives up once it has started.
    #[serde(default)]
    pub confine: ConfineKeys,
    /// The most memory that one client may share with its function, such as "64G". Default: as much as the machine has,
    /// swap space included.
    pub client_memory: Option<Size>,
    /// The ports. A file without any asks for one with everything at its default.
    #[serde(default)]
    pub port: Vec<Port>,
}

/// One port: a physical function, its virtual functions and an uplink.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// How commands name the port. Default: pf0, pf1, ... in the order of the file.
    pub name: Option<String>,
    /// The port's own Ethernet address. Default: derived from the machine and the name.
    pub mac: Option<String>,
    /// What carries frames beyond the card. Default: nothing.
    #[serde(default)]
    pub uplink: Uplink,
    /// What is done to frames on their way over the uplink: delayed, lost, put out of order. Default: nothing.
    pub impair: Option<ImpairKeys>,
    /// The file to which the uplink's frames are recorded, as pcapng. Default: none.
    pub record: Option<PathBuf>,
    /// What the port's link is: "uplink", the uplink's, or "up" always. Default: uplink. Without an uplink it is up.
    #[serde(default)]
    pub link: PortLink,
    /// Policy for frames that a guest sends to 01:80:c2:00:00:00 to 0f (LLDP, LACP, EAPOL, spanning tree): "drop", or
    /// "forward", as a cable would; pause frames are dropped in any case. Default: drop.
    #[serde(default)]
    pub link_local: LinkLocal,
    /// What its card is: "82576", which guests drive by igbvf, or "avf", which they drive by iavf. Default: 82576.
    #[serde(default)]
    pub family: Family,
    /// How guests ring the doorbells of VFs, and how the port waits for that: "sleep", "mapped" or "busy". Default: sleep.
    #[serde(default)]
    pub wait: Wait,
    /// The processors that the port's thread may run on. Default: any that the host may.
    pub cpus: Option<Vec<u32>>,
    /// Who drives the physical function. Default: the host, which offers the VFs to guests.
    #[serde(default)]
    pub pf: Pf,
    /// Path of the PF's own vfio-user socket, for a PF that a guest drives. Default: NAME/pf.sock in the runtime
    /// directory, such as pf0/pf.sock.
    pub socket: Option<PathBuf>,
    /// Who may connect to the port's sockets, where this differs from what holds for the host.
    #[serde(default)]
    pub access: AccessKeys,
    /// How many VFs there are: 1 to 8, with family "avf" 1 to 64. Default: 7; none if a guest drives the PF.
    pub vfs: Option<u8>,
    /// From how many events a second on a VF's conduct has consequences, by kind; a kind that is left out keeps its
    /// default, and what is left out of a kind is never.
    #[serde(default)]
    pub limits: BTreeMap<String, Limit>,
    /// How much of broadcasts and multicasts the VFs get. Default: all.
    pub storm: Option<Storm>,
    /// Which frames are copied to which VF; at most four rules, numbered from 0 in the order of the file.
    #[serde(default)]
    pub mirror: Vec<MirrorRule>,
    /// VFs that differ from the default.
    #[serde(default)]
    pub vf: Vec<Vf>,
}

/// What a port's card is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Family {
    /// Intel's 82576.
    #[default]
    #[serde(rename = "82576")]
    I82576,
    /// Intel's Adaptive Virtual Function.
    #[serde(rename = "avf")]
    Avf,
}

impl Family {
    /// As the configuration names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I82576 => "82576",
            Self::Avf => "avf",
        }
    }

    /// Returns the abilities of the family.
    #[must_use]
    pub const fn limits(self) -> &'static Limits {
        match self {
            Self::I82576 => &driver::pf::LIMITS,
            Self::Avf => &driver::avf::pf::LIMITS,
        }
    }

    /// Linux's driver of a VF.
    #[must_use]
    pub const fn vf_driver(self) -> &'static str {
        match self {
            Self::I82576 => "igbvf",
            Self::Avf => "iavf",
        }
    }

    /// Linux's driver of a PF.
    #[must_use]
    pub const fn pf_driver(self) -> &'static str {
        match self {
            Self::I82576 => "igb",
            Self::Avf => "i40e",
        }
    }

    /// Interrupt vectors of a VF.
    #[must_use]
    pub const fn vf_vectors(self) -> usize {
        match self {
            Self::I82576 => i82576::ids::VF_VECTORS,
            Self::Avf => avf::ids::MAX_VECTORS,
        }
    }
}

/// How a port waits for its guests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// It sleeps: every store into a VF's registers is a message that wakes it.
    #[default]
    Sleep,
    /// Guests have the pages with doorbells as memory, so their stores are no messages. The port looks there: all the
    /// time while there is traffic, and then ever less often.
    Mapped,
    /// As "mapped", and the port never pauses between two looks: it takes a processor of its own.
    Busy,
}

/// Who drives a port's physical function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pf {
    /// This program: it manages the VFs, which guests have.
    #[default]
    Host,
    /// A guest, which has the whole port.
    Guest,
}

/// What a port's link is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortLink {
    /// Up while the uplink is there, set up, and has a carrier; always, if the port has no uplink.
    #[default]
    Uplink,
    /// Up, whatever becomes of the uplink.
    Up,
}

/// Policy of a port for link-local frames of its guests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkLocal {
    /// Drop and count them: they are between neighbours on a cable, and guests are none of the switch's.
    #[default]
    Drop,
    /// Forward them as any multicast, for labs that run LACP or LLDP over VFs.
    Forward,
}

/// One virtual function.
#[derive(Debug, Clone, Default)]
pub struct Vf {
    /// Which one, and where it is offered.
    pub place: VfPlace,
    /// What is set for it.
    pub settings: VfSettings,
}

/// Which VF it is, and where it is offered: the keys of `[[port.vf]]` that no command changes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VfPlace {
    /// Which one, from 0.
    pub index: u8,
    /// Path of the vfio-user socket. Default: NAME/vf.sock in the runtime directory, such as pf0vf3/vf.sock.
    pub socket: Option<PathBuf>,
    /// Who may connect, where this differs from what holds for the port.
    #[serde(default)]
    pub access: AccessKeys,
}

/// The keys of [`VfPlace`].
const PLACE: [&str; 3] = ["index", "socket", "access"];

/// By hand, because serde's `flatten` loses where in the file a mistake is, and lets unknown keys pass.
impl<'de> Deserialize<'de> for Vf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VfTable)
    }
}

struct VfTable;

impl<'de> Visitor<'de> for VfTable {
    type Value = Vf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the VF's index and what differs from the default")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vf, A::Error> {
        let mut place = toml::Table::new();
        let rest = Rest { map, place: &mut place };
        let settings = VfSettings::deserialize(MapAccessDeserializer::new(rest))?;
        let place = place.try_into().map_err(|error: toml::de::Error| A::Error::custom(error.message()))?;
        Ok(Vf { place, settings })
    }
}

/// A table without the keys of [`PLACE`], which are put aside.
struct Rest<'a, A> {
    map: A,
    place: &'a mut toml::Table,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            match self.map.next_key_seed(Key(&mut seed))? {
                None => return Ok(None),
                Some(KeyOf::Setting(key)) => return Ok(Some(key)),
                Some(KeyOf::Place(key)) => {
                    self.place.insert(key, self.map.next_value()?);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key that is either put aside or a setting's. The seed is used for the first that is a setting's.
struct Key<'a, K>(&'a mut Option<K>);

enum KeyOf<T> {
    Place(String),
    Setting(T),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, K> {
    type Value = KeyOf<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Key<'_, K> {
    type Value = KeyOf<K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if PLACE.contains(&key) {
            return Ok(KeyOf::Place(key.to_owned()));
        }
        let seed = self.0.take().ok_or_else(|| E::custom("a key without a value"))?;
        let key: StrDeserializer<'_, E> = key.into_deserializer();
        seed.deserialize(key).map(KeyOf::Setting)
    }
}
