//! Tests of front ends that a VF does not serve. The host holds the connection of a second front end for a second, since a
//! starting QEMU connects again at once. Front ends of a disabled VF wait in connect(2).

use super::PORT;
use super::front_end::VhostTestFrontEnd;
use super::guest::{VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use daemon::control::status::LinkState;
use host::socket::StreamSocket;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Shortest time for which the host holds a refused connection, less the time until the connection is accepted.
const HOLD: Duration = Duration::from_millis(990);

/// Returns a host, and a guest on VF 0.
fn with_guest() -> (LiveHost, VirtioGuest) {
    let live = LiveHost::with(PORT);
    let guest = VirtioGuest::boot(&live, 0);
    (live, guest)
}

/// Connects to a VF's socket, and waits until the host holds the connection.
fn held(live: &LiveHost) -> VhostTestFrontEnd {
    let front = VhostTestFrontEnd::connect(&live.socket(0));
    let pid = std::process::id().cast_signed();
    eventually("the front end is held", || live.show(0).function.refusals.held == Some(pid));
    front
}

/// Disables VF 0, and waits until connect(2) would wait.
fn disable(live: &LiveHost) {
    live.set(0, LinkState::Disable);
    wait_shut(&live.socket(0));
}

/// Waits until the socket of a VF that may have no client admits no connection.
pub(crate) fn wait_shut(path: &Path) {
    eventually("connect(2) waits", || {
        StreamSocket::connect(path).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
}

/// Connects to a socket as QEMU does, in a thread that waits until the socket admits it.
pub(crate) fn connect_later(path: &Path) -> JoinHandle<StreamSocket> {
    let path = path.to_owned();
    spawn(move || StreamSocket::adopt(OwnedFd::from(UnixStream::connect(path).unwrap())).unwrap())
}

#[test]
fn front_end_that_reconnects_at_once_is_refused_once_a_second() {
    let (live, _guest) = with_guest();
    let (begun, mut attempts) = (Instant::now(), 0_u32);
    while begun.elapsed() < 3 * HOLD {
        VhostTestFrontEnd::connect(&live.socket(0)).wait_for_end();
        attempts += 1;
    }
    assert!(attempts <= 4, "{attempts} attempts in {:?}", begun.elapsed());
    let refusals = live.show(0).function.refusals;
    assert_eq!((refusals.count, refusals.held), (attempts.into(), None));
}

#[test]
fn held_front_end_is_served_after_the_first() {
    let (live, mut a) = with_guest();
    let mut b = VirtioGuest::boot(&live, 1);
    let mut second = held(&live);
    exchange(&mut a, &mut b);
    a.front.stream.hang_up();
    second.negotiate();
}

#[test]
fn further_refused_front_ends_wait_in_the_queue() {
    let (live, guest) = with_guest();
    let begun = Instant::now();
    let mut fronts = [(); 3].map(|()| VhostTestFrontEnd::connect(&live.socket(0)));
    for (place, front) in (1..).zip(&mut fronts) {
        front.wait_for_end();
        assert!(begun.elapsed() >= place * HOLD, "front end {place}: {:?}", begun.elapsed());
    }
    drop(guest);
    eventually("the VF is free", || live.show(0).peer.is_none());
    VhostTestFrontEnd::greet(&live.socket(0));
}

#[test]
fn held_front_end_of_a_vf_that_is_disabled_is_disconnected() {
    let (live, mut guest) = with_guest();
    let mut second = held(&live);
    disable(&live);
    guest.front.wait_for_end();
    second.wait_for_end();
    let waiting = connect_later(&live.socket(0));
    live.set(0, LinkState::Auto);
    guest.reconnect_on(waiting.join().unwrap());
}

#[test]
fn host_with_a_held_front_end_hands_over_and_ends() {
    let (mut live, _guest) = with_guest();
    let mut front = held(&live);
    live.hand_over(PORT);
    front.wait_for_end();
    let mut front = held(&live);
    assert_eq!(live.stop(), Vec::<std::path::PathBuf>::new());
    front.wait_for_end();
}

#[test]
fn front_end_of_a_disabled_vf_waits_until_it_is_enabled() {
    let (live, mut guest) = with_guest();
    for _ in 0..3 {
        disable(&live);
        guest.front.wait_for_end();
        let waiting = connect_later(&live.socket(0));
        sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished(), "the front end is connected to a disabled VF");
        live.set(0, LinkState::Auto);
        guest.reconnect_on(waiting.join().unwrap());
    }
    assert_eq!(live.show(0).function.refusals.count, 0);
}

#[test]
fn front_end_of_a_disabled_vf_waits_across_an_upgrade() {
    let (mut live, mut guest) = with_guest();
    disable(&live);
    guest.front.wait_for_end();
    let mut waiting = connect_later(&live.socket(0));
    live.hand_over(&format!("{PORT}[[port.vf]]\nindex = 0\nstate = \"disable\"\n"));
    wait_shut(&live.socket(0));
    sleep(Duration::from_millis(300));
    if waiting.is_finished() {
        // The next version empties the queue first, which may admit a front end for a moment.
        VhostTestFrontEnd::over(waiting.join().unwrap()).wait_for_end();
        waiting = connect_later(&live.socket(0));
    }
    sleep(Duration::from_millis(300));
    assert!(!waiting.is_finished(), "the front end is connected to a disabled VF");
    live.set(0, LinkState::Auto);
    guest.reconnect_on(waiting.join().unwrap());
}

#[test]
fn door_that_could_not_be_shut_is_shut_later() {
    let (live, mut guest) = with_guest();
    let path = live.socket(0);
    let moved = path.with_extension("moved");
    std::fs::rename(&path, &moved).unwrap();
    live.set(0, LinkState::Disable);
    guest.front.wait_for_end();
    // The host cannot connect to its own socket, and cannot fill the queue.
    let mut early = VhostTestFrontEnd::connect(&moved);
    std::fs::rename(&moved, &path).unwrap();
    early.wait_for_end();
    wait_shut(&path);
    let waiting = connect_later(&path);
    live.set(0, LinkState::Auto);
    guest.reconnect_on(waiting.join().unwrap());
}
