//! Stuck worker thread of a function: a client's descriptor takes long to close, or its memory long to check. No queue grows
//! without a bound, neighbours notice nothing, and the function recovers when the thread returns.

use super::super::oracles::BEHIND;
use super::{SimulatedGuest, SimulatedWorld, TURN};
use host::socket::StreamSocket;

/// Messages of a hostile VMM to the function.
const MESSAGES: usize = 4;
/// Clients that find a function behind, and are not accepted.
const KNOCKS: usize = 3;
/// Turns of the host in which a tenant's memory comes to the worker.
const TENANT_STEPS: usize = 8;
/// Bound of the number of steps of a guest's boot after which the worker returns.
const TENANT_WAITS: usize = 60;
/// Longest frame between neighbours.
const LENGTH: usize = 400;

impl SimulatedWorld {
    /// Has the worker of a guest's function stick while hostile VMMs connect to the function, a neighbour boots, and the others
    /// send. Lets the worker return, and boots the guest.
    pub(super) fn stick_worker(
        &mut self,
        (guest, neighbour): (usize, usize),
        clients: usize,
        hands_over: bool,
        seed: u64,
    ) -> Result<(), String> {
        self.summary.stuck += 1;
        self.succeed_tenant(guest, seed)?;
        self.guests[guest].vanish();
        self.check_at_rest()?;
        self.host.borrow_mut().stick_worker(guest);
        self.flood_with_clients(guest, clients, seed)?;
        self.check_behind(guest)?;
        if neighbour != guest {
            self.guests[neighbour].vanish();
            self.host.borrow_mut().rest()?;
            self.attach(neighbour)?;
        }
        self.check_behind(guest)?;
        if hands_over {
            self.hand_over(true)?;
        }
        self.host.borrow_mut().free_worker();
        self.guests[guest].vanish();
        self.host.borrow_mut().rest()?;
        self.attach_after_worker(guest)
    }

    /// Boots a guest behind a tenant of its function that has shared memory at the same address. The administrator disconnects the
    /// tenant, or its VMM ends, and the worker maps its memory only while the guest boots. The guest must notice nothing of it.
    fn succeed_tenant(&mut self, guest: usize, seed: u64) -> Result<(), String> {
        let mut random = fastrand::Rng::with_seed(seed);
        self.guests[guest].begin_intrusion(&mut random);
        self.host.borrow_mut().rest()?;
        self.host.borrow_mut().stick_worker(guest);
        self.guests[guest].share_hostile_memory();
        for _ in 0..TENANT_STEPS {
            self.host.borrow_mut().step(TURN);
        }
        self.summary.late_mappings += u64::from(self.host.borrow().stuck_jobs().is_some_and(|jobs| jobs > 0));
        if random.bool() && !self.host.borrow_mut().disconnect(guest) {
            return Err(format!("the client of guest {guest} stays connected while its worker is stuck"));
        }
        self.guests[guest].vanish();
        self.host.borrow_mut().free_worker_after(random.usize(0..TENANT_WAITS));
        self.attach_after_worker(guest)
    }

    /// Boots a guest whose function's worker runs its jobs again.
    fn attach_after_worker(&mut self, guest: usize) -> Result<(), String> {
        let deaths = self.host.borrow().deaths;
        self.attach(guest)?;
        self.host.borrow_mut().free_worker();
        if !self.guests[guest].is_attached() && self.host.borrow().deaths == deaths {
            return Err(format!("guest {guest} cannot attach after the worker of its function has returned"));
        }
        self.check_at_rest()
    }

    /// Has hostile VMMs connect to a guest's function, one after the other or beside one that stays. Others send meanwhile.
    fn flood_with_clients(&mut self, guest: usize, clients: usize, seed: u64) -> Result<(), String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let stays = random.bool();
        for client in 0..clients {
            if client == 0 || !stays {
                let done = self.guests[guest].intrude(random.u64(..), random.usize(0..MESSAGES));
                self.summary.misdeeds.add(done);
            } else {
                self.knock(guest);
            }
            self.host.borrow_mut().step(TURN);
            if random.u32(0..8) == 0 {
                let others = 0..self.guests.len();
                let (from, to) = (random.usize(others.clone()), random.usize(others));
                self.send(from, to, 1, LENGTH);
                self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
            }
        }
        Ok(())
    }

    /// Connects to a guest's function, and leaves after a turn of the host.
    fn knock(&self, guest: usize) {
        let socket = self.host.borrow().socket(guest);
        // A full queue of the socket refuses.
        let client = StreamSocket::connect(&socket);
        self.host.borrow_mut().step(TURN);
        drop(client);
    }

    /// Checks that a guest's function accepts no client while its worker is behind.
    fn check_behind(&mut self, guest: usize) -> Result<(), String> {
        self.guests[guest].vanish();
        self.host.borrow_mut().rest()?;
        let Some(jobs) = self.host.borrow().stuck_jobs().filter(|jobs| *jobs >= BEHIND) else {
            return Ok(());
        };
        let before = self.host.borrow().clients_of(guest);
        let socket = self.host.borrow().socket(guest);
        for _ in 0..KNOCKS {
            let client = StreamSocket::connect(&socket);
            self.host.borrow_mut().step(TURN);
            let (now, still_stuck) = (self.host.borrow().clients_of(guest), self.host.borrow().stuck_jobs());
            drop(client);
            if still_stuck.is_some() && now != before {
                return Err(format!(
                    "the function of guest {guest} accepts clients, and its worker has {jobs} jobs"
                ));
            }
        }
        Ok(())
    }
}
