//! `softiov lab machine`: lists, prints and checks machine files.

use std::fs;
use std::path::Path;

use anyhow::Context;
use lab::catalogue::SettingDefinition;
use lab::machine_file::{self, MachineFile};

use super::table::TextTable;
use crate::output;

/// Subcommands of `lab machine`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LabMachineSubcommand {
    /// List the papers' machines.
    List,
    /// Print a machine as a file with all values, their units, meanings and sources: a start for a file of your own.
    Show {
        /// Machine file, or name of a paper's machine.
        #[arg(value_name = "MACHINE", default_value = "nehalem")]
        machine: String,
    },
    /// Check a machine file: its keys, values and placements.
    Check {
        /// Machine file, or name of a paper's machine.
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
    /// Print the JSON Schema of machine files, for editors.
    Schema,
}

pub(super) fn machine(
    definitions: &[SettingDefinition],
    command: &LabMachineSubcommand,
) -> anyhow::Result<()> {
    match command {
        LabMachineSubcommand::List => output::print(&list(definitions)?),
        LabMachineSubcommand::Show { machine } => {
            let file = read(machine, definitions)?;
            let text = file.complete(definitions).with_context(|| format!("machine {machine}"))?;
            output::print(&text)
        }
        LabMachineSubcommand::Check { machine } => {
            let file = read(machine, definitions)?;
            let text = summary(&file, definitions).with_context(|| format!("machine {machine}"))?;
            let notes = file.outside_ranges(definitions)?;
            let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
            output::print(&(text + &notes))
        }
        LabMachineSubcommand::Schema => {
            output::print(&(serde_json::to_string_pretty(&machine_file::schema(definitions))? + "\n"))
        }
    }
}

/// Reads a machine: one of the papers' by name, or a file.
pub(super) fn read(machine: &str, definitions: &[SettingDefinition]) -> anyhow::Result<MachineFile> {
    if let Some(file) = MachineFile::of_paper(machine, definitions) {
        return Ok(file?);
    }
    let text = fs::read_to_string(machine).with_context(|| {
        let names: Vec<_> = machine_file::names().collect();
        format!("cannot read the machine file {machine}; machines with a name are {}", names.join(", "))
    })?;
    let stem = Path::new(machine).file_stem().unwrap_or_default().to_string_lossy();
    MachineFile::parse(&text, &stem, definitions).with_context(|| format!("machine file {machine}"))
}

/// Reads a machine and checks that it can be built.
pub(super) fn read_checked(machine: &str, definitions: &[SettingDefinition]) -> anyhow::Result<MachineFile> {
    let file = read(machine, definitions)?;
    file.check(definitions).with_context(|| format!("machine {machine}"))?;
    Ok(file)
}

fn list(definitions: &[SettingDefinition]) -> anyhow::Result<String> {
    let mut table = TextTable::new(vec!["machine".to_owned(), "what".to_owned()], 2);
    for file in machine_file::names().filter_map(|name| MachineFile::of_paper(name, definitions)) {
        let MachineFile { name, description, .. } = file?;
        table.row(vec![name, description]);
    }
    Ok(table.to_string())
}

/// Returns one line about a machine that can be built.
fn summary(file: &MachineFile, definitions: &[SettingDefinition]) -> anyhow::Result<String> {
    let machine = file.check(definitions)?;
    let given = file.values.iter().filter(|value| value.key.starts_with("cost.")).count();
    let processors = match machine.topology {
        Some(topology) => format!(
            "{} sockets, {} cores, {} threads; service domain on {}, guests on {}",
            topology.sockets,
            topology.cores(),
            topology.threads(),
            topology.service_home,
            topology.guest_home,
        ),
        None => "its experiments have one processor, or one for each domain, and read no topology".to_owned(),
    };
    let table = machine.table.name();
    Ok(format!("{}: {processors}; cost table {table} with {given} constants given\n", file.name))
}
