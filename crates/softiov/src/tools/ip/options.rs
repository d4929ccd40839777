//! The options before the object, as iproute2 reads them: one dash or two, cut short. Left out: the object.

use super::Said;
use super::words::{Words, matches};

/// Form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Number of `-s`: one for statistics, two for errors too.
    pub(super) statistics: u8,
    pub(super) json: bool,
    pub(super) pretty: bool,
    pub(super) oneline: bool,
    pub(super) brief: bool,
    pub(super) details: bool,
    pub(super) human: bool,
    pub(super) iec: bool,
}

/// Request of the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Run(Form),
    Version,
    Help,
}

/// The meaning of an option.
#[derive(Clone, Copy)]
enum Meaning {
    Set(fn(&mut Form)),
    /// No effect: every object is a link of this host, and names need no lookup.
    Ignored,
    /// The same, with a value.
    IgnoredValue,
    Version,
    Help,
    /// The option is for something that a host does not have.
    Refused(&'static str),
}

/// In iproute2's order: of options cut short the first counts (`-n` is `-netns`, `-b` is `-batch`, `-h` is `-human`).
const OPTIONS: [(&str, Meaning); 23] = [
    ("loops", Meaning::IgnoredValue),
    ("family", Meaning::IgnoredValue),
    ("human-readable", Meaning::Set(|form| form.human = true)),
    ("iec", Meaning::Set(|form| form.iec = true)),
    ("stats", Meaning::Set(|form| form.statistics = form.statistics.saturating_add(1))),
    ("statistics", Meaning::Set(|form| form.statistics = form.statistics.saturating_add(1))),
    ("details", Meaning::Set(|form| form.details = true)),
    ("resolve", Meaning::Ignored),
    ("oneline", Meaning::Set(|form| form.oneline = true)),
    ("timestamp", Meaning::Ignored),
    ("tshort", Meaning::Ignored),
    ("Version", Meaning::Version),
    ("force", Meaning::Ignored),
    ("batch", Meaning::Refused("run one command for each line of the file")),
    ("brief", Meaning::Set(|form| form.brief = true)),
    ("json", Meaning::Set(|form| form.json = true)),
    ("pretty", Meaning::Set(|form| form.pretty = true)),
    ("rcvbuf", Meaning::IgnoredValue),
    ("color", Meaning::Ignored),
    ("help", Meaning::Help),
    (
        "netns",
        Meaning::Refused("ports are a host's, in no network namespace: --runtime-dir names another host"),
    ),
    ("Numeric", Meaning::Ignored),
    ("all", Meaning::Ignored),
];

/// Options that are never cut short.
const WHOLE: [&str; 6] = ["4", "6", "0", "M", "B", "echo"];
/// Values of `-color`.
const COLORS: [&str; 3] = ["always", "auto", "never"];

/// Reads the options before the object.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Asked, Said> {
    let mut form = Form::default();
    while let Some(word) = words.peek().filter(|word| word.starts_with('-')) {
        words.next();
        if word == "--" {
            break;
        }
        let name = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or(word);
        if WHOLE.contains(&name) {
            continue;
        }
        match meaning(name).ok_or_else(|| unknown(word))? {
            Meaning::Set(set) => set(&mut form),
            Meaning::Ignored => {}
            Meaning::IgnoredValue => {
                words.value()?;
            }
            Meaning::Version => return Ok(Asked::Version),
            Meaning::Help => return Ok(Asked::Help),
            Meaning::Refused(why) => return Err(unknown(word).because(why)),
        }
    }
    Ok(Asked::Run(form))
}

fn meaning(name: &str) -> Option<Meaning> {
    let name = match name.split_once('=') {
        Some((option, color)) if matches(option, "color") && COLORS.contains(&color) => option,
        _ => name,
    };
    OPTIONS.into_iter().find(|(full, _)| matches(name, full)).map(|(_, meaning)| meaning)
}

fn unknown(word: &str) -> Said {
    Said::new(format!("Option \"{word}\" is unknown, try \"ip -help\"."), 255)
}
