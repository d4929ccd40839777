//! Parses the options before the object, as iproute2 reads them: with one dash or two, possibly abbreviated.

use super::ToolExit;
use super::words::{IpCommandWords, matches};

/// Output format of `softiov ip`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IpOutputFormat {
    /// Number of `-s` options: one for statistics, two for errors too.
    pub(super) statistics: u8,
    pub(super) json: bool,
    pub(super) pretty: bool,
    pub(super) oneline: bool,
    pub(super) brief: bool,
    pub(super) details: bool,
    pub(super) human: bool,
    pub(super) iec: bool,
}

/// Result of the options of `softiov ip`: run a command in a format, or print version or help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IpInvocation {
    Run(IpOutputFormat),
    Version,
    Help,
}

/// Effect of an option of `softiov ip`.
#[derive(Clone, Copy)]
enum IpOptionEffect {
    Set(fn(&mut IpOutputFormat)),
    /// Option of `ip` without effect: every object is a link of this host, and names need no lookup.
    Ignored,
    /// Option of `ip` that has a value and no effect.
    IgnoredValue,
    Version,
    Help,
    /// Option of `ip` that is refused, with a hint on the remedy.
    Refused(&'static str),
}

/// Options of `ip` and their effects, in iproute2's order: an abbreviation selects the first match (`-n` is `-netns`,
/// `-b` is `-batch`, `-h` is `-human`).
const OPTIONS: [(&str, IpOptionEffect); 23] = [
    ("loops", IpOptionEffect::IgnoredValue),
    ("family", IpOptionEffect::IgnoredValue),
    ("human-readable", IpOptionEffect::Set(|format| format.human = true)),
    ("iec", IpOptionEffect::Set(|format| format.iec = true)),
    ("stats", IpOptionEffect::Set(|format| format.statistics = format.statistics.saturating_add(1))),
    ("statistics", IpOptionEffect::Set(|format| format.statistics = format.statistics.saturating_add(1))),
    ("details", IpOptionEffect::Set(|format| format.details = true)),
    ("resolve", IpOptionEffect::Ignored),
    ("oneline", IpOptionEffect::Set(|format| format.oneline = true)),
    ("timestamp", IpOptionEffect::Ignored),
    ("tshort", IpOptionEffect::Ignored),
    ("Version", IpOptionEffect::Version),
    ("force", IpOptionEffect::Ignored),
    ("batch", IpOptionEffect::Refused("run one command for each line of the file")),
    ("brief", IpOptionEffect::Set(|format| format.brief = true)),
    ("json", IpOptionEffect::Set(|format| format.json = true)),
    ("pretty", IpOptionEffect::Set(|format| format.pretty = true)),
    ("rcvbuf", IpOptionEffect::IgnoredValue),
    ("color", IpOptionEffect::Ignored),
    ("help", IpOptionEffect::Help),
    (
        "netns",
        IpOptionEffect::Refused(
            "ports belong to a host, not to a network namespace: name another host with --runtime-dir",
        ),
    ),
    ("Numeric", IpOptionEffect::Ignored),
    ("all", IpOptionEffect::Ignored),
];

/// Options of `ip` that cannot be abbreviated.
const WHOLE: [&str; 6] = ["4", "6", "0", "M", "B", "echo"];
/// Valid values of the option `-color`.
const COLORS: [&str; 3] = ["always", "auto", "never"];

/// Parses the options of `ip`, which stand before the object.
pub(super) fn parse(words: &mut IpCommandWords<'_>) -> Result<IpInvocation, ToolExit> {
    let mut format = IpOutputFormat::default();
    while let Some(word) = words.peek().filter(|word| word.starts_with('-')) {
        words.next();
        if word == "--" {
            break;
        }
        let name = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or(word);
        if WHOLE.contains(&name) {
            continue;
        }
        match effect(name).ok_or_else(|| unknown(word))? {
            IpOptionEffect::Set(set) => set(&mut format),
            IpOptionEffect::Ignored => {}
            IpOptionEffect::IgnoredValue => {
                words.value()?;
            }
            IpOptionEffect::Version => return Ok(IpInvocation::Version),
            IpOptionEffect::Help => return Ok(IpInvocation::Help),
            IpOptionEffect::Refused(why) => return Err(unknown(word).with_hint(why)),
        }
    }
    Ok(IpInvocation::Run(format))
}

fn effect(name: &str) -> Option<IpOptionEffect> {
    let name = match name.split_once('=') {
        Some((option, color)) if matches(option, "color") && COLORS.contains(&color) => option,
        _ => name,
    };
    OPTIONS.into_iter().find(|(full, _)| matches(name, full)).map(|(_, effect)| effect)
}

fn unknown(word: &str) -> ToolExit {
    ToolExit::new(format!("Option \"{word}\" is unknown, try \"ip -help\"."), 255)
}
