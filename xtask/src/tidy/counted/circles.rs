//! Finds files of a crate that import each other in a circle: none of them can be read first. It follows an import
//! through re-exports to the file that defines the name. It reads no tests and no names that macros or methods bring.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::imports::{ModulesByPath, SourceModule};
use super::place::BudgetedFinding;

/// Returns a finding for each file that is part of a circle, with the circle's other files.
pub(super) fn check(crates: &BTreeMap<PathBuf, ModulesByPath>) -> Vec<BudgetedFinding> {
    crates.values().flat_map(in_crate).collect()
}

fn in_crate(modules: &ModulesByPath) -> Vec<BudgetedFinding> {
    let arrows = arrows(modules);
    let mut places = Vec::new();
    for circle in circles(&arrows) {
        for file in &circle {
            let next: Vec<_> =
                arrows[file].intersection(&circle).map(|file| file.to_string_lossy()).collect();
            let text = format!(
                "the file is one of {} files that import each other in a circle; it imports {}",
                circle.len(),
                next.join(", ")
            );
            places.push(BudgetedFinding { file: file.clone(), line: 1, text });
        }
    }
    places
}

/// Source files, each with the files that it imports from.
type ImportGraph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

fn arrows(modules: &ModulesByPath) -> ImportGraph {
    let mut arrows: ImportGraph =
        modules.values().map(|module| (module.file.clone(), BTreeSet::new())).collect();
    for (name, module) in modules {
        for path in &module.paths {
            if let Some(file) = resolve(modules, name, path, 0).filter(|file| *file != module.file) {
                arrows.entry(module.file.clone()).or_default().insert(file);
            }
        }
    }
    arrows
}

/// Number of aliases that are followed before the path of an import counts as unknown. A chain of re-exports is
/// shorter.
const MOST_ALIASES: u32 = 16;

/// Returns the file that defines the item named by a path in the module `from`. Returns `None` for names of other
/// crates.
fn resolve(modules: &ModulesByPath, from: &[String], path: &[String], aliases: u32) -> Option<PathBuf> {
    let (mut at, rest) = start(modules, from, path)?;
    for (done, segment) in rest.iter().enumerate() {
        let child: Vec<String> = at.iter().cloned().chain([segment.clone()]).collect();
        if modules.contains_key(&child) {
            at = child;
            continue;
        }
        // A folder whose module file is a test's has none.
        let module = modules.get(&at)?;
        if aliases < MOST_ALIASES && !module.defines.contains(segment) {
            let behind =
                |alias: &Vec<String>| alias.iter().chain(&rest[done + 1..]).cloned().collect::<Vec<_>>();
            if let Some(alias) = module.aliases.get(segment) {
                return resolve(modules, &at, &behind(alias), aliases + 1);
            }
            let named = |glob: &Vec<String>| glob.iter().chain(&rest[done..]).cloned().collect::<Vec<_>>();
            let found = module.globs.iter().find_map(|glob| defined(modules, &at, &named(glob), aliases + 1));
            if found.is_some() {
                return found;
            }
        }
        return Some(module.file.clone());
    }
    modules.get(&at).map(|module| module.file.clone())
}

/// Returns the file that defines the item named by a path, but only if that file defines the path's last name itself.
fn defined(modules: &ModulesByPath, from: &[String], path: &[String], aliases: u32) -> Option<PathBuf> {
    let file = resolve(modules, from, path, aliases)?;
    let last = path.last()?;
    let defines = |module: &&SourceModule| module.file == file && module.defines.contains(last);
    modules.values().find(defines).map(|module| module.file.clone())
}

/// Returns the module in which a path begins, and the rest of the path.
fn start<'a>(
    modules: &ModulesByPath,
    from: &[String],
    path: &'a [String],
) -> Option<(Vec<String>, &'a [String])> {
    let (first, rest) = path.split_first()?;
    let mut at = from.to_vec();
    match first.as_str() {
        "crate" => Some((Vec::new(), rest)),
        "self" => Some((at, rest)),
        "super" => {
            at.pop()?;
            let mut rest = rest;
            while let Some(("super", behind)) =
                rest.split_first().map(|(first, behind)| (first.as_str(), behind))
            {
                at.pop()?;
                rest = behind;
            }
            Some((at, rest))
        }
        // A module or name of this file; otherwise another crate.
        _ => {
            let child: Vec<String> = from.iter().cloned().chain([first.clone()]).collect();
            let known = modules.contains_key(&child) || modules.get(from)?.aliases.contains_key(first);
            known.then_some((at, path))
        }
    }
}

/// Returns the sets of files that import each other in a circle.
fn circles(arrows: &ImportGraph) -> Vec<BTreeSet<PathBuf>> {
    let reach: BTreeMap<&PathBuf, BTreeSet<PathBuf>> =
        arrows.keys().map(|file| (file, reached(arrows, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, reached) in &reach {
        if reached.contains(*file) {
            let back = |other: &&PathBuf| reach.get(*other).is_some_and(|reached| reached.contains(*file));
            circles.insert(reached.iter().filter(back).cloned().collect::<BTreeSet<_>>());
        }
    }
    circles.into_iter().collect()
}

fn reached(arrows: &ImportGraph, from: &PathBuf) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<&PathBuf> = arrows[from].iter().collect();
    while let Some(file) = ahead.pop() {
        if reached.insert(file.clone()) {
            ahead.extend(arrows.get(file).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::imports;
    use super::*;
    use crate::tidy::source::{RustSource, TrackedFile};

    fn files(sources: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| TrackedFile { path: path.into(), text: (*text).to_owned() };
        let sources: Vec<_> =
            sources.iter().map(|source| RustSource::parse(&file(source)).unwrap()).collect();
        check(&imports::crates(&sources)).into_iter().map(|place| place.file.display().to_string()).collect()
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let a = ("crates/c/src/a.rs", "use crate::b::{B, C as D};\npub struct A;");
        let b = ("crates/c/src/b/mod.rs", "mod d; use super::a; pub struct B(a::A);");
        let d = ("crates/c/src/b/d.rs", "use super::B;");
        let root = ("crates/c/src/lib.rs", "mod a; mod b; pub use a::A;");
        assert_eq!(files(&[root, a, b, d]), ["crates/c/src/a.rs", "crates/c/src/b/mod.rs"]);
        let b = (b.0, "mod d; pub struct B;");
        assert!(files(&[root, a, b, d]).is_empty());
    }

    #[test]
    fn circular_imports_are_found_through_re_exports() {
        let root = ("crates/c/src/lib.rs", "mod a; mod b; pub use a::A; pub use b::*;");
        let a = ("crates/c/src/a.rs", "pub struct A; fn f(b: crate::B) {}");
        let b = ("crates/c/src/b.rs", "use crate::A; pub struct B;");
        assert_eq!(files(&[root, a, b]), ["crates/c/src/a.rs", "crates/c/src/b.rs"]);
    }

    #[test]
    fn circular_import_check_ignores_test_modules() {
        let root = ("crates/c/src/lib.rs", "mod a; mod b;");
        let a = ("crates/c/src/a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }");
        let b = ("crates/c/src/b.rs", "use crate::a::A;");
        assert!(files(&[root, a, b]).is_empty());
    }
}
