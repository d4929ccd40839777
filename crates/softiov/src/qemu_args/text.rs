//! Parts of the output that all functions have in common: shared memory, quoted words, attributes of XML.

use serde_json::Value;
use std::str::FromStr;

/// Returns QEMU's arguments for guest memory that QEMU shares with the card, one per word.
pub(super) fn memory_words(memory: &str) -> [String; 6] {
    [
        "-object",
        &format!("memory-backend-memfd,id=mem0,size={memory},share=on"),
        "-machine",
        "q35,memory-backend=mem0",
        "-m",
        memory,
    ]
    .map(str::to_owned)
}

/// Returns QEMU's arguments for shared guest memory as shell text on two lines, which more lines must follow.
pub(super) fn memory_shell(memory: &str) -> String {
    let [object, backend, machine, q35, m, size] = memory_words(memory);
    format!("{object} {backend} \\\n{machine} {q35} {m} {size} \\\n")
}

/// Properties of a QEMU device with their values, of which the first is its driver.
pub(super) type DeviceProperties = Vec<(&'static str, Value)>;

/// Returns the value of QEMU's option `-device` as `driver,property=value,...`.
pub(super) fn device_list(properties: &DeviceProperties) -> String {
    let parts = properties.iter().map(|(name, value)| match (*name, value) {
        ("driver", Value::String(text)) => text.clone(),
        (name, Value::Bool(on)) => format!("{name}={}", if *on { "on" } else { "off" }),
        (name, Value::String(text)) => format!("{name}={text}"),
        (name, value) => format!("{name}={value}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Returns the value of QEMU's option `-device` as JSON. libvirt writes its own devices so, and QEMU creates all that are
/// written as lists before them.
pub(super) fn device_json(properties: &DeviceProperties) -> String {
    let map = properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Object(map.collect()).to_string()
}

pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Escapes a text for an XML attribute in single quotes.
pub(super) fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

/// PCIe root port for one device of a guest: its number among such ports, from 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RootPort(u8);

impl RootPort {
    /// Greatest number. libvirt adds all root ports below that of a device, and the bus above them has 256 functions.
    const MAX: u8 = 31;
    /// Chassis number of the first. QEMU refuses two root ports with the same chassis and slot, and other programs count
    /// from 0.
    const FIRST_CHASSIS: u8 = 100;
    /// PCI bus of the first in a libvirt domain.
    const FIRST_LIBVIRT_BUS: u8 = 9;

    /// Returns the chassis number.
    pub(super) fn chassis(self) -> u8 {
        Self::FIRST_CHASSIS + self.0
    }

    /// Returns the number of the guest's PCI bus in a libvirt domain. libvirt sees no device there, and gives free root ports
    /// to other devices from the lowest index on, so the number must exceed those that these need.
    pub(super) fn libvirt_bus(self) -> u8 {
        Self::FIRST_LIBVIRT_BUS + self.0
    }
}

impl FromStr for RootPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse().ok().filter(|number| *number <= Self::MAX);
        number.map(Self).ok_or_else(|| format!("write a number from 0 to {}", Self::MAX))
    }
}

/// Returns the elements that add QEMU's arguments to a libvirt domain, with shared memory and a root port, as XML in the
/// order of libvirt's schema.
pub(super) fn libvirt_command_line(words: &[String], port: RootPort) -> String {
    let bus = port.libvirt_bus();
    let arguments: String =
        words.iter().map(|word| format!("    <qemu:arg value='{}'/>\n", xml(word))).collect();
    format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <devices>
    <controller type='pci' index='{bus}' model='pcie-root-port'/>
  </devices>
  <qemu:commandline>
{arguments}  </qemu:commandline>
</domain>
"
    )
}
