//! Tests signals that a keeper receives while its host hands over to a successor: the successor reads them, since the
//! predecessor ends without a look at them.
//!
//! A keeper must have one thread, so this test has no harness. The same program is test, keeper, host and successor.

use host::poll::{PollInterest, Poller, ProcessSignal, SignalHandlers, SignalSet};
use keeper::{
    FileDescriptorSender, HandOverChannel, InheritedFileDescriptors, KeeperConfig, RESTART, STARTED,
    SeccompMode, number,
};
use rustix::process::{Signal, getppid, kill_process};
use std::error::Error;
use std::io;
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

/// Environment variable that makes this program a keeper or a host: the signals of each hand-over. An abandoned hand-over
/// precedes a hand-over after a comma.
const ROLE: &str = "SOFTIOV_TEST_SIGNALS";
const SIGNALS: [(&str, ProcessSignal, Signal); 4] = [
    ("TERM", ProcessSignal::Terminate, Signal::TERM),
    ("INT", ProcessSignal::Interrupt, Signal::INT),
    ("HUP", ProcessSignal::HangUp, Signal::HUP),
    ("USR2", ProcessSignal::HandOver, Signal::USR2),
];
/// Timeout of a signal or a message, far longer than either takes.
const PATIENCE: Duration = Duration::from_secs(120);

type AnyResult<T> = Result<T, Box<dyn Error>>;

fn main() -> AnyResult<ExitCode> {
    let Ok(role) = std::env::var(ROLE) else {
        successor_reads_the_signals_of_the_hand_over()?;
        signals_of_an_abandoned_hand_over_are_read_by_the_host_alone()?;
        return Ok(ExitCode::SUCCESS);
    };
    if InheritedFileDescriptors::exist() {
        return be_host(&role);
    }
    let program = std::env::current_exe()?;
    let config = KeeperConfig { service: "test", seccomp: SeccompMode::On };
    Ok(keeper::keep(&config, &mut || Command::new(&program))?.into())
}

/// Hands over, and has the keeper forward signals meanwhile; or takes over, and reports the first signals that arrive.
fn be_host(role: &str) -> AnyResult<ExitCode> {
    // Before the predecessor knows of this process.
    let signals = SignalHandlers::install()?;
    let keeper = match InheritedFileDescriptors::take()?.from {
        FileDescriptorSender::Keeper(keeper) => keeper,
        FileDescriptorSender::Predecessor(_line) => {
            println!("{}", names(next(&signals)?));
            return Ok(ExitCode::SUCCESS);
        }
        FileDescriptorSender::NoSender => return Err("no keeper".into()),
    };
    keeper.say("READY=1")?;
    let (abandoned, words) = role.split_once(',').map_or((None, role), |(first, rest)| (Some(first), rest));
    if let Some(words) = abandoned {
        let _successor = begin_hand_over(keeper.succeed()?)?;
        be_sent(words, &signals)?;
        keeper.abandon()?;
    }
    let (line, pid) = begin_hand_over(keeper.succeed()?)?;
    be_sent(words, &signals)?;
    keeper.say(&format!("MAINPID={pid}"))?;
    // Not earlier: the successor's end is that of the service.
    line.give(std::iter::empty())?;
    Ok(RESTART.into())
}

/// Waits until the successor runs. Returns the line to it, and its process id.
fn begin_hand_over(line: HandOverChannel) -> AnyResult<(HandOverChannel, i32)> {
    let word = line.hear(PATIENCE)?.ok_or("the successor has ended")?;
    let pid = number(&word, STARTED).ok_or("the successor has not started")?;
    Ok((line, pid))
}

/// Sends the keeper each of these signals, and waits until it has forwarded the signal to this process.
fn be_sent(words: &str, signals: &SignalHandlers) -> AnyResult<()> {
    for word in words.split('+') {
        let (_, _, signal) = SIGNALS.into_iter().find(|(name, ..)| *name == word).ok_or("no signal")?;
        kill_process(getppid().ok_or("no keeper")?, signal)?;
        assert_eq!(names(next(signals)?), word);
    }
    Ok(())
}

/// Waits for signals of this process, and returns them.
fn next(signals: &SignalHandlers) -> io::Result<SignalSet> {
    let mut poller = Poller::new()?;
    poller.add(signals, 0, PollInterest::READ)?;
    // A signal may interrupt the wait after its handler has run.
    let _ = poller.wait(Some(PATIENCE))?.count();
    let read = signals.take();
    if read == SignalSet::default() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(read) }
}

fn names(signals: SignalSet) -> String {
    let names: Vec<&str> =
        SIGNALS.iter().filter(|(_, signal, _)| signals.contains(*signal)).map(|(name, ..)| *name).collect();
    names.join("+")
}

/// Runs a keeper whose host hands over while the keeper receives these signals. Returns the keeper's exit status, the
/// signals that the successor has read, and the log.
fn run_keeper(role: &str) -> io::Result<(Option<i32>, String, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, role).env_remove("NOTIFY_SOCKET").env_remove("FDSTORE");
    let Output { status, stdout, stderr } = command.output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok((status.code(), text(stdout), text(stderr)))
}

fn successor_reads_the_signals_of_the_hand_over() -> io::Result<()> {
    for word in ["TERM", "INT", "HUP", "USR2"] {
        let (status, read, log) = run_keeper(word)?;
        assert_eq!((status, read.as_str()), (Some(0), word), "{log}");
    }
    Ok(())
}

/// The host of the test reads SIGHUP, and the successor of the second hand-over only SIGUSR2.
fn signals_of_an_abandoned_hand_over_are_read_by_the_host_alone() -> io::Result<()> {
    let (status, read, log) = run_keeper("HUP,USR2")?;
    assert_eq!((status, read.as_str()), (Some(0), "USR2"), "{log}");
    Ok(())
}
