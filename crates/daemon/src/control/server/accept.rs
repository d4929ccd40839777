//! Choice between the Prometheus and the OpenMetrics format by the client's `Accept` header (RFC 9110, section
//! 12.5.1).

use crate::control::metrics;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Weight of a media range without `q`, in thousandths, as a weight has three decimals at most (RFC 9110, section
/// 12.4.2).
const FULL_WEIGHT: u16 = 1000;

/// Text format of the metrics, with its media type.
struct MetricsFormat {
    kind: &'static str,
    subtype: &'static str,
    version: &'static str,
    content_type: &'static str,
}

/// Text format of Prometheus, which a client gets if it accepts neither format.
const TEXT: MetricsFormat =
    MetricsFormat { kind: "text", subtype: "plain", version: "0.0.4", content_type: metrics::PROMETHEUS };
/// Text format of OpenMetrics, which a client gets if it prefers this format.
const OPEN: MetricsFormat = MetricsFormat {
    kind: "application",
    subtype: "openmetrics-text",
    version: "1.0.0",
    content_type: metrics::OPENMETRICS,
};

/// Closeness of a media range in `Accept` to a metrics format, the closest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MediaRangeSpecificity {
    Anything,
    Kind,
    Subtype,
    Version,
}

/// Client's preference for a metrics format: the weight of the closest matching media range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MetricsFormatPreference {
    weight: u16,
    specificity: Option<MediaRangeSpecificity>,
}

/// Returns true if the client prefers OpenMetrics. A client that accepts neither format gets the text format, as from
/// Prometheus' own library. With equal weights, a format that a media range names wins over a format that a wildcard
/// admits.
pub(super) fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<Vec<&str>> =
        lines.flat_map(|line| split(line, ',')).map(|range| split(range, ';')).collect();
    let [open, text] = [OPEN, TEXT].map(|form| form.preference(&ranges));
    let is_named = open.specificity >= Some(MediaRangeSpecificity::Subtype);
    open.weight > text.weight || (open.weight > 0 && open.weight == text.weight && is_named)
}

/// Returns the value of `Content-Type` for OpenMetrics (`open`) or the Prometheus format.
pub(super) fn content_type(open: bool) -> &'static str {
    if open { OPEN.content_type } else { TEXT.content_type }
}

impl MetricsFormat {
    /// Returns the client's preference for this format by the closest media range. Among equally close ranges the
    /// first counts.
    fn preference(&self, ranges: &[Vec<&str>]) -> MetricsFormatPreference {
        let mut closest = MetricsFormatPreference::default();
        for range in ranges {
            let fits = self.specificity(range).zip(weight(range));
            let Some((specificity, weight)) = fits else { continue };
            if Some(specificity) > closest.specificity {
                closest = MetricsFormatPreference { weight, specificity: Some(specificity) };
            }
        }
        closest
    }

    /// Returns how closely a media range names this format, or `None` if the range names another format. Parameters
    /// besides `version` and `charset` are ignored; `escaping` has no effect, because our metric names need no
    /// escaping.
    fn specificity(&self, range: &[&str]) -> Option<MediaRangeSpecificity> {
        let (kind, subtype) = range.first()?.split_once('/')?;
        let specificity = match (kind.trim(), subtype.trim()) {
            ("*", "*") => MediaRangeSpecificity::Anything,
            (kind, "*") if kind.eq_ignore_ascii_case(self.kind) => MediaRangeSpecificity::Kind,
            (kind, subtype) => {
                let is_same =
                    kind.eq_ignore_ascii_case(self.kind) && subtype.eq_ignore_ascii_case(self.subtype);
                is_same.then_some(MediaRangeSpecificity::Subtype)?
            }
        };
        if parameter(range, "charset").is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
            return None;
        }
        match parameter(range, "version") {
            None => Some(specificity),
            Some(version) => (version == self.version).then_some(MediaRangeSpecificity::Version),
        }
    }
}

/// Returns the weight of a media range in thousandths, or `None` if it is malformed: such a range is ignored.
fn weight(range: &[&str]) -> Option<u16> {
    let Some(text) = parameter(range, "q") else { return Some(FULL_WEIGHT) };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_valid =
        matches!(whole, "0" | "1") && decimals.len() <= 3 && decimals.bytes().all(|d| d.is_ascii_digit());
    let digits = is_valid.then(|| format!("{whole}{decimals:0<3}"))?;
    digits.parse().ok().filter(|weight| *weight <= FULL_WEIGHT)
}

/// Returns the value of a media range's parameter, without the quotes that it may have.
fn parameter<'a>(range: &[&'a str], name: &str) -> Option<&'a str> {
    let pairs = range.iter().skip(1).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"'))
}

/// Splits a text at a separator that is not within a quoted string.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let is_separator = |character: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match character {
            '\\' if quoted && !was_escaped => escaped = true,
            '"' if !was_escaped => quoted = !quoted,
            _ => return character == separator && !quoted,
        }
        false
    };
    text.split(is_separator).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::prefers_openmetrics;
    use axum::http::header::ACCEPT;
    use axum::http::{HeaderMap, HeaderValue};

    const PROMETHEUS_2: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                                text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    const PROMETHEUS_3: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                                application/openmetrics-text;version=0.0.1;q=0.4,\
                                text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
    const PROTOBUF_FIRST: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                                  encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

    fn prefers(lines: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_str(line).unwrap());
        }
        prefers_openmetrics(&headers)
    }

    #[test]
    fn accept_header_weights_choose_the_metrics_format() {
        for (accept, expected) in [
            ("", false),
            ("*/*", false),
            ("text/plain", false),
            ("text/*, application/*", false),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; Version=1.0.0", true),
            ("application/openmetrics-text, */*", true),
            ("text/plain, application/openmetrics-text", true),
            // Weight 0 is "not acceptable", in every spelling of 0.
            ("application/openmetrics-text;q=0, text/plain", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text; q=0.000, */*", false),
            ("application/openmetrics-text ; Q=0", false),
            ("text/plain;q=0, */*", true),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.3", false),
            ("application/openmetrics-text;q=0.301, text/plain;q=0.3", true),
            ("application/*, text/plain;q=0.9", true),
            // The closest range counts, at any position.
            ("application/openmetrics-text;q=0.1, application/*;q=1, text/plain;q=0.5", false),
            (
                "application/openmetrics-text;version=1.0.0;q=0.1, application/openmetrics-text, text/plain;q=0.5",
                false,
            ),
            ("*/*;q=1, text/plain;q=0.1", true),
            // The host does not write these versions and character sets.
            ("application/openmetrics-text;version=0.0.1, text/plain", false),
            ("application/openmetrics-text;charset=utf-16, text/plain", false),
            ("application/openmetrics-text;version=\"1.0.0\";charset=UTF-8", true),
            // Malformed ranges are ignored.
            ("application/openmetrics-text;q=2, text/plain;q=0.1", false),
            ("application/openmetrics-text;q=x, text/plain;q=0.1", false),
            ("application/openmetrics-text;q=1.001", false),
            ("openmetrics, ;;;, =, text/plain;q=0.5", false),
            ("text/plain;a=\"x, application/openmetrics-text\"", false),
            ("application/json;a=\"\\\", \", application/openmetrics-text", true),
            (PROMETHEUS_2, true),
            (PROMETHEUS_3, true),
            (PROTOBUF_FIRST, true),
        ] {
            assert_eq!(prefers(&[accept]), expected, "{accept}");
        }
    }

    #[test]
    fn several_accept_headers_are_read_as_one_list() {
        assert!(prefers(&["text/plain;q=0.5", "application/openmetrics-text"]));
        assert!(!prefers(&["application/openmetrics-text;q=0.4", "text/plain;q=0.5"]));
        assert!(!prefers(&[]));
    }
}
