//! Looks up users and groups by name or number.
//!
//! Looks up names and numbers only.

use std::fmt;
use std::str::FromStr;

use nix::unistd::{Group, User};

/// Reason why a user or a group was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserLookupError {
    /// No user has the given name.
    #[error("no user is called {0:?}; give an existing name or a number")]
    NoUser(String),
    /// No group has the given name.
    #[error("no group is called {0:?}; give an existing name or a number")]
    NoGroup(String),
    /// The user was given by number and is not in the user database, so the user's group is unknown.
    #[error("no user database has user {0}; add a group: {0}:GROUP")]
    GroupMissing(u32),
    /// The user database (`/etc/passwd`, `/etc/group`) is not readable.
    #[error("cannot read the user database: {0}; give the user's number")]
    Database(String),
}

/// Returns the number of the user with this name or number.
///
/// # Errors
/// [`UserLookupError::NoUser`], [`UserLookupError::Database`].
pub fn user_id(text: &str) -> Result<u32, UserLookupError> {
    match number(text) {
        Some(uid) => Ok(uid),
        None => Ok(find_user(text)?.uid.as_raw()),
    }
}

/// Returns the number of the group with this name or number.
///
/// # Errors
/// [`UserLookupError::NoGroup`], [`UserLookupError::Database`].
pub fn group_id(text: &str) -> Result<u32, UserLookupError> {
    if let Some(gid) = number(text) {
        return Ok(gid);
    }
    let group = Group::from_name(text).map_err(database)?;
    Ok(group.ok_or_else(|| UserLookupError::NoGroup(text.to_owned()))?.gid.as_raw())
}

/// Returns true if a group belongs to one user alone: it is the user's primary group, has the user's name and
/// no other members. Many systems create such a group per user, which may write to all of the user's files.
#[must_use]
pub fn is_private_group(uid: u32, gid: u32) -> bool {
    let Ok(Some(user)) = User::from_uid(uid.into()) else { return false };
    let Ok(Some(group)) = Group::from_gid(gid.into()) else { return false };
    let alone = group.mem.iter().all(|member| *member == user.name);
    user.gid == group.gid && user.name == group.name && alone
}

/// User and group that a process can switch to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUser {
    /// User id that the process switches to.
    pub uid: u32,
    /// Group id that the process switches to: the user's group.
    pub gid: u32,
    /// User name, if known: supplementary groups are looked up by name.
    pub name: Option<String>,
}

impl FromStr for ProcessUser {
    type Err = UserLookupError;

    /// Parses the user and the group of a process from `USER` or `USER:GROUP`, each a name or a number.
    fn from_str(text: &str) -> Result<Self, UserLookupError> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let found = match number(user) {
            Some(uid) => User::from_uid(uid.into()).map_err(database)?.ok_or(uid),
            None => Ok(find_user(user)?),
        };
        let uid = found.as_ref().map_or_else(|uid| *uid, |user| user.uid.as_raw());
        let gid = match (group, &found) {
            (Some(group), _) => group_id(group)?,
            (None, Ok(user)) => user.gid.as_raw(),
            (None, Err(uid)) => return Err(UserLookupError::GroupMissing(*uid)),
        };
        Ok(Self { uid, gid, name: found.ok().map(|user| user.name) })
    }
}

impl fmt::Display for ProcessUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.uid),
        }
    }
}

/// Parses the number of a user or group. Refuses all ones, which is no id: the kernel reads it as "no
/// change".
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != u32::MAX)
}

fn find_user(name: &str) -> Result<User, UserLookupError> {
    User::from_name(name).map_err(database)?.ok_or_else(|| UserLookupError::NoUser(name.to_owned()))
}

fn database(errno: nix::errno::Errno) -> UserLookupError {
    UserLookupError::Database(errno.desc().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_and_user_number_denote_the_same_user() {
        assert_eq!((user_id("root"), user_id("0"), group_id("root")), (Ok(0), Ok(0), Ok(0)));
        assert_eq!((user_id("64055"), group_id("107")), (Ok(64_055), Ok(107)));
        let root = ProcessUser { uid: 0, gid: 0, name: Some("root".into()) };
        for text in ["root", "0", "root:root", "0:0"] {
            assert_eq!(text.parse(), Ok(root.clone()), "{text}");
        }
        let stranger = ProcessUser { uid: 3_000_000_001, gid: 107, name: None };
        assert_eq!("3000000001:107".parse(), Ok(stranger));
    }

    #[test]
    fn group_with_another_number_is_not_a_users_private_group() {
        assert!(is_private_group(0, 0));
        assert!(!is_private_group(0, 1) && !is_private_group(1, 0));
        assert!(!is_private_group(3_000_000_001, 3_000_000_001));
    }

    #[test]
    fn unknown_user_or_group_is_named_in_the_error() {
        assert_eq!(user_id("missing-user"), Err(UserLookupError::NoUser("missing-user".into())));
        assert_eq!(group_id("no-group"), Err(UserLookupError::NoGroup("no-group".into())));
        for text in ["", "4294967295", "-1", "missing-user:0", "root:no-group", ":"] {
            assert!(text.parse::<ProcessUser>().is_err(), "{text}");
        }
        let alone = "3000000001".parse::<ProcessUser>().unwrap_err();
        assert!(alone.to_string().contains("3000000001:GROUP"), "{alone}");
    }
}
