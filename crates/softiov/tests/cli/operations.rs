//! Tests the operations page: its commands in their order on a host with a guest, and its systemd unit. `systemctl` is
//! not run.

use crate::page::{self, DocumentationShell, DocumentedCommand};
use crate::process::{PATIENCE, ServeProcess, copy_program, softiov};
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

/// Creates the programs that the page's scripts call: a `softiov` that controls the test's host, and one that stands
/// for `/usr/bin/softiov`.
fn prepare(folder: &Path) {
    for made in ["new", "bin", "program"] {
        fs::create_dir_all(folder.join(made)).unwrap();
    }
    copy_program(&folder.join("program/softiov"));
    copy_program(&folder.join("new/softiov"));
    let place = folder.display();
    let script = format!(
        "#!/bin/sh\nexec {place}/program/softiov \"$@\" --runtime-dir {place}/sockets --state-dir {place}/state\n"
    );
    fs::write(folder.join("bin/softiov"), script).unwrap();
    fs::set_permissions(folder.join("bin/softiov"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the path of the file in which the host stores changed settings.
fn state_file(folder: &Path) -> String {
    let sockets = folder.join("sockets").display().to_string();
    let name = sockets.trim_matches('/').replace('-', "\\x2d").replace('/', "-");
    folder.join(format!("state/{name}.json")).display().to_string()
}

/// Waits until the log shows that `processes` host processes have begun to serve, one after the other.
fn wait_for(serve: &ServeProcess, processes: usize) {
    let deadline = Instant::now() + PATIENCE;
    while serve.log().matches("serving").count() < processes {
        assert!(Instant::now() < deadline, "no process serves: {}", serve.log());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn operations_page_commands_work_in_their_order() {
    let folder = tempdir().unwrap();
    let place = folder.path();
    prepare(place);
    let program = place.join("program/softiov");
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let places = [
        ("/usr/bin/softiov", program.to_str().unwrap()),
        ("/var/lib/softiov/run-softiov.json", &state_file(place)),
    ];
    let blocks: Vec<DocumentedCommand> = page::steps(PAGE);
    let [processes, filter, upgrade, again, back_up, restore, change] = &blocks[..] else {
        panic!("the page has other blocks")
    };
    let run = |serve: &ServeProcess, block: &DocumentedCommand| {
        let mut shell = Command::new("sh");
        shell.current_dir(place).env("PATH", &path).env("KEEPER", serve.keeper().to_string());
        DocumentationShell::at(shell, &places).take(block);
    };
    let mut serve = ServeProcess::spawn(&folder, Command::new(&program).arg("serve"));
    let guest = attach(serve.folder(), 0);
    run(&serve, processes);
    run(&serve, filter);
    run(&serve, upgrade);
    wait_for(&serve, 2);
    run(&serve, again);
    wait_for(&serve, 3);
    run(&serve, back_up);
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
    drop(guest);
    fs::write(state_file(place), "lost").unwrap();
    run(&serve, restore);
    let serve = ServeProcess::spawn(&folder, Command::new(&program).arg("serve"));
    let said = softiov(serve.folder(), &["vf", "show", "pf0vf0"]).out;
    assert!(said.contains("kept: max_tx_rate 100"), "{said}");
    let _guest = attach(serve.folder(), 0);
    run(&serve, change);
}

#[test]
fn shipped_systemd_unit_is_valid_and_equals_the_page() {
    assert!(PAGE.contains(&format!("```ini\n{UNIT}```\n")));
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.service");
    // Only the program and its manual are not where the unit expects them.
    let unit = UNIT.replace("/usr/bin/softiov", "/bin/true").replace("man:softiov(1) ", "");
    fs::write(&file, unit).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Err(error) => skipped("the unit", &format!("cannot run systemd-analyze: {error}")),
        Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{output:?}"),
    }
}
