//! Result of a bound, as the checker or a test states it.

use serde_json::Value;

use crate::tidy::proofs::CompiledBound;

/// Result of a bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoundResult {
    pub(super) name: String,
    /// True if the bound is proved; for a control, true if the checker has refuted it.
    pub(super) is_good: bool,
    /// Result in words.
    pub(super) words: String,
    /// Number of the function's paths; `None` for a test.
    pub(super) paths: Option<u64>,
    pub(super) seconds: f64,
}

impl BoundResult {
    /// Reads a result from the checker's line of JSON.
    pub(super) fn of_checker(line: &Value, bounds: &[CompiledBound]) -> Option<Self> {
        let name = line["name"].as_str()?;
        let control = bounds.iter().find(|bound| bound.name == name)?.is_control();
        let result = line["result"].as_str()?;
        let why = line["why"].as_str().unwrap_or_default();
        let values = line["values"].as_object().into_iter().flatten();
        let values: Vec<_> =
            values.map(|(name, value)| format!("{name} = {}", value.as_str().unwrap_or_default())).collect();
        let words = match (control, result) {
            (false, "proved") => "proved".to_owned(),
            (true, "refuted") => format!("control, found: {why}"),
            (true, _) => format!("THE CONTROL WAS NOT FOUND: {result} {why}"),
            (false, "refuted") => format!("REFUTED by {}: {why}", values.join(", ")),
            (false, _) => format!("NOT PROVED: {why}"),
        };
        Some(Self {
            name: name.to_owned(),
            is_good: result == if control { "refuted" } else { "proved" },
            words,
            paths: line["paths"].as_u64(),
            seconds: line["seconds"].as_f64().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::proofs;
    use crate::tidy::source::RustSource;

    fn result(name: &str, line: &str) -> BoundResult {
        let text = "bound! {\n /// Holds.\n fn one(a: u32) if true; { [true, false] }\n}\n\
            control! { fn control_x(a: u64) if true; { a + 1 } }\n";
        let mut source = RustSource::sample(text);
        source.path = "proofs/src/sample.rs".into();
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["name"] = name.into();
        BoundResult::of_checker(&line, &proofs::compiled(&[source])).unwrap()
    }

    #[test]
    fn only_a_proof_or_a_refuted_control_is_good() {
        let proved = r#"{"result": "proved", "paths": 3, "seconds": 0.5}"#;
        let refuted = r#"{"result": "refuted", "values": {"a": "0x7"}, "why": "panic_const_add_overflow"}"#;
        let undecided = r#"{"result": "undecided", "why": "not finished in 120 s"}"#;
        let good = |name, line| result(name, line).is_good;
        assert_eq!([proved, refuted, undecided].map(|line| good("one", line)), [true, false, false]);
        assert_eq!([proved, refuted, undecided].map(|line| good("control_x", line)), [false, true, false]);
        assert_eq!(result("one", refuted).words, "REFUTED by a = 0x7: panic_const_add_overflow");
        assert_eq!((result("one", proved).paths, result("one", proved).seconds), (Some(3), 0.5));
    }
}
