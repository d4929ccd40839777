//! Comma-separated values (RFC 4180), with a line feed at the end of each record.

/// Appends a record to CSV text.
pub(crate) fn record<S: AsRef<str>>(text: &mut String, fields: impl IntoIterator<Item = S>) {
    for (at, value) in fields.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&field(value.as_ref()));
    }
    text.push('\n');
}

/// Returns the different names in the order of their first occurrence, as columns of a table.
pub(crate) fn union<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut union = Vec::new();
    names.for_each(|name| {
        if !union.contains(&name) {
            union.push(name);
        }
    });
    union
}

/// Quotes a CSV field (RFC 4180, section 2).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::record;

    #[test]
    fn csv_fields_with_commas_or_quotes_are_quoted() {
        let mut text = String::new();
        record(&mut text, ["plain", "a,b", "the \"quoted\"", ""]);
        assert_eq!(text, "plain,\"a,b\",\"the \"\"quoted\"\"\",\n");
    }
}
