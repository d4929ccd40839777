//! The operations page: its commands in the order in which they are printed, on a host with a guest; and its unit.
//!
//! Left out: `systemctl`.

use crate::process::{SOFTIOV, Serve, finish, softiov};
use crate::survival::attach;
use host::test_support::skipped;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::tempdir;

const PAGE: &str = include_str!("../../../../docs/operations.md");
const UNIT: &str = include_str!("../../../../packaging/systemd/softiov.service");

/// What a script of the page finds: its `softiov`, and the program in the place of `/usr/bin/softiov`.
fn prepare(folder: &Path) {
    fs::create_dir_all(folder.join("new")).unwrap();
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::copy(SOFTIOV, folder.join("program")).unwrap();
    fs::copy(SOFTIOV, folder.join("new/softiov")).unwrap();
    let place = folder.display();
    let script = format!(
        "#!/bin/sh\nexec {place}/program \"$@\" --runtime-dir {place}/sockets --state-dir {place}/state\n"
    );
    fs::write(folder.join("bin/softiov"), script).unwrap();
    fs::set_permissions(folder.join("bin/softiov"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The state file.
fn state_file(folder: &Path) -> String {
    let sockets = folder.join("sockets").display().to_string();
    let name = sockets.trim_matches('/').replace('-', "\\x2d").replace('/', "-");
    folder.join(format!("state/{name}.json")).display().to_string()
}

/// Waits until so many processes have served in turn.
fn wait_for(serve: &Serve, processes: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while serve.log().matches("serving").count() < processes {
        assert!(Instant::now() < deadline, "no process serves: {}", serve.log());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_commands_of_the_page_work_in_their_order() {
    let folder = tempdir().unwrap();
    let place = folder.path();
    prepare(place);
    let program = place.join("program");
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let blocks = PAGE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let [upgrade, again, back_up, restore, change] = blocks.collect::<Vec<_>>()[..] else {
        panic!("the page has other blocks")
    };
    let run = |serve: &Serve, block: &str| {
        let block = block.replace("/usr/bin/softiov", program.to_str().unwrap());
        let block = block.replace("/var/lib/softiov/run-softiov.json", &state_file(place));
        let mut command = Command::new("sh");
        command.arg("-ec").current_dir(place).env("PATH", &path).env("KEEPER", serve.keeper().to_string());
        let said = finish(command.arg(&block));
        assert_eq!(said.status, Some(0), "{block}{}{}\n{}", said.out, said.err, serve.log());
    };
    let mut serve = Serve::spawn(&folder, Command::new(&program).arg("serve"));
    let guest = attach(serve.folder(), 0);
    run(&serve, upgrade);
    wait_for(&serve, 2);
    run(&serve, again);
    wait_for(&serve, 3);
    run(&serve, back_up);
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    drop(guest);
    fs::write(state_file(place), "lost").unwrap();
    run(&serve, restore);
    let serve = Serve::spawn(&folder, Command::new(&program).arg("serve"));
    let said = softiov(serve.folder(), &["vf", "show", "pf0vf0"]).out;
    assert!(said.contains("kept: max_tx_rate 100"), "{said}");
    let _guest = attach(serve.folder(), 0);
    run(&serve, change);
}

#[test]
fn the_unit_of_the_page_is_the_one_that_is_shipped_and_systemd_takes_it() {
    assert!(PAGE.contains(&format!("```ini\n{UNIT}```\n")));
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.service");
    // Only the program is not where the unit has it.
    fs::write(&file, UNIT.replace("/usr/bin/softiov", "/bin/true")).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Err(error) => skipped("the unit", &format!("systemd-analyze is not there ({error})")),
        Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{output:?}"),
    }
}
