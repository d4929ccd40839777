//! Choices of a simulation's kernel: how many bytes a stream socket takes or returns at once, the order of events, and whether the
//! host runs before a driver looks for its reply. The seed of a step chooses.

use super::host::SimulatedHost;
use host::kernel_choices::{self, KernelChoices};
use std::cell::RefCell;
use std::ops::AddAssign;
use std::rc::Rc;

/// Tells the draws of the kernel apart from the other draws of a step.
const FORK: u64 = 0x6b65_726e_656c;
/// Numbers of choices of which the kernel makes one to the host's disadvantage, in one of these steps each; `None` for never.
const RARITIES: [Option<u32>; 4] = [None, None, Some(16), Some(3)];
/// Least bytes of a buffer that a receive has: a peek returns descriptors again in each part of a send that fills less.
const LEAST_ROOM: usize = 4;

/// Numbers of choices that a kernel has made to the host's disadvantage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelCounts {
    /// Number of sends of which the socket took a part.
    pub(super) cut_sends: u64,
    /// Number of sends that found the socket full.
    pub(super) full_sockets: u64,
    /// Number of receives with a smaller buffer.
    pub(super) cut_receives: u64,
    /// Number of waits whose events were reported in another order.
    pub(super) reordered_waits: u64,
}

impl AddAssign for KernelCounts {
    fn add_assign(&mut self, one: Self) {
        self.cut_sends += one.cut_sends;
        self.full_sockets += one.full_sockets;
        self.cut_receives += one.cut_receives;
        self.reordered_waits += one.reordered_waits;
    }
}

/// Draws of a kernel.
#[derive(Debug)]
struct KernelDraws {
    random: fastrand::Rng,
    /// Number of choices of which one is to the host's disadvantage; `None` for none.
    rarity: Option<u32>,
    counts: KernelCounts,
}

impl KernelDraws {
    fn is_adverse(&mut self) -> bool {
        self.rarity.is_some_and(|rarity| self.random.u32(0..rarity) == 0)
    }
}

/// Kernel of the thread of a simulation. A dropped one leaves the choices to the real one.
#[derive(Debug)]
pub(super) struct SimulatedKernel(Rc<RefCell<KernelDraws>>);

impl SimulatedKernel {
    /// Creates a kernel that chooses for this thread, as the real one until the first step.
    pub(super) fn new() -> Self {
        let draws = KernelDraws {
            random: fastrand::Rng::with_seed(FORK),
            rarity: None,
            counts: KernelCounts::default(),
        };
        let draws = Rc::new(RefCell::new(draws));
        kernel_choices::set(Some(Box::new(DrawnChoices(Rc::clone(&draws)))));
        Self(draws)
    }

    pub(super) fn counts(&self) -> KernelCounts {
        self.0.borrow().counts
    }

    /// Returns true if the host runs before a driver looks for an event.
    pub(super) fn is_driver_late(&self) -> bool {
        self.0.borrow_mut().is_adverse()
    }
}

impl Drop for SimulatedKernel {
    fn drop(&mut self) {
        kernel_choices::set(None);
    }
}

/// Choices that are drawn.
struct DrawnChoices(Rc<RefCell<KernelDraws>>);

impl KernelChoices for DrawnChoices {
    fn taken_of_send(&mut self, bytes: usize) -> usize {
        let draws = &mut *self.0.borrow_mut();
        if !draws.is_adverse() {
            return bytes;
        }
        let taken = if draws.random.bool() { draws.random.usize(0..bytes) } else { 0 };
        if taken == 0 {
            draws.counts.full_sockets += 1;
        } else {
            draws.counts.cut_sends += 1;
        }
        taken
    }

    fn room_of_receive(&mut self, bytes: usize) -> usize {
        let draws = &mut *self.0.borrow_mut();
        if bytes <= LEAST_ROOM || !draws.is_adverse() {
            return bytes;
        }
        draws.counts.cut_receives += 1;
        // Most messages are short.
        let most = [bytes, bytes.min(64)][draws.random.usize(0..2)];
        draws.random.usize(LEAST_ROOM..most)
    }

    fn reorders(&mut self) -> bool {
        let draws = &mut *self.0.borrow_mut();
        let is_adverse = draws.is_adverse();
        draws.counts.reordered_waits += u64::from(is_adverse);
        is_adverse
    }

    fn next_event(&mut self, left: usize) -> usize {
        self.0.borrow_mut().random.usize(0..left)
    }
}

impl SimulatedHost {
    /// Begins a step, whose seed chooses what the step leaves open.
    pub(super) fn begin_step(&mut self, seed: u64) {
        self.random = fastrand::Rng::with_seed(seed);
        let draws = &mut *self.kernel.0.borrow_mut();
        draws.random = fastrand::Rng::with_seed(seed ^ FORK);
        draws.rarity = RARITIES[draws.random.usize(0..RARITIES.len())];
    }
}
