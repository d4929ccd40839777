//! Simulation: a host and its guests in one thread and one clock, from one seed. The port is the live host's, with its real
//! sockets, eventfds and memory: within one thread these behave the same each time. Simulated are the clock, the
//! threads for blocking calls, and the deaths of processes.

mod frames;
mod guest;
mod host;
mod oracles;
mod thread;

pub(super) use host::pass_moment;

use ::host::test_support::in_own_process;
use guest::SimulatedGuest;
use host::SimulatedHost;
use oracles::FrameAccount;
use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::panic::catch_unwind;
use std::rc::Rc;
use std::time::Duration;

/// Actions of one life of a host.
const ACTIONS: usize = 150;
/// Rounds within which guests find each other again when nothing fails any more.
const RECOVERY_ROUNDS: usize = 20_000;

/// Rounds of a rest within which guests receive every frame that waits in the card.
const REST_ROUNDS: usize = 1_000;

/// Time after which each guest has noticed every reset of its VF: more than two periods of a watchdog.
const SETTLING: Duration = Duration::from_secs(5);

/// Figures of one simulated life.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct SimulationSummary {
    rounds: u64,
    deaths: u64,
    hand_overs: u64,
    frames: u64,
    /// Number of times that all frames were accounted for.
    accounts: u64,
    /// Number of frames that the port has lost and counted.
    lost: u64,
    time: Duration,
}

impl SimulationSummary {
    fn add(&mut self, one: Self) {
        self.rounds += one.rounds;
        self.deaths += one.deaths;
        self.hand_overs += one.hand_overs;
        self.frames += one.frames;
        self.accounts += one.accounts;
        self.lost += one.lost;
        self.time += one.time;
    }
}

impl fmt::Display for SimulationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, deaths, hand_overs, frames, accounts, lost, time } = self;
        write!(f, "{} seconds, {rounds} rounds, {deaths} deaths, {hand_overs} hand-overs, ", time.as_secs())?;
        write!(f, "{frames} frames, {lost} counted losses, {accounts} accounts")
    }
}

struct Simulation {
    host: Rc<RefCell<SimulatedHost>>,
    guests: Vec<SimulatedGuest>,
    random: fastrand::Rng,
    hand_overs: u64,
    /// Frames and losses at the last rest.
    account: Option<FrameAccount>,
    /// Number of accounts that were checked against an earlier one.
    accounts: u64,
    /// Number of frames that are lost and counted.
    lost: u64,
    /// Number of deaths of the host whose resets all guests have noticed.
    noticed_deaths: u64,
    /// Descriptors of the process before the host was opened.
    descriptors: usize,
}

impl Simulation {
    fn open(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let family = ["82576", "avf"][random.usize(0..2)];
        let vfs = random.usize(2..=4);
        let mut config =
            format!("[[port]]\nfamily = \"{family}\"\nmac = \"02:00:00:00:00:01\"\nvfs = {vfs}\n");
        for vf in 0..vfs {
            // By default addresses follow from the machine and the folder.
            config += &format!("[[port.vf]]\nindex = {vf}\nmac = \"02:00:00:00:01:0{vf}\"\n");
        }
        let descriptors = oracles::open_descriptors();
        let host = Rc::new(RefCell::new(SimulatedHost::open(&config, random.u64(..))));
        let guests = (0..vfs).map(|index| SimulatedGuest::new(index, vfs, &host)).collect();
        Self {
            host,
            guests,
            random,
            hand_overs: 0,
            account: None,
            accounts: 0,
            lost: 0,
            noticed_deaths: 0,
            descriptors,
        }
    }

    /// Lives one life of a host with its guests, from a seed.
    fn run(seed: u64) -> Result<SimulationSummary, String> {
        let mut world = Self::open(seed);
        let begin = world.host.borrow().clock.time();
        for _ in 0..ACTIONS {
            world.act()?;
        }
        world.recover()?;
        let host = world.host.borrow();
        Ok(SimulationSummary {
            rounds: host.rounds,
            deaths: host.deaths,
            hand_overs: world.hand_overs,
            frames: world.guests.iter().flat_map(|guest| &guest.received).sum(),
            accounts: world.accounts,
            lost: world.lost,
            time: host.clock.time().since(begin),
        })
    }

    fn act(&mut self) -> Result<(), String> {
        let one = self.random.usize(0..self.guests.len());
        match self.random.u32(0..100) {
            0..3 => self.guests[one].vanish(),
            3..15 if !self.guests[one].is_attached() => self.guests[one].attach()?,
            15..55 => {
                let frames = self.random.usize(1..8);
                for _ in 0..frames {
                    let to = self.random.usize(0..self.guests.len());
                    self.send(one, to);
                }
            }
            55..58 => {
                let moments = self.random.usize(0..40);
                self.host.borrow().die_after(moments);
            }
            58..60 => self.hand_over()?,
            60..63 => {
                let time = Duration::from_millis(self.random.u64(1..3_000));
                self.host.borrow_mut().step_and_sleep(time);
            }
            63..68 => self.burst()?,
            _ => {}
        }
        let steps = self.random.usize(0..6);
        for _ in 0..steps {
            self.host.borrow_mut().step_and_sleep(Duration::from_micros(20));
        }
        self.guests.iter_mut().try_for_each(SimulatedGuest::act)
    }

    /// Sends many frames between two rests: of all pairs, or to one guest that does not receive meanwhile.
    fn burst(&mut self) -> Result<(), String> {
        self.check_at_rest()?;
        let slow = self.random.bool().then(|| self.random.usize(0..self.guests.len()));
        for _ in 0..self.random.usize(0..60) {
            let from = self.random.usize(0..self.guests.len());
            let to = slow.unwrap_or_else(|| self.random.usize(0..self.guests.len()));
            for _ in 0..self.random.usize(1..8) {
                self.send(from, to);
            }
            self.host.borrow_mut().step_and_sleep(Duration::from_micros(20));
            let mut awake = self.guests.iter_mut().filter(|guest| Some(guest.index()) != slow);
            awake.try_for_each(SimulatedGuest::act)?;
        }
        self.check_at_rest()
    }

    /// Lets the host work and guests receive until nothing is left to do, and checks what must be true then.
    fn check_at_rest(&mut self) -> Result<(), String> {
        self.rest()?;
        let mut status = self.host.borrow_mut().status();
        while self.noticed_deaths != self.deaths() {
            // A guest whose VF was reset sends frames that are lost, until its watchdog notices.
            self.noticed_deaths = self.deaths();
            self.guests.iter_mut().for_each(SimulatedGuest::watch);
            self.rest()?;
            status = self.host.borrow_mut().status();
        }
        let disturbances = self.guests.iter().fold(self.deaths(), |sum, guest| sum + guest.disturbances);
        let account = FrameAccount::read(&self.guests, disturbances, &status);
        if let Some(earlier) = &self.account
            && let Some(lost) = account.check(earlier)?
        {
            self.accounts += 1;
            self.lost += lost;
        }
        self.account = Some(account);
        oracles::check_holdings(&self.host.borrow(), &self.guests, status.family, self.descriptors)?;
        self.guests.iter().try_for_each(SimulatedGuest::check_memory)
    }

    fn deaths(&self) -> u64 {
        self.host.borrow().deaths
    }

    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..REST_ROUNDS {
            self.host.borrow_mut().rest()?;
            let mut received = false;
            for guest in &mut self.guests {
                received |= guest.take_all_frames()?;
            }
            if !received {
                return Ok(());
            }
        }
        Err(format!("frames arrive without an end within {REST_ROUNDS} rounds"))
    }

    fn send(&mut self, from: usize, to: usize) {
        let length = self.random.usize(42..1515);
        if let Some(address) = self.guests[to].mac().filter(|_| to != from) {
            self.guests[from].send(to as u16, address, length);
        }
    }

    fn hand_over(&mut self) -> Result<(), String> {
        if self.host.borrow_mut().hand_over() {
            self.hand_overs += 1;
            Ok(())
        } else {
            Err("the port refuses to hand over".to_owned())
        }
    }

    /// Ends all faults. Every guest attaches, gets a link, and a frame of each reaches another, by interrupts alone.
    fn recover(&mut self) -> Result<(), String> {
        self.host.borrow().spare();
        for guest in 0..self.guests.len() {
            for _ in 0..10 {
                if !self.guests[guest].is_attached() {
                    self.guests[guest].attach()?;
                }
            }
        }
        // A guest finds out that its VF was reset by its watchdog at the latest, and then restarts.
        let settled = self.host.borrow().clock.time() + SETTLING;
        self.run_until("guests settle", |world| world.host.borrow().clock.time() >= settled)?;
        self.run_until("every guest has its link", |world| {
            world.guests.iter().all(SimulatedGuest::has_link)
        })?;
        self.check_at_rest()?;
        for from in 0..self.guests.len() {
            let to = (from + 1) % self.guests.len();
            let (before, address) =
                (self.guests[to].received[from], self.guests[to].mac().expect("attached"));
            let sent = self.guests[from].send(to as u16, address, 100);
            if !sent {
                return Err(format!("guest {from} cannot send although its link is up"));
            }
            self.run_until(&format!("a frame of guest {from} reaches guest {to}"), |world| {
                world.guests[to].received[from] > before
            })?;
        }
        self.check_at_rest()
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..RECOVERY_ROUNDS {
            if done(self) {
                return Ok(());
            }
            self.host.borrow_mut().step_and_sleep(Duration::from_millis(5));
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
        }
        Err(format!("not within {RECOVERY_ROUNDS} rounds: {what}"))
    }
}

/// Returns a number from the environment, or `default` if the variable is not set.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`; set it to a number, or leave it out"))
}

#[test]
fn simulated_hosts_keep_their_promises() {
    let this = "port::run::tests::simulation::simulated_hosts_keep_their_promises";
    // In a process of its own: the simulation counts the process's descriptors.
    let Some(output) = in_own_process(this, run_seeds).unwrap() else { return };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(text.contains("simulated: "), "no seed has run: is {this:?} the name of the test?");
    assert!(output.status.success(), "the simulation has failed");
}

/// Runs the seeds that the environment names, and prints what happened.
fn run_seeds() {
    let (first, count) = (number("SOFTIOV_SEED", 0), number("SOFTIOV_SEEDS", 60));
    let (mut total, mut failed) = (SimulationSummary::default(), Vec::new());
    for seed in first..first + count {
        let open = oracles::open_descriptors();
        let outcome = catch_unwind(|| Simulation::run(seed))
            .unwrap_or_else(|_| Err("the simulation has panicked".to_owned()));
        let left = oracles::open_descriptors();
        match outcome {
            Ok(_) if left > open => {
                failed.push(format!("seed {seed}: {} descriptors are open after its end", left - open));
            }
            Ok(one) => total.add(one),
            Err(fault) => failed.push(format!("seed {seed}: {fault}")),
        }
    }
    // Past the capture of the test harness, which drops the output of a test that succeeds.
    writeln!(std::io::stderr(), "\nsimulated: {count} seeds, {total}\n{}", failed.join("\n")).unwrap();
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}
