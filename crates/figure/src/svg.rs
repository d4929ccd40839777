//! Writes SVG as text: elements, attributes, escapes, and numbers in a short canonical form.

use std::fmt::{self, Display, Write};

/// Coordinate or length in pixels, written rounded to a tenth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PixelCoordinate(pub(crate) f64);

impl Display for PixelCoordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        let tenths = if tenths == 0.0 { 0.0 } else { tenths / 10.0 };
        write!(f, "{tenths}")
    }
}

/// Attributes of an SVG element, by name.
pub(crate) type SvgAttributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// SVG markup that is being written.
#[derive(Debug, Default)]
pub(crate) struct SvgWriter {
    text: String,
    open: Vec<&'static str>,
}

impl SvgWriter {
    /// Begins an SVG element with children.
    pub(crate) fn open(&mut self, name: &'static str, attributes: SvgAttributes<'_>) {
        self.start(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Ends the innermost open SVG element.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// Writes an SVG element without children.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: SvgAttributes<'_>) {
        self.start(name, attributes);
        self.text.push_str("/>\n");
    }

    /// Writes an SVG element that contains text.
    pub(crate) fn text(&mut self, name: &'static str, attributes: SvgAttributes<'_>, text: &str) {
        self.start(name, attributes);
        let _ = writeln!(self.text, ">{}</{name}>", EscapedText(text));
    }

    /// Writes an SVG element with a tooltip.
    pub(crate) fn marked(&mut self, name: &'static str, attributes: SvgAttributes<'_>, title: &str) {
        self.start(name, attributes);
        let _ = writeln!(self.text, "><title>{}</title></{name}>", EscapedText(title));
    }

    /// Writes an SVG style sheet. The text is not escaped, so it must not contain `<`.
    pub(crate) fn style(&mut self, css: &str) {
        self.indent();
        let _ = writeln!(self.text, "<style>\n{}\n</style>", css.trim_end());
    }

    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn start(&mut self, name: &str, attributes: SvgAttributes<'_>) {
        self.indent();
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", EscapedText(&value.to_string()));
        }
    }

    fn indent(&mut self) {
        for _ in &self.open {
            self.text.push(' ');
        }
    }
}

struct EscapedText<'a>(&'a str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // XML permits only tab and line ends among control characters; replace all.
                character if character.is_control() => f.write_char('\u{fffd}')?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PixelCoordinate, SvgWriter};

    #[test]
    fn svg_elements_nest_and_their_text_is_escaped() {
        let mut svg = SvgWriter::default();
        svg.open("g", &[("class", &"a\"b")]);
        svg.text("text", &[("x", &PixelCoordinate(1.25)), ("y", &PixelCoordinate(-0.04))], "a < b & \u{7}c");
        svg.marked("rect", &[], "7 > 6");
        assert_eq!(
            svg.finish(),
            "<g class=\"a&quot;b\">\n <text x=\"1.3\" y=\"0\">a &lt; b &amp; \u{fffd}c</text>\n \
             <rect><title>7 &gt; 6</title></rect>\n</g>\n"
        );
    }
}
