//! Tests hosts that end with exit status 75 (`RESTART`) under a keeper without a store of systemd: the keeper does not
//! start such hosts again and again without a pause. With a store a keeper ends with that status during such a pause if
//! systemd asks for a restart.
//!
//! A keeper must have one thread, so this test has no harness. The same program is test, keeper and host.

use keeper::{FileDescriptorSender, InheritedFileDescriptors, KeeperConfig, RESTART, SeccompMode};
use rustix::process::{Pid, Signal, kill_process};
use std::error::Error;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, ExitCode, Output, Stdio};

/// Environment variable that makes this program a keeper or a host. Its value is [`AT_ONCE`] or [`AFTER_READY`].
const ROLE: &str = "SOFTIOV_TEST_HOST";
/// Hosts end with status 75 before they are ready.
const AT_ONCE: &str = "at once";
/// Hosts end with status 75 after they are ready, and the last one with status 0.
const AFTER_READY: &str = "after ready";
/// Hosts end with status 1 after they are ready.
const FAILING: &str = "failing";
/// Number of hosts of which the last one ends with status 0: two more than the keeper starts without a pause.
const HOSTS: usize = 7;
/// Number of pauses after which the test fails: a keeper that does not end by then ignores the signal.
const MOST_PAUSES: usize = 15;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Ok(role) = std::env::var(ROLE) else {
        host_that_asks_for_a_restart_before_it_is_ready_ends_the_keeper()?;
        starts_of_hosts_that_ask_for_a_restart_are_delayed()?;
        systemd_restarts_a_keeper_that_delays_the_next_start()?;
        return Ok(ExitCode::SUCCESS);
    };
    if InheritedFileDescriptors::exist() {
        return be_host(&role);
    }
    let program = std::env::current_exe()?;
    let config = KeeperConfig { service: "test", seccomp: SeccompMode::On };
    Ok(keeper::keep(&config, &mut || Command::new(&program))?.into())
}

/// Ends like a host that asks to be started again. Keeps a file descriptor first, by which the next host counts its
/// predecessors.
fn be_host(role: &str) -> Result<ExitCode, Box<dyn Error>> {
    let InheritedFileDescriptors { shelf, from } = InheritedFileDescriptors::take()?;
    let FileDescriptorSender::Keeper(keeper) = from else { return Err("no keeper".into()) };
    if role == FAILING {
        keeper.say("READY=1")?;
        return Ok(ExitCode::FAILURE);
    }
    println!("host");
    if shelf.len() + 1 == HOSTS {
        return Ok(ExitCode::SUCCESS);
    }
    keeper.keep(&format!("host.{}", shelf.len()), io::stderr().as_fd())?;
    if role == AFTER_READY {
        keeper.say("READY=1")?;
    }
    Ok(RESTART.into())
}

/// Runs a keeper, whose hosts all end in this way. Returns its exit status, the number of its hosts and its log.
fn run_keeper(role: &str) -> io::Result<(Option<i32>, usize, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, role).env_remove("NOTIFY_SOCKET").env_remove("FDSTORE");
    let Output { status, stdout, stderr } = command.output()?;
    let hosts = String::from_utf8_lossy(&stdout).lines().count();
    Ok((status.code(), hosts, String::from_utf8_lossy(&stderr).into_owned()))
}

fn host_that_asks_for_a_restart_before_it_is_ready_ends_the_keeper() -> io::Result<()> {
    let (status, hosts, log) = run_keeper(AT_ONCE)?;
    assert_eq!((status, hosts), (Some(RESTART.into()), 1), "{log}");
    Ok(())
}

fn starts_of_hosts_that_ask_for_a_restart_are_delayed() -> io::Result<()> {
    let (status, hosts, log) = run_keeper(AFTER_READY)?;
    assert_eq!((status, hosts), (Some(0), HOSTS), "{log}");
    assert_eq!(log.matches("failed with status 75").count(), HOSTS - 1, "{log}");
    for pause in ["the next start is in 250ms", "the next start is in 500ms"] {
        assert!(log.contains(pause), "{pause}: {log}");
    }
    Ok(())
}

/// systemd restarts a unit by SIGUSR2 to its keeper, and kills the unit after 90 seconds if the keeper does not end.
fn systemd_restarts_a_keeper_that_delays_the_next_start() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("keeper-notify-{}", std::process::id()));
    let _systemd = UnixDatagram::bind(&path)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, FAILING).env("NOTIFY_SOCKET", &path).env("FDSTORE", "8").stderr(Stdio::piped());
    let mut keeper = command.spawn()?;
    let log = BufReader::new(keeper.stderr.take().ok_or("no log")?);
    let mut pauses = 0;
    for line in log.lines() {
        // The pause may be over when the signal arrives. Then the next one counts.
        if line?.contains("the next start is in") {
            pauses += 1;
            kill_process(Pid::from_child(&keeper), Signal::USR2)?;
        }
        if pauses == MOST_PAUSES {
            kill_process(Pid::from_child(&keeper), Signal::KILL)?;
            break;
        }
    }
    std::fs::remove_file(&path)?;
    assert_eq!(keeper.wait()?.code(), Some(RESTART.into()), "after {pauses} pauses");
    Ok(())
}
