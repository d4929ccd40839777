//! Boots one Linux guest and runs commands in it: a tool to examine a card from inside, and a virtual machine for tests in
//! containers.
//!
//! `cargo run -p linux-guest --example boot -- --socket pf0vf0/vf.sock -c "ip -s link show eth0"`
//!
//! Without `-c` it reads commands line by line. The guest has no terminal: each command starts in a shell of its
//! own.

use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use linux_guest::{BootFiles, DpdkSeries, KernelSeries, LinuxGuest, QemuAccelerator, cache_folder};

/// Boot a Debian guest with the given VFs and run commands in it.
#[derive(Debug, Parser)]
struct BootArgs {
    /// Vfio-user socket of a VF for the guest; may be given several times.
    #[arg(long = "socket", value_name = "PATH")]
    sockets: Vec<PathBuf>,
    /// Vhost-user socket of a virtio VF for the guest, and the interface's address; may be given several times.
    #[arg(long = "vhost", value_name = "PATH=MAC", value_parser = vhost_interface)]
    vhosts: Vec<(PathBuf, String)>,
    /// Command to run in the guest; without one, commands are read from standard input.
    #[arg(short, long, value_name = "SCRIPT")]
    command: Option<String>,
    /// Command to run again and again after the first one, until it fails.
    #[arg(long, value_name = "SCRIPT", requires = "command")]
    repeat: Option<String>,
    /// Download and build the files of a guest, print the folder that holds them, and boot nothing.
    #[arg(long)]
    prepare: bool,
    /// Kernel to boot.
    #[arg(long, value_enum, default_value = "bookworm61")]
    kernel: KernelChoice,
    /// Add DPDK's testpmd to the guest.
    #[arg(long)]
    dpdk: bool,
    /// Program of this host to copy into the guest; may be given several times.
    #[arg(long = "program", value_name = "PATH")]
    programs: Vec<PathBuf>,
    /// Memory of the guest in MiB.
    #[arg(long, default_value_t = 256)]
    memory: u32,
    /// Number of the guest's virtual CPUs.
    #[arg(long, default_value_t = 1)]
    cpus: u32,
    /// Load no drivers for the devices that the guest finds at its start.
    #[arg(long)]
    no_coldplug: bool,
    /// Give the guest an IOMMU, for VFIO in it.
    #[arg(long)]
    iommu: bool,
    /// Argument for QEMU; may be given several times.
    #[arg(long = "qemu", value_name = "ARGUMENT", allow_hyphen_values = true)]
    qemu: Vec<String>,
    /// Timeout of a boot or a command, in seconds.
    #[arg(long, default_value_t = 120)]
    timeout: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KernelChoice {
    Bookworm61,
    Trixie612,
    TrixieBackports,
}

fn vhost_interface(text: &str) -> Result<(PathBuf, String), String> {
    let (path, mac) = text.split_once('=').ok_or("want PATH=MAC")?;
    Ok((path.into(), mac.to_owned()))
}

fn main() -> Result<()> {
    let arguments = BootArgs::parse();
    let series = match arguments.kernel {
        KernelChoice::Bookworm61 => KernelSeries::Bookworm61,
        KernelChoice::Trixie612 => KernelSeries::Trixie612,
        KernelChoice::TrixieBackports => KernelSeries::TrixieBackports,
    };
    let timeout = Duration::from_secs(arguments.timeout);
    let assets = BootFiles::prepare(series)?;
    if arguments.prepare {
        println!("{}", cache_folder()?.display());
        return Ok(());
    }
    let assets = if arguments.dpdk { assets.with_dpdk(DpdkSeries::Bookworm2211)? } else { assets };
    let assets =
        arguments.programs.iter().try_fold(assets, |assets, program| assets.with_program(program))?;
    let accel = QemuAccelerator::choose(&assets);
    let started = Instant::now();
    let builder = LinuxGuest::builder("guest").memory_mib(arguments.memory).cpus(arguments.cpus).accel(accel);
    let builder = arguments.sockets.iter().fold(builder, |builder, socket| builder.vf_socket(socket));
    let builder = arguments.vhosts.iter().fold(builder, |builder, (socket, mac)| {
        builder.vhost_socket(socket, 1, &[("mac", mac.as_str().into())])
    });
    let builder = arguments.qemu.iter().fold(builder, |builder, argument| builder.qemu_argument(argument));
    let guest = builder.iommu(arguments.iommu).coldplug(!arguments.no_coldplug).spawn(&assets)?;
    guest.wait_ready(timeout)?;
    let seconds = started.elapsed().as_secs_f32();
    eprintln!("Linux {} up after {seconds:.1} s ({})", guest.kernel_release(), accel.name());
    if let Some(script) = arguments.command {
        let mut status = run(&guest, &script, timeout)?;
        let mut number = 0_u64;
        while let (0, Some(script)) = (status, &arguments.repeat) {
            number += 1;
            status = run(&guest, script, timeout)?;
            println!("run {number} ended with status {status}");
        }
        guest.shutdown(timeout)?;
        std::process::exit(status);
    }
    for line in stdin().lock().lines() {
        run(&guest, &line?, timeout)?;
    }
    Ok(guest.shutdown(timeout)?)
}

fn run(guest: &LinuxGuest, script: &str, timeout: Duration) -> Result<i32> {
    let output = guest.run(script, timeout)?;
    print!("{}", output.stdout);
    stdout().flush()?;
    eprint!("{}", output.stderr);
    Ok(output.status)
}
