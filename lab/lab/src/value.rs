//! Values of experiment parameters. Metrics are always numbers.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Value of a parameter, written to JSON as itself: `3`, `false`, `1.25`, `"2k"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// Parameter that is on or off.
    Bool(bool),
    /// Integer parameter: a count or whole amount.
    Int(i64),
    /// Real parameter: a factor or fraction; settings only, never an axis.
    Real(f64),
    /// Text parameter: the name of a choice.
    Text(Cow<'static, str>),
}

impl ParameterValue {
    /// Creates a value from a name known at compile time.
    #[must_use]
    pub const fn name(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Parses a parameter value of the same kind as this value.
    #[must_use]
    pub fn parse_alike(&self, text: &str) -> Option<Self> {
        match self {
            Self::Bool(_) => text.parse().ok().map(Self::Bool),
            Self::Int(_) => text.parse().ok().map(Self::Int),
            Self::Real(_) => text.parse().ok().filter(|real: &f64| real.is_finite()).map(Self::Real),
            Self::Text(_) => Some(Self::Text(Cow::Owned(text.to_owned()))),
        }
    }

    /// Returns the name of the parameter value's kind, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Int(_) => "an integer",
            Self::Real(_) => "a number",
            Self::Text(_) => "a name",
        }
    }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ParameterValue;

    #[test]
    fn parameter_value_round_trips_through_json() {
        for (value, json) in [
            (ParameterValue::Int(3), "3"),
            (ParameterValue::Bool(false), "false"),
            (ParameterValue::Real(2.0), "2.0"),
            (ParameterValue::name("2k"), "\"2k\""),
        ] {
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(serde_json::from_str::<ParameterValue>(json).unwrap(), value);
        }
    }

    #[test]
    fn parameter_text_is_parsed_as_the_type_of_the_current_value() {
        assert_eq!(ParameterValue::Int(1).parse_alike("7"), Some(ParameterValue::Int(7)));
        assert_eq!(ParameterValue::Int(1).parse_alike("7.5"), None);
        assert_eq!(ParameterValue::Bool(true).parse_alike("yes"), None);
        assert_eq!(ParameterValue::Real(1.0).parse_alike("2"), Some(ParameterValue::Real(2.0)));
        assert_eq!(ParameterValue::Real(1.0).parse_alike("inf"), None);
        assert_eq!(ParameterValue::name("20k").parse_alike("1"), Some(ParameterValue::name("1")));
    }
}
