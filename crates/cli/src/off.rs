//! Switched off for a while: `off.json` in the repo's state folder, apart from the store, so
//! that it works when the store does not. Nothing of it is silent: tools get no opinion, stops
//! are let through by a recorded stance, and every ending says so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_core::ids::{ScopeId, UnixMillis};
use checkrein_core::input::{Input, StancePoint, StanceUsed};
use checkrein_core::policy::Stance;
use checkrein_runtime::whole;
use serde::{Deserialize, Serialize};

use crate::person::Checked;
use crate::signals::CANCELLED;
use crate::ui::style;

/// How often a hook looks whether it is still to judge. No event tells of a file on all systems, and an owner looks as often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// What [`listen`] heard.
static CANCELLED_BY: OnceLock<Off> = OnceLock::new();
/// How the reason of such a stance begins, in the log too.
const STAND_IN: &str = "is switched off until ";

/// Until when, why, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Off {
    /// When it was switched off.
    pub(crate) since: UnixMillis,
    /// When it is on again.
    pub(crate) until: UnixMillis,
    /// Why.
    pub(crate) reason: String,
    /// How it was told that a person asked.
    pub(crate) by: Checked,
}

impl Off {
    /// In one line.
    pub(crate) fn words(&self) -> String {
        format!(
            "checkrein is switched off until {}: {}",
            style::clock(self.until, checkrein_runtime::now_millis()),
            self.reason
        )
    }

    /// In a few words.
    pub(crate) fn short(&self) -> String {
        let until = style::clock(self.until, checkrein_runtime::now_millis());
        format!("OFF until {until}")
    }

    /// The stance that lets a stop of this scope through.
    pub(crate) fn stand_in(&self, scope: ScopeId) -> Input {
        Input::StanceUsed(StanceUsed {
            scope,
            at: StancePoint::Stop,
            stance: Stance::Allow,
            why: format!(
                "it {STAND_IN}{} by {} ({})",
                style::clock(self.until, checkrein_runtime::now_millis()),
                self.by.name(),
                self.reason
            ),
        })
    }
}

/// What a recorded stance says of this, if it was used because Checkrein was off.
pub(crate) fn told(why: &str) -> Option<&str> {
    why.strip_prefix("it ")
        .filter(|told| told.starts_with(STAND_IN))
}

fn file(state: &Path) -> PathBuf {
    state.join("off.json")
}

/// What is in force in this state folder. What cannot be read switches nothing off.
pub(crate) fn in_force(state: &Path) -> Option<Off> {
    look(state).ok().flatten()
}

/// The same for who has to say why nothing is.
pub(crate) fn look(state: &Path) -> Result<Option<Off>, String> {
    let wrong = |why: String| {
        format!(
            "{} switches nothing off: {why}. A person takes it away by: checkrein on",
            file(state).display()
        )
    };
    let bytes = whole::read_regular_file(&file(state), whole::MAX_SMALL_BYTES)
        .map_err(|error| wrong(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let off: Off = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    Ok((checkrein_runtime::now_millis() < off.until).then_some(off))
}

/// From here on switching off cancels what this process does, as a signal would.
pub(crate) fn listen(state: PathBuf) {
    // It ends with this process. Where no thread can be had, the stop is judged to its end.
    let _ = std::thread::Builder::new().spawn(move || {
        let off = loop {
            match in_force(&state) {
                Some(off) => break off,
                None => std::thread::sleep(LOOK_AGAIN),
            }
        };
        // Nobody else sets it.
        let _ = CANCELLED_BY.set(off);
        CANCELLED.store(true, Ordering::Relaxed);
    });
}

/// What cancelled this process, if it was this.
pub(crate) fn cancelled_by() -> Option<&'static Off> {
    CANCELLED_BY.get()
}

pub(crate) fn write(state: &Path, off: &Off) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(off)?;
    bytes.push(b'\n');
    whole::write_atomically(&file(state), &bytes)
}

/// Switches on again; says whether it was off at all.
pub(crate) fn remove(state: &Path) -> io::Result<bool> {
    let was = in_force(state).is_some();
    whole::remove_file(&file(state))?;
    Ok(was)
}
