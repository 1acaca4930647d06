//! Polling something that does not move. Polls are made to be repeated, so only an
//! unchanged answer counts.
//!
//! Smells:    `process poll 7` → "running", ten times the same: a word; twenty: no more.
//! Is fine:   `process poll 7` → "10 %", "20 %", "30 %" …

use super::{CRITICAL, Context, Detector, Sighting, WARNING, Window, unchanged};
use crate::event::Level;
use crate::state::Call;

pub(super) struct KnownPollNoProgress;

impl Detector for KnownPollNoProgress {
    fn name(&self) -> &'static str {
        "known_poll_no_progress"
    }

    fn look(&self, call: &Call, before: Window<'_>, _: Context<'_>) -> Option<Sighting> {
        if !call.poll {
            return None;
        }
        let count = unchanged(call, before);
        let level = match count {
            CRITICAL.. => Level::Critical,
            WARNING.. => Level::Warning,
            _ => return None,
        };
        Some(Sighting {
            level,
            count,
            key: call.call,
            in_flight: false,
        })
    }

    fn advice(&self, sighting: Sighting) -> String {
        let count = sighting.count;
        match sighting.level {
            Level::Warning => format!(
                "this poll gave the same answer {count} times; wait longer between polls, or look whether what you wait for is alive"
            ),
            Level::Critical => format!(
                "this poll gave the same answer {count} times and is not run again; treat what you wait for as stuck"
            ),
        }
    }
}
