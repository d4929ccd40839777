//! Machines as text: the complete values of one, as a machine file with units, meanings and sources; and the schema of
//! machine files (JSON Schema).

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::file::MachineFile;
use super::keys::{SECTIONS, TOP, place};
use crate::catalogue::SettingDefinition;
use crate::experiment::{CONSTANT, PointRunError};
use crate::experiments::{features, parts, settings, topology};
use crate::value::ParameterValue;

impl MachineFile {
    /// Returns the machine as a file with all values that experiments use, each with its unit and meaning, or source.
    /// The text is a machine file again.
    ///
    /// # Errors
    /// As [`MachineFile::check`].
    pub fn complete(&self, definitions: &[SettingDefinition]) -> Result<String, PointRunError> {
        let machine = self.check(definitions)?;
        let mut parts = machine.topology.as_ref().map(topology::values).unwrap_or_default();
        parts.extend(machine.parts);
        let features = features::values(&machine.table);
        let mut text = format!("name = {}\n", quoted(&self.name));
        if !self.description.is_empty() {
            let _ = writeln!(text, "description = {}", quoted(&self.description));
        }
        let mut last = "";
        for setting in definitions {
            let Some((section, key)) = place(&setting.name) else { continue };
            let of_part = parts.iter().find(|(key, _)| *key == setting.name);
            // The machine has no such part.
            let is_part = !["", "features", "cost"].contains(&section);
            if is_part && of_part.is_none() && !parts::is_of_kernel(&setting.name) {
                continue;
            }
            if section != last {
                let _ = write!(text, "\n[{section}]\n");
                last = section;
            }
            let constant = setting.name.strip_prefix(CONSTANT);
            let row = constant.and_then(|name| machine.table.iter().find(|row| row.name == name));
            let (value, what) = match row {
                Some(row) => (row.value.to_string(), format!("{}: {}", row.kind.name(), row.source)),
                None if setting.name == settings::TABLE => {
                    (quoted(machine.table.name()), setting.what.clone())
                }
                None => {
                    let feature = features.iter().find(|(key, _)| *key == setting.name);
                    let value = of_part.map_or_else(|| self.value(setting), |(_, value)| written(value));
                    (feature.map_or(value, |(_, has)| has.to_string()), setting.what.clone())
                }
            };
            let unit = if setting.unit.is_empty() { String::new() } else { format!("{}; ", setting.unit) };
            let _ = writeln!(text, "{key} = {value} # {unit}{what}");
        }
        Ok(text)
    }

    /// Returns the TOML text of a setting's value.
    fn value(&self, setting: &SettingDefinition) -> String {
        let own = self.values.iter().find(|value| value.key == setting.name);
        let own = own.and_then(|own| setting.default.parse_alike(&own.value));
        written(&own.unwrap_or_else(|| setting.default.clone()))
    }
}

fn written(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Text(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns the JSON Schema of machine files.
#[must_use]
pub fn schema(definitions: &[SettingDefinition]) -> Value {
    let mut top = Map::new();
    top.insert("name".to_owned(), json!({"type": "string", "description": "name of the machine"}));
    top.insert(
        "description".to_owned(),
        json!({"type": "string", "description": "description of the machine"}),
    );
    for key in TOP {
        if let Some(setting) = definitions.iter().find(|setting| setting.name == key) {
            top.insert(key.to_owned(), property(setting));
        }
    }
    for section in SECTIONS {
        let of_section = definitions.iter().filter_map(|setting| match place(&setting.name) {
            Some((own, key)) if own == section => Some((key.to_owned(), property(setting))),
            _ => None,
        });
        let properties: Map<_, _> = of_section.collect();
        top.insert(
            section.to_owned(),
            json!({"type": "object", "additionalProperties": false, "properties": properties}),
        );
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Machine of the lab",
        "type": "object",
        "additionalProperties": false,
        "properties": top,
    })
}

/// Returns a choice of a setting as the schema has it: truth values without quotes.
fn choice_value(choice: &str) -> Value {
    choice.parse().map_or_else(|_| json!(choice), |value: bool| json!(value))
}

fn property(setting: &SettingDefinition) -> Value {
    let kind = match setting.default {
        ParameterValue::Bool(_) => "boolean",
        ParameterValue::Int(_) => "integer",
        ParameterValue::Real(_) => "number",
        ParameterValue::Text(_) => "string",
    };
    let unit = if setting.unit.is_empty() { String::new() } else { format!(" ({})", setting.unit) };
    let mut property =
        json!({"type": kind, "default": setting.default, "description": format!("{}{unit}", setting.what)});
    if !setting.choices.is_empty() {
        property["enum"] = setting.choices.iter().map(|choice| choice_value(choice)).collect();
        if setting.choices.contains(&"true") {
            property["type"] = json!(["string", "boolean"]);
        }
    }
    property
}
