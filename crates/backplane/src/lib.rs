//! Connects the card and its drivers in one test process: memory per function, recorded interrupts, a settable clock,
//! and a wire of two frame queues.
//!
//! Drivers get their [`Hal`](driver::Hal) from [`Backplane::pf`] and [`Backplane::vf`]. Registers act at once;
//! frames move, interrupts fire and the PF driver answers only when the clock moves ([`Backplane::advance`], or a
//! driver's own wait) or in [`Backplane::settle`]. So every run is the same.
//!
//! It has no threads, no real time, and no configuration space of VFs.
#![forbid(unsafe_code)]

mod hal;
mod world;

pub use hal::{BackplanePfHal, BackplaneVfHal};
pub use world::{CardEnvironment, FunctionDmaMemory};

use core::time::Duration;
use driver::pf::{Pf, PfError, PfServiceResults};
use i82576::config::pf::SRIOV;
use i82576::{MacAddress, Time, VfIndex};
use nic::{Nic, PollBudget, UplinkWire};
use pcie::capability::sriov;
use pcie::config::offset;
use pcie::{ConfigAccess, Function};

/// Maximum number of polls until the card must be idle: more polls indicate an endless loop.
const SETTLE_POLLS: usize = 10_000;

/// Card in its test environment (memory, interrupts, wire, clock), and the PF's driver if it is attached.
#[derive(Debug)]
pub struct Backplane {
    nic: Nic,
    world: CardEnvironment,
    pf: Option<Pf>,
    now: Time,
    budget: PollBudget,
    last_visit: PfServiceResults,
    between: Option<RoundDisturbance>,
}

/// Function by which a test disturbs the card and the PF driver before each [`Backplane::settle`]. The function gets no
/// PF driver while the PF driver itself waits.
pub type RoundDisturbance = fn(&mut Nic, Option<&mut Pf>);

impl Backplane {
    /// Creates a card with `vfs` VFs enabled on the bus and the link up. No PF driver is attached.
    #[must_use]
    pub fn new(mac: MacAddress, vfs: u8) -> Self {
        let mut nic = Nic::new(nic::NicConfig { mac, iov: true, loopback: None });
        let command = offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER;
        nic.config_write(Function::Pf, offset::COMMAND, 2, u32::from(command));
        nic.config_write(Function::Pf, SRIOV + sriov::NUM_VFS, 2, u32::from(vfs));
        let control = sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY;
        nic.config_write(Function::Pf, SRIOV + sriov::CONTROL, 2, u32::from(control));
        for vf in 0..vfs {
            nic.config_write(Function::Vf(vf), offset::COMMAND, 2, u32::from(offset::COMMAND_BUS_MASTER));
        }
        nic.set_link(true);
        let last_visit = PfServiceResults::default();
        let (now, budget) = (Time::ZERO, PollBudget::default());
        Self { nic, world: CardEnvironment::new(), pf: None, now, budget, last_visit, between: None }
    }

    /// Creates a card as [`Backplane::new`] does, with its PF driver attached and `vfs` VFs served. VF n's address
    /// is [`vf_mac`]`(n)`, which the VF may change.
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
            // The PF driver cannot refuse this: the addresses are unicast and there is no VLAN.
            let _ = pf.set_policy(&mut hal, vf, policy);
        }
        pf.enable_vfs(&mut hal, vfs)?;
        self.pf = Some(pf);
        Ok(())
    }

    /// Attaches a PF driver that was detached, or a driver that was restored from its state.
    pub fn return_pf(&mut self, pf: Pf) {
        self.pf = Some(pf);
    }

    /// Detaches the PF driver: requests of VFs get no reply any more.
    pub fn detach_pf(&mut self) -> Option<Pf> {
        self.pf.take()
    }

    /// Calls `act` with the PF driver and its registers. Returns `None` if no driver is attached. Afterwards passes the
    /// driver's link decisions to the card.
    pub fn with_pf_driver<R>(
        &mut self,
        act: impl FnOnce(&mut Pf, &mut BackplanePfHal<'_>) -> R,
    ) -> Option<R> {
        let mut pf = self.pf.take()?;
        let answer = act(&mut pf, &mut self.pf());
        for vf in VfIndex::all() {
            self.nic.set_vf_link(vf, pf.link_override(vf));
        }
        self.pf = Some(pf);
        Some(answer)
    }

    /// Returns the PF driver, if it is attached.
    #[must_use]
    pub fn pf_driver(&self) -> Option<&Pf> {
        self.pf.as_ref()
    }

    /// Returns the registers of the PF, for its driver.
    pub fn pf(&mut self) -> BackplanePfHal<'_> {
        BackplanePfHal { backplane: self }
    }

    /// Returns registers and memory of a VF, for its driver.
    pub fn vf(&mut self, vf: u8) -> BackplaneVfHal<'_> {
        BackplaneVfHal { function: Function::Vf(vf), backplane: self }
    }

    /// Returns the card, for direct access by a test.
    pub fn nic(&mut self) -> &mut Nic {
        &mut self.nic
    }

    /// Returns the environment of the card: the memory of the functions, the interrupts and the wire.
    pub fn world(&mut self) -> &mut CardEnvironment {
        &mut self.world
    }

    /// Returns the current time of the clock that is moved by hand.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sets the limit of work for each poll of the card.
    pub fn set_budget(&mut self, budget: PollBudget) {
        self.budget = budget;
    }

    /// Sets the function that disturbs card and PF driver before each [`Backplane::settle`].
    pub fn set_between(&mut self, between: Option<RoundDisturbance>) {
        self.between = between;
    }

    /// Returns the result of the PF driver's last run.
    #[must_use]
    pub fn last_visit(&self) -> PfServiceResults {
        self.last_visit
    }

    /// Performs all due work: polls the card until it is idle, and runs the PF driver before and after the polls.
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

    /// Moves the clock by `time`, and stops at every deadline of the card or the PF driver.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let next = [self.poll(), self.last_visit.deadline].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next < end) else { break };
            // A deadline in the past must not stop the clock.
            self.now = next.max(self.now + Duration::from_nanos(1));
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Polls the card once, with `wire` in place of the two frame queues as its uplink. Returns true if more work is
    /// due.
    pub fn poll_on<W: UplinkWire>(&mut self, wire: &mut W) -> bool {
        self.nic.poll(self.now, self.budget, &mut self.world.bus, wire).more
    }

    fn visit(&mut self) {
        if let Some(visit) = self.with_pf_driver(|pf, hal| pf.visit(hal)) {
            self.last_visit = visit;
        }
    }

    fn poll(&mut self) -> Option<Time> {
        for _ in 0..SETTLE_POLLS {
            let CardEnvironment { bus, wire } = &mut self.world;
            let poll = self.nic.poll(self.now, self.budget, bus, wire);
            if !poll.more {
                return poll.deadline;
            }
        }
        panic!("the card is not idle after {SETTLE_POLLS} polls");
    }
}

/// MAC address of the port in [`Backplane::with_pf`].
pub const PORT_MAC: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0xff]);

/// Returns VF `n`'s MAC address in [`Backplane::with_pf`].
#[must_use]
pub const fn vf_mac(n: u8) -> MacAddress {
    MacAddress([0x02, 0, 0, 0, 0, n])
}
