//! Test of the list of crates whose sources are part of the model's version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate that draws figures and determines no row.
const SHOWN: &str = "figure";

fn manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap()
}

/// Returns the names of the dependencies of `krate` that are members of the workspace with `members`.
fn dependencies(folder: &Path, krate: &str, members: &toml::Table) -> Vec<String> {
    let manifest = manifest(&folder.join(krate).join("Cargo.toml"));
    let names = manifest.get("dependencies").and_then(toml::Value::as_table);
    let is_member = |name: &String| members.get(name).is_some_and(|found| found.get("path").is_some());
    names.into_iter().flat_map(toml::Table::keys).filter(|name| is_member(name)).cloned().collect()
}

/// A change of a crate that the list lacks would leave the version, and stored rows of the old model would be reused.
#[test]
fn version_covers_every_crate_that_the_lab_depends_on() {
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = lab.join("..");
    let workspace = manifest(&folder.join("../Cargo.toml"));
    let members = workspace["workspace"]["dependencies"].as_table().unwrap();
    let (mut needed, mut pending) = (BTreeSet::new(), vec!["lab".to_owned()]);
    while let Some(krate) = pending.pop() {
        if krate != SHOWN && needed.insert(krate.clone()) {
            pending.extend(dependencies(&folder, &krate, members));
        }
    }
    let text = fs::read_to_string(lab.join("hashed-crates.txt")).unwrap();
    let hashed: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(hashed, needed, "crates/lab/hashed-crates.txt");
}
