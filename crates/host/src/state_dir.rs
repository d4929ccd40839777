//! Default folder for files that remain after the host has ended.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Returns the default folder for files that outlive the host: `$STATE_DIRECTORY`, which systemd sets for a
/// unit with `StateDirectory=`; else `$XDG_STATE_HOME/softiov`; else `/var/lib/softiov` for root and
/// `~/.local/state/softiov` for other users. Returns `None` without a home.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    location(|name| env::var_os(name), geteuid().as_raw())
}

fn location(variable: impl Fn(&str) -> Option<OsString>, uid: u32) -> Option<PathBuf> {
    // systemd separates several folders by colons.
    let unit = variable("STATE_DIRECTORY").and_then(|folders| {
        let first = folders.to_str()?.split(':').next()?;
        Some(PathBuf::from(first)).filter(|folder| folder.is_absolute())
    });
    let absolute = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let user = || absolute("XDG_STATE_HOME").map(|folder| folder.join("softiov"));
    let home = || match uid {
        0 => Some(Path::new("/var/lib/softiov").to_owned()),
        _ => absolute("HOME").map(|home| home.join(".local/state/softiov")),
    };
    unit.or_else(user).or_else(home)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::location;

    #[test]
    fn state_folder_of_the_systemd_unit_is_preferred_to_the_users() {
        let at = |variables: &[(&str, &str)], uid| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            location(|name| find(name).map(|(_, value)| value.into()), uid)
        };
        let all = [("STATE_DIRECTORY", "/var/lib/a:/b"), ("XDG_STATE_HOME", "/x"), ("HOME", "/home/u")];
        assert_eq!(at(&all, 0).as_deref(), Some(Path::new("/var/lib/a")));
        assert_eq!(at(&all[1..], 0).as_deref(), Some(Path::new("/x/softiov")));
        assert_eq!(at(&all[2..], 0).as_deref(), Some(Path::new("/var/lib/softiov")));
        assert_eq!(at(&all[2..], 7).as_deref(), Some(Path::new("/home/u/.local/state/softiov")));
        assert_eq!(at(&[("STATE_DIRECTORY", "relative")], 7), None);
    }
}
