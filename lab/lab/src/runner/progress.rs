//! Reports a run's progress on standard error: a bar on a terminal, a line per point otherwise. Standard
//! output has the rows.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::style::TemplateError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::ExperimentPoint;

/// Progress report of one experiment run.
#[derive(Debug)]
pub struct RunProgress {
    bar: ProgressBar,
    visible: bool,
}

fn style() -> Result<ProgressStyle, TemplateError> {
    let template = "{bar:32.cyan/dim} {pos:>4}/{len} {elapsed_precise} eta {eta:<4} {wide_msg}";
    Ok(ProgressStyle::with_template(template)?.progress_chars("━╸─"))
}

impl Default for RunProgress {
    fn default() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // The template is constant; a test checks it.
        if let Ok(style) = style() {
            bar.set_style(style);
        }
        Self { visible: !bar.is_hidden(), bar }
    }
}

impl RunProgress {
    /// Shows the number of experiment points to run.
    pub fn planned(&self, points: usize) {
        self.bar.set_length(points as u64);
        if self.visible {
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// Shows that an experiment point is complete.
    pub fn done(&self, point: &ExperimentPoint) {
        self.bar.inc(1);
        if self.visible {
            self.bar.set_message(point.to_string());
        } else {
            // Ignore the error: standard error may be closed.
            let (position, length) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let _ = writeln!(io::stderr(), "{position}/{length} {point}");
        }
    }

    /// Runs the function `act`, which may write to standard output, while the progress bar is hidden.
    pub fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::style;

    #[test]
    fn progress_bar_template_is_valid() {
        assert!(style().is_ok());
    }
}
