//! Checks that each filter of a `cargo test` command, on a page or in a comment, selects a test. A command whose filter
//! selects none runs nothing and succeeds.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, TrackedFile, attribute, ident, inside};
use super::{conformance, modules};
use crate::metadata::{self, CargoPackage};

/// Arguments of a `cargo test` command that select tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestCommand {
    line: usize,
    package: Option<String>,
    /// Name of the only test target, or `lib`.
    target: Option<String>,
    filters: Vec<String>,
}

/// Tests of a cargo target, by package.
#[derive(Debug)]
struct TargetTests {
    package: String,
    /// Name of the target as `--test` has it, or its kind (`lib`, `bin`).
    target: String,
    /// Names of the tests with their modules, as filters see them.
    names: Vec<String>,
}

pub(super) fn check(
    members: &[CargoPackage],
    root: &Path,
    tracked: &[TrackedFile],
    sources: &[RustSource],
) -> Vec<TidyFinding> {
    let targets = target_tests(members, root, sources);
    let is_page = |file: &&TrackedFile| file.path.extension().is_some_and(|extension| extension == "md");
    let pages = tracked.iter().filter(is_page).map(|file| (file, file.text.clone()));
    let rust = tracked.iter().filter(|file| file.is_rust()).map(|file| (file, comments(&file.text)));
    let mut findings = Vec::new();
    for (file, text) in pages.chain(rust) {
        for command in commands(&text) {
            let finding = |what| TidyFinding {
                file: file.path.clone(),
                line: command.line,
                rule: "filters",
                what,
                remedy: "name a package, a target and a part of a test's name as in the sources",
            };
            findings.extend(unmatched(&command, &targets).map(finding));
        }
    }
    findings
}

/// Returns the filters of a command that select no test, each as a sentence.
fn unmatched<'a>(command: &'a TestCommand, targets: &'a [TargetTests]) -> impl Iterator<Item = String> + 'a {
    let is_selected = |it: &&TargetTests| {
        command.package.as_ref().is_none_or(|package| *package == it.package)
            && command.target.as_ref().is_none_or(|target| *target == it.target)
    };
    let selected: Vec<_> = targets.iter().filter(is_selected).collect();
    let nothing = selected.is_empty().then(|| {
        let [package, target] = [&command.package, &command.target].map(|it| it.as_deref().unwrap_or("any"));
        format!("no package `{package}` with test target `{target}`")
    });
    let selects = move |filter: &String| {
        selected.is_empty() || selected.iter().any(|it| it.names.iter().any(|name| name.contains(filter)))
    };
    let filters = command.filters.iter().filter(move |filter| !selects(filter));
    nothing.into_iter().chain(filters.map(|filter| format!("`{filter}` selects no test")))
}

/// Returns the tests of all targets of the workspace that can have tests.
fn target_tests(members: &[CargoPackage], root: &Path, sources: &[RustSource]) -> Vec<TargetTests> {
    let by_path: BTreeMap<_, _> = sources.iter().map(|source| (source.path.as_path(), source)).collect();
    let mut all = Vec::new();
    for member in members {
        for target in member.targets.iter().filter(|target| target.kind != "custom-build") {
            let first = metadata::relative(root, &target.root);
            let mut names = Vec::new();
            for (path, module) in modules::of_target(&first, &by_path) {
                add_tests(&by_path[path.as_path()].tokens, &module, &mut names);
            }
            // A target with a harness of its own lists its tests in its first file.
            let listed = by_path.get(first.as_path()).map(|source| conformance::checks(&source.text));
            names.extend(listed.into_iter().flatten().map(str::to_owned));
            let name = if target.kind == "test" { &target.name } else { &target.kind };
            all.push(TargetTests { package: member.name.clone(), target: name.clone(), names });
        }
    }
    all
}

/// Adds the names of the tests among the tokens of a module.
fn add_tests(tokens: &[TokenTree], module: &str, names: &mut Vec<String>) {
    let mut is_test = false;
    for at in 0..tokens.len() {
        is_test |= attribute(&tokens[at..]).is_some_and(|group| {
            inside(group).last().is_some_and(|last| ident(Some(last)).is_some_and(|name| name == "test"))
        });
        if ident(tokens.get(at)).is_some_and(|word| word == "fn")
            && let Some(name) = ident(tokens.get(at + 1))
            && std::mem::take(&mut is_test)
        {
            names.push(modules::child(module, &name.to_string()));
        }
        let TokenTree::Group(group) = &tokens[at] else { continue };
        let named = (group.delimiter() == Delimiter::Brace && at >= 2)
            .then(|| modules::module_name(&tokens[at - 2..]))
            .flatten();
        let module = named.map_or_else(|| module.to_owned(), |name| modules::child(module, &name));
        add_tests(&inside(group), &module, names);
    }
}

/// Returns the comments of a Rust file without their markers. Other lines are empty.
fn comments(text: &str) -> String {
    let comment = |line: &str| {
        let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
        comment.trim_start_matches(['/', '!']).to_owned() + "\n"
    };
    text.lines().map(comment).collect()
}

/// Returns the `cargo test` commands of a Markdown text. A command between backquotes may cross lines, another one ends
/// with its line.
fn commands(text: &str) -> Vec<TestCommand> {
    let command = |at: usize| {
        let paragraph = text[..at].rsplit("\n\n").next().unwrap_or_default().replace("```", "");
        let is_inline = paragraph.matches('`').count() % 2 == 1;
        let end = if is_inline { "`" } else { "\n" };
        let code = text[at..].split(end).next()?.split(['`', '#', '|']).next()?;
        let mut words = code.split_whitespace();
        ((words.next(), words.next()) == (Some("cargo"), Some("test")))
            .then(|| TestCommand { line: text[..at].matches('\n').count() + 1, ..arguments(words) })
    };
    text.match_indices("cargo").filter_map(|(at, _)| command(at)).collect()
}

/// Returns the command with these arguments.
fn arguments<'a>(mut words: impl Iterator<Item = &'a str>) -> TestCommand {
    let mut command = TestCommand::default();
    while let Some(word) = words.next() {
        match word {
            "-p" | "--package" => command.package = words.next().map(str::to_owned),
            "--test" => command.target = words.next().map(str::to_owned),
            "--lib" => command.target = Some("lib".to_owned()),
            _ if word.starts_with('-') => {}
            _ => command.filters.push(word.to_owned()),
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_commands_are_read_from_pages_and_comments() {
        let page = "Run `cargo test -p lab\nsame_story` and `cargo xtask tidy`.\n\n```sh\nX=1 cargo test --release -p daemon \
                    --test live -- --nocapture avf    # a table\ncargo test\n```\n";
        let command = |line, [package, target, filter]: [&str; 3]| {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let filters = text(filter).into_iter().collect();
            TestCommand { line, package: text(package), target: text(target), filters }
        };
        let expected = [
            command(1, ["lab", "", "same_story"]),
            command(5, ["daemon", "live", "avf"]),
            command(6, ["", "", ""]),
        ];
        assert_eq!(commands(page), expected);
        let rust = "//! ```sh\n//! cargo test -p nic --lib\n//! ```\nlet text = \"cargo test -p no\";\n";
        assert_eq!(commands(&comments(rust)), [command(2, ["nic", "lib", ""])]);
    }

    #[test]
    fn tests_have_the_names_of_their_modules() {
        let text = "fn none() {}\n#[test]\nfn one() {}\nmod inner {\n    #[test]\n    #[ignore]\n    fn two() {}\n}\n\
                    proptest! {\n    #[test]\n    fn three(x in 0..1) {}\n}\n";
        let mut names = Vec::new();
        add_tests(&RustSource::sample(text).tokens, "port", &mut names);
        assert_eq!(names, ["port::one", "port::inner::two", "port::three"]);
    }

    #[test]
    fn filters_must_select_a_test_of_the_named_target() {
        let tests = |package: &str, target: &str, name: &str| TargetTests {
            package: package.to_owned(),
            target: target.to_owned(),
            names: vec![name.to_owned()],
        };
        let targets = [tests("lab", "lib", "point::tests::holds"), tests("lab", "cli", "guide::follows")];
        let found = |text: &str| {
            let commands = commands(&format!("cargo {text}"));
            unmatched(&commands[0], &targets).collect::<Vec<_>>()
        };
        for text in
            ["test", "test point", "test -p lab holds", "test -p lab --test cli guide:: -- --nocapture"]
        {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(found("test -p lab same_story"), ["`same_story` selects no test"]);
        assert_eq!(found("test -p lab --lib -- guide holds"), ["`guide` selects no test"]);
        assert_eq!(found("test -p lba holds"), ["no package `lba` with test target `any`"]);
    }
}
