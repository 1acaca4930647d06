//! Shows checks as they run: a live line each on a terminal, a line at the end of each in a pipe.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::Duration;

use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::Policy;
use checkrein_runtime::VerificationProgress;
use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::ui::line::StyledLine;
use crate::ui::style::{TextStyle, format_duration};
use crate::ui::{explanations, print_wrapped_to_stderr, printable};

/// Least columns for a name; a longer name widens the column.
const MIN_NAME_COLUMNS: usize = 14;

/// Shows the checks that are running.
pub(crate) struct RunningChecksView {
    bars: Option<MultiProgress>,
    running: Mutex<BTreeMap<VerifierName, ProgressBar>>,
    /// Columns of the longest name.
    column: usize,
    advisory: BTreeSet<VerifierName>,
}

impl Drop for RunningChecksView {
    fn drop(&mut self) {
        self.clear_progress_line();
    }
}

impl RunningChecksView {
    /// Creates a view, live on a terminal, for the checks of this policy if it is known.
    pub(crate) fn new_check_progress_view(policy: Option<&Policy>) -> Self {
        let live = std::io::stderr().is_terminal();
        let names = || {
            let specs = policy.map_or(&[][..], |policy| &policy.verifiers);
            specs.iter().map(|spec| &spec.name)
        };
        Self {
            bars: live.then(|| {
                let narrow = TerminalWithRoomForCtrlCEcho(Term::stderr());
                MultiProgress::with_draw_target(ProgressDrawTarget::term_like(Box::new(narrow)))
            }),
            running: Mutex::new(BTreeMap::new()),
            column: names()
                .map(|name| StyledLine::from(name.as_str()).line_display_width())
                .fold(MIN_NAME_COLUMNS, usize::max),
            advisory: names()
                .filter(|name| policy.is_some_and(|policy| !policy.is_required_verifier(name)))
                .cloned()
                .collect(),
        }
    }

    /// Removes live lines, before anything else is printed.
    pub(crate) fn clear_progress_line(&self) {
        // The bars are taken out under the lock, so that a check that ends meanwhile finds none to
        // finish twice.
        for bar in std::mem::take(&mut *self.lock_progress_bars()).into_values() {
            bar.finish_and_clear();
        }
        if let Some(bars) = &self.bars {
            // It fails only if the terminal is gone.
            let _ = bars.clear();
        }
    }

    /// Adds a live line for something else; none in a pipe.
    pub(crate) fn new_spinner(&self) -> Option<ProgressBar> {
        let bar = self.bars.as_ref()?.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        Some(bar)
    }

    /// Prints a line to stderr, above the live lines.
    pub(crate) fn print_above_progress(&self, line: impl Into<StyledLine>) {
        let line = line.into();
        match &self.bars {
            // Not printed through the bars: where no bar is left, such a line is filled up to their
            // width, and the next one begins behind it.
            Some(bars) => bars.suspend(|| print_wrapped_to_stderr(line)),
            None => print_wrapped_to_stderr(line),
        }
    }

    /// Shows an event. It is called from many threads.
    pub(crate) fn show_check_progress(&self, progress: VerificationProgress) {
        match progress {
            VerificationProgress::Started { verifier, .. } => {
                self.show_verifier_progress_bar(verifier, "running")
            }
            VerificationProgress::Waiting { verifier } => {
                self.show_verifier_progress_bar(verifier, "another process runs it; waiting")
            }
            VerificationProgress::Finished {
                verifier,
                verdict,
                cause,
                duration_ms,
                cached,
            } => {
                let line = self.check_result_line(&verifier, verdict, cause, duration_ms, cached);
                // The lock is released before anything is printed: a slow terminal must not hold up
                // other checks.
                let bar = self.lock_progress_bars().remove(&verifier);
                if let Some(bar) = bar {
                    bar.finish_and_clear();
                }
                self.print_above_progress(line);
            }
        }
    }

    fn show_verifier_progress_bar(&self, verifier: VerifierName, what: &str) {
        let Some(bar) = self.new_spinner() else {
            return;
        };
        bar.set_message(printable::escape_hidden_chars(&format!(
            "{verifier}: {what}"
        )));
        bar.enable_steady_tick(Duration::from_millis(120));
        // A check that waited for another process and then runs itself is started twice.
        if let Some(before) = self.lock_progress_bars().insert(verifier, bar) {
            before.finish_and_clear();
        }
    }

    fn lock_progress_bars(&self) -> std::sync::MutexGuard<'_, BTreeMap<VerifierName, ProgressBar>> {
        self.running
            .lock()
            // A thread that panicked while drawing must not end the checks.
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Formats the result of one check in one line.
    fn check_result_line(
        &self,
        verifier: &VerifierName,
        verdict: Verdict,
        cause: Option<InconclusiveCause>,
        duration_ms: u64,
        cached: bool,
    ) -> StyledLine {
        let (paint, mark) = match verdict {
            Verdict::Pass => (TextStyle::Good, "pass"),
            Verdict::Fail => (TextStyle::Bad, "FAIL"),
            Verdict::Inconclusive => (TextStyle::Warn, "????"),
        };
        // Evidence from before has a duration too, but this run did not take it.
        let took = if cached {
            "unchanged, not run again".to_owned()
        } else {
            format_duration(duration_ms)
        };
        let why = cause.map_or_else(String::new, |cause| {
            format!("  {}", explanations::inconclusive_cause_text(cause))
        });
        let advisory = match self.advisory.contains(verifier) {
            true => " (advisory)",
            false => "",
        };
        StyledLine::from("  ")
            .with_painted_suffix(paint, mark)
            .with_plain_suffix("  ")
            .append_styled_line(
                StyledLine::from(verifier.as_str()).padded_to_min_width(self.column),
            )
            .with_plain_suffix(" ")
            .with_painted_suffix(TextStyle::Dim, &took)
            .with_plain_suffix(&format!("{why}{advisory}"))
    }
}

/// Shows how much of something is done: one live line, nothing in a pipe.
pub(crate) struct CountProgressBar {
    bar: Option<ProgressBar>,
    what: &'static str,
}

impl Drop for CountProgressBar {
    fn drop(&mut self) {
        self.clear_progress_line();
    }
}

impl CountProgressBar {
    pub(crate) fn start_labelled_spinner(what: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let narrow = ProgressDrawTarget::term_like(Box::new(TerminalWithRoomForCtrlCEcho(
                Term::stderr(),
            )));
            let bar = ProgressBar::with_draw_target(None, narrow);
            if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, what }
    }

    pub(crate) fn show_progress_count(&self, done: usize, all: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {done} of {all}", self.what));
        }
    }

    pub(crate) fn clear_progress_line(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A terminal that leaves room for the `^C` which it shows itself: live lines are filled up to the
/// end, so anything behind them would begin a line of its own and leave the live one standing above
/// it.
#[derive(Debug)]
struct TerminalWithRoomForCtrlCEcho(Term);

/// Columns of `^C`, and one so that the cursor stays on its line.
const CTRL_C_COLUMNS: u16 = 3;

impl TermLike for TerminalWithRoomForCtrlCEcho {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(CTRL_C_COLUMNS)
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.0.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
