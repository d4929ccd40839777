//! Parts of the output that all functions have in common: shared memory, quoted words, attributes of XML.

use serde_json::Value;

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

/// Number of the guest's PCI bus for devices that libvirt does not know. libvirt sees no device there, and so leaves the
/// bus's root port free.
pub(super) const LIBVIRT_BUS: u8 = 9;

/// Returns the elements that add QEMU's arguments to a libvirt domain, with shared memory and the root port of
/// [`LIBVIRT_BUS`], as XML in the order of libvirt's schema.
pub(super) fn libvirt_command_line(words: &[String]) -> String {
    let arguments: String =
        words.iter().map(|word| format!("    <qemu:arg value='{}'/>\n", xml(word))).collect();
    format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <devices>
    <controller type='pci' index='{LIBVIRT_BUS}' model='pcie-root-port'/>
  </devices>
  <qemu:commandline>
{arguments}  </qemu:commandline>
</domain>
"
    )
}
