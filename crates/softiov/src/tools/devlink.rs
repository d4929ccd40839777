//! `softiov devlink port show`: iproute2's `devlink` for ports and their VFs. Each port is an instance at its PF's address:
//! port 0 is the wire's, of flavour physical, port N + 1 is VF N's. Text, JSON and errors are iproute2's. Left out: every
//! other object, and what changes anything, which `softiov ip link set` does.

use super::said::Said;
use crate::output;
use crate::place::Place;
use daemon::control::client;
use daemon::control::status::{PortStatus, VfStatus};
use daemon::port::PF_RID;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// What `devlink` is told.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// As iproute2 takes them: `-j -p port show [ DEV/PORT_INDEX | NETDEV ]`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

const USAGE: &str = "\
Usage: softiov devlink [ -j[son] ] [ -p[retty] ] port show [ DEV/PORT_INDEX | NETDEV ]
";

/// A port as devlink has it.
#[derive(Debug)]
struct Port {
    handle: String,
    attributes: Attributes,
    function: Option<Attributes>,
}

/// Names and values, in devlink's order.
#[derive(Debug)]
struct Attributes(Vec<(&'static str, Value)>);

impl Attributes {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (name, value) in &self.attributes.0 {
            map.serialize_entry(name, value)?;
        }
        if let Some(function) = &self.function {
            map.serialize_entry("function", &Function(function))?;
        }
        map.end()
    }
}

struct Function<'a>(&'a Attributes);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.0.iter().map(|(name, value)| (name, value)))
    }
}

/// All that is shown.
struct Section<'a>(&'a [Port]);

impl Serialize for Section<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|port| (&port.handle, port)))
    }
}

/// Runs a command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.place.load()?.control_socket();
    let (form, asked) = match parse(&args.words) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return output::print(USAGE).map(|()| ExitCode::SUCCESS),
        Err(said) => return Ok(said.say()),
    };
    let ports = client::ports(&socket)?;
    match choose(all(&ports), asked) {
        Ok(chosen) => output::print(&print(&chosen, form)).map(|()| ExitCode::SUCCESS),
        Err(said) => Ok(said.say()),
    }
}

/// In which form answers are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Form {
    json: bool,
    pretty: bool,
}

/// The form, and the port that is asked about; nothing if help is wanted.
fn parse(words: &[String]) -> Result<Option<(Form, Option<&str>)>, Said> {
    let mut form = Form::default();
    let mut rest = Vec::new();
    for word in words {
        match word.as_str() {
            "--json" => form.json = true,
            "--pretty" => form.pretty = true,
            word if word.starts_with('-') && word.len() > 1 => {
                for letter in word[1..].chars() {
                    match letter {
                        'j' => form.json = true,
                        'p' => form.pretty = true,
                        // Names are nice as they are, and there is no more to tell.
                        'n' | 'v' | 's' | 'i' | 'x' => {}
                        _ => return Err(Said::new("Unknown option.", 1)),
                    }
                }
            }
            word => rest.push(word),
        }
    }
    let matches = |word: &str, full: &str| !word.is_empty() && full.starts_with(word);
    match rest.as_slice() {
        [] => Ok(None),
        [word, ..] if matches(word, "help") => Ok(None),
        [object, ..] if !matches(object, "port") => {
            let said = Said::new(format!("Object \"{object}\" not found"), 1);
            Err(said.because("ports and VFs are all there is; for anything else use the system's devlink"))
        }
        [_] => Ok(Some((form, None))),
        [_, word, ..] if matches(word, "help") => Ok(None),
        [_, command, rest @ ..] if matches(command, "show") || matches(command, "list") => match rest {
            [] => Ok(Some((form, None))),
            [port] => Ok(Some((form, Some(port)))),
            [_, more, ..] => Err(Said::new(format!("Unknown option \"{more}\""), 1)),
        },
        [_, command, ..] if ["set", "split", "unsplit", "function", "add", "del"].contains(command) => {
            let said = Said::new("devlink answers: Operation not supported", 1);
            Err(said.because("`softiov ip link set PORT vf N` changes a VF"))
        }
        [_, command, ..] => Err(Said::new(format!("Command \"{command}\" not found"), 1)),
    }
}

fn all(ports: &[PortStatus]) -> Vec<Port> {
    let of = |(domain, port): (usize, &PortStatus)| {
        let handle = |index: u32| format!("pci/{domain:04x}:{}/{index}", PF_RID);
        let physical = Attributes(vec![
            ("type", "eth".into()),
            ("netdev", port.name.as_str().into()),
            ("flavour", "physical".into()),
            ("port", 0.into()),
            ("splittable", false.into()),
        ]);
        let physical = Port { handle: handle(0), attributes: physical, function: None };
        let vfs = port.vfs.iter().map(|vf| virtual_port(handle(u32::from(vf.index) + 1), vf));
        std::iter::once(physical).chain(vfs).collect::<Vec<_>>()
    };
    ports.iter().enumerate().flat_map(of).collect()
}

fn virtual_port(handle: String, vf: &VfStatus) -> Port {
    let state = if vf.conduct.quarantine.is_some() { "inactive" } else { "active" };
    let opstate = if vf.active { "attached" } else { "detached" };
    let attributes = Attributes(vec![
        ("type", "eth".into()),
        ("netdev", vf.name.as_str().into()),
        ("flavour", "pcivf".into()),
        ("controller", 0.into()),
        ("pfnum", 0.into()),
        ("vfnum", vf.index.into()),
        ("external", false.into()),
        ("splittable", false.into()),
    ]);
    let function = Attributes(vec![
        ("hw_addr", vf.mac.as_str().into()),
        ("state", state.into()),
        ("opstate", opstate.into()),
    ]);
    Port { handle, attributes, function: Some(function) }
}

/// The port that is named, by its handle or its interface; or all.
fn choose(all: Vec<Port>, asked: Option<&str>) -> Result<Vec<Port>, Said> {
    let Some(asked) = asked else { return Ok(all) };
    let is_it = |port: &Port| {
        port.handle == asked || port.attributes.get("netdev").is_some_and(|netdev| netdev == asked)
    };
    let found: Vec<_> = all.into_iter().filter(is_it).collect();
    match asked.matches('/').count() {
        _ if !found.is_empty() => Ok(found),
        0 => Err(Said::new(format!("Netdevice \"{asked}\" not found"), 1)),
        2 => Err(Said::new("devlink answers: No such device", 1)),
        _ => Err(Said::new("Wrong port identification string format.", 1)),
    }
}

fn print(ports: &[Port], form: Form) -> String {
    if !form.json {
        return ports.iter().map(text).collect();
    }
    let section = BTreeMap::from([("port", Section(ports))]);
    let mut bytes = Vec::new();
    // A vector takes everything.
    let _ = if form.pretty {
        // iproute2 indents by four.
        let form = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        section.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, form))
    } else {
        serde_json::to_writer(&mut bytes, &section)
    };
    String::from_utf8(bytes).unwrap_or_default() + "\n"
}

fn text(port: &Port) -> String {
    let words = |attributes: &Attributes| {
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
    use super::{Form, all, choose, parse, print};

    fn shown(form: Form) -> String {
        print(&all(&[crate::sample::port()]), form)
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn ports_and_vfs_are_printed_as_devlink_prints_them() {
        assert_eq!(
            shown(Form::default()),
            "pci/0000:00:01.0/0: type eth netdev pf0 flavour physical port 0 splittable false\n\
             pci/0000:00:01.0/1: type eth netdev pf0vf0 flavour pcivf controller 0 pfnum 0 vfnum 0 external false \
             splittable false\n  function:\n    hw_addr 02:00:00:00:00:01 state active opstate attached\n"
        );
        let json = shown(Form { json: true, pretty: false });
        assert!(
            json.starts_with("{\"port\":{\"pci/0000:00:01.0/0\":{\"type\":\"eth\",\"netdev\":\"pf0\","),
            "{json}"
        );
        assert!(
            json.contains("\"vfnum\":0,\"external\":false,\"splittable\":false,\"function\":{\"hw_addr\":")
        );
        let pretty = shown(Form { json: true, pretty: true });
        assert!(pretty.starts_with("{\n    \"port\": {\n        \"pci/0000:00:01.0/0\": {\n"), "{pretty}");
    }

    #[test]
    fn a_port_is_named_by_its_handle_or_its_interface() {
        let ports = || all(&[crate::sample::port()]);
        for name in ["pci/0000:00:01.0/1", "pf0vf0"] {
            let found = choose(ports(), Some(name)).unwrap();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].attributes.get("vfnum"), Some(&0.into()));
        }
        for (name, said) in [
            ("pf9", "Netdevice \"pf9\" not found"),
            ("pci/0000:00:01.0/9", "devlink answers: No such device"),
            ("a/b", "Wrong port identification string format."),
        ] {
            assert_eq!(choose(ports(), Some(name)).unwrap_err().text, said);
        }
    }

    #[test]
    fn words_are_iproute2s_cut_short_or_not() {
        for text in ["port show", "port", "p s", "port list"] {
            assert_eq!(parse(&words(text)).unwrap(), Some((Form::default(), None)), "{text}");
        }
        let form = Form { json: true, pretty: true };
        assert_eq!(parse(&words("-jp port show pf0")).unwrap(), Some((form, Some("pf0"))));
        assert_eq!(parse(&words("port show pf0 --json --pretty")).unwrap(), Some((form, Some("pf0"))));
        assert_eq!(parse(&words("help")).unwrap(), None);
        for (text, said) in [
            ("rate show", "Object \"rate\" not found"),
            ("port grow", "Command \"grow\" not found"),
            ("-y port", "Unknown option."),
            ("port show pf0 more", "Unknown option \"more\""),
            ("port set x type eth", "devlink answers: Operation not supported"),
        ] {
            let text = parse(&words(text)).unwrap_err().text;
            assert_eq!(text.lines().next(), Some(said));
        }
    }
}
