//! Tests settings that commands change and that must survive the host: the state file, the origin of each setting in
//! `vf show`, and a disk that cannot store them.

use crate::process::{CommandOutput, SOFTIOV, ServeProcess, files, softiov};
use host::test_support::skipped;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{TempDir, tempdir};

const FILE: &str = "[[port]]\n[[port.vf]]\nindex = 1\nvlan = 100\nqos = 3\n";

/// Creates a folder with a configuration file in it. Returns the folder, and the file's path.
fn with_file() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    fs::write(&file, FILE).unwrap();
    (folder, file)
}

fn start(folder: &TempDir, file: &Path) -> ServeProcess {
    ServeProcess::start(folder, &["--config", file.to_str().unwrap()])
}

fn run(serve: &ServeProcess, words: &str) -> CommandOutput {
    softiov(serve.folder(), &words.split(' ').collect::<Vec<_>>())
}

#[track_caller]
fn done(serve: &ServeProcess, words: &str) -> String {
    let said = run(serve, words);
    assert_eq!(said.status, Some(0), "{words}: {}", said.err);
    said.out
}

fn show(serve: &ServeProcess, what: &str) -> Value {
    serde_json::from_str(&done(serve, &format!("{what} --json"))).unwrap()
}

#[test]
fn stored_settings_survive_a_restart_and_show_their_origin() {
    let (folder, file) = with_file();
    let mut serve = start(&folder, &file);
    done(&serve, "vf set pf0vf1 --qos 5 --trust on");
    done(&serve, "vf set pf0vf1 --max-mtu 1500 --volatile");
    done(&serve, "port set pf0 --storm-broadcast 1000 --vfs 3 --link-local forward");
    done(&serve, "port limit pf0 dma-faults --quarantine 1000");
    done(&serve, "port mirror pf0 2 --to 0 --uplink both");
    let text = done(&serve, "vf show pf0vf1");
    for line in ["from the file: vlan 100\n", "kept: qos 5, trust on\n", "volatile: max_mtu 1500\n"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let before = show(&serve, "port show pf0");
    serve.kill_all();

    let serve = start(&folder, &file);
    let vf = show(&serve, "vf show pf0vf1");
    let (settings, origins) = (&vf["settings"], &vf["origins"]);
    assert_eq!((&settings["vlan"], &origins["vlan"]), (&100.into(), &"file".into()));
    assert_eq!((&settings["qos"], &origins["qos"]), (&5.into(), &"kept".into()));
    assert_eq!((&settings["trust"], &origins["trust"]), (&true.into(), &"kept".into()));
    assert_eq!((&settings["max_mtu"], &origins["max_mtu"]), (&0.into(), &Value::Null));
    let after = show(&serve, "port show pf0");
    assert_eq!((&after["settings"], &after["origins"]), (&before["settings"], &before["origins"]));
    assert_eq!((&after["settings"]["vfs"], &after["vfs"][3]), (&3.into(), &Value::Null));
    assert_eq!(
        (&after["settings"]["link_local"], &after["origins"]["link_local"]),
        (&"forward".into(), &"kept".into())
    );
}

#[test]
fn option_default_removes_stored_settings_by_name() {
    let (folder, file) = with_file();
    let serve = start(&folder, &file);
    done(&serve, "vf set pf0vf1 --qos 5 --trust on --quarantine on");
    let text = done(&serve, "vf set pf0vf1 --default qos,trust,quarantine");
    assert!(text.contains("from the file: qos 3, vlan 100\n") && !text.contains("kept"), "{text}");
    assert!(text.contains("trust off") && !text.contains("quarantined"), "{text}");
    let refused = run(&serve, "vf set pf0vf1 --default speed --trust on");
    assert!(refused.status == Some(1) && refused.err.contains("spoofchk"), "{refused:?}");
    assert_eq!(show(&serve, "vf show pf0vf1")["settings"]["trust"], false);
    done(&serve, "port mirror pf0 2 --to 0 --uplink both");
    assert!(!done(&serve, "port set pf0 --default mirror.2").contains("mirror"));
}

/// State folder in which even root cannot create a file.
const NO_FOLDER: &str = "/proc/softiov";

#[test]
fn setting_that_cannot_be_stored_is_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    fs::write(&file, FILE).unwrap();
    let mut command = Command::new(SOFTIOV);
    let serve = ServeProcess::spawn_keeping(
        &folder,
        command.args(["serve", "--config"]).arg(&file),
        NO_FOLDER.as_ref(),
    );
    for words in
        ["vf set pf0vf1 --trust on", "port set pf0 --vfs 2", "port mirror pf0 2 --to 0 --uplink both"]
    {
        let before = (show(&serve, "port list"), serve.files());
        let refused = run(&serve, words);
        assert_eq!((refused.status, refused.out.as_str()), (Some(1), ""), "{words}");
        for part in [NO_FOLDER, "nothing was changed", "state_dir", "--volatile"] {
            assert!(refused.err.contains(part), "{part} in {}", refused.err);
        }
        assert_eq!((show(&serve, "port list"), serve.files()), before, "{words}");
    }
    assert!(done(&serve, "vf set pf0vf1 --trust on --volatile").contains("volatile: trust on"));
}

/// Gives the host a state folder on a tmpfs that is full or read-only.
#[test]
fn setting_is_refused_on_a_full_or_read_only_disk() {
    let name = "setting_is_refused_on_a_full_or_read_only_disk";
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return skipped(name, "this process may not create a mount namespace");
    }
    for spoil in ["head -c 1M /dev/zero > $0/fill", "mount -o remount,ro $0"] {
        let folder = tempdir().unwrap();
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let script = format!("mount -t tmpfs -o size=64k none $0; {spoil}; exec {SOFTIOV} serve \"$@\"");
        let mut command = Command::new("unshare");
        let serve =
            ServeProcess::spawn_keeping(&folder, command.args(["-m", "sh", "-c", &script]).arg(&disk), &disk);
        let refused = run(&serve, "vf set pf0vf1 --trust on");
        assert_eq!(refused.status, Some(1), "{spoil}: {refused:?}");
        assert!(
            refused.err.contains("nothing was changed") && refused.err.contains("os error"),
            "{}",
            refused.err
        );
        assert_eq!(show(&serve, "vf show pf0vf1")["settings"]["trust"], false, "{spoil}");
    }
}

#[test]
fn state_file_is_replaced_without_leftovers() {
    let (folder, file) = with_file();
    let serve = start(&folder, &file);
    let state = folder.path().join("state");
    assert_eq!(files(&state), Vec::<String>::new(), "nothing was changed yet");
    for rate in [10, 20, 30] {
        done(&serve, &format!("vf set pf0vf1 --max-tx-rate {rate}"));
        let [name] = &files(&state)[..] else { panic!("{:?}", files(&state)) };
        let kept: Value = serde_json::from_slice(&fs::read(state.join(name)).unwrap()).unwrap();
        assert_eq!(kept["vfs"]["pf0vf1"]["max_tx_rate"], rate);
    }
}

#[test]
fn invalid_settings_state_file_is_named_and_stops_the_start() {
    let (folder, file) = with_file();
    let mut serve = start(&folder, &file);
    done(&serve, "vf set pf0vf1 --qos 5 --mac 02:00:00:00:00:77");
    serve.end(Signal::TERM);
    let state = folder.path().join("state");
    let path = state.join(&files(&state)[0]);
    let refused = |remedy: &str| {
        let said = softiov(&folder.path().join("sockets"), &["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(said.status, Some(1));
        assert!(said.err.contains(path.to_str().unwrap()) && said.err.contains(remedy), "{}", said.err);
        said.err
    };
    fs::write(&file, "[[port]]\nmac = \"02:00:00:00:00:77\"\n[[port.vf]]\nindex = 1\nvlan = 100\n").unwrap();
    assert!(refused("change the configuration file").contains("pf0vf1.mac"));
    let kept = fs::read_to_string(&path).unwrap();
    for damaged in ["", "{}", &kept.replace("qos", "qux")] {
        fs::write(&path, damaged).unwrap();
        refused("move the file away");
    }
    // Moving the settings of a later program away would drop them all.
    fs::write(&path, kept.replace("\"version\": 1", "\"version\": 2")).unwrap();
    refused("start the program that has written it");
}
