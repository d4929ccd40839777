//! The functions that own vectors and queues, and those that may master the bus. Register and configuration writes
//! change them (`function`).

use i82576::{PoolIndex, QueueIndex, VectorIndex, VfIndex};
use pcie::Function;
use serde::{Deserialize, Serialize};

/// Bits of all vectors in EICR and its masks.
pub(crate) const ALL_VECTORS: u32 = (1 << i82576::ids::VECTORS) - 1;

/// Owners of interrupt vectors and queues (PF or VF), and the functions that may master the bus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Owners")]
pub(crate) struct VectorAndQueueOwners {
    /// Number of enabled VFs. Queues and vectors beyond the last VF's are the PF's.
    pub vfs: u8,
    /// Functions that may master the bus, a bit each: bit 0 of the PF, bit n + 1 of VF n.
    pub masters: u16,
}

impl VectorAndQueueOwners {
    /// Returns the function that owns a vector, and the vector's number in that function. VF n has vectors 22-3n to
    /// 24-3n.
    #[must_use]
    pub(crate) fn of(&self, vector: VectorIndex) -> (Function, u16) {
        let from_top = 24 - vector.get();
        let vf = from_top / 3;
        if vf < self.vfs {
            (Function::Vf(vf), u16::from(2 - from_top % 3))
        } else {
            (Function::Pf, u16::from(vector.get()))
        }
    }

    /// Returns the PF's interrupt vectors, a bit each.
    #[must_use]
    pub(crate) fn pf_vectors(&self) -> u32 {
        ALL_VECTORS >> (3 * u32::from(self.vfs.min(8)))
    }

    /// Returns the function whose requester id the queue's memory requests carry.
    #[must_use]
    pub(crate) fn of_queue(&self, queue: QueueIndex) -> Function {
        self.vf_of(queue.pool()).map_or(Function::Pf, |vf| Function::Vf(vf.get()))
    }

    /// Returns the VF that owns a pool, or `None` if the PF does.
    #[must_use]
    pub(crate) fn vf_of(&self, pool: PoolIndex) -> Option<VfIndex> {
        VfIndex::new(pool.get()).filter(|vf| vf.get() < self.vfs)
    }

    /// Returns true if the function may master the bus.
    #[must_use]
    pub(crate) fn may_master(&self, function: Function) -> bool {
        self.masters & master_bit(function) != 0
    }
}

/// Returns a function's bit in the set of bus masters, [`VectorAndQueueOwners::masters`].
#[must_use]
pub(crate) fn master_bit(function: Function) -> u16 {
    match function {
        Function::Pf => 1,
        Function::Vf(n) => 2 << n.min(7),
    }
}

#[cfg(test)]
mod tests {
    use super::VectorAndQueueOwners;
    use i82576::VectorIndex;
    use pcie::Function;

    #[test]
    fn highest_interrupt_vectors_belong_to_vf_0() {
        let owners = VectorAndQueueOwners { vfs: 7, masters: 0 };
        let of = |n| owners.of(VectorIndex::new(n).unwrap());
        assert_eq!(of(22), (Function::Vf(0), 0));
        assert_eq!(of(24), (Function::Vf(0), 2));
        assert_eq!(of(4), (Function::Vf(6), 0));
        assert_eq!(of(3), (Function::Pf, 3));
        assert_eq!(
            VectorAndQueueOwners { vfs: 8, masters: 0 }.of(VectorIndex::new(0).unwrap()),
            (Function::Pf, 0)
        );
    }
}
