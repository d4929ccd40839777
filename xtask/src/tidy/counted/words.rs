//! Rules with a budget for sentences and names. Each is a function from a file to the places that break it.

use proc_macro2::TokenTree;

use super::place::BudgetedFinding;
use crate::tidy::source::{RustSource, TrackedFile, attribute, ident, inside, line};

/// First words that a summary must not have, since they hide the actor and the object.
const OPENINGS: [&str; 14] = [
    "What", "Whether", "Who", "As", "How", "Where", "That", "It", "They", "One", "None", "Nothing", "Those",
    "Left out",
];
/// Maximum length of a test name in characters.
const NAME_LENGTH: usize = 60;
/// Words that a test name must not have, since they name no thing.
const NAME_WORDS: [&str; 4] = ["who", "what", concat!("no", "body"), "nor"];
/// Table of phrases that comments and pages must not have, each with the words to use instead.
const RIDDLES: &str = include_str!("riddles.txt");

/// Finds summaries that open with a word that hides the actor and the object ([`OPENINGS`]).
pub(super) fn openings(file: &TrackedFile) -> Vec<BudgetedFinding> {
    let mut places = Vec::new();
    let mut inside_comment = false;
    for (at, text) in file.text.lines().enumerate() {
        let comment = documentation(text);
        let summary = comment.filter(|_| !inside_comment);
        if let Some(summary) = summary.filter(|summary| opens_badly(summary)) {
            places.push(BudgetedFinding { file: file.path.clone(), line: at + 1, text: summary.to_owned() });
        }
        inside_comment = comment.is_some();
    }
    places
}

/// Returns the text of a line that is a documentation comment, or `None` for any other line.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.trim_start())
}

fn opens_badly(summary: &str) -> bool {
    let rest = OPENINGS.iter().find_map(|word| summary.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

/// Finds test names that are too long or have a question word ([`NAME_WORDS`]).
pub(super) fn test_names(rust: &RustSource) -> Vec<BudgetedFinding> {
    let mut places = Vec::new();
    rust.each(|tokens| {
        let Some(name) = tested_function(tokens) else { return };
        let text = name.to_string();
        if text.len() > NAME_LENGTH || text.split('_').any(|word| NAME_WORDS.contains(&word)) {
            places.push(BudgetedFinding { file: rust.path.clone(), line: line(name), text });
        }
    });
    places
}

/// Returns the name of the function that follows `#[test]`, perhaps after other attributes.
fn tested_function(tokens: &[TokenTree]) -> Option<&TokenTree> {
    let is_test = inside(attribute(tokens)?).iter().map(ToString::to_string).eq(["test"]);
    let mut rest = tokens.get(2..).filter(|_| is_test)?;
    while attribute(rest).is_some() {
        rest = rest.get(2..)?;
    }
    let keyword = rest.iter().position(|token| ident(Some(token)).is_some_and(|word| word == "fn"))?;
    // Between attributes and `fn` there are at most `pub` and `async`.
    rest.get(keyword + 1).filter(|_| keyword <= 2)
}

/// Finds the phrases of `riddles.txt` in comments, texts and pages, also across line ends.
pub(super) fn riddles(file: &TrackedFile) -> Vec<BudgetedFinding> {
    let words = words(&file.text);
    let mut places = Vec::new();
    for (phrase, instead) in phrases() {
        for run in words.windows(phrase.len()) {
            if run.iter().zip(&phrase).all(|((_, word), wanted)| word.eq_ignore_ascii_case(wanted)) {
                let text = format!("`{}`: {instead}", phrase.join(" "));
                places.push(BudgetedFinding { file: file.path.clone(), line: run[0].0, text });
            }
        }
    }
    places.sort_by_key(|place| place.line);
    places
}

/// Returns each phrase of `riddles.txt` as words, with the words to use instead.
fn phrases() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let row = |row: &'static str| row.split_once("  ");
    RIDDLES.lines().filter_map(row).map(|(phrase, instead)| (phrase.split(' ').collect(), instead.trim()))
}

/// Returns the words of a text with their line numbers. A name in code with `_` is a word; comment signs are
/// none.
fn words(text: &str) -> Vec<(usize, &str)> {
    let part = |character: char| character.is_alphanumeric() || character == '_' || character == '\'';
    text.lines()
        .enumerate()
        .flat_map(|(at, line)| {
            line.split(move |character: char| !part(character))
                .filter(|word| !word.is_empty())
                .map(move |word| (at + 1, word))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(places: &[BudgetedFinding]) -> Vec<usize> {
        places.iter().map(|place| place.line).collect()
    }

    fn file(text: &str) -> TrackedFile {
        TrackedFile { path: "crates/sample/src/lib.rs".into(), text: text.to_owned() }
    }

    #[test]
    fn summary_opening_with_a_question_word_is_found() {
        let text = "//! What this is.\n//! Whether or not.\n\n/// Itself a card.\nfn f() {}\n    /// None: no card.\n    g: u8,\n// It.\n";
        assert_eq!(lines(&openings(&file(text))), [1, 6]);
    }

    #[test]
    fn test_name_too_long_or_with_a_question_word_is_found() {
        let long = "x".repeat(NAME_LENGTH + 1);
        let text = format!(
            "#[test]\nfn {long}() {{}}\n#[test]\n#[cfg(unix)]\nfn tells_who_is_there() {{}}\n\
             #[test]\nfn normal_name() {{}}\nfn what() {{}}\n"
        );
        assert_eq!(lines(&test_names(&RustSource::sample(&text))), [2, 5]);
    }

    #[test]
    fn forbidden_phrase_is_found_across_comment_lines() {
        let phrase = ["so", concat!("ma", "ny")];
        let text = format!(
            "// It takes {}\n// {} frames.\nlet {}_{} = \"{} {}\";\n",
            phrase[0], phrase[1], phrase[0], phrase[1], phrase[0], phrase[1]
        );
        assert_eq!(lines(&riddles(&file(&text))), [1, 3]);
    }
}
