//! Finds unfinished code, silenced warnings and tests, and paths of the machine that a file was written on.

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, TrackedFile, attribute, group, ident, inside, is_punct, line};

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
// Cut in two so that they are not found here.
const REMARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINE_PATHS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/bash", "_jobs")];

/// Finds `todo!` and similar macros, and remarks that something is missing.
pub(super) fn unfinished(rust: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    rust.each(|tokens| {
        if let Some(name) = macro_call(tokens).filter(|name| MACROS.contains(&name.as_str())) {
            let remedy = "write the missing text, or state the limit in the file's `//!` opening";
            findings.push(rust.finding(line(&tokens[0]), "unfinished", format!("`{name}!`"), remedy));
        }
    });
    for (at, text) in rust.text.lines().enumerate() {
        for word in REMARKS.iter().filter(|word| has_word(text, word)) {
            let remedy = "do the work, or state a limit";
            findings.push(rust.finding(at + 1, "unfinished", format!("`{word}`"), remedy));
        }
    }
    findings
}

fn macro_call(tokens: &[TokenTree]) -> Option<String> {
    let name = ident(tokens.first())?;
    let called = is_punct(tokens.get(1), '!') && matches!(tokens.get(2), Some(TokenTree::Group(_)));
    called.then(|| name.to_string())
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// Finds tests that do not run, and attributes that hide unused code.
pub(super) fn silenced(rust: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    rust.each(|tokens| {
        let Some(attribute) = attribute(tokens) else { return };
        let (what, remedy) = if is_ignore(&inside(attribute)) {
            (
                "the test is ignored, so it never runs",
                "remove `#[ignore]`; a test that cannot run prints `SKIPPED: what: why`",
            )
        } else if allows_dead_code(&inside(attribute)) {
            ("`allow(dead_code)` hides unused code", "remove the unused code")
        } else {
            return;
        };
        findings.push(rust.finding(line(&tokens[0]), "silenced", what, remedy));
    });
    findings
}

/// Returns true for the attributes `ignore`, `ignore = "..."` and `cfg_attr(..., ignore)`.
fn is_ignore(attribute: &[TokenTree]) -> bool {
    let Some(name) = ident(attribute.first()) else { return false };
    let conditional = if name == "cfg_attr" { group(attribute.get(1), Delimiter::Parenthesis) } else { None };
    name == "ignore" || conditional.is_some_and(|group| mentions(&inside(group), "ignore"))
}

fn allows_dead_code(attribute: &[TokenTree]) -> bool {
    let Some(name) = ident(attribute.first()) else { return false };
    let lints = group(attribute.get(1), Delimiter::Parenthesis).map(inside);
    let softened = ["allow", "expect", "cfg_attr"].iter().any(|word| name == word);
    softened && lints.is_some_and(|lints| mentions(&lints, "dead_code"))
}

fn mentions(tokens: &[TokenTree], word: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(&inside(group), word),
        _ => false,
    })
}

/// Finds paths that only exist on the machine on which the file was written.
pub(super) fn machine_paths(file: &TrackedFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (at, text) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| text.contains(**path)) {
            findings.push(TidyFinding {
                file: file.path.clone(),
                line: at + 1,
                rule: "machine-path",
                what: format!("`{path}`"),
                remedy: "use a path relative to the project, or one found at run time",
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[TidyFinding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unfinished_code_and_todo_comments_are_found_by_tidy() {
        let [first, second] = REMARKS;
        let source = format!(
            "fn f() {{\n todo!();\n}}\n// {first}: later\n// todo!() {second}{second}\nfn g() {{ a = todo != 3; }}\n"
        );
        assert_eq!(lines(&unfinished(&RustSource::sample(&source))), [2, 4]);
        assert_eq!(lines(&unfinished(&RustSource::sample("m! {{ std::dbg![1] }}"))), [1]);
    }

    #[test]
    fn ignored_tests_are_found_by_tidy() {
        let source = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[ignore]\nfn b() {}\n#[cfg_attr(miri, ignore)]\nfn ignore() {}\n";
        assert_eq!(lines(&silenced(&RustSource::sample(source))), [2, 4, 6]);
    }

    #[test]
    fn dead_code_is_found_under_every_lint_attribute() {
        let source = "#![allow(dead_code)]\n#[expect(unused, dead_code, reason = \"\")]\n#[warn(dead_code)]\nfn a() {}\n";
        assert_eq!(lines(&silenced(&RustSource::sample(source))), [1, 2]);
    }

    #[test]
    fn paths_of_the_developers_machine_are_found_in_any_file() {
        let text = format!("fine\nsee {}notes\n/rooted/ and framework/\n", MACHINE_PATHS[0]);
        assert_eq!(lines(&machine_paths(&TrackedFile { path: "README.md".into(), text })), [2]);
    }
}
