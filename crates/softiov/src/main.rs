//! The softiov command: thin subcommands over the crates that do the work.

// They panic when nothing takes what they print; `output` and `log` do not.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod apply;
mod ask;
mod capture;
mod demo;
mod doctor;
mod drive;
mod events;
mod lab;
mod log;
mod manual;
mod metrics;
mod output;
mod place;
mod port;
mod qemu_args;
#[cfg(test)]
mod sample;
mod serve;
mod tools;
mod top;
mod upgrade;
mod vf;

use clap::{CommandFactory, Parser, Subcommand};
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
    /// Look for what keeps guests from working, and say what helps. Changes nothing; fails if something does not work.
    Doctor(doctor::Args),
    /// Experiments in virtual time: what SR-IOV costs, and what each optimisation buys.
    #[command(subcommand)]
    Lab(lab::Command),
    /// iproute2's words for ports and VFs: `softiov ip -s link show`, `softiov ip link set pf0 vf 0 vlan 100`.
    Ip(tools::ip::Args),
    /// ethtool's words for ports and VFs: `softiov ethtool -S pf0vf0`, `softiov ethtool -C pf0vf0 rx-usecs 125`.
    Ethtool(tools::ethtool::Args),
    /// iproute2's devlink for ports and VFs: `softiov devlink -j port show`.
    Devlink(tools::devlink::Args),
    /// pciutils' lspci on the functions of a running host: `softiov lspci -vv`.
    Lspci(tools::lspci::Args),
    /// Print what has happened lately, and with -f what happens.
    Events(events::Args),
    /// Show frames as they pass VFs and uplink, and where they are dropped and why; or write them as pcapng.
    Capture(capture::Args),
    /// Show what each VF moves, loses and costs a second.
    Top(top::Args),
    /// Print a host's counters for Prometheus.
    Metrics(metrics::Args),
    /// Print the QEMU arguments that attach a VF, or a port with pf = "guest".
    QemuArgs(qemu_args::Args),
    /// Print a script with which a shell completes these commands.
    Completions(manual::Completions),
    /// Print a page of the manual, or write all of them.
    Man(manual::Manual),
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
        Command::Doctor(args) => doctor::run(&args),
        Command::Lab(command) => lab::run(&command),
        Command::Ip(args) => tools::ip::run(&args),
        Command::Ethtool(args) => tools::ethtool::run(&args),
        Command::Devlink(args) => tools::devlink::run(&args),
        Command::Lspci(args) => tools::lspci::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::QemuArgs(args) => qemu_args::run(&args),
        Command::Completions(shell) => shell.run(Cli::command()),
        Command::Man(manual) => manual.run(Cli::command()),
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
