//! The softiov command: thin subcommands over the crates that do the work.

// These macros panic when a write fails; `output` and `log` do not.
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
mod port;
mod qemu_args;
mod qemu_version;
#[cfg(test)]
mod sample;
mod serve;
mod target;
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
    command: TopLevelCommand,
}

#[derive(Debug, Subcommand)]
enum TopLevelCommand {
    /// Start a host with guests, move traffic, and show what it cost.
    Demo(demo::DemoArgs),
    /// Run the card in the foreground: ports, their VFs' sockets, uplinks, and a keeper that starts the host.
    ///
    /// Send signals to the keeper, the process that you start. SIGTERM and SIGINT end the host, and virtual machines
    /// keep running; a second signal ends the host at once. SIGHUP loads the configuration file again. SIGUSR2 restarts
    /// the host with its guests. `softiov upgrade` replaces the program.
    Serve(serve::ServeArgs),
    /// Replace a running host with the installed version of the program; guests stay connected.
    Upgrade(ask::OutputOptions),
    /// Check our drivers on an 82576 that Linux hands over through VFIO, silicon or emulated, or on VFs of a running
    /// host.
    Drive(drive::DriveCommandArgs),
    /// Apply a configuration file to a running host, or print the difference.
    Apply(apply::ApplyArgs),
    /// Show, change and reset ports of a running host.
    #[command(subcommand)]
    Port(port::PortSubcommand),
    /// Show and change VFs of a running host.
    #[command(subcommand)]
    Vf(vf::VfSubcommand),
    /// Find what keeps guests from working, and print remedies. Changes nothing; fails if something does not work.
    Doctor(doctor::DoctorArgs),
    /// Run experiments in virtual time: what SR-IOV costs, and what each optimisation saves.
    #[command(subcommand)]
    Lab(lab::LabSubcommand),
    /// Show and change ports and VFs as iproute2's ip does: `softiov ip -s link show`, `softiov ip link set pf0 vf 0
    /// vlan 100`.
    Ip(tools::ip::IpCommandArgs),
    /// Show and change ports and VFs as ethtool does: `softiov ethtool -S pf0vf0`, `softiov ethtool -C pf0vf0
    /// rx-usecs 125`.
    Ethtool(tools::ethtool::EthtoolArgs),
    /// Show ports and VFs as iproute2's devlink does: `softiov devlink -j port show`.
    Devlink(tools::devlink::DevlinkArgs),
    /// Show the functions of a running host as pciutils' lspci does: `softiov lspci -vv`.
    Lspci(tools::lspci::LspciArgs),
    /// Print recent events, and with -f new ones as they happen.
    Events(events::EventsArgs),
    /// Show the frames of VFs and uplink, and dropped frames with the reason; or write them as pcapng.
    Capture(capture::CaptureArgs),
    /// Show live per-VF throughput, drops, interrupts and exits.
    Top(top::TopCommandArgs),
    /// Print a host's counters in Prometheus' text format.
    Metrics(metrics::MetricsArgs),
    /// Print the QEMU arguments that attach a VF, or a port with pf = "guest".
    QemuArgs(qemu_args::QemuArgsOptions),
    /// Print a script with which a shell completes these commands.
    Completions(manual::CompletionsArgs),
    /// Print a manual page, or write all of them.
    Man(manual::ManualArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        TopLevelCommand::Demo(args) => demo::run(&args),
        TopLevelCommand::Serve(args) => serve::run(&args),
        TopLevelCommand::Upgrade(output) => upgrade::run(&output),
        TopLevelCommand::Drive(args) => drive::run(&args),
        TopLevelCommand::Apply(args) => apply::run(args),
        TopLevelCommand::Port(command) => port::run(command),
        TopLevelCommand::Vf(command) => vf::run(command),
        TopLevelCommand::Doctor(args) => doctor::run(&args),
        TopLevelCommand::Lab(command) => lab::run(&command),
        TopLevelCommand::Ip(args) => tools::ip::run(&args),
        TopLevelCommand::Ethtool(args) => tools::ethtool::run(&args),
        TopLevelCommand::Devlink(args) => tools::devlink::run(&args),
        TopLevelCommand::Lspci(args) => tools::lspci::run(&args),
        TopLevelCommand::Events(args) => events::run(&args),
        TopLevelCommand::Capture(args) => capture::run(&args),
        TopLevelCommand::Top(args) => top::run(&args),
        TopLevelCommand::Metrics(args) => metrics::run(&args),
        TopLevelCommand::QemuArgs(args) => qemu_args::run(&args),
        TopLevelCommand::Completions(shell) => shell.run(Cli::command()),
        TopLevelCommand::Man(manual) => manual.run(Cli::command()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if error.is::<output::StdoutClosed>() => ExitCode::from(READER_GONE),
        Err(error) => {
            output::print_last_error(format!("softiov: {}", output::error_chain(&error)));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Exit code of a command whose standard output has lost its reader: a shell's code for SIGPIPE.
const READER_GONE: u8 = 141;

/// Returns the exit code of an error: 3 if no host answers, otherwise 1. (clap returns 2 for wrong usage.)
fn exit_code(error: &anyhow::Error) -> u8 {
    use daemon::control::client::ControlClientError;
    match error.downcast_ref::<ControlClientError>() {
        Some(ControlClientError::Unreachable { .. } | ControlClientError::Io(_)) => 3,
        _ => 1,
    }
}
