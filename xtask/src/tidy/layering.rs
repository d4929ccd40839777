//! Checks which crate of the workspace depends on which: pure crates of the card are below, the programs that
//! run it above, and the lab's group is apart. People review dependencies from crates.io.

use std::path::PathBuf;

use super::finding::TidyFinding;
use super::pure::PURE;
use crate::metadata::{self, CargoDependency, CargoPackage};

/// Crates of the workspace, each with the crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("pcie", &[]),
    ("plane", &["units"]),
    ("offload", &["plane"]),
    ("capture-filter", &[]),
    ("rings", &["units", "pcie", "plane", "offload"]),
    ("i82576", &["pcie", "units"]),
    ("avf", &["pcie"]),
    ("virtio", &["pcie"]),
    ("virtio-nic", &["offload", "pcie", "plane", "rings", "units", "virtio"]),
    ("nic", &["units", "pcie", "plane", "offload", "rings", "i82576"]),
    ("avf-nic", &["units", "pcie", "plane", "offload", "rings", "avf"]),
    ("policy", &["units", "pcie"]),
    ("driver", &["units", "pcie", "policy", "i82576", "avf"]),
    ("iovm", &["pcie", "i82576", "driver"]),
    ("backplane", &["pcie", "policy", "i82576", "nic", "driver"]),
    ("vfio-user", &[]),
    ("vhost-user", &[]),
    ("host", &[]),
    ("keeper", &["host"]),
    (
        "daemon",
        &[
            "pcie",
            "plane",
            "offload",
            "capture-filter",
            "i82576",
            "avf",
            "nic",
            "avf-nic",
            "policy",
            "driver",
            "iovm",
            "vfio-user",
            "vhost-user",
            "virtio",
            "virtio-nic",
            "units",
            "host",
            "keeper",
        ],
    ),
    ("vhost-client", &["vhost-user", "virtio", "host"]),
    ("vfio-client", &["i82576", "driver", "vfio-user", "host"]),
    ("embedded-guest", &["i82576", "driver", "host", "vfio-client"]),
    ("direct", &["pcie", "policy", "i82576", "driver", "host", "vfio-client"]),
    ("linux-guest", &["host"]),
    ("split", &["i82576"]),
    ("sim", &[]),
    ("figure", &[]),
    ("hypervisor", &["pcie", "sim"]),
    ("guest", &["i82576", "driver", "split", "sim", "hypervisor"]),
    (
        "lab",
        &[
            "pcie",
            "plane",
            "i82576",
            "avf",
            "nic",
            "avf-nic",
            "policy",
            "driver",
            "iovm",
            "split",
            "sim",
            "hypervisor",
            "guest",
            "figure",
        ],
    ),
    (
        "bench",
        &["i82576", "driver", "host", "virtio", "vfio-client", "vhost-client", "linux-guest", "figure"],
    ),
    ("attack", &["i82576", "avf", "driver", "host", "keeper", "virtio", "vfio-client", "vhost-client"]),
    (
        "softiov",
        &[
            "policy",
            "daemon",
            "host",
            "keeper",
            "driver",
            "vfio-client",
            "embedded-guest",
            "direct",
            "linux-guest",
            "lab",
            "i82576",
        ],
    ),
    ("xtask", &["i82576", "avf"]),
];
/// Crate that may build on the lab's group: the program with `softiov lab`.
const LAB_USER: &str = "softiov";
/// Crates above the pure ones, which the tests of a pure crate must not use either.
const ABOVE: [&str; 2] = ["daemon", "softiov"];

pub(super) fn check(
    members: &[CargoPackage],
    manifest_of: impl Fn(&CargoPackage) -> PathBuf,
) -> Vec<TidyFinding> {
    let is_member =
        |dependency: &&CargoDependency| members.iter().any(|member| member.name == dependency.name);
    let of_lab = |member: &CargoPackage| manifest_of(member).starts_with(metadata::LAB);
    let is_of_lab = |name: &str| members.iter().any(|member| member.name == name && of_lab(member));
    let mut findings = Vec::new();
    for member in members {
        let mut found = |what: String, remedy| {
            let file = manifest_of(member);
            findings.push(TidyFinding { file, line: 1, rule: "layering", what, remedy });
        };
        let is_product = !of_lab(member) && member.crate_name() != LAB_USER;
        for dependency in member.dependencies.iter().filter(|used| is_product && is_of_lab(&used.name)) {
            let (name, wanted) = (member.crate_name(), dependency.crate_name());
            let what = format!("the crate `{name}` of the product may not use `{wanted}` of the lab's group");
            found(what, "ask `softiov lab` for its rows, or move the shared part to a crate in `crates/`");
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == member.crate_name()) else {
            found(
                format!("the crate `{}` has no layer", member.crate_name()),
                "add the crate to the table in xtask/src/tidy/layering.rs",
            );
            continue;
        };
        for dependency in member.dependencies.iter().filter(is_member) {
            if !may(member.crate_name(), allowed, dependency) {
                let way = if dependency.dev { "test with" } else { "build on" };
                let (name, wanted) = (member.crate_name(), dependency.crate_name());
                let what = format!("the crate `{name}` may not {way} `{wanted}`");
                found(what, "let a higher crate connect the two, or move the shared part to a lower crate");
            }
        }
    }
    findings
}

fn may(name: &str, allowed: &[&str], dependency: &CargoDependency) -> bool {
    let wanted = dependency.crate_name();
    if dependency.dev {
        !(PURE.contains(&name) && ABOVE.contains(&wanted))
    } else {
        allowed.contains(&wanted)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> CargoPackage {
        let dependency = |&(name, dev): &(&str, bool)| CargoDependency {
            name: name.to_owned(),
            dev,
            local: true,
            versioned: false,
        };
        CargoPackage {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..CargoPackage::default()
        }
    }

    fn found(members: &[CargoPackage]) -> Vec<String> {
        check(members, |_| PathBuf::new()).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn card_crate_must_not_depend_on_its_driver() {
        let below = [package("pcie", &[]), package("i82576", &[("pcie", false)]), package("driver", &[])];
        let nic = package("nic", &[("pcie", false), ("driver", false), ("thiserror", false)]);
        let members = [below.as_slice(), &[nic]].concat();
        assert_eq!(found(&members), ["the crate `nic` may not build on `driver`"]);
    }

    #[test]
    fn pure_crate_may_test_with_siblings_but_not_dependents() {
        let members = [
            package("daemon", &[]),
            package("driver", &[]),
            package("nic", &[("driver", true), ("daemon", true)]),
        ];
        assert_eq!(found(&members), ["the crate `nic` may not test with `daemon`"]);
    }

    #[test]
    fn product_crate_must_not_build_or_test_with_the_lab_group() {
        let mut members = ["sim", "daemon", "bench", "softiov", "guest"]
            .map(|name| package(name, &[("sim", name == "daemon")]));
        for member in &mut members {
            let group = if ["sim", "guest"].contains(&member.name.as_str()) { "lab" } else { "crates" };
            member.manifest = Path::new(group).join(&member.name).join("Cargo.toml");
        }
        let findings = check(&members, |member| member.manifest.clone());
        let of_group: Vec<_> = findings.iter().filter(|finding| finding.what.contains("group")).collect();
        let [daemon, bench] = of_group[..] else { panic!("{findings:?}") };
        assert_eq!(daemon.what, "the crate `daemon` of the product may not use `sim` of the lab's group");
        assert_eq!(bench.file, Path::new("crates/bench/Cargo.toml"));
    }

    #[test]
    fn new_crate_needs_a_row_in_the_layer_table() {
        assert_eq!(found(&[package("novel", &[])]), ["the crate `novel` has no layer"]);
    }

    #[test]
    fn layer_table_allows_only_earlier_crates_as_dependencies() {
        for (at, (name, allowed)) in ALLOWED.iter().enumerate() {
            let earlier = |wanted: &&str| ALLOWED[..at].iter().any(|(name, _)| name == wanted);
            assert!(allowed.iter().all(earlier), "{name} builds on a later crate");
        }
    }
}
