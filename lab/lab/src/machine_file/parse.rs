//! Parses machine files. An error names the line, the key or value, and the nearest known key or the permitted values.

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::MachineFile;
use super::keys::{SECTIONS, TOP, place};
use crate::catalogue::SettingDefinition;
use crate::experiments::topology;
use crate::runner::plan::SettingAssignment;
use crate::similar::similar;
use crate::value::ParameterValue;

/// Key of the machine's name.
const NAME: &str = "name";
/// Key of the machine's description.
const DESCRIPTION: &str = "description";

/// Returns a key's section, which is empty at the top, and its name there.
fn parts(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// Error of a machine file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MachineFileError {
    /// The text is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// No setting has that key.
    #[error("line {line}: unknown key `{key}`{hint}")]
    UnknownKey {
        /// Line of the key, from 1.
        line: usize,
        /// Key with its section, as written.
        key: String,
        /// Nearest known keys, or the known ones.
        hint: String,
    },
    /// The setting does not permit the value.
    #[error("line {line}: {key} is {value}; expected {expected}")]
    Value {
        /// Line of the value, from 1.
        line: usize,
        /// Key with its section.
        key: String,
        /// Value as written.
        value: String,
        /// Permitted values.
        expected: String,
    },
}

impl MachineFile {
    /// Parses a machine file against the settings of a catalogue. `name` is the machine's name if the file has none.
    ///
    /// # Errors
    /// [`MachineFileError`] if the text is no TOML, or has an unknown key or a value that a setting does not permit.
    pub fn parse(
        text: &str,
        name: &str,
        definitions: &[SettingDefinition],
    ) -> Result<Self, MachineFileError> {
        let document = DeTable::parse(text)
            .map_err(|error| MachineFileError::Syntax(error.to_string().trim_end().to_owned()))?;
        let mut file = MachineFile { name: name.to_owned(), description: String::new(), values: Vec::new() };
        let reader = MachineFileReader { text, definitions };
        for (key, value) in document.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (NAME, _) => file.name = reader.text_of(NAME, value)?,
                (DESCRIPTION, _) => file.description = reader.text_of(DESCRIPTION, value)?,
                (section, DeValue::Table(table)) if SECTIONS.contains(&section) => {
                    for (key, value) in table {
                        file.values.push(reader.assignment(section, key, value)?);
                    }
                }
                _ => file.values.push(reader.assignment("", key, value)?),
            }
        }
        Ok(file)
    }

    /// Returns the file of a paper's machine, or `None` for an unknown name.
    #[must_use]
    pub fn of_paper(name: &str, definitions: &[SettingDefinition]) -> Option<Result<Self, MachineFileError>> {
        let (name, text) = topology::files().find(|(known, _)| *known == name)?;
        Some(Self::parse(text, name, definitions))
    }
}

/// Text of a machine file, with the settings that it may have.
struct MachineFileReader<'a> {
    text: &'a str,
    definitions: &'a [SettingDefinition],
}

impl MachineFileReader<'_> {
    fn assignment(
        &self,
        section: &str,
        key: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<SettingAssignment, MachineFileError> {
        let name = match section {
            "" => key.get_ref().as_ref().to_owned(),
            section => format!("{section}.{}", key.get_ref().as_ref()),
        };
        let known = self.definitions.iter().find(|setting| setting.name == name);
        let Some(setting) = known.filter(|_| place(&name).is_some()) else {
            return Err(MachineFileError::UnknownKey {
                line: self.line(key.span().start),
                hint: self.hint(&name),
                key: name,
            });
        };
        let text = plain(value.get_ref());
        let parsed = text.as_deref().and_then(|text| of_kind(setting, value.get_ref(), text));
        if parsed.is_some_and(|value| setting.takes(&value)) {
            return Ok(SettingAssignment::from((name, text.unwrap_or_default())));
        }
        let expected = match setting.choices {
            [] => setting.default.kind().to_owned(),
            choices => format!("one of {}", choices.join(", ")),
        };
        Err(self.refused(&name, value, expected))
    }

    fn text_of(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, MachineFileError> {
        let text = value.get_ref().as_str().map(str::to_owned);
        text.ok_or_else(|| self.refused(key, value, "a text in quotes".to_owned()))
    }

    fn refused(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: String) -> MachineFileError {
        let written = self.text.get(value.span()).unwrap_or_default();
        MachineFileError::Value {
            line: self.line(value.span().start),
            key: key.to_owned(),
            value: written.lines().next().unwrap_or_default().to_owned(),
            expected,
        }
    }

    /// Returns the line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    /// Returns the keys that are similar to an unknown one, or where to find all.
    fn hint(&self, name: &str) -> String {
        let settings = self.definitions.iter().map(|setting| setting.name.as_str());
        let known: Vec<_> =
            settings.filter(|name| place(name).is_some()).chain([NAME, DESCRIPTION]).collect();
        // A key with one wrong letter is meant for its own section, one that another section has for that section.
        let (section, bare) = parts(name);
        let misspelt = |known: &&&str| {
            let (of, key) = parts(known);
            of == section && strsim::osa_distance(key, bare) == 1
        };
        let elsewhere = |known: &&&str| parts(known).1 == bare;
        let nearest = known.iter().find(misspelt).or_else(|| known.iter().find(elsewhere));
        match (nearest, similar(name, &known).first()) {
            (Some(nearest), _) | (None, Some(nearest)) => format!("; did you mean {nearest}?"),
            (None, None) => format!(
                "; a machine file has {NAME}, {DESCRIPTION}, {}, and the sections {}: `softiov lab machine show` prints all keys",
                TOP.join(", "),
                SECTIONS.join(", ")
            ),
        }
    }
}

/// Returns a plain value as an assignment has it; `None` for tables, arrays and dates.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Returns a setting's value, if its TOML type is that of the setting.
fn of_kind(setting: &SettingDefinition, value: &DeValue<'_>, text: &str) -> Option<ParameterValue> {
    let is_of_kind = match setting.default {
        // A choice between a name and truth values has these without quotes.
        ParameterValue::Text(_) => value.is_str() || value.is_bool() && setting.choices.contains(&text),
        ParameterValue::Bool(_) => value.is_bool(),
        ParameterValue::Int(_) => value.is_integer(),
        ParameterValue::Real(_) => value.is_integer() || value.is_float(),
    };
    if is_of_kind { setting.default.parse_alike(text) } else { None }
}
