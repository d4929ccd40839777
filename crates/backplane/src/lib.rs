//! The card and its drivers plugged together in one process: memory per function, recorded interrupts, a
//! clock moved by hand, and a wire that is two queues of frames.
//!
//! Drivers get their [`Hal`](driver::Hal) from [`Backplane::pf`] and [`Backplane::vf`]. Registers act at once;
//! frames move, interrupts fire and the PF driver answers only when the clock moves ([`Backplane::advance`],
//! or a driver's own wait) or when everything due is asked for ([`Backplane::settle`]). So a run is the same
//! every time.
//!
//! Left out: threads, real time, configuration space of VFs.
#![forbid(unsafe_code)]

mod hal;
mod world;

pub use hal::{PfHal, VfHal};
pub use world::{Memory, World};

use core::time::Duration;
use driver::pf::{Pf, PfError, Visit};
use i82576::config::pf::SRIOV;
use i82576::{MacAddress, Time, VfIndex};
use nic::{Budget, Nic, Wire};
use pcie::capability::sriov;
use pcie::config::offset;
use pcie::{ConfigAccess, Function};

/// Polls of the card by which everything due must be done: beyond it, something feeds itself.
const SETTLE_POLLS: usize = 10_000;

/// The card, what surrounds it, and the PF's driver if it is attached.
#[derive(Debug)]
pub struct Backplane {
    nic: Nic,
    world: World,
    pf: Option<Pf>,
    now: Time,
    budget: Budget,
    last_visit: Visit,
    between: Option<Between>,
}

/// What a test does to card and PF driver before each round of them, to stand in their way. The driver is not there
/// while it waits itself.
pub type Between = fn(&mut Nic, Option<&mut Pf>);

impl Backplane {
    /// A card with `vfs` VFs enabled on the bus and the link up. No driver is attached.
    #[must_use]
    pub fn new(mac: MacAddress, vfs: u8) -> Self {
        let mut nic = Nic::new(nic::Config { mac, iov: true, loopback: None });
        let command = offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER;
        nic.config_write(Function::Pf, offset::COMMAND, 2, u32::from(command));
        nic.config_write(Function::Pf, SRIOV + sriov::NUM_VFS, 2, u32::from(vfs));
        let control = sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY;
        nic.config_write(Function::Pf, SRIOV + sriov::CONTROL, 2, u32::from(control));
        for vf in 0..vfs {
            nic.config_write(Function::Vf(vf), offset::COMMAND, 2, u32::from(offset::COMMAND_BUS_MASTER));
        }
        nic.set_link(true);
        let last_visit = Visit::default();
        let (now, budget) = (Time::ZERO, Budget::default());
        Self { nic, world: World::new(), pf: None, now, budget, last_visit, between: None }
    }

    /// A card as [`Backplane::new`], its PF driver attached and `vfs` VFs served. VF n's address is
    /// [`vf_mac`]`(n)`, which the VF may change.
    ///
    /// # Errors
    /// [`PfError`].
    pub fn with_pf(vfs: u8) -> Result<Self, PfError> {
        let mut this = Self::new(PORT_MAC, vfs);
        this.attach_pf(vfs)?;
        Ok(this)
    }

    /// Attaches a PF driver, which serves `vfs` VFs from now on.
    ///
    /// # Errors
    /// [`PfError`].
    pub fn attach_pf(&mut self, vfs: u8) -> Result<(), PfError> {
        let mut hal = self.pf();
        let mut pf = Pf::probe(&mut hal)?;
        for vf in VfIndex::all() {
            let policy = policy::VfPolicy { mac: Some(vf_mac(vf.get())), ..Default::default() };
            // The addresses are unicast and there is no VLAN: nothing to refuse.
            let _ = pf.set_policy(&mut hal, vf, policy);
        }
        pf.enable_vfs(&mut hal, vfs)?;
        self.pf = Some(pf);
        Ok(())
    }

    /// Puts a PF driver back that was taken away, or a successor of it.
    pub fn return_pf(&mut self, pf: Pf) {
        self.pf = Some(pf);
    }

    /// Takes the PF driver away: VFs get no answers any more.
    pub fn detach_pf(&mut self) -> Option<Pf> {
        self.pf.take()
    }

    /// Lets the PF driver do something, with the card under it; `None` if there is no driver. What it decides
    /// about links is shown by the card afterwards.
    pub fn with_pf_driver<R>(&mut self, act: impl FnOnce(&mut Pf, &mut PfHal<'_>) -> R) -> Option<R> {
        let mut pf = self.pf.take()?;
        let answer = act(&mut pf, &mut self.pf());
        for vf in VfIndex::all() {
            self.nic.set_vf_link(vf, pf.link_override(vf));
        }
        self.pf = Some(pf);
        Some(answer)
    }

    /// The PF driver, if it is attached.
    #[must_use]
    pub fn pf_driver(&self) -> Option<&Pf> {
        self.pf.as_ref()
    }

    /// The PF's registers.
    pub fn pf(&mut self) -> PfHal<'_> {
        PfHal { backplane: self }
    }

    /// A VF's registers and memory.
    pub fn vf(&mut self, vf: u8) -> VfHal<'_> {
        VfHal { function: Function::Vf(vf), backplane: self }
    }

    /// The card itself.
    pub fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    /// Memory, interrupts and wire.
    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    /// The moment now.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// What one poll of the card may do.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Has something done before each round.
    pub fn set_between(&mut self, between: Option<Between>) {
        self.between = between;
    }

    /// What the PF driver did at its last visit.
    #[must_use]
    pub fn last_visit(&self) -> Visit {
        self.last_visit
    }

    /// Does everything that is due now: polls the card until it is idle, and visits the PF driver before and
    /// after.
    ///
    /// # Panics
    /// If the card never becomes idle.
    pub fn settle(&mut self) {
        if let Some(between) = self.between {
            between(&mut self.nic, self.pf.as_mut());
        }
        self.visit();
        self.poll();
        self.visit();
        self.poll();
    }

    /// Moves the clock, stopping wherever the card or the PF driver has something to do.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let next = [self.poll(), self.last_visit.deadline].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next < end) else { break };
            // A deadline that has passed must not hold the clock.
            self.now = next.max(self.now + Duration::from_nanos(1));
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// One poll of the card on another wire than the two queues of frames; whether there is more to do.
    pub fn poll_on<W: Wire>(&mut self, wire: &mut W) -> bool {
        self.nic.poll(self.now, self.budget, &mut self.world.bus, wire).more
    }

    fn visit(&mut self) {
        if let Some(visit) = self.with_pf_driver(|pf, hal| pf.visit(hal)) {
            self.last_visit = visit;
        }
    }

    fn poll(&mut self) -> Option<Time> {
        for _ in 0..SETTLE_POLLS {
            let World { bus, wire } = &mut self.world;
            let poll = self.nic.poll(self.now, self.budget, bus, wire);
            if !poll.more {
                return poll.deadline;
            }
        }
        panic!("the card is not idle after {SETTLE_POLLS} polls");
    }
}

/// The port's address in [`Backplane::with_pf`].
pub const PORT_MAC: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0xff]);

/// VF `n`'s address in [`Backplane::with_pf`].
#[must_use]
pub const fn vf_mac(n: u8) -> MacAddress {
    MacAddress([0x02, 0, 0, 0, 0, n])
}
