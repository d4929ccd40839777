//! World of a simulation: a host, its guests, and what happens to them.

mod claims;
mod flood;
mod pages;
mod policies;
mod removal;
mod stations;
mod streams;
mod stuck;
mod unplug;

use super::account::FrameAccount;
use super::families::{SimulatedFamily, configured_mac, mac_of};
use super::frames::SHORTEST;
use super::function::LONGEST;
use super::guest::SimulatedGuest;
use super::host::SimulatedHost;
use super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::oracles;
use super::policy::SimulatedPolicy;
use super::summary::SimulationSummary;
use super::uplink::STATION_VLANS;
use crate::control::status::PortStatus;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Rounds within which guests find each other again when nothing fails any more.
const RECOVERY_ROUNDS: usize = 20_000;
/// Rounds of a rest within which guests receive every frame that waits in the card.
const REST_ROUNDS: usize = 1_000;
/// Looks at its link within which a guest sees what the administrator has set.
const LINK_LOOKS: usize = 5;
/// Time after which each guest has noticed every reset of its VF: more than two periods of a watchdog.
const SETTLING: Duration = Duration::from_secs(5);
/// Time between two looks of guests at their timers while they settle: less than any of the timers.
const SETTLING_STEP: Duration = Duration::from_millis(15);
/// Time between two looks at a guest that recovers.
const RECOVERY_STEP: Duration = Duration::from_millis(5);
/// Longest wait of a turn.
const TURN: Duration = Duration::from_micros(20);
/// Number of bytes by which each frame of an action is longer than the one before.
const GROWTH: usize = 211;

/// Host with its guests.
pub(super) struct SimulatedWorld {
    host: Rc<RefCell<SimulatedHost>>,
    guests: Vec<SimulatedGuest>,
    /// Figures of the life so far.
    summary: SimulationSummary,
    /// Frames and losses at the last rest.
    account: Option<FrameAccount>,
    /// Number of claims to addresses that the port has refused, by VF, in the present process.
    counted_claims: Vec<u64>,
    /// Number of looks at the register pages of a guest.
    page_looks: usize,
    /// Number of further steps in which the uplink stays unplugged.
    steps_unplugged: usize,
    /// Number of deaths and changes of policies whose resets all guests have noticed.
    noticed: u64,
    /// Descriptors of the process before the host was opened.
    descriptors: usize,
}

impl SimulatedWorld {
    fn open(life: &SimulatedLife) -> Self {
        let descriptors = oracles::open_descriptors();
        let config = SimulatedFamily::configuration(&life.families, life.conditions.port_keys());
        let mut host = SimulatedHost::open(&config, life.has_uplink);
        host.is_keeper_broken = life.is_keeper_broken;
        host.earlier.set_program(life.conditions.program);
        let host = Rc::new(RefCell::new(host));
        let guest = |index| SimulatedGuest::new(index, &life.families, &host);
        Self {
            guests: (0..life.families.len()).map(guest).collect(),
            host,
            summary: SimulationSummary::default(),
            account: None,
            counted_claims: vec![0; life.families.len()],
            page_looks: 0,
            steps_unplugged: 0,
            noticed: 0,
            descriptors,
        }
    }

    /// Lives a life of a host with its guests.
    pub(super) fn live(life: &SimulatedLife) -> Result<SimulationSummary, String> {
        let mut world = Self::open(life);
        let begin = world.host.borrow().clock.time();
        life.steps.iter().try_for_each(|step| world.act(step))?;
        world.recover()?;
        let (host, guests) = (world.host.borrow(), &world.guests);
        Ok(SimulationSummary {
            rounds: host.rounds,
            deaths: host.deaths,
            upgrades: host.earlier.hand_overs,
            kept_stations: host.kept_stations,
            frames: guests.iter().flat_map(|guest| &guest.received).sum(),
            segments: guests.iter().map(|guest| guest.segments).sum(),
            departed: host.uplink.iter().flat_map(|uplink| &uplink.departed).flatten().sum(),
            repeated: host.uplink.as_ref().map_or(0, |uplink| uplink.repeated),
            unplugged: host.uplink.as_ref().map_or(0, |uplink| uplink.unplugged),
            kernel: host.kernel.counts(),
            time: host.clock.time().since(begin),
            ..world.summary
        })
    }

    fn act(&mut self, step: &SimulatedStep) -> Result<(), String> {
        self.host.borrow_mut().begin_step(step.seed);
        self.pass_unplugged_step();
        match step.action {
            SimulatedAction::Vanish { guest } => self.guests[guest].vanish(),
            SimulatedAction::Attach { guest } => self.attach(guest)?,
            SimulatedAction::Send { from, to, frames, length } => self.send(from, to, frames, length),
            SimulatedAction::SendTcp { from, to, packets, payload, mss } => {
                self.send_tcp((from, to), packets, (payload, mss));
            }
            SimulatedAction::Die { moments } => self.host.borrow().die_after(moments),
            SimulatedAction::HandOver { succeeds } => self.hand_over(succeeds)?,
            SimulatedAction::Upgrade { guest, waits, succeeds } => self.upgrade(guest, waits, succeeds)?,
            SimulatedAction::Sleep { milliseconds } => {
                self.host.borrow_mut().step(Duration::from_millis(milliseconds));
            }
            SimulatedAction::Burst { slow, rounds, death } => {
                self.burst((slow, rounds, death), step.seed)?;
            }
            SimulatedAction::SetPolicy { guest, policy, disk } => self.set_policy(guest, policy, disk)?,
            SimulatedAction::Misbehave { guest, misdeeds } => self.misbehave(guest, misdeeds, step.seed)?,
            SimulatedAction::Claim { guest, misdeeds } => self.claim(guest, misdeeds, step.seed)?,
            SimulatedAction::Remap { guest } => self.summary.remaps += u64::from(self.guests[guest].remap()?),
            SimulatedAction::Intrude { guest, messages } => {
                let done = self.guests[guest].intrude(step.seed, messages);
                self.summary.misdeeds.add(done);
            }
            SimulatedAction::StickWorker { guest, neighbour, clients, hands_over } => {
                self.stick_worker((guest, neighbour), clients, hands_over, step.seed)?;
            }
            SimulatedAction::Deliver { station, guest, frames, length } => {
                self.deliver((station, guest), frames, length, step.seed);
            }
            SimulatedAction::ReplaceVf { frames, death, hands_over } => {
                self.replace_vf((frames, death), hands_over, step.seed)?;
            }
            SimulatedAction::Flood { from, to, rate } => self.flood((from, to), rate, step.seed)?,
            SimulatedAction::Unplug => self.unplug(step.seed)?,
            SimulatedAction::Nothing => {}
        }
        for _ in 0..step.turns {
            self.host.borrow_mut().step(TURN);
        }
        self.guests.iter_mut().try_for_each(SimulatedGuest::act)
    }

    /// Boots a guest that is not attached. A hostile one boots again.
    fn attach(&mut self, guest: usize) -> Result<(), String> {
        let guest = &mut self.guests[guest];
        if guest.is_hostile() {
            guest.vanish();
        }
        if guest.is_attached() { Ok(()) } else { guest.attach() }
    }

    /// Boots a guest, and hands over while its driver waits.
    fn upgrade(&mut self, guest: usize, waits: usize, succeeds: bool) -> Result<(), String> {
        self.guests[guest].vanish();
        // Without a rest, the hand-over may come while the guest waits for the end of the client before.
        let mut host = self.host.borrow_mut();
        if host.random.bool() {
            host.rest()?;
        }
        host.hand_over_after(waits, succeeds);
        drop(host);
        self.attach(guest)?;
        let has_come = !self.host.borrow_mut().forget_hand_over();
        self.summary.hand_overs += u64::from(has_come && succeeds);
        Ok(())
    }

    fn misbehave(&mut self, guest: usize, misdeeds: usize, seed: u64) -> Result<(), String> {
        // A port that starts without its uplink does not know the stations, and grants their addresses.
        if self.host.borrow().policies.of(guest).has_free_mac && self.host.borrow().uplink.is_some() {
            self.plug_in();
            self.rest()?;
        }
        let is_uplink_gone = self.host.borrow().is_uplink_gone();
        let guest = &mut self.guests[guest];
        let done = guest.misbehave(seed, misdeeds);
        self.summary.add_misdeeds(guest.family(), done, is_uplink_gone);
        self.settle_claims()
    }

    /// Sends many frames between two rests: of all guests to guests and stations, or to one guest that does not receive meanwhile.
    fn burst(
        &mut self,
        (slow, rounds, death): (Option<usize>, usize, Option<usize>),
        seed: u64,
    ) -> Result<(), String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let stations = self.host.borrow().uplink.as_ref().map_or(0, |_| STATION_VLANS.len());
        self.check_at_rest()?;
        for round in 0..rounds {
            if let Some(moments) = death.filter(|_| round == rounds / 2) {
                self.host.borrow().die_after(moments);
            }
            let (from, any) =
                (random.usize(0..self.guests.len()), random.usize(0..self.guests.len() + stations));
            self.send(from, slow.unwrap_or(any), random.usize(1..8), random.usize(SHORTEST..LONGEST + 1));
            self.host.borrow_mut().step(TURN);
            let mut awake = self.guests.iter_mut().filter(|guest| Some(guest.index()) != slow);
            awake.try_for_each(SimulatedGuest::act)?;
        }
        self.check_at_rest()
    }

    /// Lets the host work and guests receive until nothing is left to do, and checks what must be true then.
    fn check_at_rest(&mut self) -> Result<(), String> {
        self.rest()?;
        let status = loop {
            self.await_links()?;
            let status = self.host.borrow_mut().status();
            if self.noticed == self.disturbances() {
                break status;
            }
            // A guest whose VF was reset sends frames that are lost, until its watchdog notices.
            self.noticed = self.disturbances();
            self.guests.iter_mut().try_for_each(SimulatedGuest::watch)?;
            self.rest()?;
        };
        self.count_refused_claims(&status);
        let disturbances = self.disturbances();
        let account = FrameAccount::read(&self.guests, (&self.host.borrow(), disturbances), &status);
        if let Some(earlier) = &self.account
            && let Some(lost) = account.check(earlier)?
        {
            self.summary.accounts += 1;
            self.summary.lost += lost;
            self.summary.lost_unplugged += if account.was_unplugged(earlier) { lost } else { 0 };
        }
        self.account = Some(account);
        // Every guest has taken its frames, so none is left of a hostile guest that has ended.
        let is_hostile = self.guests.iter().map(SimulatedGuest::is_hostile);
        self.host
            .borrow_mut()
            .hostile_lives
            .iter_mut()
            .zip(is_hostile)
            .for_each(|(life, is_hostile)| *life *= u32::from(is_hostile));
        self.check_holdings(&status)?;
        self.compare_pages()?;
        self.probe_stations()
    }

    /// Lets guests look at their links, as timers of their drivers do, until each sees the one that the administrator has set.
    fn await_links(&mut self) -> Result<(), String> {
        for _ in 0..LINK_LOOKS {
            let wrong = self.guests.iter_mut().filter(|guest| guest.sees_wrong_link());
            let looks = wrong.map(SimulatedGuest::watch).collect::<Result<Vec<()>, _>>()?;
            if looks.is_empty() {
                break;
            }
            self.rest()?;
        }
        Ok(())
    }

    fn check_holdings(&mut self, status: &PortStatus) -> Result<(), String> {
        self.guests.iter_mut().try_for_each(SimulatedGuest::check_sent)?;
        let host = self.host.borrow();
        oracles::check_policies(&host.policies, status)?;
        oracles::check_addresses(&host.policies, &self.guests, status)?;
        oracles::check_holdings(&host, &self.guests, self.descriptors)?;
        self.guests.iter().try_for_each(SimulatedGuest::check_link)?;
        self.guests.iter().try_for_each(SimulatedGuest::check_memory)
    }

    /// Returns the number of deaths of the host and of changes of policies, each of which may reset VFs.
    fn disturbances(&self) -> u64 {
        let host = self.host.borrow();
        host.deaths + u64::from(host.policies.changes())
    }

    fn rest(&mut self) -> Result<(), String> {
        self.check_uplink()?;
        for _ in 0..REST_ROUNDS {
            self.host.borrow_mut().rest()?;
            let mut received = false;
            for guest in &mut self.guests {
                received |= guest.take_all_frames()?;
            }
            if !received {
                // A guest that has found nothing may still have rung, to enable its interrupt again.
                return self.host.borrow_mut().rest();
            }
        }
        Err(format!("frames arrive without an end within {REST_ROUNDS} rounds"))
    }

    /// Sends frames of growing length, which begins again at the shortest after the longest.
    fn send(&mut self, from: usize, to: usize, frames: usize, length: usize) {
        let station = || (to >= self.guests.len()).then(|| mac_of(to, false));
        let address = self.guests.get(to).map_or_else(station, SimulatedGuest::mac);
        let Some(address) = address.filter(|_| to != from) else { return };
        for frame in 0..frames {
            let length = SHORTEST + (length - SHORTEST + frame * GROWTH) % (LONGEST - SHORTEST + 1);
            self.guests[from].send(to as u16, address, length);
        }
    }

    fn hand_over(&mut self, succeeds: bool) -> Result<(), String> {
        match self.host.borrow_mut().hand_over(succeeds) {
            Some(true) => self.summary.hand_overs += u64::from(succeeds),
            Some(false) => return Err("the port refuses to hand over".to_owned()),
            None => {}
        }
        Ok(())
    }

    /// Ends all faults. Every guest attaches, gets a link, and a frame of each reaches another, by interrupts alone.
    fn recover(&mut self) -> Result<(), String> {
        self.host.borrow_mut().spare();
        self.plug_in();
        self.guests.iter_mut().filter(|guest| guest.is_hostile()).for_each(SimulatedGuest::vanish);
        // A change of policies may reset VFs: resets before it would not be noticed.
        self.guests.iter_mut().try_for_each(SimulatedGuest::watch)?;
        for guest in 0..self.guests.len() {
            self.host.borrow_mut().set_policy(guest, SimulatedPolicy::default(), None)?;
        }
        // A guest takes an address that the administrator has changed when it boots.
        let is_foreign =
            |guest: &&mut SimulatedGuest| guest.mac().is_some_and(|mac| mac != configured_mac(guest.index()));
        self.guests.iter_mut().filter(is_foreign).for_each(SimulatedGuest::vanish);
        for guest in 0..self.guests.len() {
            for _ in 0..10 {
                if !self.guests[guest].is_attached() {
                    self.guests[guest].attach()?;
                }
            }
        }
        // A guest finds out that its VF was reset by its watchdog at the latest, and then restarts.
        let settled = self.host.borrow().clock.time() + SETTLING;
        self.run_until("guests settle", SETTLING_STEP, |world| world.host.borrow().clock.time() >= settled)?;
        self.run_until("every guest has its link", RECOVERY_STEP, |world| {
            world.guests.iter().all(SimulatedGuest::has_link)
        })?;
        self.finish_streams()?;
        self.check_at_rest()?;
        self.exchange_tcp()?;
        // A guest that is alone has no other guest to send to.
        let senders = if self.guests.len() == 1 { 0 } else { self.guests.len() };
        for from in 0..senders {
            let to = (from + 1) % self.guests.len();
            let (before, address) =
                (self.guests[to].received[from], self.guests[to].mac().expect("attached"));
            let sent = self.guests[from].send(to as u16, address, 100);
            if !sent {
                return Err(format!("guest {from} cannot send although its link is up"));
            }
            let what = format!("a frame of guest {from} reaches guest {to}");
            self.run_until(&what, RECOVERY_STEP, |world| world.guests[to].received[from] > before)?;
        }
        self.check_at_rest()
    }

    fn run_until(&mut self, what: &str, step: Duration, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..RECOVERY_ROUNDS {
            if done(self) {
                return Ok(());
            }
            self.host.borrow_mut().step(step);
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
        }
        Err(format!("not within {RECOVERY_ROUNDS} rounds: {what}"))
    }
}
