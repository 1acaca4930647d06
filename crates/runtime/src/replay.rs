//! Replays: steps the inputs of a recorded log again and compares every event (law 3), or steps
//! inputs from elsewhere and only watches.

use checkrein_core::event::{self, Event};
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_core::input::StampedInput;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::step::{StateMachineStep, apply_input_and_decide};
use checkrein_store::{Store, UndecodedEvent};

use crate::error::RuntimeError;
use crate::log_reader;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReplayComparison {
    /// Events read.
    pub events: u64,
    /// Inputs stepped again.
    pub inputs: u64,
    /// The first event that came out differently.
    pub differs_at: Option<ReplayDifference>,
}

/// Where a replay differs from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayDifference {
    /// Place of the recorded event.
    pub seq: EventSeq,
    /// Its kind.
    pub recorded: String,
    /// The kind that stepping it again gave instead.
    pub replayed: String,
}

/// Replays a recorded session. With `through_cache` the state is written and read back
/// before every input, as a cache would.
///
/// # Errors
/// If the log or its sealed policy cannot be read.
pub fn replay_session(
    store: &dyn Store,
    session: &SessionId,
    through_cache: bool,
) -> Result<SessionReplayComparison, RuntimeError> {
    let rows = store.events_after(session, EventSeq(0))?;
    let mut state = SessionState::default();
    let mut policy: Option<Policy> = None;
    let mut replayed = SessionReplayComparison {
        events: rows.len() as u64,
        inputs: 0,
        differs_at: None,
    };
    let mut rest: &[UndecodedEvent] = &rows;
    while let Some((row, after)) = rest.split_first() {
        // An event of a newer version is counted and passed over, as in every fold.
        let Some(event) = log_reader::decode_event(session, row)? else {
            state.last = state.last.successor_seq();
            rest = after;
            continue;
        };
        // The runtime records these itself; no input leads to them.
        if matches!(
            event,
            Event::PolicySealed { .. } | Event::PolicyRenewed { .. } | Event::Repeated { .. }
        ) {
            state.apply_event(&event);
            // The events after it were decided under the new policy.
            if matches!(event, Event::PolicyRenewed { .. }) {
                policy = None;
            }
            rest = after;
            continue;
        }
        // Events that stand before an input in the log come from that input's step.
        let Some(input) = first_input_in_events(session, rest)? else {
            replayed.differs_at = Some(ReplayDifference {
                seq: row.seq,
                recorded: row.kind.clone(),
                replayed: "nothing: no input is left".to_owned(),
            });
            return Ok(replayed);
        };
        let sealed = match &policy {
            Some(policy) => policy,
            None => policy.insert(log_reader::load_recorded_policy(
                session,
                &state,
                |digest| store.read_blob(digest),
            )?),
        };
        if through_cache {
            state = round_trip_state_through_cache(&state)?;
        }
        let StateMachineStep { events, .. } = apply_input_and_decide(sealed, &mut state, input);
        replayed.inputs += 1;
        // Byte for byte: an event that only reads the same is a difference.
        for event in &events {
            let recorded = rest.first();
            let same = recorded.is_some_and(|row| row.payload == event::encode_event(event));
            if !same {
                replayed.differs_at = Some(ReplayDifference {
                    seq: recorded.map_or(state.last, |row| row.seq),
                    recorded: recorded.map_or("nothing".to_owned(), |row| row.kind.clone()),
                    replayed: event.log_event_kind().to_owned(),
                });
                return Ok(replayed);
            }
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    Ok(replayed)
}

fn first_input_in_events(
    session: &SessionId,
    rows: &[UndecodedEvent],
) -> Result<Option<StampedInput>, RuntimeError> {
    for row in rows {
        if let Some(Event::Input(stamped)) = log_reader::decode_event(session, row)? {
            return Ok(Some(stamped));
        }
    }
    Ok(None)
}

fn round_trip_state_through_cache(state: &SessionState) -> Result<SessionState, RuntimeError> {
    Ok(log_reader::encode_cached_session_state(state)
        .and_then(|cache| postcard::from_bytes(&cache.bytes).ok())
        .unwrap_or_else(|| state.clone()))
}
