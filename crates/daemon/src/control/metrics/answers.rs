//! Delays of the PF driver's answers, as a Prometheus histogram. The port has counted them in buckets already, so this
//! module builds the wire format instead of using the library's histogram, which counts single values.

use crate::control::status::{PfAnswerStatus, PortStatus};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};

/// Returns the answer-delay histograms of the ports whose PF driver the host runs, or `None` if the host runs no PF
/// driver.
pub(super) fn family(ports: &[PortStatus]) -> Option<MetricFamily> {
    let metrics: Vec<Metric> =
        ports.iter().filter_map(|port| Some(metric(&port.name, port.answers.as_ref()?))).collect();
    let mut family = MetricFamily::default();
    family.set_name("softiov_port_pf_answer_seconds".to_owned());
    family.set_help("Seconds from a VF's mailbox write to the PF driver's answer".to_owned());
    family.set_field_type(MetricType::HISTOGRAM);
    let any = !metrics.is_empty();
    family.set_metric(metrics);
    any.then_some(family)
}

fn metric(port: &str, answers: &PfAnswerStatus) -> Metric {
    let mut label = LabelPair::default();
    label.set_name("pf".to_owned());
    label.set_value(port.to_owned());
    let mut histogram = Histogram::default();
    histogram.set_sample_count(answers.requests);
    histogram.set_sample_sum(seconds(answers.sum_ns));
    let buckets = answers.at_most.iter().map(|at_most| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(seconds(at_most.ns));
        bucket.set_cumulative_count(at_most.requests);
        bucket
    });
    histogram.set_bucket(buckets.collect());
    let mut metric = Metric::from_label(vec![label]);
    metric.set_histogram(histogram);
    metric
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
