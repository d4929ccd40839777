//! Switches the process to another user and limits its capabilities.
//!
//! Neither can be undone, and no program that the process starts has more rights than it.

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Uid, initgroups, setgroups, setresgid, setresuid};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

use super::SandboxError;
use crate::user::ProcessUser;

/// Linux capabilities that a host needs to start: to change owners of sockets, to replace a dead host's sockets of any
/// owner, and for taps, packet sockets and interfaces' BPF programs.
const START: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF);

/// Linux capabilities that a thread keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadCapabilities {
    /// The thread keeps all capabilities that it has.
    Unchanged,
    /// The thread keeps at most the given capabilities.
    Only {
        /// True if the thread keeps CAP_NET_ADMIN, in case a tap has to be created again.
        net_admin: bool,
        /// True if the thread keeps CAP_NET_RAW, in case a packet socket has to be opened again.
        net_raw: bool,
    },
}

/// Switches the process to another user, before it starts unprivileged threads. Each thread keeps the capabilities for
/// starting a host until it drops them. Afterwards the memory of guests is in no core dump, and other processes of that
/// user cannot read this process's memory.
///
/// # Errors
/// [`SandboxError::User`]; the process must then end, since it may have become the user in part.
pub fn become_user(account: &ProcessUser) -> Result<(), SandboxError> {
    let failure = |source| SandboxError::User { user: account.to_string(), source };
    switch(account).map_err(failure)
}

fn switch(account: &ProcessUser) -> io::Result<()> {
    let held = capabilities(None)?.permitted;
    if geteuid().as_raw() != account.uid {
        set_keep_capabilities(true)?;
        limit_bounding_set(held)?;
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        match &account.name {
            Some(name) => initgroups(&CString::new(name.as_str())?, gid)?,
            None => setgroups(&[gid])?,
        }
        // The C library switches every thread of the process; the system call would switch only this one.
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        set_keep_capabilities(false)?;
    }
    keep(START)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Removes all capabilities but those that a host needs to start ([`START`]) from the bounding set, so that no started
/// program can acquire them.
fn limit_bounding_set(held: CapabilitySet) -> io::Result<()> {
    if !held.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for capability in CapabilitySet::all().difference(START).iter() {
        match remove_capability_from_bounding_set(capability) {
            // A capability that the kernel does not know yet.
            Err(rustix::io::Errno::INVAL) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl ThreadCapabilities {
    /// Reduces the calling thread's capabilities to those that this setting keeps.
    pub(super) fn apply(self) -> io::Result<()> {
        match self {
            Self::Unchanged => Ok(()),
            Self::Only { net_admin, net_raw } => {
                let mut wanted = CapabilitySet::empty();
                wanted.set(CapabilitySet::NET_ADMIN, net_admin);
                wanted.set(CapabilitySet::NET_RAW, net_raw);
                keep(wanted)
            }
        }
    }
}

/// Reduces the thread's capabilities to `wanted`, passes no capability on, and forbids started programs to gain any.
fn keep(wanted: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & wanted;
    // The kernel takes capabilities that are not inheritable out of the ambient set too.
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    Ok(())
}
