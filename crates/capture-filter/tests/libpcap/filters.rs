//! Texts of the filters that are compared with libpcap.

/// Returns the texts of all filters in `filters.txt`.
pub(crate) fn all() -> Vec<&'static str> {
    let lines = include_str!("filters.txt").lines().filter(|line| !line.starts_with("// "));
    lines.chain(["   tcp\tand\n udp or arp  ", "tcp\r\nor udp"]).collect()
}

/// Filters that are compared with libpcap without its optimizer, which changes their meaning according to bug
/// reports.
pub(crate) const NOT_OPTIMIZED: &[&str] = &[
    "len >= 2147483648 & 2147483648 or len < 0 | 2147483648",
    "len <= 4294967295 & 2147483647 and len > 2147483647 + 0",
    "(1 = 0) || (1 / 4294967295 = 0) and (0 & 4294967295 = 0)",
    "ether[1] > tcp[100] or ip",
    "ip[100] >= 0 or 1 = 1",
];
