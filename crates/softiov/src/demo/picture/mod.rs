//! Picture of a demo as SVG: its guests, their VFs, the card, and the delivered traffic over time.
//!
//! The picture replays the demo by CSS animations, without a script, so pages that show it as an image play it too. A
//! viewer without animations, or a user who asked for reduced motion, sees its end: every flow and every number.

mod motion;

use super::report::{DemoReport, PingResult, ReportedGuest, TcpFlow, VfCounters, VmmWorkPerThousandPackets};
use maud::{Markup, html};
use motion::{DOTS, DemoMotion, PicturePoint};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 548.0;
/// Distance of the demo's picture from the left and the right edge, pixels.
const MARGIN: f64 = 30.0;
/// Vertical position of the lower edge of the guests' boxes in the demo's picture, pixels.
const GUEST_BOTTOM: f64 = 152.0;
/// Vertical position in the demo's picture of the frames on their way through the switch, pixels.
const SWITCH: f64 = 286.0;
/// Vertical position of the base line of the chart in the demo's picture, pixels.
const BASE: f64 = 498.0;
/// Height of the bar of the fastest flow in the chart of the demo's picture, pixels.
const HIGHEST: f64 = 84.0;
/// Number of colours for guests in the demo's picture; further guests use the same colours again.
const COLOURS: usize = 3;

/// Style sheet of the demo's picture: colours and fonts. The picture has its own background, so it can stand on a page
/// of either colour scheme.
const STYLE: &str = "svg{--page:#fff;--text:#1c2430;--soft:#5b6675;--line:#cfd6de;--box:#f4f6f9;--card:#fff6dd;\
    --edge:#b07d12;--c0:#2f6db3;--c1:#c2571a;--c2:#2e8259}\
    @media (prefers-color-scheme:dark){svg{--page:#161b22;--text:#e8ecf1;--soft:#a5b0be;--line:#3a444f;--box:#202730;\
    --card:#2c2618;--edge:#d0a23c;--c0:#6aa5e8;--c1:#f0985c;--c2:#63bd8f}}\
    text{font:14px system-ui,sans-serif;fill:var(--text)}.title{font-size:20px;font-weight:700}.name{font-weight:600}\
    .soft{fill:var(--soft);font-size:13px}.now{font-size:15px;font-weight:600}.middle{text-anchor:middle}\
    .end{text-anchor:end}.page{fill:var(--page);stroke:var(--line)}.guest{fill:var(--box);stroke-width:2}\
    .card{fill:var(--card);stroke:var(--edge)}.vf{fill:var(--page);stroke-width:1.5}\
    .line{stroke:var(--line);stroke-width:2;fill:none}.bar{stroke:none}\
    .c0{--own:var(--c0)}.c1{--own:var(--c1)}.c2{--own:var(--c2)}\
    .guest,.vf{stroke:var(--own)}.bar,.dot,.mark{fill:var(--own)}";

/// Draws a demo of guests inside this process as SVG.
pub(super) fn draw(report: &DemoReport) -> String {
    let drawing = DemoDrawing { report };
    let motion = DemoMotion::of(drawing.ways());
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" {
            title { "softiov demo: " (report.guests.len()) " guests exchange traffic through one SR-IOV card" }
            style { (STYLE) (motion.style()) }
            rect.page x="1" y="1" width=(WIDTH - 2.0) height=(HEIGHT - 2.0) rx="10" {}
            text.title x=(MARGIN) y="38" { "softiov demo" }
            text.soft x="200" y="38" {
                (report.guests.len()) " guests and one SR-IOV card in one process: no root, no QEMU, no hardware"
            }
            @for (index, guest) in report.guests.iter().enumerate() { (drawing.guest(index, guest)) }
            (drawing.card())
            // Frames pass below the boxes of the VFs.
            (drawing.frames(&motion))
            (drawing.vfs())
            (drawing.captions())
            (drawing.chart())
        }
    };
    drawn.into_string() + "\n"
}

/// Parts of the demo's picture, drawn from one report.
struct DemoDrawing<'a> {
    report: &'a DemoReport,
}

impl DemoDrawing<'_> {
    /// Returns the width of a guest's box in the demo's picture, pixels.
    fn column(&self) -> f64 {
        (WIDTH - 2.0 * MARGIN) / self.report.guests.len().max(1) as f64 - 20.0
    }

    /// Returns the horizontal position of the middle of a guest's box in the picture, pixels.
    fn middle(&self, index: usize) -> f64 {
        MARGIN + (self.column() + 20.0) * index as f64 + self.column() / 2.0 + 10.0
    }

    /// Returns the index of the guest that has this VF.
    fn index(&self, vf: &str) -> usize {
        self.report.guests.iter().position(|guest| guest.vf == vf).unwrap_or(0)
    }

    /// Returns the points in the picture through which the frames of each flow move: out of a guest, through the
    /// switch, into the other guest.
    fn ways(&self) -> Vec<[PicturePoint; 4]> {
        let way = |flow: &TcpFlow| {
            let [from, to] = [&flow.from, &flow.to].map(|vf| self.middle(self.index(vf)));
            [(from, GUEST_BOTTOM), (from, SWITCH), (to, SWITCH), (to, GUEST_BOTTOM)]
        };
        self.report.flows.iter().map(way).collect()
    }

    fn guest(&self, index: usize, guest: &ReportedGuest) -> Markup {
        let (middle, width) = (self.middle(index), self.column());
        let left = middle - width / 2.0;
        html! {
            g class=(colour(index)) {
                path.line d=(format!("M{middle:.0} {GUEST_BOTTOM}V202")) {}
                rect.guest x=(px(left)) y="62" width=(px(width)) height=(GUEST_BOTTOM - 62.0) rx="8" {}
                circle.mark cx=(px(left + 22.0)) cy="85" r="6" {}
                text.name x=(px(left + 36.0)) y="90" { "guest " (index + 1) }
                text.soft x=(px(left + 16.0)) y="114" { "its own memory and TCP/IP stack" }
                text.soft x=(px(left + 16.0)) y="136" { "driver: " (guest.driver) }
            }
        }
    }

    /// Draws the card, and its lines to guests and VFs, into the picture.
    fn card(&self) -> Markup {
        let last = self.report.vfs.len().max(1) - 1;
        html! {
            text.soft x=(px(self.middle(0) + 12.0)) y="176" { "vfio-user socket, shared memory" }
            rect.card x=(MARGIN) y="190" width=(WIDTH - 2.0 * MARGIN) height="124" rx="8" {}
            @for index in 0..self.report.vfs.len() {
                path.line d=(format!("M{:.0} 264V{SWITCH}", self.middle(index))) {}
            }
            path.line d=(format!("M{:.0} {SWITCH}H{:.0}", self.middle(0), self.middle(last))) {}
            text.soft x=(MARGIN + 14.0) y="306" {
                "port pf0, family " (self.report.family) ": switch and policy of its VFs"
            }
        }
    }

    /// Draws the boxes of the VFs into the picture.
    fn vfs(&self) -> Markup {
        let width = self.column();
        html! {
            @for (index, vf) in self.report.vfs.iter().enumerate() { (Self::vf(self.middle(index), width, index, vf)) }
        }
    }

    /// Draws the box of a VF with its counters into the picture.
    fn vf(middle: f64, width: f64, index: usize, vf: &VfCounters) -> Markup {
        let left = middle - width / 2.0;
        let drops = vf.rx.dropped + vf.tx.dropped;
        html! {
            g class=(colour(index)) {
                rect.vf x=(px(left + 8.0)) y="200" width=(px(width - 16.0)) height="64" rx="6" {}
                text.name.middle x=(px(middle)) y="218" { (vf.vf) }
                text.soft.middle x=(px(middle)) y="237" { (grouped(vf.tx.packets)) " frames sent" }
                text.soft.middle x=(px(middle)) y="255" {
                    (grouped(vf.rx.packets)) " received, " (grouped(drops)) " dropped"
                }
            }
        }
    }

    /// Draws the moving frames into the picture. All pings move at once, then the flows one after the other.
    fn frames(&self, motion: &DemoMotion) -> Markup {
        let from = |flow: usize| colour(self.index(&self.report.flows[flow].from));
        html! {
            g class="phase p0" {
                @for flow in 0..motion.flows() {
                    g class=(format!("{} w{flow}", from(flow))) { circle.dot r="4" {} }
                }
            }
            @for flow in 0..motion.flows() {
                g class=(format!("phase p{} {} w{flow}", flow + 1, from(flow))) {
                    @for _ in 0..DOTS { circle.dot r="6" {} }
                }
            }
        }
    }

    /// Writes the caption of each phase of the picture's animation. The last caption stays.
    fn captions(&self) -> Markup {
        let VmmWorkPerThousandPackets { reads, writes, interrupts } =
            self.report.interventions_per_1000_packets;
        html! {
            text.now.middle.phase.p0 x=(px(WIDTH / 2.0)) y="344" { (ping_summary(&self.report.pings)) }
            @for (number, flow) in (1..).zip(&self.report.flows) {
                text class=(format!("now middle phase p{number}")) x=(px(WIDTH / 2.0)) y="344" { (flow_summary(flow)) }
            }
            text.now.middle.last x=(px(WIDTH / 2.0)) y="344" {
                (format!("Work for the VMM per 1,000 packets: {reads:.1} register reads, {writes:.1} writes, \
                          {interrupts:.1} interrupts"))
            }
        }
    }

    /// Draws a bar for each flow into the picture. The bar's width is the flow's duration, its height the throughput.
    fn chart(&self) -> Markup {
        let flows = &self.report.flows;
        let total: f64 = flows.iter().map(seconds).sum();
        let fastest = flows.iter().map(|flow| flow.mbps).fold(1.0, f64::max);
        // Without any flow that carried bytes there is no time to divide by.
        let scale = if total > 0.0 { (WIDTH - 2.0 * MARGIN) / total } else { 0.0 };
        let mut left = MARGIN;
        let mut bars = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            let width = seconds(flow) * scale;
            bars.push(self.bar(index, flow, (left, width, flow.mbps / fastest * HIGHEST)));
            left += width;
        }
        html! {
            text.soft x=(MARGIN) y="376" { "TCP throughput over time, Mb/s" }
            @for bar in bars { (bar) }
            path.line d=(format!("M{MARGIN} {BASE}H{}", WIDTH - MARGIN)) {}
            text.soft x=(MARGIN) y="536" { "0 s" }
            text.soft.end x=(WIDTH - MARGIN) y="536" { (format!("{total:.2} s")) }
        }
    }

    /// Draws the bar of a flow, with its throughput above, and sender and receiver below. `place` is the bar's left
    /// edge, width and height.
    fn bar(&self, index: usize, flow: &TcpFlow, place: (f64, f64, f64)) -> Markup {
        let (left, width, height) = place;
        let middle = px(left + width / 2.0);
        let [from, to] = [&flow.from, &flow.to].map(|vf| self.index(vf));
        html! {
            g class=(format!("{} b{index}", colour(from))) {
                rect.bar x=(px(left + 2.0)) y=(px(BASE - height)) width=(px((width - 4.0).max(1.0))) height=(px(height)) rx="3" {}
                text.middle x=(middle) y=(px(BASE - height - 7.0)) { (grouped(flow.mbps.round() as u64)) }
                text.soft.middle x=(middle) y=(px(BASE + 18.0)) { "guest " (from + 1) " to " (to + 1) }
            }
        }
    }
}

/// Returns the CSS class with the colour of a guest in the picture.
fn colour(guest: usize) -> String {
    format!("c{}", guest % COLOURS)
}

/// Returns the duration of a flow, seconds. The duration is 0 if the flow carried no byte.
fn seconds(flow: &TcpFlow) -> f64 {
    if flow.mbps > 0.0 { flow.bytes as f64 * 8.0 / (flow.mbps * 1e6) } else { 0.0 }
}

fn ping_summary(pings: &[PingResult]) -> String {
    let sum = |count: fn(&PingResult) -> u64| pings.iter().map(count).sum::<u64>();
    let (sent, received) = (sum(|ping| ping.sent), sum(|ping| ping.received));
    let mut medians: Vec<f64> = pings.iter().filter_map(|ping| ping.rtt_us_p50).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let median = medians.get(medians.len() / 2).copied().unwrap_or_default();
    format!("Pings from every guest to every other: {received} of {sent} answered, median {median:.0} us")
}

fn flow_summary(flow: &TcpFlow) -> String {
    let TcpFlow { from, to, bytes, mbps, trapped_per_1000_packets: trapped, .. } = flow;
    let (mib, mbps) = (bytes >> 20, grouped(mbps.round() as u64));
    format!(
        "{from} to {to}: {mib} MiB over TCP, {mbps} Mb/s, {trapped:.1} register accesses per 1,000 packets"
    )
}

/// Formats a number with a comma before every three digits.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: &str, to: &str, mbps: f64) -> TcpFlow {
        let (from, to) = (from.to_owned(), to.to_owned());
        TcpFlow { from, to, protocol: "tcp", bytes: 64 << 20, mbps, trapped_per_1000_packets: 56.5 }
    }

    fn guest(vf: &str, driver: &str) -> ReportedGuest {
        let (mac, driver) = ("02:00:00:00:00:01".to_owned(), driver.to_owned());
        ReportedGuest { vf: vf.to_owned(), kind: "embedded", mac, driver }
    }

    #[test]
    fn demo_picture_shows_guests_and_flows_and_escapes_text() {
        let report = DemoReport {
            guests: vec![guest("pf0vf0", "a<b>"), guest("pf0vf1", "c&d")],
            flows: vec![flow("pf0vf0", "pf0vf1", 4000.4), flow("pf0vf1", "pf0vf0", 2000.0)],
            ..DemoReport::default()
        };
        let svg = draw(&report);
        assert!(svg.contains("a&lt;b&gt;") && svg.contains("c&amp;d") && !svg.contains("a<b>"));
        assert!(svg.contains("guest 1 to 2") && svg.contains(">4,000<") && svg.contains(">2,000<"));
        // 64 MiB at 4,000.4 and at 2,000 Mb/s.
        assert!(svg.contains("0.40 s"), "{svg}");
    }

    #[test]
    fn failed_flow_has_a_bar_of_height_0_in_the_demo_picture() {
        let report = DemoReport { flows: vec![flow("pf0vf0", "pf0vf1", 0.0)], ..DemoReport::default() };
        let svg = draw(&report);
        assert!(svg.contains("height=\"0.0\"") && !svg.contains("NaN") && !svg.contains("\"inf"), "{svg}");
    }

    #[test]
    fn demo_picture_separates_thousands_in_numbers_by_commas() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
