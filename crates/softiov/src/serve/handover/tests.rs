//! Tests the wait of a host that settles before a restart.

use super::{RestartPreparation, settle};
use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::vault::FileDescriptorStore;
use host::poll::{PollInterest, Poller, ProcessSignal, SignalHandlers};
use keeper::{KeeperConnection, KeptFileDescriptors};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// The administrator's reload would be lost: no later signal has the host read its file.
#[test]
fn sighup_during_a_refused_restart_stays_pending() {
    let folder = tempfile::tempdir().unwrap();
    let (mut keeper, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || io::copy(&mut keeper, &mut io::sink()));
    let store = KeeperConnection::over(theirs.into()).unwrap();
    // A client of a port that the configuration lacks: it is not silent, so that the host disconnects it for a second. The host
    // disconnects 64 at a time, so that it takes seconds for as many copies.
    let (left, mut client) = UnixStream::pair().unwrap();
    let mut kept = KeptFileDescriptors::default();
    for number in 0..256 {
        kept.put(&format!("gone.#{number}"), left.as_fd().try_clone_to_owned().unwrap());
    }
    drop(left);
    let vault = FileDescriptorStore::new(kept, Some(store));
    let talking = thread::spawn(move || {
        while client.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let signals = SignalHandlers::install().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&signals, 0, PollInterest::READ).unwrap();
    let config = HostConfig::check(HostConfig::parse("[[port]]").unwrap(), folder.path()).unwrap();
    let host = RunningHost::inherit(config, &vault).unwrap();
    kill_process(getpid(), Signal::HUP).unwrap();
    let outcome = settle(&host, &signals, &mut poller, Duration::from_millis(100)).unwrap();
    assert_eq!(outcome, RestartPreparation::Refused, "the host does not wait for the client");
    assert!(signals.pending().contains(ProcessSignal::HangUp), "the signal is lost");
    talking.join().unwrap();
    assert_eq!(
        settle(&host, &signals, &mut poller, Duration::from_secs(60)).unwrap(),
        RestartPreparation::Settled
    );
    host.stop();
}
