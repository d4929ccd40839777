//! The user and the capabilities of this process.
//!
//! Left out: getting anything back. Afterwards no program that the process starts has more than it has.

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Uid, initgroups, setgroups, setresgid, setresuid};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use super::ConfineError;
use crate::user::Account;

/// What the start takes: giving sockets away, replacing a dead host's whoever owns them, taps, packet sockets, programs
/// of interfaces.
const START: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF);

/// Which capabilities a thread has from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capabilities {
    /// Those it has.
    Unchanged,
    /// At most these.
    Only {
        /// CAP_NET_ADMIN: a tap may have to be made again.
        net_admin: bool,
        /// CAP_NET_RAW: an interface may come back.
        net_raw: bool,
    },
}

/// Makes the process another user's, before it starts any thread that shall not be root's. What the start of a host
/// takes is kept, until each thread gives it up. The memory of guests is in no core dump then, and other processes of
/// that user cannot look into this one.
///
/// # Errors
/// [`ConfineError::User`]; the process must then end, since it may have become the user in part.
pub fn become_user(account: &Account) -> Result<(), ConfineError> {
    let failure = |source| ConfineError::User { user: account.to_string(), source };
    switch(account).map_err(failure)
}

fn switch(account: &Account) -> io::Result<()> {
    let held = capabilities(None)?.permitted;
    if geteuid().as_raw() != account.uid {
        set_keep_capabilities(true)?;
        limit_bounding_set(held)?;
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        match &account.name {
            Some(name) => initgroups(&CString::new(name.as_str())?, gid)?,
            None => setgroups(&[gid])?,
        }
        // Through the C library, which does it for every thread there is.
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        set_keep_capabilities(false)?;
    }
    keep(START)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// No program that is started can get what is not in the bounding set.
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

impl Capabilities {
    /// Leaves the calling thread with these.
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

/// Keeps of the thread's capabilities these, hands none of them on, and lets no program that it starts have more.
fn keep(wanted: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & wanted;
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    Ok(())
}
