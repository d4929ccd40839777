//! `softiov ethtool`: ethtool's words for ports and VFs. Text, errors and exit codes are those of ethtool 6. It shows
//! what the host knows; counters and offloads of a guest's driver are shown by ethtool in the guest. Other options
//! are refused.

use super::tool_exit::ToolExit;
use crate::output;
use crate::target::HostSelectionOptions;
use daemon::config::file::CardFamily;
use daemon::control::client::{self, ControlClientError};
use daemon::control::functions::PciFunction;
use daemon::control::protocol::{ControlAnswer, ControlRequest, SettingsCommand};
use daemon::control::status::{PortStatus, VfStatus, VirtioDeviceCounts};
use daemon::port::PF_RID;
use daemon::settings::{CoalesceMode, VfSettings};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// Arguments of `softiov ethtool`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct EthtoolArgs {
    #[command(flatten)]
    target: HostSelectionOptions,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Words as ethtool takes them: -i, -S, -c, -g, -k or -l and a port or VF, or `-C VF [ adaptive-rx on|off ] [
    /// rx-usecs N ]`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Command of ethtool, by its option: -i, -S, -c, -C, -g, -k or -l.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EthtoolCommand {
    Driver,
    Statistics,
    ShowCoalesce,
    SetCoalesce,
    Rings,
    Features,
    Channels,
}

const COMMANDS: [(&str, &str, EthtoolCommand); 7] = [
    ("-i", "--driver", EthtoolCommand::Driver),
    ("-S", "--statistics", EthtoolCommand::Statistics),
    ("-c", "--show-coalesce", EthtoolCommand::ShowCoalesce),
    ("-C", "--coalesce", EthtoolCommand::SetCoalesce),
    ("-g", "--show-ring", EthtoolCommand::Rings),
    ("-k", "--show-features", EthtoolCommand::Features),
    ("-l", "--show-channels", EthtoolCommand::Channels),
];

/// Runs an ethtool command.
pub(crate) fn run(args: &EthtoolArgs) -> anyhow::Result<ExitCode> {
    let (command, name, rest) = match parse(&args.words) {
        Ok(parsed) => parsed,
        Err(exit) => return Ok(exit.report()),
    };
    let socket = args.target.load()?.control_socket();
    let ports = client::ports(&socket)?;
    let done = match (find(&ports, name), command) {
        (None, command) => Err(no_such_device(command)),
        (Some(found), EthtoolCommand::Driver) => Ok(driver(&found)),
        (Some(found), EthtoolCommand::Statistics) => statistics(&found),
        (Some(EthtoolInterface { vf: Some(vf), .. }), EthtoolCommand::ShowCoalesce) => Ok(coalescing(vf)),
        (Some(EthtoolInterface { vf: Some(vf), .. }), EthtoolCommand::SetCoalesce) => {
            coalesce(&socket, vf, rest)?
        }
        (Some(EthtoolInterface { vf: Some(vf), port, .. }), EthtoolCommand::Rings) => {
            rings(&socket, port, vf)?
        }
        (Some(_), _) => Err(not_supported(command)),
    };
    match done {
        Ok(text) => output::print(&text).map(|()| ExitCode::SUCCESS),
        Err(exit) => Ok(exit.report()),
    }
}

/// Parses ethtool's words: returns the command, the function's name, and the words after it.
fn parse(words: &[String]) -> Result<(EthtoolCommand, &str, &[String]), ToolExit> {
    let bad =
        || ToolExit::new("ethtool: bad command line argument(s)\nFor more information run ethtool -h", 1);
    let [option, name, rest @ ..] = words else { return Err(bad()) };
    let known = COMMANDS.iter().find(|(short, long, _)| option == short || option == long);
    let Some((_, _, command)) = known else {
        return Err(bad().with_hint(
            "only -i, -S, -c, -C, -g, -k and -l are supported; for others use the system's ethtool",
        ));
    };
    if !rest.is_empty() && *command != EthtoolCommand::SetCoalesce {
        return Err(bad());
    }
    Ok((*command, name, rest))
}

/// Port, or one of its VFs, that an ethtool command names.
#[derive(Debug, Clone, Copy)]
struct EthtoolInterface<'a> {
    port: &'a PortStatus,
    /// Index of the port among all ports, which is its PCI domain.
    domain: usize,
    vf: Option<&'a VfStatus>,
}

fn find<'a>(ports: &'a [PortStatus], name: &str) -> Option<EthtoolInterface<'a>> {
    ports.iter().enumerate().find_map(|(domain, port)| {
        let vf = port.vfs.iter().find(|vf| vf.name == name);
        (vf.is_some() || port.name == name).then_some(EthtoolInterface { port, domain, vf })
    })
}

/// Returns ethtool's error for an unknown interface. The commands -i and -S still use ioctl and have other texts.
fn no_such_device(command: EthtoolCommand) -> ToolExit {
    match command {
        EthtoolCommand::Driver => ToolExit::new("Cannot get driver information: No such device", 71),
        EthtoolCommand::Statistics => {
            ToolExit::new("Cannot get stats strings information: No such device", 96)
        }
        _ => ToolExit::new(
            "netlink error: no device matches name (offset 24)\nnetlink error: No such device",
            1,
        ),
    }
}

/// Returns ethtool's error for a command that the interface does not support, with the reason.
fn not_supported(command: EthtoolCommand) -> ToolExit {
    let exit = ToolExit::new("netlink error: Operation not supported", 1);
    exit.with_hint(match command {
        EthtoolCommand::Features => "the guest's driver sets offloads; run ethtool in the guest",
        EthtoolCommand::Channels => "the guest's driver sets channels; run ethtool in the guest",
        _ => "a port has no rings and no interrupts: name one of its VFs",
    })
}

/// Returns the text of `ethtool -i`; the driver is the one that Linux has for such a function.
fn driver(found: &EthtoolInterface<'_>) -> String {
    let family = found.port.family;
    let (name, rid) = match found.vf {
        Some(vf) => (found.port.family_of(vf).vf_driver(), vf.rid.clone()),
        None if family == CardFamily::Virtio => (family.pf_driver(), String::new()),
        None => (family.pf_driver(), PF_RID.to_string()),
    };
    let version = env!("CARGO_PKG_VERSION");
    // A virtio port and its VFs have no PCI address.
    let bus = if rid.is_empty() { rid } else { format!("{:04x}:{rid}", found.domain) };
    format!(
        "driver: {name}\nversion: softiov {version}\nfirmware-version: \nexpansion-rom-version: \n\
         bus-info: {bus}\nsupports-statistics: {}\nsupports-test: no\nsupports-eeprom-access: no\n\
         supports-register-dump: no\nsupports-priv-flags: no\n",
        if found.vf.is_some() { "yes" } else { "no" }
    )
}

/// Returns the text of `ethtool -S`: those of igbvf's counters that the card has, and those of a virtio device.
fn statistics(found: &EthtoolInterface<'_>) -> Result<String, ToolExit> {
    let Some(vf) = found.vf else { return Err(ToolExit::new("no stats available", 94)) };
    let (rx, tx) = (vf.rx, vf.tx);
    let mut text = "NIC statistics:\n".to_owned();
    for (name, count) in [
        ("rx_packets", rx.packets),
        ("tx_packets", tx.packets),
        ("rx_bytes", rx.bytes),
        ("tx_bytes", tx.bytes),
        ("multicast", rx.multicast),
    ] {
        let _ = writeln!(text, "     {name}: {count}");
    }
    for (name, count) in vf.device.iter().flat_map(VirtioDeviceCounts::named) {
        let _ = writeln!(text, "     {name}: {count}");
    }
    Ok(text)
}

/// Number of microseconds in a second.
const USECS_PER_SECOND: u32 = 1_000_000;

/// Returns the text of `ethtool -c`: `max_interrupts` as the time between two interrupts, and adaptive coalescing.
fn coalescing(vf: &VfStatus) -> String {
    let adaptive = vf.settings.coalesce == Some(CoalesceMode::Adaptive);
    let usecs = vf.settings.max_interrupts.filter(|rate| *rate > 0).map_or(0, |rate| USECS_PER_SECOND / rate);
    let mut text = format!(
        "Coalesce parameters for {}:\nAdaptive RX: {}  TX: n/a\n",
        vf.name,
        if adaptive { "on" } else { "off" }
    );
    for group in [
        &["stats-block-usecs", "sample-interval", "pkt-rate-low", "pkt-rate-high"],
        &["rx-usecs", "rx-frames", "rx-usecs-irq", "rx-frames-irq"],
        &["tx-usecs", "tx-frames", "tx-usecs-irq", "tx-frames-irq"],
        &["rx-usecs-low", "rx-frame-low", "tx-usecs-low", "tx-frame-low"],
        &["rx-usecs-high", "rx-frame-high", "tx-usecs-high", "tx-frame-high"],
    ] {
        for name in group {
            let value = if *name == "rx-usecs" { usecs.to_string() } else { "n/a".to_owned() };
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
    }
    text + "CQE mode RX: n/a  TX: n/a\n\n"
}

/// Parses the coalescing parameters of `ethtool -C`.
fn parse_coalesce(words: &[String]) -> Result<VfSettings, ToolExit> {
    let mut set = VfSettings::default();
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(ToolExit::new(format!("ethtool (-C): no value for parameter '{}'", pair[0]), 1));
        };
        let wrong =
            || ToolExit::new(format!("ethtool (-C): invalid value '{value}' for parameter '{name}'"), 1);
        match (name.as_str(), value.as_str()) {
            ("adaptive-rx", "on") => set.coalesce = Some(CoalesceMode::Adaptive),
            ("adaptive-rx", "off") => set.coalesce = Some(CoalesceMode::Guest),
            ("adaptive-rx", _) => return Err(wrong()),
            ("rx-usecs", value) => {
                let usecs: u32 = value.parse().map_err(|_| wrong())?;
                // A rate of 0 would remove the limit; the host refuses a rate that is too low.
                set.max_interrupts = Some(USECS_PER_SECOND.checked_div(usecs).map_or(0, |rate| rate.max(1)));
            }
            (name, _) if UNSUPPORTED_PARAMETERS.contains(&name) => {
                let text = "netlink error: cannot modify an unsupported parameter (offset 32)";
                return Err(ToolExit::new(format!("{text}\nnetlink error: Invalid argument"), 1));
            }
            (name, _) => return Err(ToolExit::new(format!("ethtool (-C): unknown parameter '{name}'"), 1)),
        }
    }
    Ok(set)
}

/// Parameters of `ethtool -C` that the card does not support.
const UNSUPPORTED_PARAMETERS: [&str; 20] = [
    "adaptive-tx",
    "stats-block-usecs",
    "sample-interval",
    "pkt-rate-low",
    "pkt-rate-high",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
];

fn coalesce(socket: &Path, vf: &VfStatus, words: &[String]) -> anyhow::Result<Result<String, ToolExit>> {
    let set = match parse_coalesce(words) {
        Ok(set) => set,
        Err(exit) => return Ok(Err(exit)),
    };
    match client::ask(
        socket,
        ControlRequest::VfSet { vf: vf.name.clone(), change: SettingsCommand::kept(set) },
    ) {
        Ok(_) => Ok(Ok(String::new())),
        Err(ControlClientError::Refused(why)) => {
            Ok(Err(ToolExit::new("netlink error: Invalid argument", 1).with_hint(&why)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Length of the longest ring that Linux' drivers of PCI functions allow, descriptors.
const MAX_RING: u32 = 4096;
/// Length of the longest ring of a virtio device, descriptors (virtio 1.2, 2.7).
const MAX_VIRTIO_RING: u32 = 32_768;

fn rings(socket: &Path, port: &PortStatus, vf: &VfStatus) -> anyhow::Result<Result<String, ToolExit>> {
    let asked = client::ask(socket, ControlRequest::PortFunctions { port: port.name.clone() })?;
    let ControlAnswer::Functions(found) = asked else { return Err(ControlClientError::OtherAnswer.into()) };
    let found = found.functions.into_iter().find(|function| function.name == vf.name);
    let longest = if port.family_of(vf) == CardFamily::Virtio { MAX_VIRTIO_RING } else { MAX_RING };
    Ok(Ok(ring_text(&vf.name, found.as_ref(), longest)))
}

/// Returns the text of `ethtool -g`: 0 descriptors if the guest's driver has set up no ring.
fn ring_text(name: &str, function: Option<&PciFunction>, longest: u32) -> String {
    let first = |rings: fn(&PciFunction) -> &[u32]| {
        function.and_then(|function| rings(function).first()).copied().unwrap_or(0)
    };
    let (rx, tx) = (first(|function| &function.rx_rings), first(|function| &function.tx_rings));
    let four = |rx: u32, tx: u32| format!("RX:\t\t{rx}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t{tx}\n");
    format!(
        "Ring parameters for {name}:\nPre-set maximums:\n{}Current hardware settings:\n{}\
         RX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\toff\nTCP data split:\tn/a\n",
        four(longest, longest),
        four(rx, tx)
    )
}

#[cfg(test)]
mod tests {
    use super::{
        EthtoolCommand, MAX_RING, MAX_VIRTIO_RING, PciFunction, coalescing, driver, find, parse,
        parse_coalesce, ring_text, statistics,
    };
    use daemon::settings::CoalesceMode;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Compares with the text of ethtool 6.1 for an interface with rx-usecs and adaptive-rx only.
    #[test]
    fn interrupt_coalescing_is_printed_as_ethtool_prints_it() {
        let mut port = crate::sample::port();
        port.vfs[0].settings.max_interrupts = Some(8000);
        port.vfs[0].settings.coalesce = Some(CoalesceMode::Adaptive);
        let text = coalescing(&port.vfs[0]);
        assert!(
            text.starts_with("Coalesce parameters for pf0vf0:\nAdaptive RX: on  TX: n/a\nstats-block"),
            "{text}"
        );
        assert!(text.contains("\n\nrx-usecs: 125\nrx-frames: n/a\n"), "{text}");
        assert!(text.ends_with("tx-frame-high: n/a\n\nCQE mode RX: n/a  TX: n/a\n\n"), "{text}");
    }

    #[test]
    fn ethtool_shows_the_linux_driver_of_each_function() {
        let ports = [crate::sample::port()];
        let text = driver(&find(&ports, "pf0vf0").unwrap());
        assert!(text.starts_with("driver: igbvf\n") && text.contains("\nbus-info: 0000:01:10.0\n"), "{text}");
        assert!(driver(&find(&ports, "pf0").unwrap()).starts_with("driver: igb\n"));
        assert!(statistics(&find(&ports, "pf0vf0").unwrap()).unwrap().contains("\n     rx_packets: 0\n"));
        assert_eq!(statistics(&find(&ports, "pf0").unwrap()).unwrap_err().code, 94);
        assert!(find(&ports, "pf1").is_none());
    }

    #[test]
    fn virtio_functions_have_device_counters_and_no_pci_address() {
        let ports = [crate::sample::virtio_port()];
        for name in ["pf0", "pf0vf0"] {
            let text = driver(&find(&ports, name).unwrap());
            assert!(text.contains("\nbus-info: \n"), "{name}: {text}");
        }
        let text = statistics(&find(&ports, "pf0vf0").unwrap()).unwrap();
        assert!(text.contains("\n     kicks: 7\n     calls: 0\n"), "{text}");
        assert!(ring_text("pf0vf0", None, MAX_VIRTIO_RING).contains("maximums:\nRX:\t\t32768\n"));
    }

    /// Compares with the text of ethtool 6.1 in a guest of igbvf with rings of 128.
    #[test]
    fn ring_sizes_are_printed_as_ethtool_prints_them() {
        let function = PciFunction {
            name: "pf0vf0".into(),
            rid: "01:10.0".into(),
            config: String::new(),
            rx_rings: vec![128],
            tx_rings: vec![128],
        };
        assert_eq!(
            ring_text("pf0vf0", Some(&function), MAX_RING),
            "Ring parameters for pf0vf0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t4096\n\
             Current hardware settings:\nRX:\t\t128\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t128\n\
             RX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\toff\nTCP data split:\tn/a\n"
        );
        assert!(
            ring_text("pf0vf0", None, MAX_RING).contains("settings:\nRX:\t\t0\n"),
            "no driver has set any up"
        );
    }

    #[test]
    fn coalesce_parameters_are_parsed_as_by_ethtool() {
        let set = parse_coalesce(&words("adaptive-rx off rx-usecs 125")).unwrap();
        assert_eq!((set.coalesce, set.max_interrupts), (Some(CoalesceMode::Guest), Some(8000)));
        assert_eq!(parse_coalesce(&words("rx-usecs 0")).unwrap().max_interrupts, Some(0));
        for (text, message) in [
            ("foo 1", "ethtool (-C): unknown parameter 'foo'"),
            ("rx-usecs", "ethtool (-C): no value for parameter 'rx-usecs'"),
            ("rx-usecs x", "ethtool (-C): invalid value 'x' for parameter 'rx-usecs'"),
            ("rx-frames 4", "netlink error: cannot modify an unsupported parameter (offset 32)"),
        ] {
            assert_eq!(parse_coalesce(&words(text)).unwrap_err().text.lines().next(), Some(message));
        }
        assert_eq!(parse(&words("-g pf0vf0")).unwrap().0, EthtoolCommand::Rings);
        for text in ["-S", "-Z pf0", "-i pf0 more", ""] {
            assert!(parse(&words(text)).unwrap_err().text.starts_with("ethtool: bad command line"), "{text}");
        }
    }
}
