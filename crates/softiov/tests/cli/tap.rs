//! Tests a tap as the uplink: created by the host if it has the privilege, otherwise refused with a remedy.

use crate::process::{PATIENCE, ServeProcess, copy_program, files, finish, softiov};
use host::test_support::{in_network_namespace, skipped};
use rustix::process::{Signal, geteuid};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tempfile::tempdir;

const CONFIG: &str = "[[port]]\nuplink = { tap = \"softiov7\" }\n";

/// Returns the kernel's table of the interfaces of this thread's network namespace.
fn interfaces() -> String {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

#[test]
fn tap_is_created_and_removed_with_the_host() {
    in_network_namespace("a_tap_is_made_and_goes_with_the_host", || {
        let folder = tempdir().unwrap();
        let file = folder.path().join("softiov.toml");
        fs::write(&file, CONFIG).unwrap();
        let mut serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
        assert!(interfaces().contains("softiov7:"));
        let said = softiov(serve.folder(), &["vf", "list"]);
        assert!(said.out.contains("uplink tap:softiov7"), "{}", said.out);
        let said = softiov(serve.folder(), &["port", "show", "pf0"]);
        for part in
            ["uplink tap:softiov7 state UP", "    tap softiov7 up for ", "carrier on, mtu 1500, reattached 0"]
        {
            assert!(said.out.contains(part), "{part} in {}", said.out);
        }
        assert_eq!(serve.end(Signal::TERM).code(), Some(0));
        assert!(!interfaces().contains("softiov7:"));
    });
}

#[test]
fn deleted_tap_is_reported_and_reattached() {
    in_network_namespace("a_tap_that_is_gone_is_told_of_and_comes_back", || {
        let folder = tempdir().unwrap();
        let file = folder.path().join("softiov.toml");
        fs::write(&file, CONFIG).unwrap();
        let mut serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
        let told = |part: &str| {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let said = softiov(serve.folder(), &["port", "show", "pf0"]).out;
                if said.contains(part) {
                    return;
                }
                assert!(Instant::now() < deadline, "{part} in {said}");
            }
        };
        ip("link set softiov7 carrier off");
        told("uplink tap:softiov7 state DOWN\n    tap softiov7 up for ");
        told("carrier off");
        ip("link del softiov7");
        told("uplink tap:softiov7 (gone) state DOWN\n    tap softiov7 gone for ");
        ip("tuntap add softiov7 mode tap");
        told("reattached 1\n    tap drops: too long 0, no room 0, no link 0\n");
        // A tap that existed before the host stays after it.
        assert_eq!(serve.end(Signal::TERM).code(), Some(0));
        assert!(interfaces().contains("softiov7:"));
    });
}

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

#[test]
fn tap_without_the_privilege_is_refused_with_a_remedy() {
    let name = "without_the_privilege_it_says_who_has_it_and_leaves_nothing";
    match fs::metadata("/dev/net/tun") {
        Err(error) => return skipped(name, &format!("/dev/net/tun: {error}")),
        Ok(tun) if tun.mode() & 0o006 != 0o006 => {
            return skipped(name, "not every user may open /dev/net/tun");
        }
        Ok(_) => {}
    }
    let folder = tempdir().unwrap();
    // Another user must reach all of it, and own the folder for the sockets.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
    let (binary, file) = (folder.path().join("softiov"), folder.path().join("softiov.toml"));
    copy_program(&binary);
    fs::write(&file, CONFIG).unwrap();
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    if geteuid().is_root() {
        chown(&sockets, Some(65_534), Some(65_534)).unwrap();
    }
    let mut command = as_nobody(&binary);
    command.arg("serve").arg("--config").arg(&file).arg("--runtime-dir").arg(&sockets);
    let said = finish(&mut command);
    assert_eq!(said.status, Some(1), "{}", said.err);
    for part in ["softiov7", "root or CAP_NET_ADMIN", "ip tuntap add"] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
    let left = files(&sockets).into_iter().flat_map(|folder| files(&sockets.join(folder)));
    assert_eq!(left.count(), 0, "no socket is left");
}

/// Returns a command that runs `binary` as an unprivileged user, without root's privileges.
fn as_nobody(binary: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(binary);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]).arg(binary);
    command
}
