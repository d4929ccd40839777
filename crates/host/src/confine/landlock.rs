//! Restricts the files that this process, its later threads and its children can reach, by Landlock.
//!
//! The kernel enforces the rules that it knows (Linux 5.13 and later). Open descriptors keep their access. A rule
//! holds for the folder or file that existed when it was made, not for a replacement. Metadata of any path stays
//! visible.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
};

use super::SandboxError;

/// Newest Landlock ABI that this program uses: ABI 5, the first that restricts ioctls of devices.
const KNOWN: ABI = ABI::V5;

/// Folders, files and TCP ports that the process needs.
#[derive(Clone, Debug, Default)]
pub struct LandlockRules {
    /// Folders in which sockets, folders and files are created, changed and removed.
    pub work: Vec<PathBuf>,
    /// Folders and files that the process may read.
    pub read: Vec<PathBuf>,
    /// Device files that the process opens for reading, writing and ioctls.
    pub devices: Vec<PathBuf>,
    /// TCP ports that the process listens on.
    pub listen: Vec<u16>,
}

/// Extent to which the kernel enforces the Landlock rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockEnforcement {
    /// The kernel enforces all Landlock rules.
    Fully,
    /// The kernel enforces those Landlock rules that its version knows.
    Partly,
    /// The kernel enforces no Landlock rule: it has no Landlock, or Landlock is switched off.
    Not,
}

/// Restricts the calling thread, and threads that it starts, to the given paths and ports. Other TCP ports are
/// denied. Paths that do not exist are skipped.
///
/// # Errors
/// [`SandboxError::Landlock`].
pub fn restrict_files(reach: &LandlockRules) -> Result<LandlockEnforcement, SandboxError> {
    restrict(reach).map_err(|error| SandboxError::Landlock(std::io::Error::other(error)))
}

fn restrict(reach: &LandlockRules) -> Result<LandlockEnforcement, RulesetError> {
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
        RulesetStatus::FullyEnforced => LandlockEnforcement::Fully,
        RulesetStatus::PartiallyEnforced => LandlockEnforcement::Partly,
        RulesetStatus::NotEnforced => LandlockEnforcement::Not,
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

/// Returns the part of the rights `access` that applies to a path: rights of folders do not apply to a file.
fn rights_for(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) }
}
