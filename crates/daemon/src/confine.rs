//! Confinement of the host: changes its user before it starts, and then drops from each thread the rights that the
//! thread does not need.
//!
//! A program that runs a host beside other things ([`crate::RunningHost`] in a test, or a demo) confines the host's own
//! threads only. `softiov serve` confines its whole process: [`begin`] before the host starts, [`first_thread`] after.
//! [`host::confine`] has the tables of system calls.

use crate::config::HostConfig;
use crate::config::uplink::{StreamUplinkSocket, UplinkConfig};
use crate::start_error::HostStartError;
use host::confine::{
    LandlockEnforcement, LandlockRules, PreparedSandbox, SandboxError, ThreadCapabilities, ThreadRole,
    ThreadSandbox, become_user, restrict_files,
};
use host::folder;
use host::tap::Tap;
use std::path::{Path, PathBuf};

/// Creates the folder for sockets, changes to the user that the configuration names, and denies all files except the
/// host's own and `readable`. Returns the extent to which the kernel enforces the denial, or `None` if the
/// configuration switches Landlock off. Call it before any other thread starts.
///
/// # Errors
/// [`HostStartError`]; the process should end, since it may have given up a part.
pub fn begin(
    config: &HostConfig,
    readable: &[PathBuf],
) -> Result<Option<LandlockEnforcement>, HostStartError> {
    if let Some(account) = &config.confine.user {
        folder::make_for(&config.runtime_dir, folder::PASSABLE, (account.uid, account.gid))?;
        become_user(account)?;
    }
    if !config.confine.landlock {
        return Ok(None);
    }
    folder::make(&config.runtime_dir, folder::PASSABLE)?;
    if let Some(folder) = &config.state_dir {
        // A Landlock rule needs an existing folder. If it cannot be created, a later change reports that it cannot be
        // kept.
        let _ = std::fs::create_dir_all(folder);
    }
    Ok(Some(restrict_files(&reach(config, readable))?))
}

/// Confines the thread that has started the host. Call it after the start.
///
/// # Errors
/// [`HostStartError::Confine`].
pub fn first_thread(config: &HostConfig) -> Result<(), HostStartError> {
    Ok(confinement(config).prepare(ThreadRole::Main)?.apply()?)
}

/// Prepares the confinement of a helper thread that the program starts beside the host's own threads, and that may
/// block. Call it after [`begin`].
///
/// # Errors
/// [`HostStartError::Confine`].
pub fn helper(config: &HostConfig) -> Result<PreparedSandbox, HostStartError> {
    Ok(confinement(config).prepare(ThreadRole::Helper)?)
}

/// Prepared restrictions for each kind of thread of the host.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSandboxes {
    pub(crate) port: PreparedSandbox,
    pub(crate) helper: PreparedSandbox,
    pub(crate) control: PreparedSandbox,
    pub(crate) api: PreparedSandbox,
}

impl ThreadSandboxes {
    pub(crate) fn prepare(config: &HostConfig) -> Result<Self, SandboxError> {
        let confinement = confinement(config);
        Ok(Self {
            port: confinement.prepare(ThreadRole::Port)?,
            helper: confinement.prepare(ThreadRole::Helper)?,
            control: confinement.prepare(ThreadRole::Control)?,
            api: confinement.prepare(ThreadRole::Api)?,
        })
    }
}

/// Returns the restrictions that all threads of the host share.
fn confinement(config: &HostConfig) -> ThreadSandbox {
    let any = |is: fn(&UplinkConfig) -> bool| config.ports.iter().any(|port| is(&port.uplink));
    let capabilities = match &config.confine.user {
        None => ThreadCapabilities::Unchanged,
        // The uplink needs these rights again when its interface was deleted and has to be created or opened anew.
        Some(_) => ThreadCapabilities::Only {
            net_admin: any(|uplink| matches!(uplink, UplinkConfig::Tap(_))),
            net_raw: any(|uplink| matches!(uplink, UplinkConfig::Interface(_) | UplinkConfig::Xdp(..))),
        },
    };
    ThreadSandbox { seccomp: config.confine.seccomp, capabilities }
}

/// Returns the Landlock rules for the files and addresses that the host needs.
fn reach(config: &HostConfig, readable: &[PathBuf]) -> LandlockRules {
    let vfs = config.ports.iter().flat_map(|port| port.vfs.iter().map(|vf| &vf.socket));
    let uplinks = config.ports.iter().filter_map(|port| match &port.uplink {
        UplinkConfig::Stream(StreamUplinkSocket::Listen(path)) => Some(path),
        _ => None,
    });
    let recordings = config.ports.iter().filter_map(|port| port.record.as_ref());
    let replays = config.ports.iter().filter_map(|port| match &port.uplink {
        UplinkConfig::Replay(path) => Some(path.clone()),
        _ => None,
    });
    let sockets = config
        .ports
        .iter()
        .filter_map(|port| port.pf_socket.as_ref())
        .chain(vfs)
        .chain(uplinks)
        .chain(recordings);
    let folders = sockets.filter_map(|socket| socket.parent()).filter(|folder| folder.is_dir());
    let work =
        folders.map(Path::to_owned).chain([config.runtime_dir.clone()]).chain(config.state_dir.clone());
    // Names of users, groups, services and protocols, the machine's number for addresses, and the process's own /proc
    // entry.
    let names = ["/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/nsswitch.conf"];
    let own = names.into_iter().chain(["/etc/machine-id", "/proc/self"]);
    let token = config.http.iter().map(|http| http.token_file.clone());
    let read = own.map(PathBuf::from).chain(readable.iter().cloned()).chain(token).chain(replays);
    let listen = config.http.iter().map(|http| http.listen.port()).collect();
    let macvtaps = config.ports.iter().filter_map(|port| match &port.uplink {
        UplinkConfig::Macvtap(name) => Tap::macvtap_file(&name.parse().ok()?).map(PathBuf::from),
        _ => None,
    });
    let devices = macvtaps.chain(["/dev/net/tun".into()]).collect();
    LandlockRules { work: work.collect(), read: read.collect(), devices, listen }
}
