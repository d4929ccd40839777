//! Tests `softiov apply` and SIGHUP: the difference that is printed, and files that are applied completely or not at
//! all.

use crate::process::{CommandOutput, PATIENCE, ServeProcess, softiov};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

/// Starts a host with a configuration file. Returns the test's folder, the host, and the file's path.
fn host(text: &str) -> (TempDir, ServeProcess, PathBuf) {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    fs::write(&file, text).unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    (folder, serve, file)
}

fn apply(serve: &ServeProcess, file: &Path, text: &str, option: &[&str]) -> CommandOutput {
    fs::write(file, text).unwrap();
    softiov(serve.folder(), &[&["apply", "-f", file.to_str().unwrap()], option].concat())
}

fn settings(serve: &ServeProcess, vf: &str) -> Value {
    let said = softiov(serve.folder(), &["vf", "show", vf, "--json"]);
    serde_json::from_str::<Value>(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))["settings"]
        .clone()
}

fn names(serve: &ServeProcess) -> Vec<String> {
    let said = softiov(serve.folder(), &["vf", "list"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    said.out.lines().map(|line| line.trim().split([' ', ':']).next().unwrap().to_owned()).collect()
}

const BEFORE: &str = "[[port]]\nvfs = 2\n[[port]]\nname = \"old\"\nvfs = 1\n";
const AFTER: &str = "[[port]]\nvfs = 3\nstorm.broadcast = 1000\n[[port.vf]]\nindex = 1\nvlan = 20\nspoofchk = false\n\
                     [[port]]\nname = \"new\"\nvfs = 1\n";

#[test]
fn apply_prints_and_then_applies_the_difference() {
    let (folder, serve, file) = host(BEFORE);
    let other = folder.path().join("other.toml");
    let told = apply(&serve, &other, AFTER, &["--dry-run"]);
    let expected = "pf0: storm.broadcast 0 -> 1000, vfs 2 -> 3\npf0vf1: spoofchk on -> off, vlan 0 -> 20\npf0vf2: added\n\
                    new: added\nnewvf0: added\nold: removed\noldvf0: removed\n";
    assert_eq!((told.status, told.out.as_str()), (Some(0), expected), "{}", told.err);
    assert_eq!(names(&serve), ["pf0", "pf0vf0", "pf0vf1", "old", "oldvf0"], "nothing was changed");
    assert_eq!(settings(&serve, "pf0vf1")["vlan"], 0);
    let told: Value = serde_json::from_str(&apply(&serve, &other, AFTER, &["--json"]).out).unwrap();
    assert_eq!((&told["dry_run"], &told["changes"][1]["what"]), (&false.into(), &"changed".into()));
    assert_eq!(told["changes"][1]["settings"]["vlan"], json!({ "old": 0, "new": 20 }));
    assert_eq!(names(&serve), ["pf0", "pf0vf0", "pf0vf1", "pf0vf2", "new", "newvf0"]);
    assert_eq!(
        (&settings(&serve, "pf0vf1")["vlan"], &settings(&serve, "pf0vf1")["spoofchk"]),
        (&20.into(), &false.into())
    );
    wait_for(|| {
        let sockets = ["newvf0", "pf0vf0", "pf0vf1", "pf0vf2"].map(|vf| format!("{vf}/vf.sock"));
        serve.files() == [&["control/control.sock".to_owned()][..], &sockets].concat()
    });
    assert_eq!(apply(&serve, &file, AFTER, &[]).out, "nothing differs\n");
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < deadline, "the condition does not hold within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn refused_configuration_file_changes_no_setting() {
    let (folder, serve, _) = host(BEFORE);
    let file = folder.path().join("other.toml");
    let before = names(&serve);
    // A file in the place of a socket, which shows only when the socket is opened.
    fs::create_dir(serve.folder().join("newvf0")).unwrap();
    fs::write(serve.folder().join("newvf0/vf.sock"), "precious").unwrap();
    for (text, parts) in [
        (AFTER, ["newvf0", "is not a socket"]),
        ("[[port]]\nvfs = 9", ["pf0.vfs", "1-8"]),
        ("[[port]]\nvlfs = 9", ["other.toml", "line 2"]),
        (
            "[[port]]\nvfs = 2\nmac = \"02:00:00:00:00:09\"\n[[port.vf]]\nindex = 0\ntrust = true",
            ["pf0.mac", "restart the host"],
        ),
        ("[[port]]\npf = \"guest\"", ["pf0.pf or socket", "restart the host"]),
        ("access = { mode = \"0666\" }\n[[port]]\nvfs = 2", ["pf0.access cannot change", "restart the host"]),
        (
            "[[port]]\nvfs = 2\n[[port.vf]]\nindex = 1\naccess = { owner = 65533 }",
            ["pf0.access cannot change", "restart the host"],
        ),
        ("control = { group = 65533 }\n[[port]]\nvfs = 2", ["control cannot change", "restart the host"]),
    ] {
        let said = apply(&serve, &file, text, &[]);
        assert_eq!(said.status, Some(1), "{text}: {said:?}");
        assert!(parts.iter().all(|part| said.err.contains(part)), "{text}: {}", said.err);
        assert_eq!(names(&serve), before, "{text}");
        assert_eq!(settings(&serve, "pf0vf0")["trust"], false, "{text}");
    }
}

#[test]
fn apply_keeps_command_settings_that_the_file_lacks() {
    let (_folder, serve, file) = host("[[port]]\n[[port.vf]]\nindex = 0\nqos = 1\nvlan = 5\n");
    for change in ["--qos 7 --trust on", "--max-mtu 1500 --volatile"] {
        let words = format!("vf set pf0vf0 {change}");
        assert_eq!(softiov(serve.folder(), &words.split(' ').collect::<Vec<_>>()).status, Some(0));
    }
    let said = apply(&serve, &file, "[[port]]\n[[port.vf]]\nindex = 0\nqos = 2\nvlan = 5\n", &[]);
    assert_eq!(said.out, "pf0vf0: qos 7 -> 2\n");
    let after = settings(&serve, "pf0vf0");
    assert_eq!((&after["trust"], &after["max_mtu"]), (&true.into(), &1500.into()));
}

#[test]
fn apply_can_swap_the_mac_addresses_of_two_vfs() {
    let file = |a, b| {
        format!(
            "[[port]]\n[[port.vf]]\nindex = 0\nmac = \"02:00:00:00:00:0{a}\"\n\
             [[port.vf]]\nindex = 1\nmac = \"02:00:00:00:00:0{b}\"\n"
        )
    };
    let (_folder, serve, path) = host(&file(1, 2));
    let said = apply(&serve, &path, &file(2, 1), &[]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert_eq!(settings(&serve, "pf0vf0")["mac"], "02:00:00:00:00:02");
}

#[test]
fn removal_of_a_vf_disconnects_only_its_own_client() {
    let (_folder, serve, file) = host("[[port]]\nvfs = 2\n");
    let connect = |vf| UnixStream::connect(serve.folder().join(format!("pf0vf{vf}/vf.sock"))).unwrap();
    let (stays, goes) = (connect(0), connect(1));
    wait_for(|| softiov(serve.folder(), &["port", "list"]).out.contains("2 VFs, 2 with a client"));
    assert_eq!(apply(&serve, &file, "[[port]]\nvfs = 1\n", &[]).out, "pf0: vfs 2 -> 1\npf0vf1: removed\n");
    wait_for(|| has_ended(&goes));
    assert!(!has_ended(&stays));
    assert_eq!(softiov(serve.folder(), &["vf", "disconnect", "pf0vf0"]).status, Some(0));
    wait_for(|| has_ended(&stays));
    assert_eq!(softiov(serve.folder(), &["port", "set", "pf0", "--vfs", "2"]).status, Some(0));
    let _again = connect(1);
    wait_for(|| softiov(serve.folder(), &["port", "list"]).out.contains("2 VFs, 1 with a client"));
}

fn has_ended(mut client: &UnixStream) -> bool {
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    matches!(std::io::Read::read(&mut client, &mut [0]), Ok(0))
}

#[test]
fn applied_file_outlives_restarts_until_config_file_changes() {
    let (folder, mut serve, file) = host(BEFORE);
    let other = folder.path().join("other.toml");
    assert_eq!(apply(&serve, &other, AFTER, &[]).status, Some(0));
    serve.kill_all();
    let start = || ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let mut serve = start();
    assert_eq!(names(&serve), ["pf0", "pf0vf0", "pf0vf1", "pf0vf2", "new", "newvf0"]);
    serve.kill_all();
    fs::write(&file, format!("{BEFORE}\n# Changed.\n")).unwrap();
    assert_eq!(names(&start()), ["pf0", "pf0vf0", "pf0vf1", "old", "oldvf0"]);
}

#[test]
fn sighup_reloads_the_file_and_refuses_an_invalid_one() {
    let (_folder, serve, file) = host("[[port]]\nvfs = 2\n");
    assert_eq!(softiov(serve.folder(), &["vf", "set", "pf0vf0", "--trust", "on"]).status, Some(0));
    serve.signal(Signal::HUP);
    wait_for(|| serve.log().contains("the configuration file has not changed"));
    fs::write(&file, "[[port]]\nvfs = 12\n").unwrap();
    serve.signal(Signal::HUP);
    wait_for(|| serve.log().contains("1-8"));
    assert_eq!(names(&serve).len(), 3);
    fs::write(&file, "[[port]]\nvfs = 3\n[[port.vf]]\nindex = 0\nspoofchk = false\n").unwrap();
    serve.signal(Signal::HUP);
    wait_for(|| names(&serve).len() == 4);
    let vf = settings(&serve, "pf0vf0");
    assert_eq!((&vf["trust"], &vf["spoofchk"]), (&true.into(), &false.into()));
}
