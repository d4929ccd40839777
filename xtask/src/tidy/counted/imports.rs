//! Collects the paths that the files of a crate name, and the names that they define or re-export. Finds no
//! circles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenTree};

use crate::tidy::source::{RustSource, attribute, group, ident, inside, is_punct};

/// Modules of a crate by their path below the crate's root.
pub(super) type ModulesByPath = BTreeMap<Vec<String>, SourceModule>;

/// Rust module that has a file of its own, with its imports and definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceModule {
    /// Path of the module's file, relative to the workspace.
    pub(super) file: PathBuf,
    /// Paths of items that the file names, in `use` and elsewhere.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Names that `use` brings into the module, each with its path.
    pub(super) aliases: BTreeMap<String, Vec<String>>,
    /// Paths from which `use` brings all names.
    pub(super) globs: Vec<Vec<String>>,
    /// Names of the items that the file defines.
    pub(super) defines: BTreeSet<String>,
}

/// Returns the modules of each crate, by the crate's `src` folder. Files of tests are left out.
pub(super) fn crates(sources: &[RustSource]) -> BTreeMap<PathBuf, ModulesByPath> {
    let mut crates: BTreeMap<PathBuf, ModulesByPath> = BTreeMap::new();
    for rust in sources {
        if let Some((folder, name)) = place(&rust.path) {
            let mut module = SourceModule { file: rust.path.clone(), ..SourceModule::default() };
            read(&rust.tokens, &mut module);
            crates.entry(folder).or_default().insert(name, module);
        }
    }
    crates
}

/// Returns the `src` folder of a file, and the path of the module in that file.
fn place(path: &Path) -> Option<(PathBuf, Vec<String>)> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let src = parts.iter().position(|part| *part == "src")?;
    let mut name: Vec<String> =
        parts[src + 1..].iter().map(|part| part.trim_end_matches(".rs").to_owned()).collect();
    if name.iter().any(|part| part == "tests") {
        return None;
    }
    if matches!(name.last()?.as_str(), "mod" | "lib" | "main") {
        name.pop();
    }
    Some((parts[..=src].iter().collect(), name))
}

/// Adds the paths and names among the tokens to the module. Items behind `#[cfg(test)]` are skipped.
fn read(tokens: &[TokenTree], module: &mut SourceModule) {
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if attribute(rest).is_some_and(|attribute| is_test(&inside(attribute))) {
            at += item(rest);
        } else if ident(rest.first()).is_some_and(|word| word == "pub")
            && group(rest.get(1), Delimiter::Parenthesis).is_some()
        {
            // The path of `pub(in path)` imports nothing.
            at += 1;
        } else if ident(rest.first()).is_some_and(|word| word == "use") {
            let end = rest.iter().position(|token| is_punct(Some(token), ';')).unwrap_or(rest.len());
            tree(&rest[1..end], &[], module);
            at += end;
        } else {
            let path = path(rest);
            if path.len() > 1 {
                // The second half of each `::` and its name belong to this path.
                at += 3 * (path.len() - 1);
                module.paths.insert(path);
            } else if let Some(name) = defined(rest) {
                module.defines.insert(name);
            }
            if let Some(TokenTree::Group(group)) = tokens.get(at) {
                read(&inside(group), module);
            }
        }
        at += 1;
    }
}

/// Returns true if an attribute is `cfg(test)`.
fn is_test(attribute: &[TokenTree]) -> bool {
    let words: Vec<String> = attribute.iter().map(ToString::to_string).collect();
    words.concat().replace(' ', "") == "cfg(test)"
}

/// Returns the number of tokens of the Rust item at the start of `tokens`, without the brace group or
/// semicolon that ends it.
fn item(tokens: &[TokenTree]) -> usize {
    let ends =
        |token: &TokenTree| is_punct(Some(token), ';') || group(Some(token), Delimiter::Brace).is_some();
    tokens.iter().position(ends).unwrap_or(tokens.len())
}

/// Returns the name of the Rust item that the tokens begin with.
fn defined(tokens: &[TokenTree]) -> Option<String> {
    let keyword = ident(tokens.first())?.to_string();
    let items = ["struct", "enum", "union", "trait", "fn", "const", "static", "type", "macro_rules"];
    let name = if keyword == "macro_rules" { tokens.get(2) } else { tokens.get(1) };
    items.contains(&keyword.as_str()).then(|| ident(name))?.map(ToString::to_string)
}

/// Returns the names in the path that the tokens begin with.
fn path(tokens: &[TokenTree]) -> Vec<String> {
    let mut names: Vec<String> = ident(tokens.first()).map(ToString::to_string).into_iter().collect();
    let mut rest = tokens.get(1..).unwrap_or_default();
    while is_punct(rest.first(), ':') && is_punct(rest.get(1), ':') && !names.is_empty() {
        let Some(name) = ident(rest.get(2)) else { break };
        names.push(name.to_string());
        rest = &rest[3..];
    }
    names
}

/// Adds the paths of a `use` tree to the module, each prefixed with the names in `before`.
fn tree(tokens: &[TokenTree], before: &[String], module: &mut SourceModule) {
    let mut path = before.to_vec();
    let mut alias: Option<String> = None;
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => alias = tokens.next().map(ToString::to_string),
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(sign) if sign.as_char() == '*' => {
                module.paths.insert(path.clone());
                module.globs.push(path);
                return;
            }
            TokenTree::Group(group) => {
                inside(group)
                    .split(|token| is_punct(Some(token), ','))
                    .for_each(|branch| tree(branch, &path, module));
                return;
            }
            _ => {}
        }
    }
    if path.len() == before.len() {
        return;
    }
    // `use a::{self}` brings the name `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    module.paths.insert(path.clone());
    let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
    if path.as_slice() != [name.clone()] {
        module.aliases.insert(name, path);
    }
}
