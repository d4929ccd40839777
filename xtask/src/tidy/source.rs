//! Reads the files of the checkout, and Rust files as tokens with their lines. Tokens rather than a syntax
//! tree: they reach into macros, and comments and texts cannot be mistaken for code. Holds no rules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::finding::TidyFinding;

/// Text file of the checkout that git does not ignore.
#[derive(Clone, Debug)]
pub(crate) struct TrackedFile {
    /// Path of the tracked file, relative to the workspace.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl TrackedFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }
}

/// Returns all text files of the checkout that git does not ignore.
pub(crate) fn tracked(root: &Path) -> Result<Vec<TrackedFile>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .context("cannot run `git ls-files`")?;
    ensure!(
        output.status.success(),
        "`git ls-files` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    // What cannot be read as text is a picture, a link, or deleted and not yet committed.
    let file = |name: &str| Some((PathBuf::from(name), fs::read_to_string(root.join(name)).ok()?));
    let files = names.split_terminator('\0').filter_map(file);
    Ok(files.map(|(path, text)| TrackedFile { path, text }).collect())
}

/// Rust source file with its parsed tokens.
#[derive(Clone, Debug)]
pub(crate) struct RustSource {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) tokens: Vec<TokenTree>,
}

impl RustSource {
    /// Splits a Rust file into tokens.
    ///
    /// # Errors
    /// A finding, if the file is not valid Rust.
    pub(crate) fn parse(file: &TrackedFile) -> std::result::Result<Self, TidyFinding> {
        match file.text.parse::<TokenStream>() {
            Ok(tokens) => Ok(Self {
                path: file.path.clone(),
                text: file.text.clone(),
                tokens: tokens.into_iter().collect(),
            }),
            Err(error) => Err(TidyFinding {
                file: file.path.clone(),
                line: error.span().start().line,
                rule: "rust",
                what: error.to_string(),
                remedy: "mend the syntax, so that the file compiles",
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn sample(text: &str) -> Self {
        Self::parse(&TrackedFile { path: "crates/sample/src/lib.rs".into(), text: text.to_owned() }).unwrap()
    }

    pub(crate) fn finding(
        &self,
        line: usize,
        rule: &'static str,
        what: impl Into<String>,
        remedy: &'static str,
    ) -> TidyFinding {
        TidyFinding { file: self.path.clone(), line, rule, what: what.into(), remedy }
    }

    /// Calls `visit` with every sequence of sibling tokens of the file, from each token to the end of its
    /// group.
    pub(crate) fn each(&self, mut visit: impl FnMut(&[TokenTree])) {
        walk(&self.tokens, &mut visit);
    }
}

fn walk(tokens: &[TokenTree], visit: &mut impl FnMut(&[TokenTree])) {
    for start in 0..tokens.len() {
        visit(&tokens[start..]);
        if let TokenTree::Group(group) = &tokens[start] {
            walk(&inside(group), visit);
        }
    }
}

/// Returns the tokens between a pair of brackets.
pub(crate) fn inside(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

/// Returns the line number of a token in its file, from 1.
pub(crate) fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

pub(crate) fn ident(token: Option<&TokenTree>) -> Option<&Ident> {
    if let Some(TokenTree::Ident(ident)) = token { Some(ident) } else { None }
}

pub(crate) fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<&Group> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

pub(crate) fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// Returns the brackets of the attribute that the tokens begin with, `#[...]` or `#![...]`.
pub(crate) fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    let inner = usize::from(is_punct(tokens.get(1), '!'));
    if is_punct(tokens.first(), '#') { group(tokens.get(1 + inner), Delimiter::Bracket) } else { None }
}
