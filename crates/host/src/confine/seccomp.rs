//! A thread's system calls, held to its rows of the table by seccomp.
//!
//! A call that is not allowed ends the host: either the table lacks something, or somebody has taken the thread over,
//! and then nothing that it does can be trusted. What the host says of it is `trap`'s. Left out: which calls.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::table::{Role, Row, When};
use super::{ConfineError, trap};

/// What is done about calls that are not in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// They end the host.
    #[default]
    On,
    /// The kernel logs them and carries them out.
    Log,
    /// Nothing.
    Off,
}

/// None of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seccomp is one of true, false and log")]
pub struct UnknownMode;

impl FromStr for Seccomp {
    type Err = UnknownMode;

    /// Reads `true`, `false` or `log`.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "true" => Ok(Self::On),
            "log" => Ok(Self::Log),
            "false" => Ok(Self::Off),
            _ => Err(UnknownMode),
        }
    }
}

impl fmt::Display for Seccomp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "true",
            Self::Log => "log",
            Self::Off => "false",
        })
    }
}

/// The programs for the threads of one role, ready to be applied by each of them.
#[derive(Clone, Debug)]
pub(super) struct Filter(Vec<BpfProgram>);

impl Filter {
    pub(super) fn compile(role: Role, mode: Seccomp) -> Result<Self, ConfineError> {
        let (unknown, refused) = match mode {
            Seccomp::Off => return Ok(Self(Vec::new())),
            Seccomp::Log => (SeccompAction::Log, SeccompAction::Log),
            Seccomp::On => (SeccompAction::Trap, SeccompAction::Errno(libc::ENOSYS as u32)),
        };
        trap::install().map_err(ConfineError::Seccomp)?;
        let refusals = rules(role.refused())?;
        let mut allowed = rules(role.allowed())?;
        // Of what two programs say, the kernel does the worse. The refusal is the other program's to say.
        allowed.extend(refusals.keys().map(|call| (*call, Vec::new())));
        // The refusing program first: the other one may not allow any more.
        let programs = [
            SeccompFilter::new(refusals, SeccompAction::Allow, refused, architecture()?),
            SeccompFilter::new(allowed, unknown, SeccompAction::Allow, architecture()?),
        ];
        let compile = |filter: Result<SeccompFilter, _>| filter.and_then(BpfProgram::try_from);
        programs.into_iter().map(compile).collect::<Result<_, _>>().map(Self).map_err(backend)
    }

    /// Holds the calling thread, and those it starts, to the table. There is no way back.
    pub(super) fn apply(&self) -> Result<(), ConfineError> {
        self.0.iter().try_for_each(|program| seccompiler::apply_filter(program).map_err(refused))
    }
}

fn architecture() -> Result<seccompiler::TargetArch, ConfineError> {
    std::env::consts::ARCH.try_into().map_err(backend)
}

/// The rules for each call; none means whatever its arguments are.
fn rules(lists: &[&[Row]]) -> Result<BTreeMap<i64, Vec<SeccompRule>>, ConfineError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for &(call, when) in lists.iter().copied().flatten() {
        let new = conditions(when)?;
        match rules.entry(call) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(new);
            }
            // A list that allows it whatever the arguments are has the last word.
            std::collections::btree_map::Entry::Occupied(place) if new.is_empty() => place.into_mut().clear(),
            std::collections::btree_map::Entry::Occupied(place) if !place.get().is_empty() => {
                place.into_mut().extend(new);
            }
            std::collections::btree_map::Entry::Occupied(_) => {}
        }
    }
    Ok(rules)
}

fn conditions(when: When) -> Result<Vec<SeccompRule>, ConfineError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let one = |argument, how, value: u32| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value.into()).map_err(backend)
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(backend);
    match when {
        When::Always => Ok(Vec::new()),
        When::Is(argument, values) => {
            values.iter().map(|value| rule(vec![one(argument, Eq, *value)?])).collect()
        }
        When::IsNot(argument, values) => {
            let none = values.iter().map(|value| one(argument, Ne, *value)).collect::<Result<_, _>>()?;
            Ok(vec![rule(none)?])
        }
        When::Has(argument, bits) => Ok(vec![rule(vec![one(argument, MaskedEq(bits.into()), bits)?])?]),
        When::IsThisProcess(argument) => Ok(vec![rule(vec![one(argument, Eq, std::process::id())?])?]),
    }
}

fn backend(error: seccompiler::BackendError) -> ConfineError {
    refused(error.into())
}

fn refused(error: seccompiler::Error) -> ConfineError {
    ConfineError::Seccomp(std::io::Error::other(error))
}
