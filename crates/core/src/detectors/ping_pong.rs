//! Two calls in turn, A B A B, each undoing what the other showed.
//!
//! Smells:    `read a` `edit a` `read a` `edit a` …, ten in strict turn: a word; twenty
//!            with nothing changed on either side: no more.
//! Is fine:   `edit a` `test` `edit a` `test` … while the tests say something new.

use super::{CRITICAL, Context, Detector, Sighting, WARNING, Window};
use crate::digest::Short;
use crate::event::Level;
use crate::state::Call;

pub(super) struct PingPong;

impl Detector for PingPong {
    fn name(&self) -> &'static str {
        "ping_pong"
    }

    fn look(&self, call: &Call, before: Window<'_>, _: Context<'_>) -> Option<Sighting> {
        let mut calls = before.newest_first();
        let newest = calls.next()?;
        if newest.call == call.call {
            return None;
        }
        // The one outcome that each side has had so far.
        let (mut same, mut other) = (newest.outcome, None);
        let mut still = newest.outcome.is_some();
        let mut tail = 1;
        for (at, earlier) in calls.enumerate() {
            let (expected, side) = if at % 2 == 0 {
                (call.call, &mut other)
            } else {
                (newest.call, &mut same)
            };
            if earlier.call != expected {
                break;
            }
            tail += 1;
            still &= earlier
                .outcome
                .is_some_and(|outcome| *side.get_or_insert(outcome) == outcome);
        }
        let count = tail + 1;
        let level = match count {
            CRITICAL.. if still => Level::Critical,
            WARNING.. => Level::Warning,
            _ => return None,
        };
        // One key for both directions.
        let key = Short(call.call.0 ^ newest.call.0);
        (tail >= 2).then_some(Sighting {
            level,
            count,
            key,
            in_flight: false,
        })
    }

    fn advice(&self, sighting: Sighting) -> String {
        let count = sighting.count;
        match sighting.level {
            Level::Warning => format!(
                "you have gone to and fro between two calls {count} times; decide on one, or look for what both miss"
            ),
            Level::Critical => format!(
                "two calls took turns {count} times and neither changed anything; this one is not run again"
            ),
        }
    }
}
