//! Switches Checkrein off for a while: `off.json` in the repo's state folder, apart from the store,
//! so that it works when the store does not. None of it is silent: tools get no opinion, stops are
//! let through by a recorded stance, and every ending says so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_core::ids::{ScopeId, UnixMillis};
use checkrein_core::input::{Input, StancePoint, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_runtime::durable_file;
use serde::{Deserialize, Serialize};

use crate::person::PersonCallerEvidence;
use crate::signals::CANCELLED;
use crate::ui::style;

/// How often a hook checks whether it is still to judge. No event reports a changed file on all
/// systems, and an owner polls as often.
const OFF_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The period that [`cancel_when_switched_off`] found.
static CANCELLED_BY: OnceLock<OffPeriod> = OnceLock::new();
/// The prefix of the reason of such a stance, in the log too.
const OFF_REASON_PREFIX: &str = "is switched off until ";

/// A period for which Checkrein is off: until when, why, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OffPeriod {
    /// When it was switched off.
    pub(crate) since: UnixMillis,
    /// When it is on again.
    pub(crate) until: UnixMillis,
    /// Why.
    pub(crate) reason: String,
    /// The check that a person asked for it.
    pub(crate) by: PersonCallerEvidence,
}

impl OffPeriod {
    /// Describes the period in one line.
    pub(crate) fn off_summary_line(&self) -> String {
        format!(
            "checkrein is switched off until {}: {}",
            style::format_local_time_of_day(self.until, checkrein_runtime::now_millis()),
            self.reason
        )
    }

    /// Describes the period in a few words.
    pub(crate) fn switched_off_until_text(&self) -> String {
        let until = style::format_local_time_of_day(self.until, checkrein_runtime::now_millis());
        format!("OFF until {until}")
    }

    /// Returns the stance that lets a stop of this scope through.
    pub(crate) fn stance_used_input(&self, scope: ScopeId) -> Input {
        Input::StanceUsed(StanceUsed {
            scope,
            at: StancePoint::Stop,
            stance: Stance::Allow,
            why: format!(
                "it {OFF_REASON_PREFIX}{} by {} ({})",
                style::format_local_time_of_day(self.until, checkrein_runtime::now_millis()),
                self.by.person_display_name(),
                self.reason
            ),
        })
    }
}

/// Returns what a recorded stance says about it, if it was used because Checkrein was off.
pub(crate) fn off_reason_in_recorded_stance(why: &str) -> Option<&str> {
    why.strip_prefix("it ")
        .filter(|told| told.starts_with(OFF_REASON_PREFIX))
}

fn off_file_path(state: &Path) -> PathBuf {
    state.join("off.json")
}

/// Returns the period that is in force in this state folder. A file that cannot be read switches
/// nothing off.
pub(crate) fn active_off_period(state: &Path) -> Option<OffPeriod> {
    read_off_period(state).ok().flatten()
}

/// Returns the same, or why the file switches nothing off.
pub(crate) fn read_off_period(state: &Path) -> Result<Option<OffPeriod>, String> {
    let wrong = |why: String| {
        format!(
            "{} switches nothing off: {why}. A person takes it away by: checkrein on",
            off_file_path(state).display()
        )
    };
    let bytes =
        durable_file::read_regular_file(&off_file_path(state), durable_file::MAX_SMALL_BYTES)
            .map_err(|error| wrong(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let off: OffPeriod =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    // An expired period is no error: the file may lie there until it is written again or removed.
    Ok((checkrein_runtime::now_millis() < off.until).then_some(off))
}

/// Makes switching off cancel what this process does, as a signal would.
pub(crate) fn cancel_when_switched_off(state: PathBuf) {
    // The thread ends with this process. If none can be started, the stop is judged to its end.
    let _ = std::thread::Builder::new().spawn(move || {
        let off = loop {
            match active_off_period(&state) {
                Some(off) => break off,
                None => std::thread::sleep(OFF_POLL_INTERVAL),
            }
        };
        // Only this thread sets it, so the result cannot be an error.
        let _ = CANCELLED_BY.set(off);
        // Set after the period, which a thread that sees the flag will ask for.
        CANCELLED.store(true, Ordering::Relaxed);
    });
}

/// Returns the period that cancelled this process, if one did.
pub(crate) fn off_period_that_cancelled_process() -> Option<&'static OffPeriod> {
    CANCELLED_BY.get()
}

pub(crate) fn write_off_file(state: &Path, off: &OffPeriod) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(off)?;
    bytes.push(b'\n');
    durable_file::write_atomically(&off_file_path(state), &bytes)
}

/// Switches on again; says whether it was off at all.
pub(crate) fn remove_off_file(state: &Path) -> io::Result<bool> {
    let was = active_off_period(state).is_some();
    durable_file::remove_file_if_present(&off_file_path(state))?;
    Ok(was)
}
