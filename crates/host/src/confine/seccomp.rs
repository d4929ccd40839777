//! Restricts a thread's system calls, by seccomp, to those that the table permits for the thread's role.
//!
//! A call outside the list ends the host: either the table lacks a row, or an attacker has taken the thread over
//! and nothing that it does can be trusted. `trap` reports the call; `table` lists the permitted ones.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::table::{PermittedSystemCall, SyscallArgumentCondition, ThreadRole};
use super::{SandboxError, trap};

/// Action on system calls that a thread's role does not permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeccompMode {
    /// A forbidden system call ends the host.
    #[cfg_attr(not(rustix_use_libc), default)]
    On,
    /// The kernel logs a forbidden system call and carries it out. This is the default of a program whose `rustix` calls libc, which
    /// makes other system calls than those of the list.
    #[cfg_attr(rustix_use_libc, default)]
    Log,
    /// Threads may make any system call: no filter is installed.
    Off,
}

/// Error for a text that names no seccomp mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown seccomp mode (allowed: true, false, log)")]
pub struct UnknownSeccompMode;

impl FromStr for SeccompMode {
    type Err = UnknownSeccompMode;

    /// Reads a seccomp mode: `true`, `false` or `log`.
    fn from_str(text: &str) -> Result<Self, UnknownSeccompMode> {
        match text {
            "true" => Ok(Self::On),
            "log" => Ok(Self::Log),
            "false" => Ok(Self::Off),
            _ => Err(UnknownSeccompMode),
        }
    }
}

impl fmt::Display for SeccompMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "true",
            Self::Log => "log",
            Self::Off => "false",
        })
    }
}

/// Compiled seccomp filters (BPF) for the threads of one role.
#[derive(Clone, Debug)]
pub(super) struct SeccompFilters(Vec<BpfProgram>);

impl SeccompFilters {
    pub(super) fn compile(role: ThreadRole, mode: SeccompMode) -> Result<Self, SandboxError> {
        let (unknown, refused) = match mode {
            SeccompMode::Off => return Ok(Self(Vec::new())),
            SeccompMode::Log => (SeccompAction::Log, SeccompAction::Log),
            SeccompMode::On => (SeccompAction::Trap, SeccompAction::Errno(libc::ENOSYS as u32)),
        };
        trap::install().map_err(SandboxError::Seccomp)?;
        let refusals = rules(role.refused())?;
        let mut allowed = rules(role.allowed())?;
        // The kernel applies the stricter of two programs' verdicts, so this program allows the calls that the
        // other one refuses.
        allowed.extend(refusals.keys().map(|call| (*call, Vec::new())));
        // The refusing program comes first: the allowing one may forbid seccomp calls afterwards.
        let programs = [
            SeccompFilter::new(refusals, SeccompAction::Allow, refused, architecture()?),
            SeccompFilter::new(allowed, unknown, SeccompAction::Allow, architecture()?),
        ];
        let compile = |filter: Result<SeccompFilter, _>| filter.and_then(BpfProgram::try_from);
        programs.into_iter().map(compile).collect::<Result<_, _>>().map(Self).map_err(backend)
    }

    /// Restricts the calling thread, and threads that it starts, to the system calls of the compiled filters. The
    /// restriction cannot be undone.
    pub(super) fn apply(&self) -> Result<(), SandboxError> {
        self.0.iter().try_for_each(|program| seccompiler::apply_filter(program).map_err(refused))
    }
}

fn architecture() -> Result<seccompiler::TargetArch, SandboxError> {
    std::env::consts::ARCH.try_into().map_err(backend)
}

/// Returns the seccomp rules for each system call. An empty list permits the call with any arguments.
fn rules(lists: &[&[PermittedSystemCall]]) -> Result<BTreeMap<i64, Vec<SeccompRule>>, SandboxError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for &(call, when) in lists.iter().copied().flatten() {
        let new = conditions(when)?;
        match rules.entry(call) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(new);
            }
            // A row without a condition overrides conditional rows.
            std::collections::btree_map::Entry::Occupied(place) if new.is_empty() => place.into_mut().clear(),
            std::collections::btree_map::Entry::Occupied(place) if !place.get().is_empty() => {
                place.into_mut().extend(new);
            }
            std::collections::btree_map::Entry::Occupied(_) => {}
        }
    }
    Ok(rules)
}

fn conditions(when: SyscallArgumentCondition) -> Result<Vec<SeccompRule>, SandboxError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let one = |argument, how, value: u32| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value.into()).map_err(backend)
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(backend);
    match when {
        SyscallArgumentCondition::Always => Ok(Vec::new()),
        SyscallArgumentCondition::Is(argument, values) => {
            values.iter().map(|value| rule(vec![one(argument, Eq, *value)?])).collect()
        }
        SyscallArgumentCondition::IsNot(argument, values) => {
            let none = values.iter().map(|value| one(argument, Ne, *value)).collect::<Result<_, _>>()?;
            Ok(vec![rule(none)?])
        }
        SyscallArgumentCondition::Has(argument, bits) => {
            Ok(vec![rule(vec![one(argument, MaskedEq(bits.into()), bits)?])?])
        }
        SyscallArgumentCondition::IsThisProcess(argument) => {
            Ok(vec![rule(vec![one(argument, Eq, std::process::id())?])?])
        }
    }
}

fn backend(error: seccompiler::BackendError) -> SandboxError {
    refused(error.into())
}

fn refused(error: seccompiler::Error) -> SandboxError {
    SandboxError::Seccomp(std::io::Error::other(error))
}
