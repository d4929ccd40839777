//! Named values in insertion order, like JSON objects. Look-up is linear, as there are about a dozen entries.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::value::ParameterValue;

/// List of named values in insertion order.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValues<T>(Vec<(String, T)>);

/// Parameters of an experiment point: axis values, then changed settings.
pub type Params = NamedValues<ParameterValue>;
/// Metrics of an experiment point, by name.
pub type Metrics = NamedValues<f64>;

/// Error: a list of named values has no value of this name and kind.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the list has no value `{name}` that is {kind}")]
pub struct NoSuchValue {
    /// Name of the requested value.
    pub name: String,
    /// Kind of the requested value.
    pub kind: &'static str,
}

impl<T> NamedValues<T> {
    /// Creates an empty list of named values.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a named value, or replaces the value of that name in place.
    pub fn set(&mut self, name: impl Into<String>, value: T) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets a value like [`Self::set`], for building in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: T) -> Self {
        self.set(name, value);
        self
    }

    /// Returns the value called `name` in this list of named values, or `None` if the list has no such value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns all names with their values, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the names of all values, in insertion order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// Returns `true` if the list of named values is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl NamedValues<ParameterValue> {
    /// Returns the integer called `name` from the list of named values.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such integer.
    pub fn int(&self, name: &str) -> Result<i64, NoSuchValue> {
        self.as_kind(
            name,
            "an integer",
            |value| if let ParameterValue::Int(int) = value { Some(*int) } else { None },
        )
    }

    /// Returns the boolean called `name` from the list of named values.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such boolean.
    pub fn bool(&self, name: &str) -> Result<bool, NoSuchValue> {
        self.as_kind(name, "true or false", |value| {
            if let ParameterValue::Bool(bool) = value { Some(*bool) } else { None }
        })
    }

    /// Returns the number called `name` from the list of named values; an integer is converted.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such number.
    pub fn real(&self, name: &str) -> Result<f64, NoSuchValue> {
        self.as_kind(name, "a number", |value| match value {
            ParameterValue::Real(real) => Some(*real),
            ParameterValue::Int(int) => Some(*int as f64),
            _ => None,
        })
    }

    /// Returns the text called `name` from the list of named values.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such text.
    pub fn text(&self, name: &str) -> Result<&str, NoSuchValue> {
        self.as_kind(name, "a name", |value| {
            if let ParameterValue::Text(text) = value { Some(text.as_ref()) } else { None }
        })
    }

    fn as_kind<'a, T>(
        &'a self,
        name: &str,
        kind: &'static str,
        read: impl FnOnce(&'a ParameterValue) -> Option<T>,
    ) -> Result<T, NoSuchValue> {
        self.get(name).and_then(read).ok_or_else(|| NoSuchValue { name: name.to_owned(), kind })
    }
}

impl<T> Default for NamedValues<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<(String, T)> for NamedValues<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> Self {
        let mut named = Self::new();
        values.into_iter().for_each(|(name, value)| named.set(name, value));
        named
    }
}

/// Formats named values as `vms=1 msi_accel=false`.
impl<T: fmt::Display> fmt::Display for NamedValues<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl<T: Serialize> Serialize for NamedValues<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedValues<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedValuesVisitor(PhantomData))
    }
}

struct NamedValuesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedValuesVisitor<T> {
    type Value = NamedValues<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedValues<T>, A::Error> {
        let mut named = NamedValues::new();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            if named.get(&name).is_some() {
                return Err(A::Error::custom(format!("duplicate key `{name}`")));
            }
            named.set(name, value);
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::{NamedValues, Params};
    use crate::value::ParameterValue;

    #[test]
    fn json_keeps_the_order_of_named_values() {
        let json = r#"{"vms":1,"accel":false,"alpha":"x"}"#;
        let params: Params = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&params).unwrap(), json);
        assert_eq!(params.to_string(), "vms=1 accel=false alpha=x");
        assert!(serde_json::from_str::<Params>(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn reading_a_named_value_as_another_kind_is_an_error() {
        let params = NamedValues::new()
            .with("vms", ParameterValue::Int(7))
            .with("policy", ParameterValue::name("aic"));
        assert_eq!((params.int("vms"), params.real("vms")), (Ok(7), Ok(7.0)));
        assert_eq!(params.text("policy"), Ok("aic"));
        assert_eq!(
            params.bool("vms").unwrap_err().to_string(),
            "the list has no value `vms` that is true or false"
        );
    }
}
