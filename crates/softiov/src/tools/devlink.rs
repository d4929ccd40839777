//! `softiov devlink port show`: iproute2's `devlink` for ports and their VFs. Each port is an instance at its PF's
//! address: port 0 is the wire's, of flavour physical, port N + 1 is VF N's. Text, JSON and errors are iproute2's.
//! Changes are refused: `softiov ip link set` makes them.

use super::tool_exit::ToolExit;
use crate::output;
use crate::target::HostSelectionOptions;
use daemon::config::file::CardFamily;
use daemon::control::client;
use daemon::control::status::{PortStatus, VfStatus};
use daemon::port::PF_RID;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Arguments of `softiov devlink`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct DevlinkArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Words as iproute2 takes them: `-j -p port show [ DEV/PORT_INDEX | NETDEV ]`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

const USAGE: &str = "\
Usage: softiov devlink [ -j[son] ] [ -p[retty] ] port show [ DEV/PORT_INDEX | NETDEV ]
";

/// Port or VF in devlink's output: its handle, its attributes, and those of its function.
#[derive(Debug)]
struct DevlinkPort {
    handle: String,
    attributes: DevlinkAttributes,
    function: Option<DevlinkAttributes>,
}

/// Names and values of a port's attributes, in devlink's order.
#[derive(Debug)]
struct DevlinkAttributes(Vec<(&'static str, Value)>);

impl DevlinkAttributes {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Serialize for DevlinkPort {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (name, value) in &self.attributes.0 {
            map.serialize_entry(name, value)?;
        }
        if let Some(function) = &self.function {
            map.serialize_entry("function", &DevlinkFunction(function))?;
        }
        map.end()
    }
}

struct DevlinkFunction<'a>(&'a DevlinkAttributes);

impl Serialize for DevlinkFunction<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Object `port` of devlink's JSON: attributes of the shown ports, by handle.
struct DevlinkPortSection<'a>(&'a [DevlinkPort]);

impl Serialize for DevlinkPortSection<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|port| (&port.handle, port)))
    }
}

/// Runs a devlink command.
pub(crate) fn run(args: &DevlinkArgs) -> anyhow::Result<ExitCode> {
    let socket = args.target.load()?.control_socket();
    let (format, words) = match options(&args.words) {
        Ok(parsed) => parsed,
        Err(exit) => return Ok(exit.report()),
    };
    let answer = match command(&words) {
        Ok(Some(port)) => show(all(&client::ports(&socket)?), port),
        Ok(None) => return Ok(ToolExit::new(USAGE.trim_end(), 0).report()),
        Err(exit) => Err(PortShowError { exit, kernel_asked: false }),
    };
    match answer {
        Ok(ports) => output::print(&print(&ports, format)).map(|()| ExitCode::SUCCESS),
        Err(PortShowError { exit, kernel_asked }) => {
            // iproute2 prints this much of its JSON before it fails.
            if format.json {
                output::print(&if kernel_asked { print(&[], format) } else { "\n".to_owned() })?;
            }
            Ok(exit.report())
        }
    }
}

/// Output format of `softiov devlink`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DevlinkOutputFormat {
    json: bool,
    pretty: bool,
}

/// Error of `devlink port show`. The flag is true if iproute2 would find the error only after a request to the kernel.
#[derive(Debug)]
struct PortShowError {
    exit: ToolExit,
    kernel_asked: bool,
}

/// devlink's options, by letter and word. `f`, `b` and `N` make iproute2 read from elsewhere.
const OPTIONS: [(char, &str); 10] = [
    ('f', "force"),
    ('b', "batch"),
    ('n', "no-nice-names"),
    ('j', "json"),
    ('p', "pretty"),
    ('v', "verbose"),
    ('s', "statistics"),
    ('N', "Netns"),
    ('i', "iec"),
    ('x', "hex"),
];

/// Parses devlink's options, which may be anywhere, and returns the format and the other words.
fn options(words: &[String]) -> Result<(DevlinkOutputFormat, Vec<&str>), ToolExit> {
    let mut format = DevlinkOutputFormat::default();
    let mut rest = Vec::new();
    let unknown =
        |what: String| ToolExit::new(format!("devlink: {what}\nUnknown option.\n{}", USAGE.trim_end()), 1);
    for word in words {
        let letters: String = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => {
                let mut known = OPTIONS.iter().filter(|(_, name)| !long.is_empty() && name.starts_with(long));
                let letter = known.next().map(|(letter, _)| *letter);
                letter.ok_or_else(|| unknown(format!("unrecognized option '{word}'")))?.to_string()
            }
            (None, Some(letters)) if !letters.is_empty() => letters.to_owned(),
            _ => {
                rest.push(word.as_str());
                continue;
            }
        };
        for letter in letters.chars() {
            match letter {
                'j' => format.json = true,
                'p' => format.pretty = true,
                'f' | 'b' | 'N' => {
                    return Err(ToolExit::new(
                        format!("devlink: -{letter} is not supported: the ports are those of a running host"),
                        1,
                    ));
                }
                // Names are readable as they are, and there are no more details to print.
                _ if OPTIONS.iter().any(|(known, _)| *known == letter) => {}
                _ => return Err(unknown(format!("invalid option -- '{letter}'"))),
            }
        }
    }
    Ok((format, rest))
}

/// Commands of `devlink port`, in iproute2's order: an abbreviation selects the first match.
const COMMANDS: [&str; 10] =
    ["help", "show", "list", "set", "split", "unsplit", "param", "function", "health", "add"];

/// Parses devlink's object and command, and returns the words after `port show`; `None` if help is requested.
fn command<'a>(words: &'a [&'a str]) -> Result<Option<&'a [&'a str]>, ToolExit> {
    let matches = |word: &str, full: &str| !word.is_empty() && full.starts_with(word);
    let rest = match words {
        [] => return Ok(None),
        [word, ..] if matches(word, "help") => return Ok(None),
        [object, rest @ ..] if matches(object, "port") => rest,
        [object, ..] => {
            let exit = ToolExit::new(format!("Object \"{object}\" not found"), 1);
            return Err(exit
                .with_hint("only ports and VFs are supported; for other objects use the system's devlink"));
        }
    };
    let [command, rest @ ..] = rest else { return Ok(Some(rest)) };
    match COMMANDS.iter().chain(&["del"]).find(|known| matches(command, known)) {
        Some(&"help") => Ok(None),
        Some(&("show" | "list")) => Ok(Some(rest)),
        Some(_) => {
            let exit = ToolExit::new("kernel answers: Operation not supported", 1);
            Err(exit.with_hint("`softiov ip link set PORT vf N` changes a VF"))
        }
        None => Err(ToolExit::new(format!("Command \"{command}\" not found"), 1)),
    }
}

fn all(ports: &[PortStatus]) -> Vec<DevlinkPort> {
    let of = |(domain, port): (usize, &PortStatus)| {
        let handle = |family: CardFamily, index: u32| match family {
            CardFamily::Virtio => format!("virtio/{}/{index}", port.name),
            CardFamily::I82576 | CardFamily::Avf => format!("pci/{domain:04x}:{PF_RID}/{index}"),
        };
        let physical = DevlinkAttributes(vec![
            ("type", "eth".into()),
            ("netdev", port.name.as_str().into()),
            ("flavour", "physical".into()),
            ("port", 0.into()),
            ("splittable", false.into()),
        ]);
        let physical = DevlinkPort { handle: handle(port.family, 0), attributes: physical, function: None };
        let vfs = port.vfs.iter().map(|vf| {
            let family = port.family_of(vf);
            virtual_port(handle(family, u32::from(vf.index) + 1), vf, family == CardFamily::Virtio)
        });
        std::iter::once(physical).chain(vfs).collect::<Vec<_>>()
    };
    ports.iter().enumerate().flat_map(of).collect()
}

/// Returns the devlink port of a VF. A virtio VF is no PCI function of the host, so its flavour is `virtual`.
fn virtual_port(handle: String, vf: &VfStatus, is_virtio: bool) -> DevlinkPort {
    let state = if vf.conduct.quarantine.is_some() { "inactive" } else { "active" };
    let opstate = if vf.active { "attached" } else { "detached" };
    let mut attributes = vec![("type", "eth".into()), ("netdev", vf.name.as_str().into())];
    if is_virtio {
        attributes.push(("flavour", "virtual".into()));
    } else {
        attributes.extend([
            ("flavour", "pcivf".into()),
            ("controller", 0.into()),
            ("pfnum", 0.into()),
            ("vfnum", vf.index.into()),
            ("external", false.into()),
        ]);
    }
    attributes.push(("splittable", false.into()));
    let function = DevlinkAttributes(vec![
        ("hw_addr", vf.mac.as_str().into()),
        ("state", state.into()),
        ("opstate", opstate.into()),
    ]);
    DevlinkPort { handle, attributes: DevlinkAttributes(attributes), function: Some(function) }
}

/// Returns the devlink port with the handle or interface name in `words`, or all ports without a name.
fn show(all: Vec<DevlinkPort>, words: &[&str]) -> Result<Vec<DevlinkPort>, PortShowError> {
    let [asked, more @ ..] = words else { return Ok(all) };
    let is_named = |port: &DevlinkPort| {
        port.handle == *asked || port.attributes.get("netdev").is_some_and(|netdev| netdev == asked)
    };
    let found: Vec<_> = all.into_iter().filter(is_named).collect();
    let refuse = |text: String| Err(PortShowError { exit: ToolExit::new(text, 1), kernel_asked: false });
    match (asked.matches('/').count(), asked.rsplit_once('/'), more) {
        (0, ..) if found.is_empty() => refuse(format!("Netdevice \"{asked}\" not found")),
        (2, Some((_, index)), _) if index.parse::<u32>().is_err() => {
            refuse(format!("Port index \"{index}\" is not a number or not within range"))
        }
        (0 | 2, _, [more, ..]) => refuse(format!("Unknown option \"{more}\"")),
        (2, ..) if found.is_empty() => Err(PortShowError {
            exit: ToolExit::new("kernel answers: No such device", 1),
            kernel_asked: true,
        }),
        (0 | 2, ..) => Ok(found),
        _ => refuse(
            "Wrong port identification string format.\n\
             Expected \"bus_name/dev_name/port_index\" or \"netdev_ifname\"."
                .to_owned(),
        ),
    }
}

fn print(ports: &[DevlinkPort], format: DevlinkOutputFormat) -> String {
    if !format.json {
        return ports.iter().map(text).collect();
    }
    let section = BTreeMap::from([("port", DevlinkPortSection(ports))]);
    let mut bytes = Vec::new();
    // Writing to a vector does not fail.
    let _ = if format.pretty {
        // iproute2 indents by four.
        let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        section.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format))
    } else {
        serde_json::to_writer(&mut bytes, &section)
    };
    String::from_utf8(bytes).unwrap_or_default() + "\n"
}

fn text(port: &DevlinkPort) -> String {
    let words = |attributes: &DevlinkAttributes| {
        let words = attributes.0.iter().map(|(name, value)| format!("{name} {}", plain(value)));
        words.collect::<Vec<_>>().join(" ")
    };
    let function = port.function.as_ref();
    let function =
        function.map_or(String::new(), |function| format!("  function:\n    {}\n", words(function)));
    format!("{}: {}\n{function}", port.handle, words(&port.attributes))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{DevlinkOutputFormat, all, command, options, print, show};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn split(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    /// Tests a VF that a driver has enabled; `cli/devlink.golden` has a VF without a driver.
    #[test]
    fn devlink_shows_a_vf_with_a_driver_as_attached() {
        let shown = print(&all(&[crate::sample::port()]), DevlinkOutputFormat::default());
        let line = "  function:\n    hw_addr 02:00:00:00:00:01 state active opstate attached\n";
        assert!(shown.ends_with(line), "{shown}");
    }

    #[test]
    fn virtio_ports_have_no_pci_address() {
        let shown = print(&all(&[crate::sample::virtio_port()]), DevlinkOutputFormat::default());
        assert!(!shown.contains("pci"), "{shown}");
        let line = "virtio/pf0/1: type eth netdev pf0vf0 flavour virtual splittable false\n";
        assert!(shown.contains(line), "{shown}");
    }

    #[test]
    fn devlink_names_a_port_by_its_handle_or_its_interface() {
        for name in ["pci/0000:00:01.0/1", "pf0vf0"] {
            let found = show(all(&[crate::sample::port()]), &[name]).unwrap();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].attributes.get("vfnum"), Some(&0.into()));
        }
    }

    #[test]
    fn devlink_commands_may_be_abbreviated() {
        for text in ["port show", "port", "p s", "port list"] {
            assert_eq!(command(&split(text)).unwrap(), Some(&[][..]), "{text}");
        }
        for text in ["", "help", "h", "port help", "port h"] {
            assert_eq!(command(&split(text)).unwrap(), None, "{text}");
        }
        for text in ["port se x type eth", "port sp", "port f", "port del", "port hea"] {
            let exit = command(&split(text)).unwrap_err().text;
            assert!(exit.starts_with("kernel answers: Operation not supported\n"), "{text}: {exit}");
        }
    }

    #[test]
    fn devlink_options_may_be_abbreviated() {
        let format = DevlinkOutputFormat { json: true, pretty: true };
        for text in ["-jp port show pf0", "port show pf0 --json --pretty", "--js -p port -nvsix show pf0"] {
            assert_eq!(options(&words(text)).unwrap(), (format, vec!["port", "show", "pf0"]), "{text}");
        }
        let exit = options(&words("-b file")).unwrap_err();
        assert_eq!(exit.text, "devlink: -b is not supported: the ports are those of a running host");
    }
}
