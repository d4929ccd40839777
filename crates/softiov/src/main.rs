//! The softiov command: thin subcommands over the crates that do the work.

// They panic when nothing takes what they print; `output` and `log` do not.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod apply;
mod ask;
mod demo;
mod drive;
mod lab;
mod log;
mod output;
mod place;
mod port;
mod qemu_args;
mod serve;
mod upgrade;
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
    /// Run the card: ports, their VFs' sockets, uplinks. In the foreground, as a keeper and the host that it starts.
    ///
    /// Signals are for the keeper, which is the process that you start. SIGTERM and SIGINT end the host, and its guests'
    /// machines live on; a second one ends it at once. SIGHUP loads the configuration file again. SIGUSR2 has the host
    /// started again with its guests. A new program takes over by `softiov upgrade`.
    Serve(serve::Args),
    /// Have a new process take over from a running host, with all its virtual machines: after the program was updated.
    Upgrade(ask::Output),
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
        Command::Upgrade(output) => upgrade::run(&output),
        Command::Drive(args) => drive::run(&args),
        Command::Apply(args) => apply::run(args),
        Command::Port(command) => port::run(command),
        Command::Vf(command) => vf::run(command),
        Command::Lab(command) => lab::run(&command),
        Command::QemuArgs(args) => qemu_args::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if error.is::<output::ReaderGone>() => ExitCode::from(READER_GONE),
        Err(error) => {
            output::tell_briefly(format!("softiov: {}", output::explain(&error)));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// What a shell says of a command that SIGPIPE has ended: nobody reads its standard output any more.
const READER_GONE: u8 = 141;

/// 1: refused; 3: there is no host to ask. (2 is clap's, for usage.)
fn exit_code(error: &anyhow::Error) -> u8 {
    use daemon::control::client::ClientError;
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Unreachable { .. } | ClientError::Io(_)) => 3,
        _ => 1,
    }
}
