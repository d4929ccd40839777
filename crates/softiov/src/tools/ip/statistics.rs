//! Prints statistics of links and VFs, as iproute2's `print_stats64` and `print_vf_stats64` print them.

use super::options::IpOutputFormat;
use daemon::control::status::{TrafficCounts, VfStatus};
use daemon::control::uplink::UplinkStatus;
use serde::Serialize;
use std::fmt::Write;

/// Statistics of a port as an interface: those of its uplink. Fields of `rtnl_link_stats64` that a port cannot count
/// are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LinkStatistics {
    rx_bytes: u64,
    rx_packets: u64,
    rx_multicast: u64,
    /// Number of received frames whose length the card does not accept.
    rx_length_errors: u64,
    /// Number of frames that the kernel received and dropped because the port read the uplink too late.
    rx_missed: u64,
    tx_bytes: u64,
    tx_packets: u64,
    tx_dropped: u64,
    /// Number of frames not sent because they were longer than the interface's MTU.
    tx_aborted: u64,
    /// Number of frames not sent because the uplink had no carrier.
    tx_carrier: u64,
}

impl LinkStatistics {
    /// Returns the statistics of an uplink; all are 0 without one. Frames that `impair` drops are not counted, since a
    /// real line does not count its losses.
    pub(super) fn of(uplink: Option<&UplinkStatus>) -> Self {
        let Some(UplinkStatus { rx, tx, drops, .. }) = uplink else { return Self::default() };
        Self {
            rx_bytes: rx.bytes,
            rx_packets: rx.packets,
            rx_multicast: rx.multicast,
            rx_length_errors: drops.malformed,
            rx_missed: drops.missed,
            tx_bytes: tx.bytes,
            tx_packets: tx.packets,
            tx_dropped: drops.no_room,
            tx_aborted: drops.too_long,
            tx_carrier: drops.no_link,
        }
    }

    fn tx_errors(&self) -> u64 {
        self.tx_aborted + self.tx_carrier
    }

    /// Appends the link's statistics as text. The appended text begins with the line end `end` and ends without one.
    pub(super) fn print(&self, text: &mut String, end: &str, format: IpOutputFormat) {
        let rx =
            [self.rx_bytes, self.rx_packets, self.rx_length_errors, 0, self.rx_missed, self.rx_multicast];
        let rx_errors = [self.rx_length_errors, 0, 0, 0, 0];
        let tx = [self.tx_bytes, self.tx_packets, self.tx_errors(), self.tx_dropped, self.tx_carrier, 0];
        let tx_errors = [self.tx_aborted, 0, 0, 0];
        let with_errors = format.statistics > 1;
        let mut columns = COLUMNS;
        columns.fit(&rx, 0, format);
        columns.fit(&tx, 0, format);
        if with_errors {
            columns.fit(&rx_errors, 1, format);
            columns.fit(&tx_errors, 1, format);
        }
        let blocks = [
            ("RX", ["bytes", "packets", "errors", "dropped", "missed", "mcast"], rx),
            ("TX", ["bytes", "packets", "errors", "dropped", "carrier", "collsns"], tx),
        ];
        let errors: [(&[&str], &[u64]); 2] = [
            (&["length", "crc", "frame", "fifo", "overrun"], &rx_errors),
            // iproute2's last column counts changes of the carrier, which a port does not count.
            (&["aborted", "fifo", "window", "heartbt"], &tx_errors),
        ];
        for ((way, names, values), (error_names, error_values)) in blocks.into_iter().zip(errors) {
            let StatisticsColumns(widths) = columns;
            let _ = write!(text, "{end}    {way}: {:>1$}", names[0], widths[0] - 4);
            for (name, width) in names[1..].iter().zip(&widths[1..]) {
                let _ = write!(text, " {name:>width$}");
            }
            // The column of compressed frames, whose header is blank without such frames.
            let _ = write!(text, " {:1$}{end}    ", "", widths[6]);
            columns.values(text, &values, 0, format);
            if with_errors {
                let _ = write!(text, "{end}    {way} errors:{:1$}", "", widths[0] - 10);
                for (name, width) in error_names.iter().zip(&widths[1..]) {
                    let _ = write!(text, " {name:>width$}");
                }
                if way == "TX" {
                    let _ = write!(text, " {:1$}", "", widths[5]);
                }
                let _ = write!(text, "{end}{:1$}", "", widths[0] + 5);
                columns.values(text, error_values, 1, format);
            }
        }
    }
}

/// Widths in characters of the columns in a block of `ip`'s statistics.
#[derive(Debug, Clone, Copy)]
struct StatisticsColumns([usize; 7]);

/// Initial widths of the columns of `ip`'s statistics: those of iproute2's longest headers (`print_stats64`).
const COLUMNS: StatisticsColumns = StatisticsColumns([10, 7, 6, 7, 7, 7, 10]);

impl StatisticsColumns {
    /// Widens the columns of `ip`'s statistics, from index `first` on, to fit values.
    fn fit(&mut self, values: &[u64], first: usize, format: IpOutputFormat) {
        if format.human {
            return;
        }
        for (width, value) in self.0[first..].iter_mut().zip(values) {
            *width = (*width).max(value.to_string().len());
        }
    }

    fn values(&self, text: &mut String, values: &[u64], first: usize, format: IpOutputFormat) {
        for (width, value) in self.0[first..].iter().zip(values) {
            number(text, *width, *value, format);
        }
    }
}

/// Appends a counter's value to the statistics in a column, and a space after it, with a unit prefix if requested
/// (`print_num`).
fn number(text: &mut String, width: usize, value: u64, format: IpOutputFormat) {
    let base = if format.iec { 1024 } else { 1000 };
    if !format.human || value < base {
        let _ = write!(text, "{value:>width$} ");
        return;
    }
    let (mut unit, mut prefixes) = (base, "kMGTPE".chars());
    let mut prefix = prefixes.next().unwrap_or_default();
    while value / base >= unit {
        let Some(next) = prefixes.next() else { break };
        (unit, prefix) = (unit * base, next);
    }
    let decimals = match value / unit {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let suffix = if format.iec { "i" } else { "" };
    let shown = format!("{:.decimals$}{prefix}{suffix}", value as f64 / unit as f64);
    let _ = write!(text, "{shown:>width$} ");
}

/// Appends the statistics of a VF, whose columns have fixed widths.
pub(super) fn print_vf(text: &mut String, vf: &VfStatus, end: &str, format: IpOutputFormat) {
    let (rx, tx) = (vf.rx, vf.tx);
    let _ = write!(text, "{end}    RX: bytes  packets  mcast   bcast   dropped {end}    ");
    let values = [rx.bytes, rx.packets, rx.multicast, rx.broadcast, rx.dropped];
    [10, 8, 7, 7, 8].into_iter().zip(values).for_each(|(width, value)| number(text, width, value, format));
    let _ = write!(text, "{end}    TX: bytes  packets   dropped {end}    ");
    let values = [tx.bytes, tx.packets, tx.dropped];
    [10, 8, 8].into_iter().zip(values).for_each(|(width, value)| number(text, width, value, format));
}

/// `stats64` object of a link in JSON.
#[derive(Debug, Serialize)]
pub(super) struct LinkStatisticsJson {
    rx: LinkRxJson,
    tx: LinkTxJson,
}

#[derive(Debug, Serialize)]
struct LinkRxJson {
    bytes: u64,
    packets: u64,
    errors: u64,
    dropped: u64,
    over_errors: u64,
    multicast: u64,
    #[serde(flatten)]
    by_kind: Option<RxErrorsJson>,
}

/// Receive errors of a link in JSON, added by `-s -s`.
#[derive(Debug, Serialize)]
struct RxErrorsJson {
    length_errors: u64,
    crc_errors: u64,
    frame_errors: u64,
    fifo_errors: u64,
    missed_errors: u64,
}

#[derive(Debug, Serialize)]
struct LinkTxJson {
    bytes: u64,
    packets: u64,
    errors: u64,
    dropped: u64,
    carrier_errors: u64,
    collisions: u64,
    #[serde(flatten)]
    by_kind: Option<TxErrorsJson>,
}

/// Transmit errors of a link in JSON, added by `-s -s`.
#[derive(Debug, Serialize)]
struct TxErrorsJson {
    aborted_errors: u64,
    fifo_errors: u64,
    window_errors: u64,
    heartbeat_errors: u64,
}

impl LinkStatisticsJson {
    pub(super) fn of(counts: &LinkStatistics, format: IpOutputFormat) -> Self {
        let with_errors = format.statistics > 1;
        let rx_errors = RxErrorsJson {
            length_errors: counts.rx_length_errors,
            crc_errors: 0,
            frame_errors: 0,
            fifo_errors: 0,
            missed_errors: counts.rx_missed,
        };
        let tx_errors = TxErrorsJson {
            aborted_errors: counts.tx_aborted,
            fifo_errors: 0,
            window_errors: 0,
            heartbeat_errors: 0,
        };
        Self {
            rx: LinkRxJson {
                bytes: counts.rx_bytes,
                packets: counts.rx_packets,
                errors: counts.rx_length_errors,
                dropped: 0,
                over_errors: 0,
                multicast: counts.rx_multicast,
                by_kind: with_errors.then_some(rx_errors),
            },
            tx: LinkTxJson {
                bytes: counts.tx_bytes,
                packets: counts.tx_packets,
                errors: counts.tx_errors(),
                dropped: counts.tx_dropped,
                carrier_errors: counts.tx_carrier,
                collisions: 0,
                by_kind: with_errors.then_some(tx_errors),
            },
        }
    }
}

/// `stats` object of a VF in JSON.
#[derive(Debug, Serialize)]
pub(super) struct VfStatisticsJson {
    rx: VfRxJson,
    tx: VfTxJson,
}

#[derive(Debug, Serialize)]
struct VfRxJson {
    bytes: u64,
    packets: u64,
    multicast: u64,
    broadcast: u64,
    dropped: u64,
}

/// Transmit statistics of a VF in JSON. Two keys repeat the direction, as in iproute2.
#[derive(Debug, Serialize)]
struct VfTxJson {
    tx_bytes: u64,
    tx_packets: u64,
    dropped: u64,
}

impl VfStatisticsJson {
    pub(super) fn of(rx: TrafficCounts, tx: TrafficCounts) -> Self {
        let TrafficCounts { packets, bytes, multicast, broadcast, dropped } = rx;
        Self {
            rx: VfRxJson { bytes, packets, multicast, broadcast, dropped },
            tx: VfTxJson { tx_bytes: tx.bytes, tx_packets: tx.packets, dropped: tx.dropped },
        }
    }
}
