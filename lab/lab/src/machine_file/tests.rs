//! Tests of machine files: errors with line and nearest key, complete text, and rows of the papers' machines.

use super::{MachineFile, names, schema};
use crate::catalogue::SettingDefinition;
use crate::experiments::catalogue;
use crate::row::ResultRow;
use crate::runner::notes::unread_values;
use crate::runner::plan::{ExperimentSelection, SettingAssignment};
use crate::runner::{ExperimentOptions, LabError, run};
use crate::value::ParameterValue;

fn definitions() -> Vec<SettingDefinition> {
    catalogue().settings
}

fn parsed(text: &str) -> MachineFile {
    MachineFile::parse(text, "test", &definitions()).unwrap()
}

fn error(text: &str) -> String {
    MachineFile::parse(text, "test", &definitions()).unwrap_err().to_string()
}

fn of_paper(name: &str) -> MachineFile {
    MachineFile::of_paper(name, &definitions()).unwrap().unwrap()
}

fn rows(experiment: &str, set: &[&str], machine: Vec<SettingAssignment>) -> Result<Vec<ResultRow>, LabError> {
    let options = ExperimentOptions {
        set: set.iter().chain(&["measure_ms=5"]).map(|text| text.parse().unwrap()).collect(),
        machine,
        ..ExperimentOptions::default()
    };
    let selection = ExperimentSelection::Names(vec![experiment.to_owned()]);
    let run = run(&catalogue(), &selection, &options, &mut ())?;
    Ok(run.records.into_iter().map(|record| record.row).collect())
}

#[test]
fn unknown_key_of_a_machine_file_names_line_and_nearest_key() {
    assert_eq!(
        error("[machine]\nsockets = 2\ncores_per_soket = 4\n"),
        "line 3: unknown key `machine.cores_per_soket`; did you mean machine.cores_per_socket?"
    );
    assert_eq!(error("sockets = 2\n"), "line 1: unknown key `sockets`; did you mean machine.sockets?");
    assert_eq!(
        error("\n[wire]\neoi_fast = 2\n"),
        "line 3: unknown key `wire.eoi_fast`; did you mean cost.eoi_fast?"
    );
    // The section `wire` has a key `socket`.
    assert_eq!(
        error("[machine]\nsocket = 2\n"),
        "line 2: unknown key `machine.socket`; did you mean machine.sockets?"
    );
    // A measured time is a property of a run.
    assert!(error("measure_ms = 2\n").starts_with("line 1: unknown key `measure_ms`"));
    assert!(error("[nothing]\n").starts_with("line 1: unknown key `nothing`"));
    assert!(error("qqq = 2\n").ends_with("`softiov lab machine show` prints all keys"));
}

#[test]
fn machine_file_value_of_wrong_kind_names_permitted_ones() {
    assert_eq!(
        error("[machine]\nsockets = \"2\"\n"),
        "line 2: machine.sockets is \"2\"; expected an integer"
    );
    assert!(
        error("table = \"nehalm\"\n").starts_with("line 1: table is \"nehalm\"; expected one of paper, ")
    );
    assert_eq!(error("name = 3\n"), "line 1: name is 3; expected a text in quotes");
    assert_eq!(error("machine = 3\n"), "line 1: unknown key `machine`; did you mean machine.sockets?");
    assert!(error("sockets = \n").contains("line 1"));
}

/// Checks kinds of settings that no machine file has yet: a number with a fraction, and a name without choices.
#[test]
fn number_takes_an_integer_and_a_name_takes_no_truth_value() {
    let takes = |default: ParameterValue, value: &str| {
        let name = "machine.sockets".to_owned();
        let setting = SettingDefinition { name, default, unit: "", what: String::new(), choices: &[] };
        MachineFile::parse(&format!("[machine]\nsockets = {value}\n"), "test", &[setting]).is_ok()
    };
    let values = ["2", "1.5", "true", "\"two\""];
    assert_eq!(values.map(|value| takes(ParameterValue::Real(0.0), value)), [true, true, false, false]);
    assert_eq!(values.map(|value| takes(ParameterValue::name("one"), value)), [false, false, false, true]);
}

#[test]
fn impossible_machine_is_refused_with_the_value() {
    let refused = |text: &str| parsed(text).check(&definitions()).unwrap_err().to_string();
    assert!(refused("[machine]\nsockets = 0\n").contains("machine.sockets is 0; it must be from 1 to 16"));
    let message = refused("[machine]\nthreads_per_core = 1\n");
    assert!(message.contains("machine.guest_home is thread-1: a core has only 1 threads"), "{message}");
    let message = refused("[machine]\nguest_home = \"cores-6-8\"\n");
    assert!(message.contains("machine.guest_home is cores-6-8: the machine has only 8 cores"), "{message}");
    let message = refused("[machine]\nguest_home = \"core 6\"\n");
    assert!(message.contains("expected thread-N"), "{message}");
    assert!(refused("[cost]\nclock_hertz = 5\n").contains("cost.clock_hertz is 5"));
}

#[test]
fn complete_text_of_each_papers_machine_is_the_same_machine() {
    for name in names() {
        let text = of_paper(name).complete(&definitions()).unwrap();
        let again = parsed(&text);
        assert_eq!(again.name, name);
        let [one, other] = [of_paper(name), again].map(|file| file.check(&definitions()).unwrap());
        assert_eq!(one.topology, other.topology, "{name}");
        let values = |machine: &super::DescribedMachine| {
            machine.table.iter().map(|row| (row.name, row.value)).collect::<Vec<_>>()
        };
        assert_eq!(values(&one), values(&other), "{name}");
    }
}

#[test]
fn rows_on_the_papers_own_machine_file_are_the_experiments_rows() {
    for (experiment, at, name) in [
        ("fig06", &["vms=2", "msi_accel=true"][..], "nehalem"),
        ("netback-multicore", &["tasklets=2", "guests=4"], "harpertown"),
        ("cdna-throughput", &["system=cdna", "direction=tx"], "opteron"),
    ] {
        let own = rows(experiment, at, Vec::new()).unwrap();
        let with_file = rows(experiment, at, of_paper(name).values).unwrap();
        let metrics = |rows: &[ResultRow]| rows.iter().map(|row| row.metrics.clone()).collect::<Vec<_>>();
        assert_eq!(metrics(&own), metrics(&with_file), "{experiment}");
        assert!(!own.is_empty());
    }
}

#[test]
fn machine_file_changes_rows_and_appears_in_their_parameters() {
    let file =
        parsed("[machine]\nthreads_per_core = 1\nservice_home = \"cores-0-3\"\nguest_home = \"cores-4-7\"\n");
    let at = ["vms=2", "msi_accel=false"];
    let [own, other] = [Vec::new(), file.values].map(|values| rows("fig06", &at, values).unwrap());
    assert_ne!(own[0].metrics, other[0].metrics);
    assert!(other[0].params.to_string().contains("machine.threads_per_core=1"), "{}", other[0].params);
}

/// Checks that a row has only those values of a machine file that its run has read, and that the others are named.
#[test]
fn unread_value_of_a_machine_file_is_no_parameter() {
    let text = "[machine]\nsockets = 1\n[wire]\nturnaround_us = 10\n[disk]\ncommand_us = 40\n";
    let options = ExperimentOptions {
        set: ["system=cdna", "direction=tx", "measure_ms=5"].map(|text| text.parse().unwrap()).to_vec(),
        machine: parsed(text).values,
        ..ExperimentOptions::default()
    };
    let selection = ExperimentSelection::Names(vec!["cdna-throughput".to_owned()]);
    let found =
        |options: &ExperimentOptions| run(&catalogue(), &selection, options, &mut ()).map(|run| run.records);
    let records = found(&options).unwrap();
    let params = records[0].row.params.to_string();
    assert_eq!(params, "system=cdna direction=tx measure_ms=5 wire.turnaround_us=10");
    let unread = vec!["machine.sockets", "disk.command_us"];
    assert_eq!(unread_values(&records), [("cdna-throughput", unread)]);
    // All of them are parameters on request. A value that the user sets must have an effect.
    let all = found(&ExperimentOptions { unaffected: true, ..options.clone() }).unwrap();
    assert!(all[0].row.params.to_string().contains("disk.command_us=40") && unread_values(&all).is_empty());
    let set = [&options.set[..], &["machine.sockets=1".parse().unwrap()]].concat();
    let error = found(&ExperimentOptions { set, ..options }).unwrap_err().to_string();
    assert!(error.contains("settings without effect on this point: machine.sockets"), "{error}");
}

/// Checks each key of wires, kernels, cards, disk and features at a point that it moves. Of limits of kernels, only `card`
/// and `disk` of the paper's machine are in its complete text with a value, since limits of kernels are those of their
/// versions.
#[test]
fn kernel_card_and_disk_of_a_machine_file_change_rows() {
    for (key, experiment, at) in [
        ("kernel.socket_packets=8", "fig08", &["policy=1k", "measure_ms=100"][..]),
        ("kernel.poll_budget=4", "fig08", &["policy=2k"]),
        ("kernel.turn=2", "cdna-throughput", &["system=xen", "direction=tx"]),
        ("card.ports=1", "cdna-throughput", &["system=xen", "direction=tx"]),
        ("card.receive_ring=64", "fig08", &["policy=1k", "measure_ms=100"]),
        ("wire.mbps=100", "cdna-throughput", &["system=cdna", "direction=tx"]),
        ("wire.turnaround_us=2000", "cdna-throughput", &["system=cdna", "direction=rx"]),
        ("kernel.driver_turn=2", "cdna-throughput", &["system=xen", "direction=tx"]),
        ("kernel.send_window=2", "cdna-throughput", &["system=cdna", "direction=tx"]),
        ("kernel.receive_window=2", "cdna-throughput", &["system=cdna", "direction=rx"]),
        ("kernel.send_buffer=\"uncached\"", "cdna-throughput", &["system=xen", "direction=tx"]),
        ("card.interrupt_us=1000", "smart-vnic-tx", &["step=base", "nic=smart"]),
        ("wire.mbps=1000", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.receive_window=20", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.poll_budget=2", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.read_frames=1", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.tick_us=100", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.exits_idle_hz=9000", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("kernel.exits_busy_hz=9000", "bitvisor-throughput", &["pf=classical", "guest=loaded"]),
        ("card.interrupt_us=100", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("card.request_us=100", "bitvisor-throughput", &["pf=classical", "guest=idle"]),
        ("wire.one_way_us=50", "bitvisor-latency", &["pf=classical", "guest=idle"]),
        ("wire.pause_us=7", "bitvisor-latency", &["pf=classical", "guest=loaded", "measure_ms=20"]),
        ("wire.mbps=1000", "direct-net", &["path=direct"]),
        ("kernel.turn=2", "direct-net", &["path=pv"]),
        ("kernel.read_frames=1", "direct-net", &["path=direct"]),
        ("card.receive_ring=64", "direct-net", &["path=direct"]),
        ("card.interrupt_us=1000", "direct-net", &["path=direct"]),
        ("features.apic_virtualization=true", "fig08", &["policy=20k"]),
        ("features.posted_interrupts=true", "fig06", &["vms=2", "msi_accel=true"]),
        ("features.x2apic=true", "fig08", &["policy=20k"]),
        ("disk.surface_mb_per_s=50", "direct-disk", &["path=direct", "block_kb=256", "measure_ms=200"]),
        ("disk.cable_mb_per_s=60", "direct-disk", &["path=direct", "block_kb=256", "measure_ms=200"]),
        ("disk.command_us=9000", "direct-disk", &["path=direct", "block_kb=4", "measure_ms=200"]),
    ] {
        let (section, rest) = key.split_once('.').unwrap();
        let file = parsed(&format!("[{section}]\n{}\n", rest.replace('=', " = ")));
        let [own, other] = [Vec::new(), file.values].map(|values| rows(experiment, at, values).unwrap());
        assert_ne!(own[0].metrics, other[0].metrics, "{key}");
    }
    let text = of_paper("server-2009").complete(&definitions()).unwrap();
    assert!(text.contains("\n[disk]\nsurface_mb_per_s = 100 # MB/s; rate of the disk's surface"), "{text}");
    assert!(text.contains("\nsocket_packets = -1 # datagrams"), "{text}");
    let refused = parsed("[card]\nreceive_ring = 100\n").check(&definitions()).unwrap_err().to_string();
    assert!(refused.contains("card.receive_ring is 100; it must be a multiple of 8"), "{refused}");
    assert!(error("[card]\nreceive_rings = 1\n").ends_with("did you mean card.receive_ring?"));
    let refused = parsed("[disk]\ncommand_us = -2\n").check(&definitions()).unwrap_err().to_string();
    assert!(refused.contains("disk.command_us is -2; it must be from 0 to 1000000"), "{refused}");
    assert!(error("[disk]\ncomand_us = 1\n").ends_with("did you mean disk.command_us?"));
}

/// Checks that a machine with one processor has no part of a server that none of its experiments reads.
#[test]
fn one_processor_machine_has_no_topology_of_a_server() {
    for name in ["opteron", "prestonia", "skylake", "server-2009"] {
        let file = of_paper(name);
        assert_eq!(file.check(&definitions()).unwrap().topology, None, "{name}");
        let text = file.complete(&definitions()).unwrap();
        for key in ["[machine]", "sockets", "service_home", "segments"] {
            assert!(!text.contains(&format!("\n{key}")), "{name} has {key}");
        }
    }
    for name in ["nehalem", "harpertown", "modern"] {
        assert!(
            of_paper(name).complete(&definitions()).unwrap().contains("\n[machine]\nsockets = "),
            "{name}"
        );
    }
    // A file may describe a server with the processor of any machine.
    let file = parsed("table = \"opteron\"\n[machine]\nsockets = 4\n");
    assert_eq!(file.check(&definitions()).unwrap().topology.unwrap().sockets, 4);
}

#[test]
fn feature_of_a_machine_file_is_a_truth_value() {
    let text = of_paper("modern").complete(&definitions()).unwrap();
    assert!(text.contains("\n[features]\napic_virtualization = true # "), "{text}");
    assert!(of_paper("nehalem").complete(&definitions()).unwrap().contains("\nx2apic = false # "));
    assert_eq!(
        error("[features]\nx2apic = 1\n"),
        "line 2: features.x2apic is 1; expected one of table, true, false"
    );
    assert!(error("[features]\nx2apik = true\n").ends_with("did you mean features.x2apic?"));
    let file = parsed("[features]\nx2apic = true\n");
    let error = rows("cdna-throughput", &["system=cdna", "direction=tx"], file.values).unwrap_err();
    assert!(error.to_string().contains("all values of the machine file"), "{error}");
    for (name, text) in crate::experiments::topology::files() {
        let paper: toml::Table = text.parse().unwrap();
        let given = paper.get("features").is_some();
        assert_eq!(given, !["opteron", "prestonia"].contains(&name), "{name}");
        // The tests of the machines use the cost table's own features.
        let table = hypervisor::cost::CostTable::named(name).unwrap();
        assert_eq!(
            of_paper(name).check(&definitions()).unwrap().table.features(),
            table.features(),
            "{name}"
        );
    }
}

/// Checks that a value that the program accepts, but the table's evidence does not, is named.
#[test]
fn constant_outside_its_plausible_range_is_noted() {
    let noted = |text| parsed(text).outside_ranges(&definitions()).unwrap();
    let notes =
        noted("table = \"modern\"\n[cost]\nrx_skb = 99999999\nrx_udp = 600\nclock_hertz = 3_100_000_000\n");
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.starts_with("cost.rx_skb is 99999999; the table modern has "), "{note}");
    for name in names() {
        assert!(of_paper(name).outside_ranges(&definitions()).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn machine_file_without_effect_on_a_point_is_refused() {
    let file = parsed("[machine]\nsockets = 4\n");
    let error = rows("cdna-throughput", &["system=cdna", "direction=tx"], file.values).unwrap_err();
    assert!(error.to_string().contains("all values of the machine file"), "{error}");
}

#[test]
fn schema_of_machine_files_has_each_key_with_its_type() {
    let schema = schema(&definitions());
    let sockets = &schema["properties"]["machine"]["properties"]["sockets"];
    assert_eq!(sockets["type"], "integer");
    assert_eq!(schema["properties"]["cost"]["properties"]["eoi_fast"]["type"], "integer");
    assert_eq!(schema["properties"]["features"]["properties"]["x2apic"]["enum"][1], true);
    assert_eq!(schema["properties"]["table"]["enum"][0], "paper");
    assert!(schema["properties"].get("measure_ms").is_none());
}
