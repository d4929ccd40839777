//! Requires that every Rust file is compiled: `mod` declarations lead to it from the first file of a target.
//! It does not follow `include!` and modules that macros declare.

use std::collections::BTreeSet;
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
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<PathBuf> = roots.iter().cloned().collect();
    while let Some(path) = ahead.pop() {
        let Some(source) = sources.iter().find(|source| source.path == path) else { continue };
        if reached.insert(path.clone()) {
            declared(&source.tokens, &module_folder(&path, roots.contains(&path)), &path, &mut ahead);
        }
    }
    reached
}

/// Returns the folder that holds the modules which a file declares.
fn module_folder(path: &Path, root: bool) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    if root || stem == "mod" { folder.to_owned() } else { folder.join(stem) }
}

/// Adds to `files` the paths of the Rust files that `mod` declarations among the tokens may name.
fn declared(tokens: &[TokenTree], folder: &Path, declaring: &Path, files: &mut Vec<PathBuf>) {
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
        if let Some(body) = group(tokens.get(2), Delimiter::Brace) {
            declared(&inside(body), &folder.join(&name), declaring, files);
        } else if let Some(path) = path_attribute.take() {
            files.push(beside(declaring, &path));
        } else {
            files.push(folder.join(format!("{name}.rs")));
            files.push(folder.join(name).join("mod.rs"));
        }
    }
}

fn module_name(tokens: &[TokenTree]) -> Option<String> {
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
