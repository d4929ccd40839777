//! Checks the crates that others can depend on: package name, description, README, Rust version, and dependencies that
//! a registry can have.

use super::finding::TidyFinding;
use super::opening;
use super::pure::PURE;
use super::source::TrackedFile;
use crate::metadata::{CargoPackage, PREFIX};

/// Names of the crates that are published for others, and of the crates below them. Each comes after those that it
/// needs, tests included, which is the order in which they can be published.
pub(crate) const DOORS: [&str; 15] = [
    "units",
    "pcie",
    "host",
    "keeper",
    "vfio-user",
    "plane",
    "offload",
    "rings",
    "i82576",
    "avf",
    "policy",
    "driver",
    "nic",
    "avf-nic",
    "vfio-client",
];
/// Published crates that exist only because other published crates need them. They have no README.
const BELOW: [&str; 3] = ["units", "host", "policy"];
/// Published crates that use the standard library. All other published crates are pure.
const STD: [&str; 3] = ["host", "keeper", "vfio-client"];

/// Returns the package name of a crate, for cargo's `--package`.
pub(crate) fn package_name(name: &str) -> String {
    let prefix = if DOORS.contains(&name) { PREFIX } else { "" };
    format!("{prefix}{name}")
}

pub(super) fn check(members: &[CargoPackage], tracked: &[TrackedFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for name in DOORS {
        let wrong = match members.iter().find(|member| member.name == package_name(name)) {
            Some(member) => manifest(name, member).into_iter().chain(texts(name, member, tracked)).collect(),
            None => vec![format!("no package is called `{}`", package_name(name))],
        };
        findings.extend(wrong.into_iter().map(|what| TidyFinding {
            file: format!("crates/{name}/Cargo.toml").into(),
            line: 1,
            rule: "doors",
            what,
            remedy: "see docs/decisions/33-crates-for-outsiders.md",
        }));
    }
    findings
}

/// Returns the faults of a published crate's manifest.
fn manifest(name: &str, package: &CargoPackage) -> Vec<String> {
    let fields = [
        (package.published, "`publish` is false"),
        (package.rust_version.is_some(), "`rust-version` is missing"),
        (package.description.is_some(), "`description` is missing"),
        (BELOW.contains(&name) || package.has_keywords, "`keywords` are missing"),
        (PURE.contains(&name) || STD.contains(&name), "the crate uses std, and is not among those that may"),
    ];
    let mut faults: Vec<_> =
        fields.iter().filter(|(right, _)| !right).map(|(_, fault)| (*fault).to_owned()).collect();
    let place = |of: &str| DOORS.iter().position(|door| *door == of);
    for dependency in package.dependencies.iter().filter(|dependency| dependency.local) {
        let needed = dependency.crate_name();
        // Cargo leaves a development dependency without a version out of the package.
        if !dependency.versioned && !dependency.dev {
            faults.push(format!("the dependency `{needed}` has no version beside its path"));
        } else if dependency.versioned && place(needed).is_none_or(|at| Some(at) >= place(name)) {
            faults.push(format!("the dependency `{needed}` cannot be published before this crate"));
        }
    }
    faults
}

/// Returns the faults of a published crate's README and of the first line of its library.
fn texts(name: &str, package: &CargoPackage, tracked: &[TrackedFile]) -> Vec<String> {
    if BELOW.contains(&name) {
        return Vec::new();
    }
    let text = |file: &str| {
        let path = format!("crates/{name}/{file}");
        tracked.iter().find(|tracked| tracked.path.ends_with(&path)).map_or("", |file| &file.text)
    };
    let version = format!("Rust {}", package.rust_version.as_deref().unwrap_or_default());
    let faults = [
        (text("README.md").contains(&version), format!("README.md does not say `{version}`")),
        (
            text("src/lib.rs").starts_with(opening::README),
            "src/lib.rs does not open with the README".to_owned(),
        ),
    ];
    faults.into_iter().filter(|(right, _)| !right).map(|(_, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::CargoDependency;

    fn package() -> CargoPackage {
        CargoPackage {
            name: package_name("plane"),
            published: true,
            description: Some("A plane.".to_owned()),
            rust_version: Some("1.95".to_owned()),
            has_keywords: true,
            dependencies: vec![depends("units", true, false), depends("nic", false, true)],
            ..CargoPackage::default()
        }
    }

    fn depends(name: &str, versioned: bool, dev: bool) -> CargoDependency {
        CargoDependency { name: package_name(name), versioned, dev, local: true }
    }

    #[test]
    fn published_crate_needs_a_complete_manifest() {
        assert_eq!(manifest("plane", &package()), Vec::<String>::new());
        let bare = CargoPackage { name: package_name("plane"), ..CargoPackage::default() };
        assert_eq!(manifest("plane", &bare).len(), 4);
        assert_eq!(manifest("daemon", &package()).len(), 2, "neither pure nor among the packages");
    }

    #[test]
    fn published_crate_may_depend_only_on_crates_published_first() {
        for (wrong, fault) in [
            (depends("units", false, false), "the dependency `units` has no version beside its path"),
            (depends("nic", true, true), "the dependency `nic` cannot be published before this crate"),
            (depends("daemon", true, false), "the dependency `daemon` cannot be published before this crate"),
        ] {
            let package = CargoPackage { dependencies: vec![wrong], ..package() };
            assert_eq!(manifest("plane", &package), [fault]);
        }
    }

    #[test]
    fn published_crate_needs_a_readme_with_its_rust_version() {
        let file = |path: &str, text: &str| TrackedFile { path: path.into(), text: text.to_owned() };
        let readme = file("crates/plane/README.md", "Needs Rust 1.95.\n");
        let library = file("crates/plane/src/lib.rs", opening::README);
        assert!(texts("plane", &package(), &[readme, library]).is_empty());
        assert_eq!(texts("plane", &package(), &[]).len(), 2);
        assert!(texts("units", &package(), &[]).is_empty());
    }
}
