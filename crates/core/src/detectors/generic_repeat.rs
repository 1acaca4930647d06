//! The same tool with the same canonical arguments, again and again.
//!
//! Smells:    `read a` `read a` `read a` … ten times: a word; twenty times with one and
//!            the same outcome: no more.
//! Is fine:   `cargo test` twenty times with twenty different outcomes (a word at ten).
//!
//! Polls are left to `known_poll_no_progress`, whose business they are. Twenty calls that are all
//! still running are critical, polls too, where the agent is known to tell what comes back.

use super::{CRITICAL, Context, Detector, Sighting, WARNING, Window, in_flight, unchanged};
use crate::event::Level;
use crate::state::{Call, WINDOW};

pub(super) struct GenericRepeat;

impl Detector for GenericRepeat {
    fn name(&self) -> &'static str {
        "generic_repeat"
    }

    fn look(&self, call: &Call, before: Window<'_>, context: Context<'_>) -> Option<Sighting> {
        let sighting = |level, count, in_flight| Sighting {
            level,
            count,
            key: call.call,
            in_flight,
        };
        let open = match context.reports_outcome {
            true => in_flight(call, before),
            false => 0,
        };
        if open >= CRITICAL {
            return Some(sighting(Level::Critical, open, true));
        }
        if call.poll {
            return None;
        }
        let same = |earlier: &&Call| earlier.call == call.call;
        let repeats = before.newest_first().filter(same).count() as u32;
        if repeats < WARNING {
            return None;
        }
        let still = unchanged(call, before);
        if still >= CRITICAL {
            return Some(sighting(Level::Critical, still, false));
        }
        // Nothing else was called, and nothing that came back was new.
        if still + open >= WINDOW as u32 {
            return Some(sighting(Level::Critical, still + open, true));
        }
        Some(sighting(Level::Warning, repeats, false))
    }

    fn advice(&self, sighting: Sighting) -> String {
        let count = sighting.count;
        match sighting.level {
            Level::Warning => format!(
                "you have made this very call {count} times of late; use what it told you, or try something else"
            ),
            Level::Critical if sighting.in_flight => format!(
                "{count} calls like this one are running or came back the same; it is not run again. Wait for what is running, or try something else"
            ),
            Level::Critical => format!(
                "this very call came back the same {count} times; it is not run again. Try something else, or say what is in the way"
            ),
        }
    }
}
