//! The softiov command: thin subcommands over the crates that do the work.

mod apply;
mod ask;
mod demo;
mod drive;
mod lab;
mod output;
mod place;
mod port;
mod qemu_args;
mod serve;
mod vf;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An SR-IOV network card in software: virtual functions for virtual machines, without the hardware.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a host with guests on it, move traffic, and show what it cost.
    Demo(demo::Args),
    /// Run the card: ports, their VFs' sockets, uplinks.
    Serve(serve::Args),
    /// Drive an 82576 that Linux hands over through VFIO, silicon or emulated, or VFs of a running host by their sockets,
    /// and check that our drivers work there.
    Drive(drive::Args),
    /// Make a running host what a configuration file says, or print what would change.
    Apply(apply::Args),
    /// Show, change and reset ports of a running host.
    #[command(subcommand)]
    Port(port::Command),
    /// Show and change VFs of a running host.
    #[command(subcommand)]
    Vf(vf::Command),
    /// Experiments in virtual time: what SR-IOV costs, and what each optimisation buys.
    #[command(subcommand)]
    Lab(lab::Command),
    /// Print the QEMU arguments that attach a VF, or a port with pf = "guest".
    QemuArgs(qemu_args::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Drive(args) => drive::run(&args),
        Command::Apply(args) => apply::run(args),
        Command::Port(command) => port::run(command),
        Command::Vf(command) => vf::run(command),
        Command::Lab(command) => lab::run(&command),
        Command::QemuArgs(args) => qemu_args::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("softiov: {}", output::explain(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// 1: refused; 3: there is no host to ask. (2 is clap's, for usage.)
fn exit_code(error: &anyhow::Error) -> u8 {
    use daemon::control::client::ClientError;
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Unreachable { .. } | ClientError::Io(_)) => 3,
        _ => 1,
    }
}
