//! Tests of VFs with `socket_mode = "client"`: the front end listens, and the host connects.

use super::front_end::VhostTestFrontEnd;
use super::guest::{VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use daemon::config::file::SocketRole;
use daemon::control::status::LinkState;
use daemon::settings::PortSettings;
use host::socket::StreamSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

const PORT: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 4\nsocket_mode = \"client\"\n";

/// Listens on a VF's socket as a VMM does that starts.
fn listen(path: &Path) -> UnixListener {
    // QEMU removes the file that an earlier one has left.
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).unwrap()
}

/// Waits for the host's connection.
fn accept(listener: &UnixListener) -> StreamSocket {
    listener.set_nonblocking(true).unwrap();
    let mut stream = None;
    eventually("the host connects", || {
        stream = listener.accept().ok();
        stream.is_some()
    });
    StreamSocket::adopt(OwnedFd::from(stream.unwrap().0)).unwrap()
}

/// Boots a guest whose VMM listens on a VF's socket.
fn boot(live: &LiveHost, vf: u8) -> (UnixListener, VirtioGuest) {
    let listener = listen(&live.socket(vf));
    let guest = VirtioGuest::boot_on(accept(&listener), vf);
    (listener, guest)
}

/// Has a guest's VMM wait for the end of the connection and for the host's next connection, and start its rings again.
fn reconnect(listener: &UnixListener, guest: &mut VirtioGuest) {
    guest.front.wait_for_end();
    guest.reconnect_on(accept(listener));
}

#[test]
fn host_connects_once_a_vmm_listens() {
    let live = LiveHost::with(PORT);
    eventually("the reason is shown", || {
        live.show(0).function.unconnected.is_some_and(|why| why.starts_with("the socket does not exist yet"))
    });
    let ((_a, mut a), (_b, mut b)) = (boot(&live, 0), boot(&live, 1));
    exchange(&mut a, &mut b);
    let function = live.show(0).function;
    assert_eq!((function.socket_mode, function.unconnected), (SocketRole::Client, None));
    assert_eq!(function.peer.map(|peer| peer.pid), Some(std::process::id().cast_signed()));
}

#[test]
fn host_connects_to_a_restarted_vmm() {
    let live = LiveHost::with(PORT);
    let ((first, mut a), (_b, mut b)) = (boot(&live, 0), boot(&live, 1));
    exchange(&mut a, &mut b);
    drop((first, a));
    eventually("the reason is shown", || {
        live.show(0)
            .function
            .unconnected
            .is_some_and(|why| why.starts_with("no process listens on the socket"))
    });
    let (_a, mut a) = boot(&live, 0);
    exchange(&mut a, &mut b);
}

#[test]
fn connections_to_vmms_continue_in_the_next_version_of_the_host() {
    let mut live = LiveHost::with(PORT);
    let ((first, mut a), (_second, mut b)) = (boot(&live, 0), boot(&live, 1));
    for _ in 0..3 {
        live.hand_over(PORT);
        exchange(&mut a, &mut b);
        assert_eq!(live.show(0).function.unconnected, None);
    }
    live.disconnect(0).unwrap();
    reconnect(&first, &mut a);
    exchange(&mut a, &mut b);
}

#[test]
fn host_connects_again_after_reset_and_disconnection() {
    let live = LiveHost::with(PORT);
    let ((first, mut a), (second, mut b)) = (boot(&live, 0), boot(&live, 1));
    live.reset_port().unwrap();
    reconnect(&first, &mut a);
    reconnect(&second, &mut b);
    exchange(&mut a, &mut b);
    live.disconnect(0).unwrap();
    reconnect(&first, &mut a);
    exchange(&mut a, &mut b);
}

#[test]
fn upgrade_may_change_the_socket_mode() {
    let mut live = LiveHost::with(super::PORT);
    let mut guest = VirtioGuest::boot(&live, 0);
    live.hand_over(PORT);
    assert!(live.show(0).active, "the connection of the former mode continues");
    guest.front.stream.hang_up();
    eventually("the former listening socket is gone", || {
        live.show(0)
            .function
            .unconnected
            .is_some_and(|why| why.starts_with("no process listens on the socket"))
    });
    let listener = listen(&live.socket(0));
    guest.reconnect_on(accept(&listener));
    drop(listener);
    std::fs::remove_file(live.socket(0)).unwrap();
    live.hand_over(super::PORT);
    assert!(live.show(0).active);
    guest.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    guest.reconnect(&live.socket(0));
}

#[test]
fn host_does_not_connect_for_a_disabled_vf() {
    let live = LiveHost::with(PORT);
    live.set(0, LinkState::Disable);
    let listener = listen(&live.socket(0));
    listener.set_nonblocking(true).unwrap();
    eventually("the reason is shown", || {
        live.show(0).function.unconnected.is_some_and(|why| why.contains("disabled"))
    });
    // An attempt that had begun before may still come.
    let _ = listener.accept();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(listener.accept().is_err(), "the host connects for a disabled VF");
    live.set(0, LinkState::Auto);
    let mut a = VirtioGuest::boot_on(accept(&listener), 0);
    live.set(0, LinkState::Disable);
    a.front.wait_for_end();
    live.set(0, LinkState::Auto);
    a.reconnect_on(accept(&listener));
}

#[test]
fn vmm_that_closes_at_once_is_called_once_a_second() {
    let live = LiveHost::with(PORT);
    let listener = listen(&live.socket(0));
    // 0, 100, 200, 400, 800 ms, and then 1 s.
    let begun = std::time::Instant::now();
    (0..7).for_each(|_| accept(&listener).hang_up());
    assert!(begun.elapsed().as_millis() >= 2500, "{:?}", begun.elapsed());
}

#[test]
fn vmm_of_a_link_is_not_connected_to() {
    let live = LiveHost::with(PORT);
    let listener = listen(&live.socket(1));
    std::os::unix::fs::symlink(live.socket(1), live.socket(0)).unwrap();
    eventually("the reason is shown", || {
        live.show(0).function.unconnected.is_some_and(|why| why.contains("link"))
    });
    let mut front = VhostTestFrontEnd::over(accept(&listener));
    front.negotiate();
    assert!(live.show(1).function.peer.is_some() && live.show(0).function.peer.is_none());
}

#[test]
fn port_has_vfs_of_both_modes_and_later_ones() {
    let port = "[[port]]\nfamily = \"virtio\"\nvfs = 2\nsocket_mode = \"client\"\n";
    let live = LiveHost::with(&format!("{port}[[port.vf]]\nindex = 0\nsocket_mode = \"server\"\n"));
    let mut a = VirtioGuest::boot(&live, 0);
    live.change_port(PortSettings { vfs: Some(3), ..PortSettings::default() }).unwrap();
    let (_b, mut b) = boot(&live, 2);
    exchange(&mut a, &mut b);
}

#[test]
fn host_ends_while_it_waits_for_vmms() {
    let live = LiveHost::with(PORT);
    let listener = listen(&live.socket(0));
    let mut front = VhostTestFrontEnd::over(accept(&listener));
    front.negotiate();
    assert_eq!(live.stop(), [listener.local_addr().unwrap().as_pathname().unwrap()]);
    front.wait_for_end();
}
