//! The files that this process, its threads to come and its children can reach, by Landlock.
//!
//! As much is enforced as the kernel knows (Linux 5.13 and later); descriptors that are open stay as they are. Rules
//! hold for the folder or file that was there, not for one that is put in its place later. Left out: reading what is
//! not a file's content. Paths can still be looked at.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
};

use super::ConfineError;

/// The newest rules that this program knows: the first to cover devices' ioctls.
const KNOWN: ABI = ABI::V5;

/// Folders and files that the process needs.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Folders in which sockets, folders and files are made, changed and removed.
    pub work: Vec<PathBuf>,
    /// Folders and files that are read.
    pub read: Vec<PathBuf>,
    /// Devices.
    pub devices: Vec<PathBuf>,
    /// Ports of TCP that are listened on.
    pub listen: Vec<u16>,
}

/// How much of it the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// What this kernel knows.
    Partly,
    /// Nothing: the kernel has no Landlock, or it is switched off.
    Not,
}

/// Restricts the calling thread, and those that it starts, to these. Any other TCP is out of reach too. What is not there is
/// not added.
///
/// # Errors
/// [`ConfineError::Landlock`].
pub fn restrict_files(reach: &Reach) -> Result<Enforced, ConfineError> {
    restrict(reach).map_err(|error| ConfineError::Landlock(std::io::Error::other(error)))
}

fn restrict(reach: &Reach) -> Result<Enforced, RulesetError> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .create()?;
    let work = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSock
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::Refer;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let rules = allow(rules, &reach.work, work)?;
    let rules = allow(rules, &reach.read, AccessFs::ReadFile | AccessFs::ReadDir)?;
    let mut rules = allow(rules, &reach.devices, device)?;
    for port in &reach.listen {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    let status = rules.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    })
}

fn allow(
    rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let open = |path: &PathBuf| Some((path.clone(), PathFd::new(path).ok()?));
    paths
        .iter()
        .filter_map(open)
        .try_fold(rules, |rules, (path, fd)| rules.add_rule(PathBeneath::new(fd, rights_for(&path, access))))
}

/// A file that is no folder takes no rights of folders.
fn rights_for(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) }
}
