//! The same tool with the same canonical arguments, again and again.
//!
//! Smells:    `read a` `read a` `read a` … ten times: a word; twenty times with one and
//!            the same outcome: no more.
//! Is fine:   `cargo test` twenty times with twenty different outcomes (a word at ten).
//!
//! Polls are left to `known_poll_no_progress`, whose business they are.

use super::{CRITICAL, Context, Detector, Sighting, WARNING, Window, unchanged};
use crate::event::Level;
use crate::state::Call;

pub(super) struct GenericRepeat;

impl Detector for GenericRepeat {
    fn name(&self) -> &'static str {
        "generic_repeat"
    }

    fn look(&self, call: &Call, before: Window<'_>, _: Context<'_>) -> Option<Sighting> {
        if call.poll {
            return None;
        }
        let repeats = before
            .newest_first()
            .filter(|earlier| earlier.call == call.call)
            .count() as u32;
        if repeats < WARNING {
            return None;
        }
        let still = unchanged(call, before);
        let (level, count) = if still >= CRITICAL {
            (Level::Critical, still)
        } else {
            (Level::Warning, repeats)
        };
        Some(Sighting {
            level,
            count,
            key: call.call,
        })
    }

    fn advice(&self, sighting: Sighting) -> String {
        let count = sighting.count;
        match sighting.level {
            Level::Warning => format!(
                "you have made this very call {count} times of late; use what it told you, or try something else"
            ),
            Level::Critical => format!(
                "this very call came back the same {count} times; it is not run again. Try something else, or say what is in the way"
            ),
        }
    }
}
