//! Test of the list of crates whose sources are part of the model's version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the crate that draws figures and determines no row.
const SHOWN: &str = "crates/figure";

fn manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap()
}

/// Returns the folders of a crate's dependencies that are members of the workspace, by the paths in its manifest.
fn dependencies(workspace: &Path, folder: &str, members: &toml::Table) -> Vec<String> {
    let manifest = manifest(&workspace.join(folder).join("Cargo.toml"));
    let names = manifest.get("dependencies").and_then(toml::Value::as_table);
    let path = |name: &String| Some(members.get(name)?.get("path")?.as_str()?.to_owned());
    names.into_iter().flat_map(toml::Table::keys).filter_map(path).collect()
}

/// A change of a crate that the list lacks would leave the version, and stored rows of the old model would be reused.
#[test]
fn version_covers_every_crate_that_the_lab_depends_on() {
    let lab = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let workspace = lab.join("../..");
    let root = manifest(&workspace.join("Cargo.toml"));
    let members = root["workspace"]["dependencies"].as_table().unwrap();
    let (mut needed, mut pending) = (BTreeSet::new(), vec!["lab/lab".to_owned()]);
    while let Some(folder) = pending.pop() {
        if folder != SHOWN && needed.insert(folder.clone()) {
            pending.extend(dependencies(&workspace, &folder, members));
        }
    }
    let text = fs::read_to_string(lab.join("hashed-crates.txt")).unwrap();
    let hashed: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(hashed, needed, "lab/lab/hashed-crates.txt");
}
