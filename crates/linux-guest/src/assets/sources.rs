//! Chooses the Debian archive to fetch from: the mirror of the host's own apt sources, and the suites of a release.
//! Reads sources.list in both of its formats (sources.list(5)), and ignores entries of other archives than
//! Debian's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";
const DEFAULT_SECURITY: &str = "http://deb.debian.org/debian-security";
const SUITES: [&str; 8] =
    ["bullseye", "bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing"];

/// Debian release with the suites that this crate takes packages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DebianRelease {
    /// Debian 12 with security updates: the guest's tools and Linux 6.1.
    Bookworm,
    /// Debian 13 with security updates and backports: QEMU, Linux 6.12 and the newest kernel.
    Trixie,
}

impl DebianRelease {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    /// Returns the name of the Debian suite whose package versions apt prefers.
    pub(super) fn target_release(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie-backports",
        }
    }

    /// Returns the text of a sources.list for a private apt that trusts only `keyring`.
    pub(super) fn sources_list(self, mirror: &DebianMirror, keyring: &Path) -> String {
        let name = self.name();
        let options = format!("[arch=amd64 signed-by={}]", keyring.display());
        let mut list = format!("deb {options} {} {name} main\n", mirror.main);
        list += &format!("deb {options} {} {name}-security main\n", mirror.security);
        if self == Self::Trixie {
            list += &format!("deb {options} {} {name}-backports main\n", mirror.main);
        }
        list
    }
}

/// Addresses of a Debian mirror: that of the main archive, and that of security updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DebianMirror {
    main: String,
    security: String,
}

impl DebianMirror {
    /// Returns the mirror that `SOFTIOV_DEBIAN_MIRROR` or the host's sources name, else deb.debian.org.
    pub(super) fn of_host() -> Self {
        let texts = source_files().into_iter().filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path.extension().is_some_and(|extension| extension == "sources"), text))
        });
        let mut entries = Vec::new();
        for (deb822, text) in texts {
            entries.extend(if deb822 { deb822_entries(&text) } else { one_line_entries(&text) });
        }
        let mut mirror = Self::of_entries(&entries);
        if let Ok(main) = env::var("SOFTIOV_DEBIAN_MIRROR") {
            mirror.main = main;
        }
        mirror
    }

    fn of_entries(entries: &[AptSource]) -> Self {
        let find = |wanted: &dyn Fn(&str) -> bool| {
            let remote =
                |entry: &&AptSource| entry.uri.starts_with("http://") || entry.uri.starts_with("https://");
            entries.iter().filter(remote).find(|entry| wanted(&entry.suite)).map(|entry| entry.uri.clone())
        };
        let security = |suite: &str| suite.strip_suffix("-security").is_some_and(|s| SUITES.contains(&s));
        Self {
            main: find(&|suite| SUITES.contains(&suite)).unwrap_or_else(|| DEFAULT_MIRROR.into()),
            security: find(&security).unwrap_or_else(|| DEFAULT_SECURITY.into()),
        }
    }
}

/// Address and suite of a Debian archive that the host's apt uses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AptSource {
    uri: String,
    suite: String,
}

fn source_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(folder) = fs::read_dir("/etc/apt/sources.list.d") {
        let mut parts: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
        parts.retain(|path| path.extension().is_some_and(|e| e == "sources" || e == "list"));
        parts.sort();
        files.append(&mut parts);
    }
    files
}

/// Parses a sources.list of lines `deb [ option=value ... ] uri suite component ...`, and returns its archives.
fn one_line_entries(text: &str) -> Vec<AptSource> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("deb "));
    let entry = |line: &str| {
        let line = line.trim_start();
        let words = if line.starts_with('[') { line.split_once(']')?.1 } else { line };
        let mut words = words.split_whitespace();
        Some(AptSource { uri: words.next()?.into(), suite: words.next()?.into() })
    };
    lines.filter_map(entry).collect()
}

/// Parses a sources file of stanzas `Key: value ...`, of which only `URIs` and `Suites` are read, and returns its
/// archives.
fn deb822_entries(text: &str) -> Vec<AptSource> {
    let mut entries = Vec::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            let lines = stanza.lines().filter_map(|line| line.split_once(':'));
            lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        if field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no")) {
            continue;
        }
        for uri in field("URIs").unwrap_or_default().split_whitespace() {
            let suites = field("Suites").unwrap_or_default().split_whitespace();
            entries.extend(suites.map(|suite| AptSource { uri: uri.into(), suite: suite.into() }));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_mirror_is_found_in_both_formats_of_apt_sources() {
        let list = "# deb http://old.example/debian bookworm main\n\
                    deb https://packages.example/apt tool-stable main\n\
                    deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n";
        let sources = "Types: deb\nURIs: https://deb.example/node\nSuites: nodistro\n\n\
                       Types: deb\n# a comment: with a colon\nURIs: http://security.example/debian-security\n\
                       Suites: bookworm-security\nComponents: main\n";
        let mut entries = one_line_entries(list);
        entries.extend(deb822_entries(sources));

        let mirror = DebianMirror::of_entries(&entries);
        assert_eq!(mirror.main, "http://mirror.example/debian");
        assert_eq!(mirror.security, "http://security.example/debian-security");
    }

    #[test]
    fn host_without_a_usable_debian_source_gets_the_default_mirror() {
        let entries =
            one_line_entries("deb cdrom:[Debian 12]/ bookworm main\ndeb file:/srv/debian trixie main\n");
        let mirror = DebianMirror::of_entries(&entries);
        assert_eq!(mirror, DebianMirror { main: DEFAULT_MIRROR.into(), security: DEFAULT_SECURITY.into() });
    }

    #[test]
    fn disabled_stanza_of_apt_sources_is_not_used() {
        assert_eq!(deb822_entries("Enabled: no\nURIs: http://x.example/debian\nSuites: trixie\n"), []);
    }

    #[test]
    fn every_generated_apt_source_names_the_archive_keyring() {
        let mirror = DebianMirror::of_entries(&[]);
        let list = DebianRelease::Trixie.sources_list(&mirror, Path::new("/keys/debian.gpg"));
        assert_eq!(list.lines().count(), 3);
        assert!(
            list.lines().all(|line| line.starts_with("deb [arch=amd64 signed-by=/keys/debian.gpg] http"))
        );
        assert!(list.contains("deb.debian.org/debian trixie-backports main") && !list.contains("trusted"));
    }
}
