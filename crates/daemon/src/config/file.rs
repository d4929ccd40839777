//! The configuration file as it is written: every key, and nothing that is not a key.

use crate::control::status::LinkState;
use crate::policy::{Coalesce, Limit, MirrorRule, Storm};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where sockets are made that are given no path of their own.
    pub runtime_dir: Option<PathBuf>,
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
    /// What the port's link is: "uplink", the uplink's, or "up" always. Default: uplink. Without an uplink it is up.
    #[serde(default)]
    pub link: PortLink,
    /// Who drives the physical function. Default: the host, which offers the VFs to guests.
    #[serde(default)]
    pub pf: Pf,
    /// Path of the PF's own vfio-user socket, for a PF that a guest drives. Default: NAME.sock in the runtime
    /// directory, such as pf0.sock.
    pub socket: Option<PathBuf>,
    /// How many VFs there are, 1 to 8. Default: 7; none if a guest drives the PF.
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

/// What carries frames beyond the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Uplink {
    /// Nothing: VFs reach each other and nobody else.
    #[default]
    None,
    /// The tap device of this name: attached to if it exists, else created.
    Tap(String),
}

/// By hand, because what serde derives says of a mistake that it is a variant of the wrong kind.
impl<'de> Deserialize<'de> for Uplink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrTable)
    }
}

/// An uplink as it is written.
struct WordOrTable;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TapTable {
    tap: String,
}

impl<'de> Visitor<'de> for WordOrTable {
    type Value = Uplink;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#""none" or { tap = "NAME" }"#)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Uplink, E> {
        match word {
            "none" => Ok(Uplink::None),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Uplink, A::Error> {
        let TapTable { tap } = Deserialize::deserialize(MapAccessDeserializer::new(table))?;
        Ok(Uplink::Tap(tap))
    }
}

/// One virtual function.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vf {
    /// Which one, from 0.
    pub index: u8,
    /// Its Ethernet address, which the guest may then not change. Default: derived from the machine and the
    /// name, and the guest may choose another.
    pub mac: Option<String>,
    /// Port VLAN: what the guest sends is tagged so, and it receives only this VLAN, untagged. 1 to 4094.
    pub vlan: Option<u16>,
    /// Priority of the port VLAN, 0 to 7.
    pub qos: Option<u8>,
    /// Protocol of the port VLAN. Default, and all there is: 802.1Q.
    pub proto: Option<String>,
    /// The VLANs that the guest may join: "any", or ids and ranges such as "10,20,100-199". Default: any.
    pub vlans: Option<String>,
    /// Drop what carries another source address or VLAN than the VF's. Default: true.
    #[serde(alias = "spoof_check")]
    pub spoofchk: Option<bool>,
    /// Let the guest change an address that the administrator has set. Default: false.
    pub trust: Option<bool>,
    /// The most that the guest may send, Mb/s, 1 to 1000. Default: no limit.
    pub max_tx_rate: Option<u32>,
    /// The least that the guest may send: 0, because the card guarantees nothing.
    pub min_tx_rate: Option<u32>,
    /// Its link: "auto", the port's; "enable", always up; "disable", always down. Default: auto.
    pub state: Option<LinkState>,
    /// Let the guest ask for every multicast frame. Default: true.
    pub allmulti: Option<bool>,
    /// The longest packet that the guest may ask to receive, 68 to 9706. Default: no limit.
    pub max_mtu: Option<u16>,
    /// Spread what the guest receives over its two queues; its driver has to use both. Default: false.
    pub rss: Option<bool>,
    /// Interrupt the guest at least so often, a second, when there is something to say. Default: as the guest wants.
    pub min_interrupts: Option<u32>,
    /// Interrupt the guest at most so often, a second. Default: as the guest wants.
    pub max_interrupts: Option<u32>,
    /// Who chooses the rate within these bounds: "guest"; "adaptive", the host, as few as the packet rate allows.
    /// Default: guest.
    pub coalesce: Option<Coalesce>,
    /// Path of the vfio-user socket. Default: NAME.sock in the runtime directory, such as pf0vf3.sock.
    pub socket: Option<PathBuf>,
}
