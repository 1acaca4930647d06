//! Checks as they run: a live line each on a terminal, a line at the end of each in a pipe.

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

use crate::ui::line::Line;
use crate::ui::style::{Paint, duration};
use crate::ui::{printable, say, words};

/// Columns for a name, and more if a check has a longer one.
const NAME: usize = 14;

/// Shows what goes on.
pub(crate) struct Checks {
    bars: Option<MultiProgress>,
    running: Mutex<BTreeMap<VerifierName, ProgressBar>>,
    /// Columns of the longest name.
    column: usize,
    advisory: BTreeSet<VerifierName>,
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Checks {
    /// Live on a terminal; of the checks of this policy, if it is known.
    pub(crate) fn of(policy: Option<&Policy>) -> Self {
        let live = std::io::stderr().is_terminal();
        let names = || {
            let specs = policy.map_or(&[][..], |policy| &policy.verifiers);
            specs.iter().map(|spec| &spec.name)
        };
        Self {
            bars: live.then(|| {
                let narrow = Narrow(Term::stderr());
                MultiProgress::with_draw_target(ProgressDrawTarget::term_like(Box::new(narrow)))
            }),
            running: Mutex::new(BTreeMap::new()),
            column: names()
                .map(|name| Line::from(name.as_str()).columns())
                .fold(NAME, usize::max),
            advisory: names()
                .filter(|name| policy.is_some_and(|policy| !policy.is_required_verifier(name)))
                .cloned()
                .collect(),
        }
    }

    /// Takes away what is live, before anything else is printed.
    pub(crate) fn clear(&self) {
        for bar in std::mem::take(&mut *self.lock()).into_values() {
            bar.finish_and_clear();
        }
        if let Some(bars) = &self.bars {
            // It fails only if the terminal is gone.
            let _ = bars.clear();
        }
    }

    /// A live line for something else that goes on; none in a pipe.
    pub(crate) fn spinner(&self) -> Option<ProgressBar> {
        let bar = self.bars.as_ref()?.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        Some(bar)
    }

    /// A line of the conversation, above what is live.
    pub(crate) fn say(&self, line: impl Into<Line>) {
        let line = line.into();
        match &self.bars {
            // Not by printing through the bars: where none is left such a line is filled up to their
            // width, and the next one begins behind it.
            Some(bars) => bars.suspend(|| say(line)),
            None => say(line),
        }
    }

    /// Takes news in; called from many threads.
    pub(crate) fn show(&self, progress: VerificationProgress) {
        match progress {
            VerificationProgress::Started { verifier, .. } => self.start(verifier, "running"),
            VerificationProgress::Waiting { verifier } => {
                self.start(verifier, "another process runs it; waiting")
            }
            VerificationProgress::Finished {
                verifier,
                verdict,
                cause,
                duration_ms,
                cached,
            } => {
                let line = self.line(&verifier, verdict, cause, duration_ms, cached);
                let bar = self.lock().remove(&verifier);
                if let Some(bar) = bar {
                    bar.finish_and_clear();
                }
                self.say(line);
            }
        }
    }

    fn start(&self, verifier: VerifierName, what: &str) {
        let Some(bar) = self.spinner() else { return };
        bar.set_message(printable::printable(&format!("{verifier}: {what}")));
        bar.enable_steady_tick(Duration::from_millis(120));
        if let Some(before) = self.lock().insert(verifier, bar) {
            before.finish_and_clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<VerifierName, ProgressBar>> {
        self.running
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// One check in one line.
    fn line(
        &self,
        verifier: &VerifierName,
        verdict: Verdict,
        cause: Option<InconclusiveCause>,
        duration_ms: u64,
        cached: bool,
    ) -> Line {
        let (paint, mark) = match verdict {
            Verdict::Pass => (Paint::Good, "pass"),
            Verdict::Fail => (Paint::Bad, "FAIL"),
            Verdict::Inconclusive => (Paint::Warn, "????"),
        };
        let took = if cached {
            "unchanged, not run again".to_owned()
        } else {
            duration(duration_ms)
        };
        let why = cause.map_or_else(String::new, |cause| format!("  {}", words::cause(cause)));
        let advisory = match self.advisory.contains(verifier) {
            true => " (advisory)",
            false => "",
        };
        Line::from("  ")
            .with_painted(paint, mark)
            .with("  ")
            .then(Line::from(verifier.as_str()).at_least(self.column))
            .with(" ")
            .with_painted(Paint::Dim, &took)
            .with(&format!("{why}{advisory}"))
    }
}

/// How much of something is done: one live line, nothing in a pipe.
pub(crate) struct Counted {
    bar: Option<ProgressBar>,
    what: &'static str,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Counted {
    pub(crate) fn of(what: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let narrow = ProgressDrawTarget::term_like(Box::new(Narrow(Term::stderr())));
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

    pub(crate) fn show(&self, done: usize, all: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {done} of {all}", self.what));
        }
    }

    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A terminal that leaves room for the `^C` which it shows itself: live lines are filled up to
/// the end, and what comes behind them would begin a line of its own, with theirs left above it.
#[derive(Debug)]
struct Narrow(Term);

/// Columns of `^C`, and one so that the cursor stays on its line.
const ROOM: u16 = 3;

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(ROOM)
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
