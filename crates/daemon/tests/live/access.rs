//! Tests of access to sockets that a successor process takes over: the configuration of the successor decides.

use crate::support::eventually;
use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use daemon::settings::PortSettings;
use host::test_support::skipped;
use rustix::process::geteuid;
use std::fs::metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Group id of the operators in the tests.
const OPERATORS: u32 = 65_532;

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().mode() & 0o7777
}

/// uwsgi 1145: a socket that a new process takes over kept its former owner and mode.
#[test]
fn hand_over_gives_sockets_the_access_of_the_new_file() {
    let text = |mode: &str| format!("[[port]]\nvfs = 1\naccess = {{ mode = \"{mode}\" }}\n");
    let mut live = LiveHost::with(&text("0666"));
    assert_eq!(mode(&live.socket(0)), 0o666);
    live.refuse_hand_over(&text("0600"));
    assert_eq!(mode(&live.socket(0)), 0o666, "the host that continues has its own configuration");
    live.hand_over(&text("0600"));
    assert_eq!(mode(&live.socket(0)), 0o600, "the former users may still connect");
    live.hand_over(&text("0660"));
    assert_eq!(mode(&live.socket(0)), 0o660);
}

/// A VF that comes back has another guest.
#[test]
fn vf_that_comes_back_after_a_hand_over_has_the_new_access() {
    let text = |vfs: u8, mode: &str| format!("[[port]]\nvfs = {vfs}\naccess = {{ mode = \"{mode}\" }}\n");
    let mut live = LiveHost::with(&text(2, "0666"));
    live.hand_over(&text(1, "0600"));
    let refused = UnixStream::connect(live.socket(1)).map_err(|error| error.kind()).unwrap_err();
    assert_eq!(refused, ErrorKind::ConnectionRefused, "clients of the removed VF wait for a reply");
    live.change_port(PortSettings { vfs: Some(2), ..PortSettings::default() }).unwrap();
    assert_eq!(mode(&live.socket(1)), 0o600, "the former users may still connect");
    drop(VfGuest::under_qemu(&live, 1));
}

#[test]
fn hand_over_gives_a_pf_socket_the_access_of_the_new_file() {
    let text = |mode: &str| format!("[[port]]\npf = \"guest\"\naccess = {{ mode = \"{mode}\" }}\n");
    let mut live = LiveHost::with(&text("0666"));
    assert_eq!(mode(&live.pf_socket()), 0o666);
    live.refuse_hand_over(&text("0600"));
    assert_eq!(mode(&live.pf_socket()), 0o666, "the host that continues has its own configuration");
    live.hand_over(&text("0600"));
    assert_eq!(mode(&live.pf_socket()), 0o600, "the former users may still connect");
}

#[test]
fn hand_over_gives_a_stream_uplink_the_access_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("peer.sock");
    let text = |mode: &str| {
        format!("[[port]]\nvfs = 1\nuplink.stream.listen = {path:?}\naccess = {{ mode = \"{mode}\" }}\n")
    };
    let mut live = LiveHost::with(&text("0666"));
    live.refuse_hand_over(&text("0600"));
    assert_eq!(mode(&path), 0o666, "the host that continues has its own configuration");
    live.hand_over(&text("0600"));
    // The thread that accepts peers sets the mode.
    eventually("the former users may not connect to the uplink", || mode(&path) == 0o600);
    live.hand_over(&text("0660"));
    eventually("the new users may connect to the uplink", || mode(&path) == 0o660);
}

#[test]
fn hand_over_gives_control_the_access_of_the_new_file() {
    if !geteuid().is_root() {
        return skipped(
            "hand_over_gives_control_the_access_of_the_new_file",
            "only root can give the control socket to a group of other users",
        );
    }
    let operated = format!("control = {{ group = {OPERATORS} }}\n[[port]]\nvfs = 1\n");
    let mut live = LiveHost::with(&operated);
    let rights = |live: &LiveHost| {
        let socket = live.control_socket();
        let (folder, file) = (metadata(socket.parent().unwrap()).unwrap(), metadata(&socket).unwrap());
        (folder.mode() & 0o7777, file.mode() & 0o7777, file.gid())
    };
    assert_eq!(rights(&live), (0o710, 0o660, OPERATORS));
    live.refuse_hand_over("[[port]]\nvfs = 1\n");
    assert_eq!(rights(&live), (0o710, 0o660, OPERATORS), "the host that continues has its own configuration");
    live.hand_over("[[port]]\nvfs = 1\n");
    let (folder, file, _) = rights(&live);
    assert_eq!((folder, file), (0o700, 0o600), "the former operators may still open the control socket");
    live.hand_over(&operated);
    assert_eq!(rights(&live), (0o710, 0o660, OPERATORS));
}
