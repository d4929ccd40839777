//! The ports that run: a thread each, and the way to ask them. A port whose thread panics, or cannot go on, is opened
//! again with its clients, as after a crash of that port alone. Left out: what ports are asked.

use super::outcome::{Outcome, unavailable};
use crate::config::PortConfig;
use crate::confine::Threads;
use crate::control::problem::Kind;
use crate::control::protocol::Failure;
use crate::port::{
    self, Command, Common, Handle, Inbox, Maker, Port, PortError, Stages, Uplink, UplinkError,
};
use crate::start_error::StartError;
use crate::vault::{PortVault, Vault};
use host::cpus::Cpus;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a port may take to answer a command: it goes round far more often.
const PATIENCE: Duration = Duration::from_secs(5);
/// A port that fails so often within so long is given up.
const FAILURES: usize = 5;
const PERIOD: Duration = Duration::from_secs(60);

/// The ports, shared by the control thread, which starts and ends them, and by who waits for the end of the host.
#[derive(Debug, Clone)]
pub(crate) struct Ports {
    running: Arc<Mutex<Vec<Running>>>,
    vault: Vault,
    /// What the threads of a port give up.
    pub(super) threads: Threads,
    common: Common,
    failed: Sender<Option<Life>>,
}

#[derive(Debug)]
struct Running {
    /// As it was configured last.
    config: Arc<Mutex<PortConfig>>,
    name: String,
    handle: Handle,
    thread: JoinHandle<()>,
    /// It was told to end.
    ends: bool,
    /// It failed too often, or could not be opened again: nobody serves it any more.
    given_up: bool,
}

impl Running {
    /// It is to answer: it was neither told to end nor given up.
    fn serves(&self) -> bool {
        !self.ends && !self.given_up
    }
}

impl Ports {
    /// None yet. Ports that fail are told to [`Ports::revive`] over the receiver.
    pub(crate) fn new(vault: &Vault, threads: Threads, common: Common) -> (Self, Receiver<Option<Life>>) {
        let (failed, receiver) = mpsc::channel();
        (Self { running: Arc::default(), vault: vault.clone(), threads, common, failed }, receiver)
    }

    /// Opens ports again that have failed, until the end of the host. Opening takes files and threads, which a port's own
    /// thread must not have.
    pub(crate) fn revive(&self, failed: &Receiver<Option<Life>>) {
        while let Ok(Some(mut life)) = failed.recv() {
            let config = lock(&life.config).clone();
            let name = &config.name;
            if !life.may_go_on() {
                tracing::error!(
                    port = name,
                    "the port fails again and again, and is given up; `softiov upgrade` or a restart opens it again"
                );
                self.give_up(name);
                continue;
            }
            tracing::error!(port = name, "the port has failed; it is opened again, and guests start anew");
            let opened = Port::open(&config, &self.vault, &life.inbox, &self.threads, &self.common);
            let opened = opened.map_err(|source| StartError::Port { name: name.clone(), source });
            let thread = opened.and_then(|port| self.spawn(&config, port, life));
            match thread {
                Ok(thread) => {
                    let mut ports = self.lock();
                    if let Some(port) = ports.iter_mut().find(|port| port.name == *name && !port.ends) {
                        port.thread = thread;
                    }
                }
                Err(error) => {
                    tracing::error!(
                        port = name,
                        %error,
                        "the port cannot be opened again; mend what is wrong and restart the host"
                    );
                    self.give_up(name);
                }
            }
        }
    }

    /// Notes that nobody serves a port any more. What is asked of all ports is not asked of this one.
    fn give_up(&self, name: &str) {
        for port in self.lock().iter_mut().filter(|port| port.name == name && !port.ends) {
            port.given_up = true;
        }
    }

    /// Whether a port was given up: it gives no answer until the host starts anew.
    pub(crate) fn is_given_up(&self, name: &str) -> bool {
        self.lock().iter().any(|port| port.name == name && !port.ends && port.given_up)
    }

    /// No port is opened again from now on.
    pub(crate) fn stop_reviving(&self) {
        // Nobody does so any more if this fails.
        let _ = self.failed.send(None);
    }

    fn spawn(&self, config: &PortConfig, port: Port, life: Life) -> Result<JoinHandle<()>, StartError> {
        let (failed, cpus) = (self.failed.clone(), config.cpus.clone());
        Ok(self.threads.port.spawn(&config.name, move || run(port, &cpus, life, &failed))?)
    }

    /// Opens a new port.
    pub(crate) fn open(&self, config: &PortConfig, inbox: &Inbox) -> Result<Port, PortError> {
        Port::open(config, &self.vault, inbox, &self.threads, &self.common)
    }

    /// Opens another uplink for a port that runs.
    pub(crate) fn open_uplink(&self, config: &PortConfig) -> Outcome<Result<Uplink, UplinkError>> {
        self.making(config, |with| Uplink::open(config, with))
    }

    /// Prepares what frames are to meet on the uplink of a port that runs.
    pub(crate) fn open_stages(&self, config: &PortConfig) -> Outcome<Result<Stages, UplinkError>> {
        self.making(config, |with| Stages::open(config, with))
    }

    fn making<T>(&self, config: &PortConfig, make: impl FnOnce(&Maker<'_>) -> T) -> Outcome<T> {
        let ports = self.lock();
        let port = ports.iter().find(|port| port.name == config.name && !port.ends);
        let waker = port.map(|port| port.handle.waker().clone()).ok_or_else(unavailable)?;
        drop(ports);
        let vault = PortVault::new(&self.vault, &config.name);
        let (watcher, wires, programs) = (&self.threads.control, &self.common.wires, &self.common.programs);
        Ok(make(&Maker { vault: &vault, port: &waker, watcher, wires, programs, now: crate::clock::now() }))
    }

    /// Where descriptors are kept.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        lock(&self.running)
    }

    /// Starts a port's thread.
    pub(crate) fn start(
        &self,
        config: &PortConfig,
        (port, inbox, handle): (Port, Inbox, Handle),
    ) -> Result<(), StartError> {
        let (name, kept) = (config.name.clone(), Arc::new(Mutex::new(config.clone())));
        let life = Life { config: Arc::clone(&kept), inbox, failures: VecDeque::new() };
        let thread = self.spawn(config, port, life)?;
        let config = kept;
        self.lock().push(Running { config, name, handle, thread, ends: false, given_up: false });
        Ok(())
    }

    /// Notes how a port is configured now, for when it has to be opened again.
    pub(crate) fn configure(&self, config: &PortConfig) {
        for port in self.lock().iter().filter(|port| port.name == config.name) {
            lock(&port.config).clone_from(config);
        }
    }

    /// Tells a port to end. Its thread ends by itself.
    pub(crate) fn end(&self, name: &str) {
        let mut ports = self.lock();
        ports.retain(|port| !(port.ends && port.thread.is_finished()));
        for port in ports.iter_mut().filter(|port| port.name == name && !port.ends) {
            port.ends = true;
            let _ = port.handle.send(Command::Stop);
        }
    }

    /// Tells all ports to end.
    pub(crate) fn end_all(&self) {
        for port in &mut *self.lock() {
            port.ends = true;
            let _ = port.handle.send(Command::Stop);
        }
    }

    /// Sets all ports aside that are served, for so long; whether all of them are.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let (sender, receiver) = mpsc::channel();
        let ports = self.lock();
        let pause = |port: &Running| port.handle.send(Command::Pause(time, sender.clone()));
        let serving = || ports.iter().filter(|port| port.serves());
        let told = serving().map(pause).filter(|sent| *sent).count();
        drop(sender);
        let noted = |_| receiver.recv_timeout(PATIENCE).unwrap_or(false);
        told == serving().count() && (0..told).all(noted)
    }

    /// Has ports that were set aside go on.
    pub(crate) fn resume(&self) {
        for port in &*self.lock() {
            let _ = port.handle.send(Command::Resume);
        }
    }

    /// Has ports that were set aside end, since a successor has them.
    pub(crate) fn leave(&self) {
        for port in &mut *self.lock() {
            port.ends = true;
            let _ = port.handle.send(Command::Leave);
        }
    }

    /// Waits for the end of all ports, which have been told to.
    pub(crate) fn join(&self) {
        let ended = std::mem::take(&mut *self.lock());
        for port in ended {
            if port.thread.join().is_err() {
                tracing::error!(port = port.name, "the port's thread had panicked");
            }
        }
    }

    /// Whether every port has ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.lock().iter().all(|port| port.thread.is_finished())
    }

    /// Asks a port, and waits for its answer.
    pub(crate) fn ask<T>(&self, name: &str, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Outcome<T> {
        let (sender, receiver) = mpsc::channel();
        self.tell(name, command(sender))?;
        receiver.recv_timeout(PATIENCE).map_err(|_| unavailable())
    }

    /// Tells a port, and waits for nothing.
    pub(crate) fn tell(&self, name: &str, command: Command) -> Outcome<()> {
        let sent = {
            let ports = self.lock();
            let port = ports.iter().find(|port| port.name == name && !port.ends);
            port.is_some_and(|port| port.handle.send(command))
        };
        match sent {
            true => Ok(()),
            false if self.is_given_up(name) => Err(given_up()),
            false => Err(unavailable()),
        }
    }
}

fn given_up() -> Failure {
    let message = "the port failed again and again, and was given up; see the host's log; `softiov upgrade` or a restart \
                   opens it again";
    Failure::new(Kind::Unavailable, message)
}

/// What of a port outlives its failures.
#[derive(Debug)]
pub(crate) struct Life {
    config: Arc<Mutex<PortConfig>>,
    inbox: Inbox,
    failures: VecDeque<Instant>,
}

impl Life {
    /// Notes one more failure; `false` if there are too many.
    fn may_go_on(&mut self) -> bool {
        self.failures.push_back(Instant::now());
        while self.failures.front().is_some_and(|failure| failure.elapsed() > PERIOD) {
            self.failures.pop_front();
        }
        self.failures.len() <= FAILURES
    }
}

/// A port's thread. Nothing of a port that has panicked is used again: what its successor reads is whole at every moment.
fn run(port: Port, cpus: &Cpus, life: Life, failed: &Sender<Option<Life>>) {
    match catch_unwind(AssertUnwindSafe(|| port.run(&life.inbox, cpus))) {
        Ok(port::Outcome::Ended | port::Outcome::HandedOver) => {}
        Ok(port::Outcome::Failed) | Err(_) => {
            // Nobody opens it again if the host ends.
            let _ = failed.send(Some(life));
        }
    }
}

/// Nothing is ever left half done under these locks, so a panic elsewhere does no harm to what they guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use crate::config::Config;
    use crate::control::client;
    use crate::control::protocol::Request;
    use crate::port::Command;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// A client that waits for every reply.
    struct Client(UnixStream);

    impl Client {
        fn connect(socket: &Path) -> Self {
            let stream = UnixStream::connect(socket).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut client = Self(stream);
            client.ask(1, b"\0\0\x01\0{}\0");
            client
        }

        /// Sends a request and reads its reply.
        fn ask(&mut self, command: u16, body: &[u8]) -> Vec<u8> {
            let size = 16 + body.len() as u32;
            let header = [&[7, 0][..], &command.to_le_bytes(), &size.to_le_bytes(), &[0; 8]].concat();
            self.0.write_all(&[&header, body].concat()).unwrap();
            let mut header = [0; 16];
            self.0.read_exact(&mut header).unwrap();
            let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            let mut body = vec![0; size as usize - 16];
            self.0.read_exact(&mut body).unwrap();
            body
        }

        /// Device and vendor, by VFIO_USER_REGION_READ of configuration space.
        fn identity(&mut self) -> Vec<u8> {
            let access = [&0_u64.to_le_bytes()[..], &7_u32.to_le_bytes(), &4_u32.to_le_bytes()].concat();
            self.ask(9, &access)[16..].to_vec()
        }
    }

    /// Has a port's thread panic; `false` if there is none any more.
    fn panic_in(host: &Host, name: &str) -> bool {
        let ports = host.ports().lock();
        ports.iter().find(|port| port.name == name).unwrap().handle.send(Command::Panic)
    }

    #[test]
    fn a_port_that_panics_is_opened_again_with_its_clients_and_the_others_do_not_notice() {
        let folder = tempfile::tempdir().unwrap();
        let file = Config::parse("[[port]]\n[[port]]").unwrap();
        let host = Host::start(Config::check(file, folder.path()).unwrap()).unwrap();
        let connect = |vf: &str| Client::connect(&folder.path().join(vf).join("vf.sock"));
        let (mut first, mut second) = (connect("pf0vf0"), connect("pf1vf0"));
        let identity = first.identity();
        for _ in 0..3 {
            assert!(panic_in(&host, "pf0"));
            assert_eq!(second.identity(), identity);
            // Asked while the port is opened again: answered afterwards.
            assert_eq!(first.identity(), identity);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let clients = |port: &str| {
            let status = host.ports().ask(port, Command::Status).unwrap();
            status.vfs.iter().filter(|vf| vf.function.peer.is_some()).count()
        };
        while clients("pf0") != 1 {
            assert!(Instant::now() < deadline);
        }
        assert_eq!(clients("pf1"), 1);
        assert!(host.is_whole());
        host.stop();
    }
    #[test]
    fn what_is_asked_of_all_ports_leaves_out_one_that_was_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = Config::parse("[[port]]\n[[port]]").unwrap();
        let host = Host::start(Config::check(file, folder.path()).unwrap()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while panic_in(&host, "pf0") {
            assert!(Instant::now() < deadline, "a port that always fails is given up");
            std::thread::sleep(Duration::from_millis(10));
        }
        // What the watchdog, the metrics and `softiov vf list` ask.
        let listed = client::ports(host.control_socket()).expect("the others are told");
        assert_eq!(listed.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["pf1"]);
        let show = Request::PortShow { port: "pf0".into() };
        let refused = client::ask(host.control_socket(), show).unwrap_err().to_string();
        assert!(refused.contains("given up") && refused.contains("restart"), "{refused}");
        assert!(host.pause(Duration::from_secs(60)), "a port that is gone is in no successor's way");
        host.resume();
        host.stop();
    }
}
