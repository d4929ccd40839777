//! Tests pages of the guide and the user guide, followed as users follow them ([`page`]). The test `package` follows
//! pages that need a virtual machine; those that need an uplink or hardware are not tested.

use crate::page::{self, DocumentationShell};
use crate::process::{SOFTIOV, ServeProcess, softiov};
use crate::survival::attach;
use host::test_support::{free_address, skipped};
use rustix::process::{getgid, getuid};
use std::path::Path;
use std::process::Command;
use tempfile::{TempDir, tempdir};

pub(crate) const GUIDE: &str = include_str!("../../../../docs/user-guide.md");

/// Creates a shell that runs the commands of a documentation page. Its home, runtime and state folders lie in `folder`;
/// on the page they are those of user 1000.
pub(crate) fn reader(folder: &TempDir) -> DocumentationShell {
    reader_with(folder, Path::new("/nonexistent"))
}

/// Creates a shell that runs the commands of a documentation page, with folders of its own and the programs of folder
/// `more` in its PATH.
fn reader_with(folder: &TempDir, more: &Path) -> DocumentationShell {
    let [home, run, state] = ["home", "run", "state"].map(|name| folder.path().join(name));
    for folder in [&home, &run] {
        std::fs::create_dir(folder).unwrap();
    }
    let programs = Path::new(SOFTIOV).parent().unwrap();
    let mut shell = Command::new("timeout");
    shell.args(["300", "sh"]).current_dir(&home).env("HOME", &home).env("LC_ALL", "C.UTF-8");
    shell.env("XDG_RUNTIME_DIR", &run).env("XDG_STATE_HOME", &state).env_remove("RUST_LOG");
    shell.env_remove("LAB_FORMATS").env("MPLBACKEND", "agg");
    let path = std::env::var("PATH").unwrap();
    shell.env("PATH", format!("{}:{}:{path}", programs.display(), more.display()));
    let places = [
        ("/run/user/1000", run.to_str().unwrap()),
        ("/home/you", home.to_str().unwrap()),
        ("docs/monitoring", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring")),
        ("docs/artifact", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/artifact")),
    ];
    DocumentationShell::at(shell, &places)
}

#[test]
fn guide_commands_for_driver_development_succeed() {
    if skipped_without("lspci", "pciutils") {
        return;
    }
    reader(&tempdir().unwrap()).follow(&page::guide("driver-development"));
}

#[test]
fn guide_commands_for_teaching_succeed() {
    if skipped_without("lspci", "pciutils") {
        return;
    }
    reader(&tempdir().unwrap()).follow(&page::guide("teaching"));
}

#[test]
fn guide_commands_for_virtio_succeed_without_a_guest() {
    reader(&tempdir().unwrap()).follow(&page::guide("virtio"));
}

#[test]
fn guide_commands_for_many_vms_succeed_with_two_guests() {
    if skipped_without("curl", "curl") {
        return;
    }
    let port = free_address().port().to_string();
    let page = page::guide("many-vms").replace("9582", &port);
    let folder = tempdir().unwrap();
    let mut guests = Vec::new();
    let mut reader = reader(&folder);
    for step in page::steps(&page) {
        if guests.is_empty() && step.command.starts_with("softiov vf list") {
            let sockets = folder.path().join("run/softiov");
            guests.extend([0, 1].map(|vf| attach(&sockets, vf)));
        }
        reader.take(&step);
    }
    assert_eq!(guests.len(), 2, "the page has two machines");
}

/// Has a real Prometheus scrape the host and fire an alert, in the order of the page.
#[test]
fn guide_commands_for_monitoring_succeed_with_prometheus() {
    if skipped_without("curl", "curl") {
        return;
    }
    let programs = match linux_guest::prometheus() {
        Ok(prometheus) => prometheus.server,
        Err(error) => return skipped("the page about Prometheus", &error.to_string()),
    };
    let [host, prometheus] = [free_address(), free_address()].map(|free| free.port().to_string());
    let page = page::guide("monitoring").replace("9582", &host).replace("9090", &prometheus);
    reader_with(&tempdir().unwrap(), programs.parent().unwrap()).follow(&page);
}

/// Returns true, and skips a page of the guide, if this machine does not have a program.
fn skipped_without(program: &str, package: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        skipped("a page of the guide", &format!("there is no {program} (Debian package {package})"));
    }
    missing
}

/// Sections of the user guide whose commands need neither an uplink nor hardware.
const HEADINGS: [&str; 4] = [
    "## Monitor a host",
    "## Change a VF's settings",
    "### iproute2, ethtool, devlink and lspci syntax",
    "## Mirrors and storm control",
];

/// Returns the text of the user guide below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let (_, section) = GUIDE.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    section.split("\n## ").next().unwrap().split("\n### ").next().unwrap()
}

#[test]
fn user_guide_commands_work_in_their_order() {
    for heading in HEADINGS {
        let steps = page::steps(section(heading));
        assert!(!steps.is_empty(), "{heading}");
        if heading.contains("lspci") && skipped_without("lspci", "pciutils") {
            continue;
        }
        let folder = tempdir().unwrap();
        let mut reader = reader(&folder);
        reader.run("softiov serve 2> log &\n");
        steps.iter().for_each(|step| reader.take(step));
    }
}

#[test]
fn user_guide_configuration_applies_without_its_uplinks() {
    let (_, section) = GUIDE.split_once("\n## The configuration file\n").unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let folder = tempdir().unwrap();
    // The host stays in the test's folder, and creates nothing outside of it.
    let own = |line: &&str| {
        !["runtime_dir", "state_dir", "uplink = {", "http = {", "socket"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    let mut text: String = block.lines().filter(own).map(|line| format!("{line}\n")).collect();
    // The guide's users and groups do not exist on every machine, or are not the test's.
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    for (name, id) in [("\"kvm\"", group), ("\"netadmin\"", group), ("\"alice\"", user), ("107", group)] {
        assert!(text.contains(&format!("= {name}")), "{name}");
        text = text.replace(&format!("= {name}"), &format!("= {id}"));
    }
    let [file, before] = ["softiov.toml", "before.toml"].map(|name| folder.path().join(name));
    std::fs::write(&file, &text).unwrap();
    // A running host can change neither `access` nor `control`, so it starts with the example and another VLAN.
    std::fs::write(&before, text.replacen("vlan = 100", "vlan = 101", 1)).unwrap();
    let serve = ServeProcess::start(&folder, &["--config", before.to_str().unwrap()]);
    let said = softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.out.contains("pf0vf0: ") && said.out.contains("vlan 101 -> 100"), "{}", said.out);
}
