//! Animation of the demo's picture: a phase for the pings, one for each flow, and a last one that shows the result. CSS
//! repeats the phases.

use std::fmt::Write;

/// Number of frames that are drawn on the way of a flow in the demo's picture.
pub(super) const DOTS: usize = 6;

/// Duration of a phase of the picture's animation, seconds.
const PHASE: f64 = 2.0;
/// Duration of the last phase of the picture's animation, in durations of the other phases.
const LAST: usize = 2;
/// Time that a drawn frame takes from guest to guest in the animation, seconds.
const TRAVEL: f64 = 1.2;

/// Position in the demo's picture: x and y, pixels.
pub(super) type PicturePoint = (f64, f64);

/// Animation of the demo's picture: its phases, and the points through which the frames of each flow move.
pub(super) struct DemoMotion {
    ways: Vec<[PicturePoint; 4]>,
}

impl DemoMotion {
    /// Creates the animation of flows whose frames move through these points.
    pub(super) fn of(ways: Vec<[PicturePoint; 4]>) -> Self {
        Self { ways }
    }

    /// Returns the number of flows in the animation.
    pub(super) fn flows(&self) -> usize {
        self.ways.len()
    }

    /// Returns the style sheet with the picture's animation. Without animations (`prefers-reduced-motion`, or a viewer
    /// that does not support them) only the result is visible.
    pub(super) fn style(&self) -> String {
        let phases = self.flows() + 1 + LAST;
        let whole = phases as f64 * PHASE;
        let at = |phase: usize| 100.0 * phase as f64 / phases as f64;
        let mut css = String::from(".phase{opacity:0}@media (prefers-reduced-motion:no-preference){");
        for phase in 0..=self.flows() {
            let (start, end) = (at(phase), at(phase + 1));
            // The rule of the start comes last, because the first phase starts at 0 %.
            css += &format!(
                "@keyframes p{phase}{{0%,{end:.2}%,100%{{opacity:0}}{start:.2}%{{opacity:1}}}}\
                 .p{phase}{{animation:p{phase} {whole}s step-end infinite}}"
            );
        }
        for (flow, way) in self.ways.iter().enumerate() {
            let (start, end) = (at(flow + 1), at(flow + 2));
            css += &format!(
                "@keyframes b{flow}{{0%,{start:.2}%{{transform:scaleY(0)}}{end:.2}%,100%{{transform:none}}}}\
                 .b{flow} rect{{animation:b{flow} {whole}s linear infinite;transform-box:fill-box;transform-origin:bottom}}\
                 @keyframes t{flow}{{0%{{opacity:0}}{start:.2}%,100%{{opacity:1}}}}\
                 .b{flow} text{{animation:t{flow} {whole}s step-end infinite}}\
                 @keyframes w{flow}{{{}}}.w{flow} circle{{animation:w{flow} {TRAVEL}s linear infinite}}",
                travel(way)
            );
        }
        for dot in 1..DOTS {
            let delay = TRAVEL * dot as f64 / DOTS as f64;
            let _ = write!(css, ".phase circle:nth-child({}){{animation-delay:-{delay:.2}s}}", dot + 1);
        }
        let result = at(self.flows() + 1);
        let _ = write!(
            css,
            "@keyframes last{{0%{{opacity:0}}{result:.2}%,100%{{opacity:1}}}}.last{{animation:last {whole}s step-end infinite}}}}"
        );
        css
    }
}

/// Returns the CSS keyframes of a frame that moves through the given points at a steady speed.
fn travel(way: &[PicturePoint]) -> String {
    let length = |step: &[PicturePoint]| (step[1].0 - step[0].0).abs() + (step[1].1 - step[0].1).abs();
    let total: f64 = way.windows(2).map(length).sum();
    let mut gone = 0.0;
    let mut frames = String::new();
    for (index, (x, y)) in way.iter().enumerate() {
        if index > 0 {
            gone += length(&way[index - 1..=index]);
        }
        let part = 100.0 * gone / total.max(1.0);
        let _ = write!(frames, "{part:.1}%{{transform:translate({x:.1}px,{y:.1}px)}}");
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_in_the_demo_picture_moves_at_a_steady_speed() {
        let way = [(10.0, 0.0), (10.0, 50.0), (110.0, 50.0), (110.0, 0.0)];
        let expected = "0.0%{transform:translate(10.0px,0.0px)}25.0%{transform:translate(10.0px,50.0px)}\
                        75.0%{transform:translate(110.0px,50.0px)}100.0%{transform:translate(110.0px,0.0px)}";
        assert_eq!(travel(&way), expected);
    }

    #[test]
    fn demo_picture_shows_pings_flows_and_the_result_in_turn() {
        let way = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)];
        let css = DemoMotion::of(vec![way]).style();
        // Pings, one flow, and a result of two phases.
        assert!(css.contains("@keyframes p0{0%,25.00%,100%{opacity:0}0.00%{opacity:1}}"), "{css}");
        assert!(css.contains("@keyframes p1{0%,50.00%,100%{opacity:0}25.00%{opacity:1}}"), "{css}");
        assert!(css.contains("@keyframes last{0%{opacity:0}50.00%,100%{opacity:1}}"), "{css}");
        assert_eq!(css.matches('{').count(), css.matches('}').count());
    }
}
