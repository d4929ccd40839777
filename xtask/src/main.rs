//! The tasks of the project: `cargo xtask test` proves everything that can be proved on this machine,
//! `cargo xtask explore` runs the property tests with new seeds, `cargo xtask soak` ends the host under guests hundreds
//! of times, `cargo xtask simulate` simulates hosts that die, `cargo xtask prove` proves bounds, `cargo xtask attack` attacks it, `cargo xtask fuzz` fuzzes it, `cargo xtask sanitize` runs its tests under Miri and a sanitizer, `cargo xtask bench` measures it beside its peers, `cargo xtask
//! instructions` counts what the card spends on a frame, `cargo xtask deb` makes the Debian package, `cargo xtask image` the container image, `cargo xtask tidy`
//! checks the rules that the compiler does not know, `cargo xtask registers` writes the pages of the register tables.
//!
//! Plain cargo builds and runs the card itself.

mod attack;
mod avf_registers;
mod bench;
mod deb;
mod explore;
mod fuzz;
mod image;
mod instructions;
mod metadata;
mod nightly;
mod prove;
mod register_sources;
mod registers;
mod sanitize;
mod simulate;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the project: the commands of `cargo xtask`.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
enum XtaskCommand {
    /// Runs every check and test; ends with `N passed, N failed, N skipped`.
    Test(test::TestArgs),
    /// Runs every property test with new seeds for some minutes, and keeps failures as cases of `cargo xtask test`.
    Explore(explore::ExploreArgs),
    /// Hands over and kills a host under traffic, 200 times each; takes half an hour. `--help` says more.
    #[command(disable_help_flag = true)]
    Soak(soak::SoakArgs),
    /// Simulates hosts with guests from many seeds, and checks what they promise; prints the seeds that fail.
    Simulate(simulate::SimulateArgs),
    /// Proves the bounds of docs/proofs.md for all values; takes some minutes, and installs a checker from PyPI.
    Prove(prove::ProveArgs),
    /// Fuzzes everything that reads bytes of others, each target for a minute, and prints what it reached and its crashes.
    Fuzz(fuzz::FuzzArgs),
    /// Runs unit tests under Miri, AddressSanitizer or ThreadSanitizer; takes minutes, and needs a nightly compiler.
    Sanitize(sanitize::SanitizeArgs),
    /// Attacks a running host with hand-made cases, and checks it after each. `--help` says more.
    #[command(disable_help_flag = true)]
    Attack(attack::AttackArgs),
    /// Measures SoftIOV's card beside the alternatives that users would choose; takes some minutes. `--help` says
    /// more.
    #[command(disable_help_flag = true)]
    Bench(bench::BenchArgs),
    /// Counts the card's instructions for a frame with valgrind, against a kept count.
    Instructions(instructions::InstructionsArgs),
    /// Makes the Debian package of the command, its unit, manual and example configuration.
    Deb(deb::DebArgs),
    /// Builds the container image of the host and the node agent for Kubernetes, without a container daemon.
    Image(image::ImageArgs),
    /// Checks layering, lengths, unsafe code, licences and the other rules that the compiler does not check.
    Tidy(tidy::TidyArgs),
    /// Writes docs/REGISTERS.md and docs/AVF-REGISTERS.md from the register tables.
    Registers,
}

fn main() -> anyhow::Result<ExitCode> {
    match XtaskCommand::parse() {
        XtaskCommand::Test(options) => test::run(&options),
        XtaskCommand::Explore(options) => explore::run(&options),
        XtaskCommand::Soak(options) => soak::run(&options),
        XtaskCommand::Simulate(options) => simulate::run(&options),
        XtaskCommand::Prove(options) => prove::run(&options),
        XtaskCommand::Fuzz(options) => fuzz::run(&options),
        XtaskCommand::Sanitize(options) => sanitize::run(&options),
        XtaskCommand::Attack(options) => attack::run(&options),
        XtaskCommand::Bench(options) => bench::run(&options),
        XtaskCommand::Instructions(options) => instructions::run(&options),
        XtaskCommand::Deb(options) => deb::run(&options),
        XtaskCommand::Image(options) => image::run(&options),
        XtaskCommand::Registers => {
            registers::write()?;
            avf_registers::write()?;
            Ok(ExitCode::SUCCESS)
        }
        XtaskCommand::Tidy(options) => tidy::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Returns the words of the commands `cargo xtask` in the blocks of a page or in a script. A block's line may begin with a
    /// prompt, and a command may be in parentheses behind another.
    fn commands(text: &str, is_script: bool) -> Vec<Vec<String>> {
        let joined = text.replace("\\\n", " ");
        let mut in_block = is_script;
        let mut all = Vec::new();
        for line in joined.lines() {
            if line.starts_with("```") {
                in_block = !in_block && line == "```sh";
                continue;
            }
            let line = line.split(" #").next().unwrap_or_default().trim_end_matches(')');
            let begins = |line: &str| line.starts_with("cargo xtask ");
            let command = line.trim_start_matches("$ ").split(" && ").find(|part| begins(part));
            if let Some(command) = command.filter(|_| in_block) {
                all.push(words(command).into_iter().skip(2).collect());
            }
        }
        all
    }

    /// Returns the words of a command. A text in single quotes is one word.
    fn words(command: &str) -> Vec<String> {
        let quoted = command.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        });
        quoted.collect()
    }

    /// Returns all pages and scripts of the documentation.
    fn pages(root: &Path) -> Vec<std::path::PathBuf> {
        let (mut folders, mut pages) =
            (vec![root.join("docs")], vec![root.join("README.md"), root.join("CONTRIBUTING.md")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.extension().and_then(|end| end.to_str()) {
                    _ if path.is_dir() => folders.push(path),
                    Some("md" | "sh") => pages.push(path),
                    _ => {}
                }
            }
        }
        pages
    }

    #[test]
    fn commands_of_the_pages_are_understood() {
        let root = metadata::workspace_root().unwrap();
        let mut checked = 0;
        for page in pages(&root) {
            let is_script = page.extension().is_some_and(|end| end == "sh");
            for command in commands(&fs::read_to_string(&page).unwrap(), is_script) {
                let arguments = ["cargo xtask".to_owned()].into_iter().chain(command.iter().cloned());
                if let Err(error) = XtaskCommand::try_parse_from(arguments) {
                    assert!(!error.use_stderr(), "{}: {command:?}: {error}", page.display());
                }
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn commands_are_those_of_shell_blocks() {
        let page = "cargo xtask no\n```sh\n$ cargo xtask test --only \\\n  fmt # all\n(cd a && cargo xtask image)\n```\n\
            cargo xtask no\n```\ncargo xtask no\n```\n```sh\ncargo xtask bench --against 'a, b'\n```\n";
        let all: Vec<_> = commands(page, false).iter().map(|words| words.join("|")).collect();
        assert_eq!(all, ["test|--only|fmt", "image", "bench|--against|a, b"]);
    }
}
