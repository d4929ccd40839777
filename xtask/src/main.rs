//! The tasks of the project: `cargo xtask test` proves everything that can be proved on this machine,
//! `cargo xtask explore` runs the property tests with new seeds, `cargo xtask soak` ends the host under guests hundreds
//! of times, `cargo xtask simulate` simulates hosts that die, `cargo xtask prove` proves bounds, `cargo xtask attack` attacks it, `cargo xtask fuzz` fuzzes it, `cargo xtask bench` measures it beside its peers, `cargo xtask
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
mod prove;
mod register_sources;
mod registers;
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
