//! Who may connect: the keys for the owner, the group and the mode of sockets, and where sockets are made.
//!
//! Left out: whether the rights can be given; that shows when the sockets are made.

use super::{ConfigError, Unique, value};
use host::socket::Access;
use host::user::{UserError, group_id, user_id};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// The table `access`: what a VF says comes before what its port says, and that before what the host says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessKeys {
    /// Whose the socket is, name or number. Default: the user of the host.
    pub owner: Option<Id>,
    /// Its group, name or number. Default: the group of the host.
    pub group: Option<Id>,
    /// Who may connect: "0600", the owner; "0660", the group too; "0666", everybody. Default: 0660 if a group is
    /// given, else 0600.
    pub mode: Option<SocketMode>,
}

/// The table `control`: who, besides the user of the host, may give it commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlKeys {
    /// A group whose members may, name or number. Default: none.
    pub group: Option<Id>,
}

/// A user or a group, by name or number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Id(pub String);

/// The mode of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMode(u32);

impl Serialize for SocketMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:04o}", self.0))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrNumber)
    }
}

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Octal)
    }
}

struct NameOrNumber;

impl Visitor<'_> for NameOrNumber {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a number")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Id, E> {
        Ok(Id(name.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }
}

struct Octal;

impl Visitor<'_> for Octal {
    type Value = SocketMode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#""0600" (the owner), "0660" (the group too) or "0666" (everybody)"#)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketMode, E> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| [0o600, 0o660, 0o666].contains(mode));
        mode.map(SocketMode).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// What holds for a socket, given what is written from the inside out. `owner` is the VF or port it is for.
pub(super) fn access(layers: &[&AccessKeys], owner: &str) -> Result<Access, ConfigError> {
    let key = |key: &str| format!("{owner}.access.{key}");
    let uid = number(layers.iter().find_map(|keys| keys.owner.as_ref()), user_id, &key("owner"))?;
    let gid = number(layers.iter().find_map(|keys| keys.group.as_ref()), group_id, &key("group"))?;
    let usual = if gid.is_some() { 0o660 } else { 0o600 };
    let mode = layers.iter().find_map(|keys| keys.mode).map_or(usual, |mode| mode.0);
    Ok(Access { owner: uid, group: gid, mode })
}

/// Who may give commands.
pub(super) fn control(keys: &ControlKeys) -> Result<Access, ConfigError> {
    let group = number(keys.group.as_ref(), group_id, "control.group")?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    Ok(Access { owner: None, group, mode })
}

fn number(
    id: Option<&Id>,
    find: impl Fn(&str) -> Result<u32, UserError>,
    key: &str,
) -> Result<Option<u32>, ConfigError> {
    id.map(|id| find(&id.0).map_err(|error| value(key, error.to_string()))).transpose()
}

/// The name in the runtime folder that no port may have.
pub(super) const CONTROL: &str = "control";

/// The control socket, in a folder of its own: who may enter a VF's folder need not enter this one.
pub(super) fn control_socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join(CONTROL).join("control.sock")
}

/// Where a function's socket is: where the file says, or in a folder of its own. A container can mount that folder,
/// and sees the socket that the next host makes.
pub(super) fn socket(
    given: Option<PathBuf>,
    (runtime_dir, name, file): (&Path, &str, &str),
    unique: &mut Unique,
) -> Result<PathBuf, ConfigError> {
    let key = format!("{name}.socket");
    if let Some(path) = &given {
        super::check_absolute(path, &key)?;
    }
    let socket = given.unwrap_or_else(|| runtime_dir.join(name).join(file));
    if socket.starts_with(runtime_dir.join(CONTROL)) {
        let why = "this folder is the control socket's, which no VMM may enter; choose another";
        return Err(value(key, format!("{}: {why}", socket.display())));
    }
    unique.claim("socket", &socket.display().to_string(), &key)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::tests::{check, refused};
    use host::socket::Access;
    use std::path::Path;

    fn accesses(text: &str) -> Vec<Access> {
        let config = check(text).unwrap();
        config.ports.iter().flat_map(|port| &port.vfs).map(|vf| vf.access).collect()
    }

    #[test]
    fn a_vf_comes_before_its_port_and_that_before_the_host() {
        let text = r#"
            access = { group = 10, owner = "root" }
            [[port]]
            vfs = 1
            [[port]]
            vfs = 2
            access = { group = "20", mode = "0666" }
            [[port.vf]]
            index = 1
            access = { owner = 107, mode = "600" }
        "#;
        let access = |owner, group, mode| Access { owner: Some(owner), group: Some(group), mode };
        assert_eq!(accesses(text), [access(0, 10, 0o660), access(0, 20, 0o666), access(107, 20, 0o600)]);
        assert_eq!(accesses("[[port]]\nvfs = 1"), [Access::PRIVATE]);
    }

    #[test]
    fn the_ports_access_is_that_of_its_own_socket() {
        let config = check("[[port]]\npf = \"guest\"\naccess = { group = 107 }").unwrap();
        assert_eq!(config.ports[0].access, Access { owner: None, group: Some(107), mode: 0o660 });
    }

    #[test]
    fn commands_are_the_hosts_users_unless_a_group_is_given() {
        let config = check("access = { group = 107, mode = \"0666\" }").unwrap();
        assert_eq!(config.control_access, Access::PRIVATE, "who may connect may not command");
        let config = check("control = { group = 4 }").unwrap();
        assert_eq!(config.control_access, Access { owner: None, group: Some(4), mode: 0o660 });
        assert_eq!(config.control_socket(), Path::new("/run/softiov/control/control.sock"));
    }

    #[test]
    fn who_is_not_known_is_refused_by_key_and_name() {
        for (text, parts) in [
            ("access = { owner = \"who\" }", ["pf0vf0.access.owner", "who"]),
            ("[[port]]\naccess = { group = \"which\" }", ["pf0vf0.access.group", "which"]),
            ("control = { group = \"which\" }", ["control.group", "which"]),
            ("[[port]]\nname = \"control\"", ["port.name", "control"]),
            (
                "[[port]]\n[[port.vf]]\nindex = 0\nsocket = \"/run/softiov/control/vf.sock\"",
                ["pf0vf0.socket", "choose another"],
            ),
        ] {
            let message = refused(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{text}\n{message}");
        }
    }

    #[test]
    fn a_mode_that_is_none_is_told_which_there_are() {
        for mode in ["\"0777\"", "\"0640\"", "\"rw\"", "600", "384", "\"\""] {
            let message = Config::parse(&format!("access = {{ mode = {mode} }}")).unwrap_err();
            assert!(message.contains("\"0660\" (the group too)"), "{mode}: {message}");
        }
        assert!(Config::parse("access = { owner = true }").unwrap_err().contains("a name or a number"));
    }
}
