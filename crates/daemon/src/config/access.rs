//! Configuration keys of sockets: owner, group and mode (`access`), and path.
//!
//! The host finds out that it may give a socket these rights when it creates the socket.

use super::{ConfigError, UniqueConfigValues, value};
use host::socket::SocketFilePermissions;
use host::user::{UserLookupError, group_id, user_id};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// Keys of the configuration table `access`: owner, group and mode of sockets. A VF's keys override its port's, and a
/// port's override the host's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfigKeys {
    /// Owner of the socket, name or number. Default: the user of the host.
    pub owner: Option<UserOrGroup>,
    /// Group of the socket, name or number. Default: the group of the host.
    pub group: Option<UserOrGroup>,
    /// Mode of the socket: "0600", the owner may connect; "0660", the group too; "0666", every user. Default: 0660 if
    /// a group is given, else 0600.
    pub mode: Option<SocketMode>,
}

/// Keys of the configuration table `control`: users, besides the user of the host, that may send commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlConfigKeys {
    /// Group whose members may send commands, name or number. Default: none.
    pub group: Option<UserOrGroup>,
}

/// User or group in the configuration, by name or number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserOrGroup(pub String);

/// File mode of a socket: 0600, 0660 or 0666.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMode(u32);

impl Serialize for SocketMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:04o}", self.0))
    }
}

impl<'de> Deserialize<'de> for UserOrGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UserOrGroupVisitor)
    }
}

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SocketModeVisitor)
    }
}

/// Visitor that reads a [`UserOrGroup`] from a string or an integer.
struct UserOrGroupVisitor;

impl Visitor<'_> for UserOrGroupVisitor {
    type Value = UserOrGroup;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a user or group, by name or number")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<UserOrGroup, E> {
        Ok(UserOrGroup(name.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<UserOrGroup, E> {
        Ok(UserOrGroup(number.to_string()))
    }
}

/// Visitor that reads a [`SocketMode`] from octal digits in a string. A TOML integer would be decimal: 600 is not 0600.
struct SocketModeVisitor;

impl Visitor<'_> for SocketModeVisitor {
    type Value = SocketMode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#""0600" (the owner), "0660" (the group too) or "0666" (everybody)"#)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketMode, E> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| [0o600, 0o660, 0o666].contains(mode));
        mode.map(SocketMode).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Returns the access rights of a VF's or PF's socket. `layers` holds the configuration's `access` tables that apply to
/// the socket, innermost first. `owner` names the VF or port.
pub(super) fn access(
    layers: &[&AccessConfigKeys],
    owner: &str,
) -> Result<SocketFilePermissions, ConfigError> {
    let key = |key: &str| format!("{owner}.access.{key}");
    let uid = number(layers.iter().find_map(|keys| keys.owner.as_ref()), user_id, &key("owner"))?;
    let gid = number(layers.iter().find_map(|keys| keys.group.as_ref()), group_id, &key("group"))?;
    let usual = if gid.is_some() { 0o660 } else { 0o600 };
    let mode = layers.iter().find_map(|keys| keys.mode).map_or(usual, |mode| mode.0);
    Ok(SocketFilePermissions { owner: uid, group: gid, mode })
}

/// Returns the access rights of the control socket.
pub(super) fn control(keys: &ControlConfigKeys) -> Result<SocketFilePermissions, ConfigError> {
    let group = number(keys.group.as_ref(), group_id, "control.group")?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    Ok(SocketFilePermissions { owner: None, group, mode })
}

/// Resolves the name of a user or group to its numeric id.
fn number(
    id: Option<&UserOrGroup>,
    find: impl Fn(&str) -> Result<u32, UserLookupError>,
    key: &str,
) -> Result<Option<u32>, ConfigError> {
    id.map(|id| find(&id.0).map_err(|error| value(key, error.to_string()))).transpose()
}

/// Name of the control socket's folder in the runtime directory. No port may have this name.
pub(super) const CONTROL: &str = "control";

/// Returns the path of the host's control socket. The socket has a folder of its own, so that users may enter a VF's
/// folder and not this one.
pub(super) fn control_socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join(CONTROL).join("control.sock")
}

/// Returns the path of a function's socket: the configured path, or one in a folder of its own. A container that mounts
/// this folder also sees the socket of a later host process.
pub(super) fn socket(
    given: Option<PathBuf>,
    (runtime_dir, name, file): (&Path, &str, &str),
    unique: &mut UniqueConfigValues,
) -> Result<PathBuf, ConfigError> {
    let key = format!("{name}.socket");
    let given = given.map(|path| super::absolute_path(&path, &key)).transpose()?;
    let socket = given.unwrap_or_else(|| runtime_dir.join(name).join(file));
    if socket.starts_with(runtime_dir.join(CONTROL)) {
        let why = "lies in the directory that is reserved for the control socket; choose another";
        return Err(value(key, format!("{} {why}", socket.display())));
    }
    unique.claim("socket", &socket.display().to_string(), &key)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use crate::config::HostConfig;
    use crate::config::tests::{check, refused};
    use host::socket::SocketFilePermissions;
    use std::path::Path;

    fn accesses(text: &str) -> Vec<SocketFilePermissions> {
        let config = check(text).unwrap();
        config.ports.iter().flat_map(|port| &port.vfs).map(|vf| vf.access).collect()
    }

    #[test]
    fn vf_socket_access_overrides_access_of_port_and_host() {
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
        let access =
            |owner, group, mode| SocketFilePermissions { owner: Some(owner), group: Some(group), mode };
        assert_eq!(accesses(text), [access(0, 10, 0o660), access(0, 20, 0o666), access(107, 20, 0o600)]);
        assert_eq!(accesses("[[port]]\nvfs = 1"), [SocketFilePermissions::PRIVATE]);
    }

    #[test]
    fn socket_access_of_a_port_applies_to_the_pf_socket() {
        let config = check("[[port]]\npf = \"guest\"\naccess = { group = 107 }").unwrap();
        assert_eq!(
            config.ports[0].access,
            SocketFilePermissions { owner: None, group: Some(107), mode: 0o660 }
        );
    }

    #[test]
    fn only_the_control_socket_group_may_send_commands() {
        let config = check("access = { group = 107, mode = \"0666\" }").unwrap();
        assert_eq!(
            config.control_access,
            SocketFilePermissions::PRIVATE,
            "the right to connect is no right to command"
        );
        let config = check("control = { group = 4 }").unwrap();
        assert_eq!(config.control_access, SocketFilePermissions { owner: None, group: Some(4), mode: 0o660 });
        assert_eq!(config.control_socket(), Path::new("/run/softiov/control/control.sock"));
    }

    #[test]
    fn unknown_user_or_group_is_refused_with_setting_and_name() {
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
    fn invalid_socket_mode_is_refused_with_the_valid_modes() {
        for mode in ["\"0777\"", "\"0640\"", "\"rw\"", "600", "384", "\"\""] {
            let message = HostConfig::parse(&format!("access = {{ mode = {mode} }}")).unwrap_err();
            assert!(message.contains("\"0660\" (the group too)"), "{mode}: {message}");
        }
        assert!(
            HostConfig::parse("access = { owner = true }")
                .unwrap_err()
                .contains("a user or group, by name or number")
        );
    }
}
