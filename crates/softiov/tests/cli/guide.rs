//! The user guide's commands, run in the order in which they are printed. Left out: sections that take a virtual machine,
//! an uplink or hardware.

use crate::process::{Serve, softiov};
use tempfile::tempdir;

const GUIDE: &str = include_str!("../../../../docs/user-guide.md");

/// The `softiov` lines of the first block of a section, without their comments.
fn commands(heading: &str) -> Vec<&'static str> {
    let (_, section) = GUIDE.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines = block.lines().filter_map(|line| line.strip_prefix("softiov "));
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim()).collect()
}

#[test]
fn the_commands_of_the_guide_work_in_their_order() {
    for heading in ["## Watching", "## Changing a VF", "## Mirrors and storms"] {
        let folder = tempdir().unwrap();
        let serve = Serve::start(&folder, &[]);
        let commands = commands(heading);
        assert!(commands.len() > 2, "{heading}");
        for command in commands {
            let said = softiov(serve.folder(), &command.split(' ').collect::<Vec<_>>());
            assert_eq!(said.status, Some(0), "{heading}: softiov {command}: {}", said.err);
        }
    }
}

#[test]
fn the_guides_configuration_applies_but_for_its_uplinks() {
    let (_, section) = GUIDE.split_once("\n## The configuration file\n").unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let folder = tempdir().unwrap();
    // The host stays where it is, and nothing is made outside of the test's folder.
    let own = |line: &&str| {
        !["runtime_dir", "state_dir", "uplink = {", "socket"].iter().any(|key| line.starts_with(key))
    };
    let mut text: String = block.lines().filter(own).map(|line| format!("{line}\n")).collect();
    // Its users and groups are not on every machine.
    for name in ["kvm", "netadmin", "alice"] {
        assert!(text.contains(&format!("= \"{name}\"")), "{name}");
        text = text.replace(&format!("= \"{name}\""), "= 0");
    }
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, text).unwrap();
    let serve = Serve::start(&folder, &[]);
    let said = softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.out.contains("pf0vf0: ") && said.out.contains("vlan 0 -> 100"), "{}", said.out);
}
