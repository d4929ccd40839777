//! Blocked requests: the first ones are kept, all are counted, as fault recording registers do (VT-d 7.3).
//! Left out: the interrupt that tells of them.

use super::Access;
use alloc::vec::Vec;
use pcie::{Iova, Rid};

/// Faults that are kept until they are taken: a device that floods fills no memory.
pub const KEPT: usize = 64;

/// Why a request was blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The function has no domain.
    UnknownFunction,
    /// The address has more than 48 bits.
    Width,
    /// Nothing is mapped there.
    Unmapped,
    /// It may not be read, or written.
    Rights,
}

/// A blocked request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA {access:?} of {rid} at {iova:#x} blocked: {reason:?}")]
pub struct Fault {
    /// Who.
    pub rid: Rid,
    /// Where.
    pub iova: Iova,
    /// What for.
    pub access: Access,
    /// Why.
    pub reason: Reason,
}

/// The log of blocked requests.
#[derive(Debug, Clone)]
pub struct FaultLog {
    kept: Vec<Fault>,
    count: u64,
}

impl Default for FaultLog {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(KEPT), count: 0 }
    }
}

impl FaultLog {
    /// All faults so far, kept or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The faults kept, oldest first.
    #[must_use]
    pub fn kept(&self) -> &[Fault] {
        &self.kept
    }

    /// Makes room for new ones.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Records a fault, and hands it on.
    pub(super) fn record(&mut self, fault: Fault) -> Fault {
        self.count += 1;
        if self.kept.len() < KEPT {
            self.kept.push(fault);
        }
        fault
    }
}
