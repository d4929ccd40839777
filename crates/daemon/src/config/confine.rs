//! What the host gives up once it has started: the table `confine`.
//!
//! Left out: giving it up ([`crate::confine`]).

use super::{ConfigError, value};
use host::confine::Seccomp;
use host::user::Account;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The table `confine`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfineKeys {
    /// USER or USER:GROUP, names or numbers: whose process the host becomes. Default: the one that starts it.
    pub user: Option<String>,
    /// What is done about system calls that no thread of the host should make. Default: true, they end the host.
    #[serde(
        default,
        deserialize_with = "seccomp",
        serialize_with = "word",
        skip_serializing_if = "Option::is_none"
    )]
    pub seccomp: Option<Seccomp>,
    /// Whether the host can reach the files that it needs only. Default: true, as far as the kernel can.
    pub landlock: Option<bool>,
}

/// What the host gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confine {
    /// Whose process it becomes.
    pub user: Option<Account>,
    /// What is done about system calls that are not in the table.
    pub seccomp: Seccomp,
    /// Whether files are restricted.
    pub landlock: bool,
}

pub(super) fn check(keys: &ConfineKeys) -> Result<Confine, ConfigError> {
    let account = keys.user.as_deref().map(str::parse).transpose();
    let user = account.map_err(|error: host::user::UserError| value("confine.user", error.to_string()))?;
    Ok(Confine { user, seccomp: keys.seccomp.unwrap_or_default(), landlock: keys.landlock.unwrap_or(true) })
}

fn seccomp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seccomp>, D::Error> {
    deserializer.deserialize_any(BoolOrLog).map(Some)
}

fn word<S: serde::Serializer>(seccomp: &Option<Seccomp>, serializer: S) -> Result<S::Ok, S::Error> {
    match seccomp {
        Some(Seccomp::On) => serializer.serialize_bool(true),
        Some(Seccomp::Off) => serializer.serialize_bool(false),
        Some(Seccomp::Log) => serializer.serialize_str("log"),
        None => serializer.serialize_none(),
    }
}

struct BoolOrLog;

impl Visitor<'_> for BoolOrLog {
    type Value = Seccomp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"true, false or "log""#)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Seccomp, E> {
        Ok(if on { Seccomp::On } else { Seccomp::Off })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Seccomp, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::tests::{check, refused};
    use host::confine::Seccomp;

    #[test]
    fn everything_is_given_up_unless_the_file_says_otherwise() {
        let confine = check("").unwrap().confine;
        assert_eq!((confine.user, confine.seccomp, confine.landlock), (None, Seccomp::On, true));
        let confine =
            check("confine = { user = \"0:107\", seccomp = \"log\", landlock = false }").unwrap().confine;
        let user = confine.user.unwrap();
        assert_eq!((user.uid, user.gid), (0, 107));
        assert_eq!((confine.seccomp, confine.landlock), (Seccomp::Log, false));
        assert_eq!(check("confine = { seccomp = false }").unwrap().confine.seccomp, Seccomp::Off);
    }

    #[test]
    fn what_makes_no_sense_is_told_what_does() {
        let message = Config::parse("confine = { seccomp = \"maybe\" }").unwrap_err();
        assert!(message.contains("true, false or \"log\""), "{message}");
        let message = refused("confine = { user = \"who-is-it\" }");
        assert!(message.contains("confine.user") && message.contains("who-is-it"), "{message}");
    }
}
