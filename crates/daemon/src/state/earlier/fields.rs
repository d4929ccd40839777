//! Writer of a traced value in postcard's encoding, without some fields.

use serde::Serialize;
use serde_reflection::{
    ContainerFormat, Format, Named, Registry, Samples, Tracer, TracerConfig, Value, VariantFormat,
};

/// Field that an earlier encoding lacks: the name of its type, and its own.
pub(super) type LackingField = (&'static str, &'static str);

/// Encoding of a value so far, with the types of the value.
#[derive(Debug)]
struct FieldWriter<'a> {
    types: &'a Registry,
    lacks: &'a [LackingField],
    bytes: Vec<u8>,
}

/// Encodes a value without the fields that `lacks` names.
pub(super) fn encode<T: Serialize>(value: &T, lacks: &[LackingField]) -> Vec<u8> {
    let mut tracer = Tracer::new(TracerConfig::default());
    let (format, value) = tracer.trace_value(&mut Samples::new(), value).expect("a state can be traced");
    let mut writer = FieldWriter { types: &tracer.registry_unchecked(), lacks, bytes: Vec::new() };
    writer.write(&format, &value);
    writer.bytes
}

impl FieldWriter<'_> {
    fn write(&mut self, format: &Format, value: &Value) {
        match (format, value) {
            // The tracer knows no format of an option that is always empty.
            (Format::Variable(of), _) => match &*of.borrow() {
                Some(of) => self.write(of, value),
                None => self.write_primitive(value),
            },
            (Format::TypeName(name), _) => {
                let of = self.types.get(name).expect("the type of a value is traced");
                self.write_container(name, of, value);
            }
            (Format::Option(of), Value::Option(Some(value))) => {
                self.bytes.push(1);
                self.write(of, value);
            }
            (Format::Seq(of), Value::Seq(values)) => {
                self.write_number(values.len() as u64);
                values.iter().for_each(|value| self.write(of, value));
            }
            (Format::Tuple(of), Value::Seq(values)) => self.write_each(of, values),
            (Format::TupleArray { content, .. }, Value::Seq(values)) => {
                values.iter().for_each(|value| self.write(content, value));
            }
            (_, value) => self.write_primitive(value),
        }
    }

    fn write_container(&mut self, name: &str, of: &ContainerFormat, value: &Value) {
        match (of, value) {
            (ContainerFormat::UnitStruct, Value::Unit) => {}
            (ContainerFormat::NewTypeStruct(of), value) => self.write(of, value),
            (ContainerFormat::TupleStruct(of), Value::Seq(values)) => self.write_each(of, values),
            (ContainerFormat::Struct(fields), Value::Seq(values)) => self.write_fields(name, fields, values),
            (ContainerFormat::Enum(variants), Value::Variant(number, value)) => {
                self.write_number((*number).into());
                let of = &variants.get(number).expect("the variant of a value is traced").value;
                self.write_variant(name, of, value);
            }
            _ => panic!("{name} has the value {value:?}"),
        }
    }

    fn write_variant(&mut self, name: &str, of: &VariantFormat, value: &Value) {
        match (of, value) {
            (VariantFormat::Variable(of), _) => {
                self.write_variant(name, of.borrow().as_ref().expect("a format"), value);
            }
            (VariantFormat::Unit, Value::Unit) => {}
            (VariantFormat::NewType(of), value) => self.write(of, value),
            (VariantFormat::Tuple(of), Value::Seq(values)) => self.write_each(of, values),
            (VariantFormat::Struct(fields), Value::Seq(values)) => self.write_fields(name, fields, values),
            _ => panic!("a variant of {name} has the value {value:?}"),
        }
    }

    fn write_fields(&mut self, name: &str, fields: &[Named<Format>], values: &[Value]) {
        for (field, value) in fields.iter().zip(values) {
            if !self.lacks.contains(&(name, field.name.as_str())) {
                self.write(&field.value, value);
            }
        }
    }

    fn write_each(&mut self, of: &[Format], values: &[Value]) {
        of.iter().zip(values).for_each(|(of, value)| self.write(of, value));
    }

    /// Writes a value that has no parts.
    fn write_primitive(&mut self, value: &Value) {
        match value {
            Value::Unit => {}
            Value::Option(None) => self.bytes.push(0),
            Value::Bool(is_set) => self.bytes.push((*is_set).into()),
            Value::U8(number) => self.bytes.push(*number),
            Value::U16(number) => self.write_number((*number).into()),
            Value::U32(number) => self.write_number((*number).into()),
            Value::U64(number) => self.write_number(*number),
            _ => panic!("no saved state has a value such as {value:?}"),
        }
    }

    /// Writes a number with seven bits per byte, the low ones first.
    fn write_number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
