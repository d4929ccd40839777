//! Tests permissions: users that may connect to a VF's socket and to the control socket, and privileges of the host's
//! process. Clients are processes of other users; `tests/linux` has virtual machines of other users.

use crate::process::{CommandOutput, ServeProcess, copy_program, finish, softiov};
use host::test_support::{in_network_namespace, skipped};
use rustix::process::{Signal, geteuid};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{TempDir, tempdir};

/// User and group id of a VMM in the tests.
const VMM: u32 = 65_533;
/// Group id of the operators in the tests.
const OPERATORS: u32 = 65_532;
/// User and group id of an unrelated user in the tests.
const STRANGER: u32 = 65_531;

/// Creates a folder that all users may search, with the program `softiov` in the folder. Without root, skips the test
/// and returns `None`.
fn open_folder(test: &str) -> Option<TempDir> {
    if !geteuid().is_root() {
        skipped(test, "only root can start processes of other users");
        return None;
    }
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
    copy_program(&folder.path().join("softiov"));
    Some(folder)
}

fn configured(folder: &TempDir, text: &str) -> PathBuf {
    let file = folder.path().join("softiov.toml");
    fs::write(&file, text).unwrap();
    file
}

fn serve(folder: &TempDir, text: &str) -> ServeProcess {
    ServeProcess::start(folder, &["--config", configured(folder, text).to_str().unwrap()])
}

/// Runs `softiov` from a folder that every user may search, as another user with one group.
fn run_as(folder: &TempDir, uid: u32, gid: u32, arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={uid}"), &format!("--regid={gid}")]).args(["--clear-groups", "--"]);
    finish(command.arg(folder.path().join("softiov")).args(arguments).env_remove("XDG_RUNTIME_DIR"))
}

/// Runs `softiov drive` on a VF's socket as another user.
fn drive_as(folder: &TempDir, uid: u32, gid: u32, socket: &Path) -> CommandOutput {
    run_as(folder, uid, gid, &["drive", "--socket", socket.to_str().unwrap()])
}

#[test]
fn vf_socket_is_open_to_its_owner_and_group_only() {
    let Some(folder) = open_folder("vf_socket_is_open_to_its_owner_and_group_only") else { return };
    let text = format!(
        "[[port]]\nvfs = 3\naccess = {{ group = {VMM} }}\n\
         [[port.vf]]\nindex = 1\naccess = {{ owner = {STRANGER}, mode = \"0600\" }}\n"
    );
    let mut host = serve(&folder, &text);
    let socket = |vf| host.folder().join(format!("pf0vf{vf}/vf.sock"));
    let granted = drive_as(&folder, STRANGER, VMM, &socket(0));
    assert_eq!(granted.status, Some(0), "{}{}", granted.out, granted.err);
    let granted = drive_as(&folder, STRANGER, STRANGER, &socket(1));
    assert_eq!(granted.status, Some(0), "{}{}", granted.out, granted.err);
    for (uid, gid, vf) in [(STRANGER, STRANGER, 0), (VMM, VMM, 1), (VMM, OPERATORS, 2)] {
        let refused = drive_as(&folder, uid, gid, &socket(vf));
        assert_eq!(refused.status, Some(1), "{}", refused.out);
        assert!(refused.err.contains("Permission denied"), "{}", refused.err);
    }
    assert_eq!(host.end(Signal::TERM).code(), Some(0));
    assert_eq!(host.files(), Vec::<String>::new(), "sockets of every owner are removed");
}

#[test]
fn control_socket_is_open_to_operators_not_clients() {
    let Some(folder) = open_folder("control_socket_is_open_to_operators_not_clients") else { return };
    let text = format!("access = {{ group = {VMM} }}\ncontrol = {{ group = {OPERATORS} }}\n");
    let mut host = serve(&folder, &text);
    let place = host.folder().to_str().unwrap().to_owned();
    let set = ["vf", "set", "pf0vf0", "--state", "disable", "--runtime-dir", &place];
    let refused = run_as(&folder, VMM, VMM, &set);
    assert_eq!(refused.status, Some(3), "{}", refused.out);
    assert!(refused.err.contains("Permission denied"), "{}", refused.err);
    let granted = run_as(&folder, STRANGER, OPERATORS, &set);
    assert_eq!(granted.status, Some(0), "{}", granted.err);
    assert_eq!(host.end(Signal::TERM).code(), Some(0));
    // A host without this setting closes the control socket to the group again.
    let host = serve(&folder, "");
    assert_eq!(mode(&host.folder().join("control")), 0o700);
    assert_eq!(run_as(&folder, STRANGER, OPERATORS, &set).status, Some(3));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn only_the_hosts_user_may_connect_to_sockets_by_default() {
    let folder = tempdir().unwrap();
    let host = ServeProcess::start(&folder, &[]);
    for (path, expected) in [
        ("", 0o711),
        ("control", 0o700),
        ("control/control.sock", 0o600),
        ("pf0vf0", 0o711),
        ("pf0vf0/vf.sock", 0o600),
    ] {
        assert_eq!(mode(&host.folder().join(path)), expected, "{path}");
    }
}

#[test]
fn mounted_socket_folder_shows_the_next_hosts_socket() {
    let folder = tempdir().unwrap();
    let mut host = ServeProcess::start(&folder, &[]);
    // A container mounts the folder itself, not its name.
    let inode = |host: &ServeProcess| fs::metadata(host.folder().join("pf0vf0")).unwrap().ino();
    let before = inode(&host);
    host.kill_all();
    let mut host = ServeProcess::start(&folder, &[]);
    assert_eq!(inode(&host), before);
    assert_eq!(host.end(Signal::TERM).code(), Some(0));
    let host = ServeProcess::start(&folder, &[]);
    assert_eq!(inode(&host), before);
}

#[test]
fn socket_folder_that_others_could_write_to_is_refused() {
    let folder = tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    fs::set_permissions(&sockets, Permissions::from_mode(0o777)).unwrap();
    let refused = softiov(&sockets, &["serve"]);
    assert_eq!(refused.status, Some(1));
    for part in ["sockets is writable by other users (mode 0777)", "chmod go-w", "runtime_dir"] {
        assert!(refused.err.contains(part), "{part} in {}", refused.err);
    }
    // The same holds for a folder that the file names for one socket.
    let file = format!("[[port]]\n[[port.vf]]\nindex = 0\nsocket = {:?}\n", sockets.join("web.sock"));
    let file = configured(&folder, &file);
    let refused = softiov(&folder.path().join("other"), &["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("pf0vf0: ") && refused.err.contains("by other users"), "{}", refused.err);
}

#[test]
fn socket_folder_of_another_user_is_refused() {
    let Some(folder) = open_folder("socket_folder_of_another_user_is_refused") else { return };
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    std::os::unix::fs::chown(&sockets, Some(STRANGER), None).unwrap();
    let refused = softiov(&sockets, &["serve"]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains(&format!("belongs to user {STRANGER}")), "{}", refused.err);
}

/// Returns the text of `/proc/PID/task/TID/status` of each thread of the host.
fn threads(host: &ServeProcess) -> Vec<String> {
    let tasks = fs::read_dir(host.proc().join("task")).unwrap();
    tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap()).collect()
}

#[test]
fn every_thread_of_a_host_has_a_seccomp_filter() {
    let folder = tempdir().unwrap();
    for (option, expected) in [("true", "Seccomp:\t2"), ("log", "Seccomp:\t2"), ("false", "Seccomp:\t0")] {
        let mut host = ServeProcess::start(&folder, &["--seccomp", option]);
        for status in threads(&host) {
            assert!(status.contains(expected), "--seccomp {option}: {status}");
        }
        assert_eq!(softiov(host.folder(), &["vf", "list"]).status, Some(0));
        assert_eq!(host.end(Signal::TERM).code(), Some(0), "{}", host.log());
    }
}

#[test]
fn host_run_as_another_user_has_no_linux_capability() {
    let Some(folder) = open_folder("host_run_as_another_user_has_no_linux_capability") else {
        return;
    };
    let configuration = configured(&folder, &format!("[[port]]\nvfs = 2\naccess = {{ group = {VMM} }}\n"));
    let user = format!("{STRANGER}:{OPERATORS}");
    let arguments = ["--user", &user, "--config", configuration.to_str().unwrap()];
    let mut host = ServeProcess::start(&folder, &arguments);
    for status in threads(&host) {
        for line in [
            &format!("Uid:\t{STRANGER}\t{STRANGER}\t{STRANGER}\t{STRANGER}"),
            &format!("Gid:\t{OPERATORS}\t{OPERATORS}\t{OPERATORS}\t{OPERATORS}"),
            "CapInh:\t0000000000000000",
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "CapAmb:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            assert!(status.contains(line), "{line} in {status}");
        }
    }
    let socket = host.folder().join("pf0vf0/vf.sock");
    let found = fs::metadata(&socket).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), mode(&socket)),
        (STRANGER, VMM, 0o660),
        "group set before root is given up"
    );
    let driven = drive_as(&folder, 65_530, VMM, &socket);
    assert_eq!(driven.status, Some(0), "{}{}", driven.out, driven.err);
    assert_eq!(softiov(host.folder(), &["vf", "list"]).status, Some(0), "root may ask");
    assert_eq!(host.end(Signal::TERM).code(), Some(0), "{}", host.log());
    assert_eq!(host.files(), Vec::<String>::new());
    // Sockets that a killed host leaves do not stop the next host, though they have another group.
    let mut host = ServeProcess::start(&folder, &arguments);
    host.kill_all();
    drop(ServeProcess::start(&folder, &arguments));
}

#[test]
fn port_is_added_to_a_host_run_as_another_user() {
    let Some(folder) = open_folder("port_is_added_to_a_host_run_as_another_user") else { return };
    let one = format!("confine = {{ user = \"{STRANGER}:{STRANGER}\" }}\n[[port]]\nvfs = 1\n");
    let file = configured(&folder, &one);
    let mut host = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    for port in ["", "family = \"avf\"\n", "family = \"virtio\"\nsocket_mode = \"client\"\n"] {
        let text = fs::read_to_string(&file).unwrap() + &format!("[[port]]\nvfs = 1\n{port}");
        fs::write(&file, text).unwrap();
        let said = softiov(host.folder(), &["apply", "-f", file.to_str().unwrap()]);
        assert_eq!(said.status, Some(0), "{port}: {}{}", said.err, host.log());
    }
    let no_capability = |status: &String| status.contains("CapPrm:\t0000000000000000");
    assert!(threads(&host).iter().all(no_capability), "also of threads that were added");
    assert_eq!(host.end(Signal::TERM).code(), Some(0), "{}", host.log());
}

#[test]
fn upgrade_renews_a_streams_access_as_another_user() {
    let Some(folder) = open_folder("upgrade_renews_a_streams_access_as_another_user") else { return };
    let text = |mode| {
        format!(
            "confine = {{ user = \"{STRANGER}:{STRANGER}\" }}\naccess = {{ owner = {VMM}, mode = \"{mode}\" }}\n\
             [[port]]\nvfs = 1\nuplink = {{ stream = {{ listen = \"{}\" }} }}\n",
            folder.path().join("sockets/uplink/peer.sock").display()
        )
    };
    let host = serve(&folder, &text("0660"));
    let sockets = ["uplink/peer.sock", "pf0vf0/vf.sock"].map(|socket| host.folder().join(socket));
    assert_eq!(sockets.each_ref().map(|socket| mode(socket)), [0o660; 2]);
    configured(&folder, &text("0600"));
    let said = softiov(host.folder(), &["upgrade"]);
    assert_eq!(said.status, Some(0), "{}{}", said.err, host.log());
    // The new host answers once its ports have renewed their sockets.
    assert_eq!(softiov(host.folder(), &["vf", "list"]).status, Some(0));
    assert_eq!(sockets.each_ref().map(|socket| mode(socket)), [0o600; 2], "{}", host.log());
}

#[test]
fn only_a_host_started_by_root_may_become_another_user() {
    let Some(folder) = open_folder("only_a_host_started_by_root_may_become_another_user") else { return };
    let place = folder.path().join("theirs");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(VMM), None).unwrap();
    let place = place.to_str().unwrap();
    let refused = run_as(
        &folder,
        STRANGER,
        STRANGER,
        &["serve", "--user", "65533:65533", "--runtime-dir", place, "--state-dir", place],
    );
    assert_eq!(refused.status, Some(1));
    assert!(
        refused.err.contains("cannot become user 65533") && refused.err.contains("root"),
        "{}",
        refused.err
    );
}

#[test]
fn host_with_a_tap_keeps_only_cap_net_admin() {
    let name = "host_with_a_tap_keeps_only_cap_net_admin";
    let Some(folder) = open_folder(name) else { return };
    if let Err(error) = fs::metadata("/dev/net/tun") {
        return skipped(name, &format!("/dev/net/tun: {error}"));
    }
    let text = format!(
        "confine = {{ user = \"{STRANGER}:{STRANGER}\" }}\n[[port]]\nuplink = {{ tap = \"soft9\" }}\n"
    );
    let file = configured(&folder, &text);
    in_network_namespace(name, || {
        let mut host = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
        for status in threads(&host) {
            // CAP_NET_ADMIN is number 12.
            for line in
                ["CapPrm:\t0000000000001000", "CapEff:\t0000000000001000", "CapAmb:\t0000000000000000"]
            {
                assert!(status.contains(line), "{line} in {status}");
            }
        }
        assert_eq!(softiov(host.folder(), &["vf", "list"]).status, Some(0));
        assert_eq!(host.end(Signal::TERM).code(), Some(0), "{}", host.log());
    });
}
