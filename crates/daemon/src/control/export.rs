//! Export of a VF: policy and counters, which another host imports before the VF's guest moves there.

use super::status::{DropCounts, TrafficCounts, VfStatus};
use crate::settings::VfSettings;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Format of exports that this version writes and reads.
pub const FORMAT: u32 = 1;

/// Exported VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VfExport {
    /// Format of the export: 1.
    pub format: u32,
    /// Name of the exported VF, for messages and readers. An import may name another VF.
    pub name: String,
    /// All settings of the VF.
    pub settings: VfSettings,
    /// Counters of the VF, from which the importing VF counts on.
    pub counters: ExportedCounters,
}

/// Counters of an exported VF. The importing host adds its own counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportedCounters {
    /// Numbers of frames that the exported VF's guest has received.
    pub rx: TrafficCounts,
    /// Numbers of frames that the exported VF's guest has sent.
    pub tx: TrafficCounts,
    /// Dropped frames of the exported VF, by reason.
    pub drops: DropCounts,
    /// Numbers of offences of the exported VF, by kind.
    #[serde(default)]
    pub offences: BTreeMap<String, u64>,
}

/// Reason why a text is not an export that this version reads. The message continues a sentence about the export.
#[derive(Debug, thiserror::Error)]
pub enum VfExportError {
    /// Another version of the program has written the export.
    #[error(
        "has format {0}, and this version reads format {FORMAT}: export the VF with the same version of softiov"
    )]
    Format(Value),
    /// The text is no export.
    #[error("is not an exported VF: write it with `softiov vf export NAME`: {0}")]
    Malformed(#[source] serde_json::Error),
}

/// Request to import a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VfImport {
    /// Export to import.
    #[serde(deserialize_with = "deserialize_export")]
    pub export: VfExport,
    /// True if the settings end with the host; false, the default, if the host saves them for later starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

/// Reads an export inside a request, as [`VfExport::parse`] does.
fn deserialize_export<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VfExport, D::Error> {
    let value = Value::deserialize(deserializer)?;
    VfExport::from_value(value).map_err(|error| D::Error::custom(format!("the export {error}")))
}

/// Adds the members of `defaults` that an object lacks, also in the objects inside it.
fn add_missing(value: &mut Value, defaults: Value) {
    let (Value::Object(members), Value::Object(defaults)) = (value, defaults) else { return };
    for (name, default) in defaults {
        add_missing(members.entry(name).or_insert_with(|| default.clone()), default);
    }
}

impl VfExport {
    /// Reads the JSON text of an export.
    ///
    /// # Errors
    /// [`VfExportError`].
    pub fn parse(text: &str) -> Result<Self, VfExportError> {
        serde_json::from_str(text).map_err(VfExportError::Malformed).and_then(Self::from_value)
    }

    /// Reads the format number first, since the rest has the form of that format. Counters that the exporting version did not
    /// have are 0.
    fn from_value(mut value: Value) -> Result<Self, VfExportError> {
        if let Some(format) = value.get("format").filter(|format| **format != FORMAT) {
            return Err(VfExportError::Format(format.clone()));
        }
        if let Some(counters) = value.get_mut("counters") {
            let none = serde_json::to_value(ExportedCounters::default()).map_err(VfExportError::Malformed)?;
            add_missing(counters, none);
        }
        serde_json::from_value(value).map_err(VfExportError::Malformed)
    }

    /// Creates the export of a VF from its status.
    #[must_use]
    pub fn of(status: &VfStatus) -> Self {
        Self {
            format: FORMAT,
            name: status.name.clone(),
            settings: status.settings.clone(),
            counters: ExportedCounters {
                rx: status.function.rx,
                tx: status.function.tx,
                drops: status.function.drops,
                offences: status.conduct.offences.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn export() -> Value {
        let counters = json!({ "rx": { "packets": 5 }, "drops": { "tx_invalid": 2 } });
        json!({ "format": 1, "name": "pf0vf0", "settings": {}, "counters": counters })
    }

    #[test]
    fn export_of_another_format_is_refused_by_its_number() {
        for format in [json!(0), json!(2), json!("1"), json!(1.5)] {
            let text = json!({ "format": format, "colour": "red" }).to_string();
            let said = VfExport::parse(&text).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("has format {format}, and this version reads format 1")),
                "{said}"
            );
            let request = json!({ "export": { "format": format, "colour": "red" } }).to_string();
            let said = serde_json::from_str::<VfImport>(&request).unwrap_err().to_string();
            assert!(said.starts_with(&format!("the export has format {format}")), "{said}");
        }
    }

    #[test]
    fn counters_that_an_export_lacks_are_zero() {
        let read = VfExport::parse(&export().to_string()).unwrap();
        let mut counters = ExportedCounters::default();
        (counters.rx.packets, counters.drops.tx_invalid) = (5, 2);
        assert_eq!(read.counters, counters);
        let request = json!({ "export": export() }).to_string();
        assert_eq!(serde_json::from_str::<VfImport>(&request).unwrap().export, read);
    }

    #[test]
    fn text_that_is_no_export_is_refused_with_the_remedy() {
        let with = |path: &str, value: Value| {
            let mut changed = export();
            *changed.pointer_mut(path).unwrap() = value;
            changed.to_string()
        };
        let colour = json!({ "colour": "red" });
        for text in [
            with("/counters/rx", json!(-1)),
            with("/counters", colour.clone()),
            with("/settings", colour),
            "{}".into(),
            "[]".into(),
            "nothing".into(),
        ] {
            let said = VfExport::parse(&text).unwrap_err().to_string();
            assert!(
                said.contains("not an exported VF") && said.contains("softiov vf export"),
                "{text}: {said}"
            );
        }
    }
}
