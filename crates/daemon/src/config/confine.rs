//! Table `confine`: rights that the host gives up after its start ([`crate::confine`] gives them up).

use super::{ConfigError, value};
use host::confine::SeccompMode;
use host::user::ProcessUser;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Keys of the configuration table `confine`: rights that the host gives up after its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfigKeys {
    /// USER or USER:GROUP, names or numbers, that the host changes to. Default: the user that starts it.
    pub user: Option<String>,
    /// Filter of system calls that no thread of the host needs: true ends the host at such a call, "log" only
    /// logs the call. Default: true.
    #[serde(
        default,
        deserialize_with = "seccomp",
        serialize_with = "word",
        skip_serializing_if = "Option::is_none"
    )]
    pub seccomp: Option<SeccompMode>,
    /// Restrict the host to the files that it needs. Default: true, if the kernel supports Landlock.
    pub landlock: Option<bool>,
}

/// Rights that the host process gives up after its start, from the table `confine`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// User account that the host process changes to.
    pub user: Option<ProcessUser>,
    /// Reaction to a system call that the filter does not allow.
    pub seccomp: SeccompMode,
    /// True if Landlock restricts the files that the host may access.
    pub landlock: bool,
}

pub(super) fn check(keys: &SandboxConfigKeys) -> Result<SandboxConfig, ConfigError> {
    let account = keys.user.as_deref().map(str::parse).transpose();
    let user =
        account.map_err(|error: host::user::UserLookupError| value("confine.user", error.to_string()))?;
    Ok(SandboxConfig {
        user,
        seccomp: keys.seccomp.unwrap_or_default(),
        landlock: keys.landlock.unwrap_or(true),
    })
}

fn seccomp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SeccompMode>, D::Error> {
    deserializer.deserialize_any(SeccompVisitor).map(Some)
}

fn word<S: serde::Serializer>(seccomp: &Option<SeccompMode>, serializer: S) -> Result<S::Ok, S::Error> {
    match seccomp {
        Some(SeccompMode::On) => serializer.serialize_bool(true),
        Some(SeccompMode::Off) => serializer.serialize_bool(false),
        Some(SeccompMode::Log) => serializer.serialize_str("log"),
        None => serializer.serialize_none(),
    }
}

/// Visitor that reads a [`SeccompMode`] from a boolean or the word "log".
struct SeccompVisitor;

impl Visitor<'_> for SeccompVisitor {
    type Value = SeccompMode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"true, false or "log""#)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<SeccompMode, E> {
        Ok(if on { SeccompMode::On } else { SeccompMode::Off })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SeccompMode, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::HostConfig;
    use crate::config::tests::{check, refused};
    use host::confine::SeccompMode;

    #[test]
    fn seccomp_and_landlock_are_on_by_default() {
        let confine = check("").unwrap().confine;
        assert_eq!((confine.user, confine.seccomp, confine.landlock), (None, SeccompMode::On, true));
        let confine =
            check("confine = { user = \"0:107\", seccomp = \"log\", landlock = false }").unwrap().confine;
        let user = confine.user.unwrap();
        assert_eq!((user.uid, user.gid), (0, 107));
        assert_eq!((confine.seccomp, confine.landlock), (SeccompMode::Log, false));
        assert_eq!(check("confine = { seccomp = false }").unwrap().confine.seccomp, SeccompMode::Off);
    }

    #[test]
    fn invalid_confinement_setting_is_refused_with_valid_values() {
        let message = HostConfig::parse("confine = { seccomp = \"maybe\" }").unwrap_err();
        assert!(message.contains("true, false or \"log\""), "{message}");
        let message = refused("confine = { user = \"who-is-it\" }");
        assert!(message.contains("confine.user") && message.contains("who-is-it"), "{message}");
    }
}
