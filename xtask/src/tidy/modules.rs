//! Requires that every Rust file is compiled: `mod` declarations lead to it from the first file of a target.
//! It does not follow `include!` and modules that macros declare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, attribute, group, ident, inside, is_punct};

pub(super) fn check(roots: &BTreeSet<PathBuf>, sources: &[RustSource]) -> Vec<TidyFinding> {
    let reached = reach(roots, sources);
    let remedy = "declare the file with `mod`, or remove the file";
    let orphans = sources.iter().filter(|source| !reached.contains(&source.path));
    orphans
        .map(|source| source.finding(1, "orphan", "no `mod` declaration names this file", remedy))
        .collect()
}

fn reach(roots: &BTreeSet<PathBuf>, sources: &[RustSource]) -> BTreeSet<PathBuf> {
    let by_path = sources.iter().map(|source| (source.path.as_path(), source)).collect();
    roots.iter().flat_map(|root| of_target(root, &by_path).into_keys()).collect()
}

/// Returns the files that a target compiles, each with the path of its module (`a::b`; empty for `root`, the target's
/// first file).
pub(super) fn of_target(root: &Path, sources: &BTreeMap<&Path, &RustSource>) -> BTreeMap<PathBuf, String> {
    let mut reached = BTreeMap::new();
    let mut ahead = vec![(root.to_owned(), String::new())];
    while let Some((path, module)) = ahead.pop() {
        let Some(source) = sources.get(path.as_path()).filter(|_| !reached.contains_key(&path)) else {
            continue;
        };
        let declaring =
            DeclaringModule { file: &path, folder: module_folder(&path, path == root), module: &module };
        declaring.add_files(&source.tokens, &mut ahead);
        reached.insert(path, module);
    }
    reached
}

/// Returns the path of a module's item.
pub(super) fn child(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Returns the folder that holds the modules which a file declares.
fn module_folder(path: &Path, root: bool) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    if root || stem == "mod" { folder.to_owned() } else { folder.join(stem) }
}

/// Module whose tokens declare other modules.
struct DeclaringModule<'a> {
    file: &'a Path,
    /// Folder that holds the declared modules.
    folder: PathBuf,
    /// Path of the module, empty for a target's first file.
    module: &'a str,
}

impl DeclaringModule<'_> {
    /// Adds to `files` the Rust files that `mod` declarations among the tokens may name, each with its module's path.
    fn add_files(&self, tokens: &[TokenTree], files: &mut Vec<(PathBuf, String)>) {
        let mut path_attribute = None;
        for start in 0..tokens.len() {
            let tokens = &tokens[start..];
            if let Some(path) = attribute(tokens).and_then(|group| path_value(&inside(group))) {
                path_attribute = Some(path);
            }
            if is_punct(tokens.first(), ';') || group(tokens.first(), Delimiter::Brace).is_some() {
                path_attribute = None;
            }
            let Some(name) = module_name(tokens) else { continue };
            let module = child(self.module, &name);
            if let Some(body) = group(tokens.get(2), Delimiter::Brace) {
                let inner =
                    DeclaringModule { file: self.file, folder: self.folder.join(&name), module: &module };
                inner.add_files(&inside(body), files);
            } else if let Some(path) = path_attribute.take() {
                files.push((beside(self.file, &path), module));
            } else {
                files.push((self.folder.join(format!("{name}.rs")), module.clone()));
                files.push((self.folder.join(name).join("mod.rs"), module));
            }
        }
    }
}

/// Returns the name of the module that the tokens begin to declare.
pub(super) fn module_name(tokens: &[TokenTree]) -> Option<String> {
    let name = (ident(tokens.first())? == "mod").then(|| ident(tokens.get(1)))??;
    Some(name.to_string())
}

/// Returns the Rust file that a `#[path]` attribute names, relative to the folder of another file.
fn beside(file: &Path, path: &str) -> PathBuf {
    let mut found = file.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(path) {
        match part.to_str() {
            Some("..") => {
                found.pop();
            }
            _ => found.push(part),
        }
    }
    found
}

/// Returns the text of an attribute `path = "..."`.
fn path_value(attribute: &[TokenTree]) -> Option<String> {
    match attribute {
        [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(value)] if name == "path" => {
            Some(value.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::TrackedFile;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| TrackedFile { path: path.into(), text: (*text).to_owned() };
        let sources: Vec<_> = files.iter().map(|entry| RustSource::parse(&file(entry)).unwrap()).collect();
        let roots = BTreeSet::from([PathBuf::from("src/lib.rs"), PathBuf::from("tests/all.rs")]);
        check(&roots, &sources).into_iter().map(|finding| finding.file.display().to_string()).collect()
    }

    #[test]
    fn modules_are_followed_through_files_folders_and_blocks() {
        let files = [
            ("src/lib.rs", "mod a;\npub mod b;\nmod inline { mod c; }\n// mod e;\n"),
            ("src/a.rs", "#[cfg(test)]\nmod tests;"),
            ("src/a/tests.rs", ""),
            ("src/b/mod.rs", "pub(crate) mod d;"),
            ("src/b/d.rs", ""),
            ("src/inline/c.rs", ""),
            ("src/e.rs", ""),
            ("tests/all.rs", "#[path = \"shared/peer.rs\"]\nmod peer;\nmod other;"),
            ("tests/other.rs", "#[path = \"../tests/shared/common.rs\"]\nmod common;"),
            ("tests/shared/common.rs", ""),
            ("tests/shared/peer.rs", ""),
            ("tests/shared/unused.rs", ""),
        ];
        assert_eq!(orphans(&files), ["src/e.rs", "tests/shared/unused.rs"]);
    }

    #[test]
    fn circular_module_declarations_do_not_loop() {
        assert!(orphans(&[("src/lib.rs", "#[path = \"lib.rs\"] mod again;")]).is_empty());
    }
}
