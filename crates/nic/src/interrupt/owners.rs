//! The functions that own vectors and queues, and those that may master the bus. Left out: when they change (`function`).

use i82576::{Pool, Queue, Vector, VfIndex};
use pcie::Function;
use serde::{Deserialize, Serialize};

/// Every vector's bit.
pub const ALL_VECTORS: u32 = (1 << i82576::ids::VECTORS) - 1;

/// Which function a vector and a queue belong to, and which functions may master the bus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    /// VFs that exist.
    pub vfs: u8,
    /// Bus master enable: bit 0 the PF, bit n + 1 VF n.
    pub masters: u16,
}

impl Owners {
    /// The function that owns a vector, and its number there: VF n has vectors 22-3n to 24-3n.
    #[must_use]
    pub fn of(&self, vector: Vector) -> (Function, u16) {
        let from_top = 24 - vector.get();
        let vf = from_top / 3;
        if vf < self.vfs {
            (Function::Vf(vf), u16::from(2 - from_top % 3))
        } else {
            (Function::Pf, u16::from(vector.get()))
        }
    }

    /// The bits of the vectors that are the PF's.
    #[must_use]
    pub fn pf_vectors(&self) -> u32 {
        ALL_VECTORS >> (3 * u32::from(self.vfs.min(8)))
    }

    /// The function whose name the queue's memory requests carry.
    #[must_use]
    pub fn of_queue(&self, queue: Queue) -> Function {
        self.vf_of(queue.pool()).map_or(Function::Pf, |vf| Function::Vf(vf.get()))
    }

    /// The VF that a pool is, if it is not the PF's.
    #[must_use]
    pub fn vf_of(&self, pool: Pool) -> Option<VfIndex> {
        VfIndex::new(pool.get()).filter(|vf| vf.get() < self.vfs)
    }

    /// Whether the function may use the bus at all.
    #[must_use]
    pub fn may_master(&self, function: Function) -> bool {
        self.masters & master_bit(function) != 0
    }
}

/// A function's bit in [`Owners::masters`].
#[must_use]
pub fn master_bit(function: Function) -> u16 {
    match function {
        Function::Pf => 1,
        Function::Vf(n) => 2 << n.min(7),
    }
}

#[cfg(test)]
mod tests {
    use super::Owners;
    use i82576::Vector;
    use pcie::Function;

    #[test]
    fn vectors_belong_to_vfs_from_the_top() {
        let owners = Owners { vfs: 7, masters: 0 };
        let of = |n| owners.of(Vector::new(n).unwrap());
        assert_eq!(of(22), (Function::Vf(0), 0));
        assert_eq!(of(24), (Function::Vf(0), 2));
        assert_eq!(of(4), (Function::Vf(6), 0));
        assert_eq!(of(3), (Function::Pf, 3));
        assert_eq!(Owners { vfs: 8, masters: 0 }.of(Vector::new(0).unwrap()), (Function::Pf, 0));
    }
}
