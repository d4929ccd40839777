//! How far a run is, on standard error: a bar where someone looks, a line for each point where it goes to a file.
//! Left out: standard output, which is for rows.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::style::TemplateError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::Point;

/// The progress of one run.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    visible: bool,
}

fn style() -> Result<ProgressStyle, TemplateError> {
    let template = "{bar:32.cyan/dim} {pos:>4}/{len} {elapsed_precise} eta {eta:<4} {wide_msg}";
    Ok(ProgressStyle::with_template(template)?.progress_chars("━╸─"))
}

impl Default for Progress {
    fn default() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // A test sees to it that there is a style.
        if let Ok(style) = style() {
            bar.set_style(style);
        }
        Self { visible: !bar.is_hidden(), bar }
    }
}

impl Progress {
    /// This many points are about to be run.
    pub fn planned(&self, points: usize) {
        self.bar.set_length(points as u64);
        if self.visible {
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// A point is done.
    pub fn done(&self, point: &Point) {
        self.bar.inc(1);
        if self.visible {
            self.bar.set_message(point.to_string());
        } else {
            // Standard error may be closed; then nobody is watching.
            let (position, length) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let _ = writeln!(io::stderr(), "{position}/{length} {point}");
        }
    }

    /// Does something with standard output while the bar is out of the way.
    pub fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::style;

    #[test]
    fn the_bar_has_a_style() {
        assert!(style().is_ok());
    }
}
