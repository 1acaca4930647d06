//! The rules of OpenClaw's loop detector, openclaw 2026.9.6 (`src/agents/tool-loop-detection.ts` and
//! the guard after a compaction in `post-compaction-loop-guard.ts`), restated. Nothing of ours is mixed
//! in: this is the preset `openclaw`, for those who want what OpenClaw decides.
//!
//! A verdict on a call is taken before it runs, from the at most 30 calls of the same run before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::LoopPatternMatch;
use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::input::{OpenClawCallFacts, OpenClawOutcomeFacts, OpenClawToolKind};
use crate::state::CALL_WINDOW_LEN;

const WARNING: u32 = 10;
const UNKNOWN_TOOL: u32 = 10;
const CRITICAL: u32 = 20;
const BREAKER: u32 = 30;
/// Calls that a variant of the arguments needs to count as stable.
const CALLS_PER_VARIANT: u32 = 3;
/// Calls after a compaction that the guard looks at.
const GUARDED_CALLS: u8 = 3;

/// A rule of OpenClaw's, with what the agent is told.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenClawRule {
    name: &'static str,
    says: &'static str,
    instead: &'static str,
}

impl OpenClawRule {
    /// Its name in OpenClaw.
    pub fn detector_name(&self) -> &'static str {
        self.name
    }

    /// What to tell the agent. `call` names the call as in "`Bash` (cargo test)".
    pub(crate) fn loop_advice_for_agent(&self, count: u32, call: &str) -> String {
        let Self { says, instead, .. } = self;
        format!("{call}: {says} ({count} calls); {instead}")
    }
}

static UNKNOWN_TOOL_REPEAT: OpenClawRule = OpenClawRule {
    name: "unknown_tool_repeat",
    says: "there is no such tool",
    instead: "answer without it",
};
static GLOBAL_CIRCUIT_BREAKER: OpenClawRule = OpenClawRule {
    name: "global_circuit_breaker",
    says: "nothing has changed for as long as is remembered",
    instead: "say what is done and what is not",
};
static KNOWN_POLL_NO_PROGRESS: OpenClawRule = OpenClawRule {
    name: "known_poll_no_progress",
    says: "the answer to this question does not change",
    instead: "wait longer between two questions, or report that it is stuck",
};
static PING_PONG: OpenClawRule = OpenClawRule {
    name: "ping_pong",
    says: "two calls take turns",
    instead: "stop them and report what stands in the way",
};
static GENERIC_REPEAT: OpenClawRule = OpenClawRule {
    name: "generic_repeat",
    says: "the same call again and again",
    instead: "use what it told you, or report that it fails",
};
static ARGUMENT_CHURN: OpenClawRule = OpenClawRule {
    name: "argument_churn",
    says: "the same few arguments in turn, all with the same result",
    instead: "try another way",
};
/// The guard after a compaction. It ends the run at the outcome that completes the pattern.
pub(crate) static COMPACTION_LOOP_PERSISTED: OpenClawRule = OpenClawRule {
    name: "compaction_loop_persisted",
    says: "after the context was compacted the same call gave the same result each time",
    instead: "say what is done and what is not",
};

/// What OpenClaw's detector remembers of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClawCallHistory {
    /// Oldest first; the newest may be the one being judged.
    records: Vec<OpenClawCallRecord>,
    guard: CompactionGuard,
}

/// A call and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedOpenClawRecord", into = "PackedOpenClawRecord")]
struct OpenClawCallRecord {
    call: OpenClawCallFacts,
    /// Four bytes of the digest of what came back, as those below.
    result: Option<u32>,
    failure: Option<u32>,
    vetoed: bool,
    no_progress: bool,
    unknown_tool: Option<u32>,
}

/// The compact form of a record in the state cache: 31 bytes, whatever is in it. An id is needed only
/// until there is an outcome, a name of an unknown tool only where there is no failed command.
#[derive(Serialize, Deserialize)]
struct PackedOpenClawRecord {
    call: EightByteDigest,
    tool: [u8; 4],
    run: [u8; 4],
    /// The result or, as long as there is none, the id.
    answer: [u8; 4],
    /// Of a failed command, or the name of the tool that does not exist.
    failure: [u8; 4],
    marks: [u8; 2],
}

impl From<OpenClawCallRecord> for PackedOpenClawRecord {
    fn from(record: OpenClawCallRecord) -> Self {
        let call = record.call;
        let kind = call.kind as u16;
        let marks = [
            kind & 1 != 0,
            kind & 2 != 0,
            kind & 4 != 0,
            call.polls,
            call.call_id.is_some(),
            call.run.is_some(),
            call.runs_regardless,
            record.result.is_some(),
            record.failure.is_some(),
            record.vetoed,
            record.no_progress,
            record.unknown_tool.is_some(),
        ];
        let marks = marks
            .iter()
            .rev()
            .fold(0_u16, |marks, mark| marks << 1 | u16::from(*mark));
        let bytes = |number: Option<u32>| number.unwrap_or_default().to_le_bytes();
        Self {
            call: call.call,
            tool: call.tool.to_le_bytes(),
            run: bytes(call.run),
            answer: bytes(record.result.or(call.call_id)),
            failure: bytes(record.failure.or(record.unknown_tool)),
            marks: marks.to_le_bytes(),
        }
    }
}

impl From<PackedOpenClawRecord> for OpenClawCallRecord {
    fn from(packed: PackedOpenClawRecord) -> Self {
        let marks = u16::from_le_bytes(packed.marks);
        let mark = |at: u16| marks >> at & 1 != 0;
        let number = |bytes: [u8; 4], is_there: bool| is_there.then(|| u32::from_le_bytes(bytes));
        let has_result = mark(7);
        Self {
            call: OpenClawCallFacts {
                call: packed.call,
                tool: u32::from_le_bytes(packed.tool),
                kind: match marks & 7 {
                    1 => OpenClawToolKind::Exec,
                    2 => OpenClawToolKind::Write,
                    3 => OpenClawToolKind::Process,
                    4 => OpenClawToolKind::CommandStatus,
                    5 => OpenClawToolKind::Message,
                    6 => OpenClawToolKind::Send,
                    _ => OpenClawToolKind::Other,
                },
                polls: mark(3),
                call_id: number(packed.answer, mark(4) && !has_result),
                run: number(packed.run, mark(5)),
                runs_regardless: mark(6),
                // Needed only where the request is folded in.
                alone: false,
            },
            result: number(packed.answer, has_result),
            failure: number(packed.failure, mark(8)),
            vetoed: mark(9),
            no_progress: mark(10),
            unknown_tool: number(packed.failure, mark(11)),
        }
    }
}

/// Watches the first calls after a compaction: if all of them are one call with one result, the run
/// is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CompactionGuard {
    /// Outcomes it still looks at.
    remaining: u8,
    /// The call and the result that all outcomes since the compaction had in common.
    repeated: Option<(EightByteDigest, EightByteDigest)>,
    count: u8,
}

/// What a rule found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenClawFinding {
    /// The rule.
    pub rule: &'static OpenClawRule,
    /// How bad.
    pub level: LoopSeverity,
    /// How many calls show it.
    pub count: u32,
    /// What it is about; the same warning is said once per ten calls.
    pub key: EightByteDigest,
}

impl From<OpenClawFinding> for LoopPatternMatch {
    fn from(found: OpenClawFinding) -> Self {
        Self {
            level: found.level,
            count: found.count,
            key: found.key,
            in_flight: false,
        }
    }
}

/// A run of calls without progress, counted from the newest backwards.
#[derive(Debug, Clone, Copy)]
struct NoProgressStreak {
    count: u32,
    result: Option<u32>,
}

/// Which calls a streak is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreakKind {
    SameArguments,
    SameCommandFailure,
}

impl OpenClawCallHistory {
    /// Adds a request. It is judged by [`OpenClawCallHistory::judge_newest_call`] next.
    pub fn record_call(&mut self, call: OpenClawCallFacts) {
        self.trim_records();
        self.records.push(OpenClawCallRecord {
            call: OpenClawCallFacts {
                alone: false,
                ..call
            },
            result: None,
            failure: None,
            vetoed: false,
            no_progress: false,
            unknown_tool: None,
        });
    }

    /// Marks the newest call as blocked, as far as it does not run whatever is answered.
    pub(crate) fn veto_newest_call(&mut self) {
        if let Some(newest) = self.records.last_mut()
            && !newest.call.runs_regardless
        {
            newest.vetoed = true;
        }
    }

    /// Records that the newest call was refused, by anybody but these rules: an outcome like any other.
    pub(crate) fn refuse_newest_call(&mut self, reason: &str) {
        if let Some(newest) = self.records.last_mut()
            && newest.result.is_none()
            && !newest.vetoed
            && !newest.call.runs_regardless
        {
            newest.call.call_id = None;
            newest.result = Some(xxh3_64(reason.as_bytes()) as u32);
        }
    }

    /// Adds an outcome to its call.
    pub fn record_outcome(&mut self, outcome: &OpenClawOutcomeFacts) {
        self.trim_records();
        let open = self.records.iter_mut().rev().find(|record| {
            // An id says which call it is, also where a result does not repeat the arguments.
            let is_same_call = match (record.call.call_id, outcome.call.call_id) {
                (Some(one), Some(other)) => one == other,
                _ => record.call.call == outcome.call.call,
            };
            is_same_call
                && record.call.run == outcome.call.run
                && record.result.is_none()
                && !record.vetoed
        });
        let four_bytes =
            |digest: Option<EightByteDigest>| digest.map(|EightByteDigest(eight)| eight as u32);
        // The id is not needed any more, and the state cache does not keep it.
        let filled = |call: OpenClawCallFacts| OpenClawCallRecord {
            call: OpenClawCallFacts {
                call_id: None,
                alone: false,
                ..call
            },
            result: four_bytes(outcome.result),
            failure: four_bytes(outcome.failure),
            vetoed: outcome.vetoed,
            no_progress: outcome.no_progress,
            unknown_tool: outcome.unknown_tool,
        };
        match open {
            Some(record) => *record = filled(record.call),
            None => {
                self.records.push(filled(outcome.call));
                self.trim_records();
            }
        }
        self.guard.observe_outcome(outcome);
    }

    /// Returns what the guard after a compaction has found, until it is disarmed.
    pub(crate) fn compaction_finding(&self) -> Option<OpenClawFinding> {
        let (call, result) = self.guard.repeated?;
        let rule = &COMPACTION_LOOP_PERSISTED;
        (self.guard.count >= GUARDED_CALLS).then(|| OpenClawFinding {
            rule,
            level: LoopSeverity::Critical,
            count: u32::from(self.guard.count),
            key: finding_key(rule, None, &[call.0, result.0]),
        })
    }

    /// The guard has said what it found.
    pub(crate) fn disarm_compaction_guard(&mut self) {
        self.guard = CompactionGuard::default();
    }

    /// The context was compacted.
    pub(crate) fn arm_compaction_guard(&mut self) {
        self.guard = CompactionGuard {
            remaining: GUARDED_CALLS,
            repeated: None,
            count: 0,
        };
    }

    /// Judges the newest call by those of its run before it.
    pub fn judge_newest_call(&self) -> Option<OpenClawFinding> {
        let newest = self.records.last()?;
        let call = newest.call;
        let before = self
            .records
            .iter()
            .rev()
            .skip(1)
            .filter(move |record| record.call.run == call.run);
        let finding = |rule: &'static OpenClawRule, level, count, key: &[u64]| {
            Some(OpenClawFinding {
                rule,
                level,
                count,
                key: finding_key(rule, call.run, key),
            })
        };
        let (warning, critical) = (LoopSeverity::Warning, LoopSeverity::Critical);

        let unknown = unknown_tool_streak(before.clone(), call.tool);
        if let Some((name, count)) = unknown
            && count >= UNKNOWN_TOOL
        {
            let key = [u64::from(call.tool), u64::from(name)];
            return finding(&UNKNOWN_TOOL_REPEAT, critical, count, &key);
        }
        let streak = no_progress_streak(&before, call);
        let of_streak = [call.call.0, streak.result.map_or(0, u64::from)];
        if streak.count >= BREAKER {
            return finding(&GLOBAL_CIRCUIT_BREAKER, critical, streak.count, &of_streak);
        }
        if call.polls && streak.count >= WARNING {
            let level = if streak.count >= CRITICAL {
                critical
            } else {
                warning
            };
            return finding(&KNOWN_POLL_NO_PROGRESS, level, streak.count, &of_streak);
        }
        if let Some(alternation) = alternation(&before, call.call)
            && alternation.count >= WARNING
        {
            let level = match alternation.is_stable && alternation.count >= CRITICAL {
                true => critical,
                false => warning,
            };
            let pair = [
                call.call.0.min(alternation.other.0),
                call.call.0.max(alternation.other.0),
            ];
            return finding(&PING_PONG, level, alternation.count, &pair);
        }
        if !call.polls && streak.count >= CRITICAL {
            return finding(&GENERIC_REPEAT, critical, streak.count, &of_streak);
        }
        let churn = argument_churn(before.clone(), call);
        if churn >= WARNING {
            return finding(&ARGUMENT_CHURN, warning, churn, &[u64::from(call.tool)]);
        }
        let repeats = before
            .filter(|record| record.call.call == call.call)
            .count() as u32;
        if !call.polls && repeats >= WARNING {
            return finding(&GENERIC_REPEAT, warning, repeats, &[call.call.0]);
        }
        None
    }

    /// Drops the oldest records, so that as many are left as the original keeps.
    fn trim_records(&mut self) {
        let surplus = self.records.len().saturating_sub(CALL_WINDOW_LEN);
        self.records.drain(..surplus);
    }
}

impl CompactionGuard {
    fn observe_outcome(&mut self, outcome: &OpenClawOutcomeFacts) {
        let Some(result) = outcome.result.filter(|_| self.remaining > 0) else {
            return;
        };
        self.remaining -= 1;
        let pair = (outcome.call.call, result);
        self.count = match self.repeated {
            Some(known) if known != pair => 0,
            _ => self.count + 1,
        };
        self.repeated = Some(pair);
    }
}

/// The same warning has the same key. Unlike its record, it is kept in the log.
fn finding_key(rule: &OpenClawRule, run: Option<u32>, parts: &[u64]) -> EightByteDigest {
    let of_rule = xxh3_64(rule.name.as_bytes());
    let run = run.map_or(0, u64::from);
    let parts = std::iter::once(&run).chain(parts);
    EightByteDigest(parts.fold(of_rule, |key, part| {
        xxh3_64_with_seed(&part.to_le_bytes(), key)
    }))
}

/// Returns the name that the newest calls, all of this tool, asked for in vain, and how often.
fn unknown_tool_streak<'a>(
    newest_first: impl Iterator<Item = &'a OpenClawCallRecord>,
    tool: u32,
) -> Option<(u32, u32)> {
    let mut names =
        newest_first.map_while(|record| record.unknown_tool.filter(|_| record.call.tool == tool));
    let name = names.next()?;
    let more = names.take_while(|other| *other == name).count() as u32;
    Some((name, more + 1))
}

/// Returns the longer streak: of this very call with one result or, for a command, of one failure.
fn no_progress_streak<'a>(
    newest_first: &(impl Iterator<Item = &'a OpenClawCallRecord> + Clone),
    call: OpenClawCallFacts,
) -> NoProgressStreak {
    let of_call = streak_of_kind(newest_first.clone(), call, StreakKind::SameArguments);
    if call.kind != OpenClawToolKind::Exec {
        return of_call;
    }
    let of_failure = streak_of_kind(newest_first.clone(), call, StreakKind::SameCommandFailure);
    match of_failure.count > of_call.count {
        true => of_failure,
        false => of_call,
    }
}

fn streak_of_kind<'a>(
    newest_first: impl Iterator<Item = &'a OpenClawCallRecord>,
    call: OpenClawCallFacts,
    kind: StreakKind,
) -> NoProgressStreak {
    let of_failures = kind == StreakKind::SameCommandFailure;
    // Blocked calls count with the next real one behind them.
    let mut vetoes = 0;
    let mut newest: Option<(&OpenClawCallRecord, u32)> = None;
    let mut count = 0;
    let mut crossed_arguments = false;
    for record in newest_first {
        let same_call = record.call.call == call.call;
        if record.call.tool != call.tool {
            match of_failures {
                true => break,
                false => continue,
            }
        }
        if !of_failures && !same_call {
            continue;
        }
        if record.vetoed {
            vetoes += 1;
            continue;
        }
        let Some(result) = record.result else {
            continue;
        };
        if of_failures && record.failure.is_none() {
            break;
        }
        match newest {
            None => {
                newest = Some((record, result));
                crossed_arguments = !same_call;
            }
            Some((first, first_result)) => {
                if of_failures {
                    if crossed_arguments && same_call {
                        break;
                    }
                    crossed_arguments |= !same_call;
                }
                let is_same_failure = of_failures && record.failure == first.failure;
                if result != first_result && !is_same_failure {
                    break;
                }
            }
        }
        count += vetoes + 1;
        vetoes = 0;
    }
    NoProgressStreak {
        count: match (newest, of_failures) {
            (Some(_), _) => count,
            (None, true) => 0,
            (None, false) => vetoes,
        },
        result: newest.map(|(_, result)| result),
    }
}

/// Returns how many of the newest calls went round a few variants of the arguments, all with one
/// result that is no progress; 0 if they did not, or if this call is none of the variants.
fn argument_churn<'a>(
    newest_first: impl Iterator<Item = &'a OpenClawCallRecord>,
    call: OpenClawCallFacts,
) -> u32 {
    let mut variants: BTreeMap<EightByteDigest, (u32, u32)> = BTreeMap::new();
    for record in newest_first {
        if record.call.tool != call.tool {
            break;
        }
        let Some(result) = record.result else {
            continue;
        };
        if !record.no_progress {
            break;
        }
        let variant = variants.entry(record.call.call).or_insert((result, 0));
        if variant.0 != result {
            break;
        }
        variant.1 += 1;
    }
    let all_stable = variants
        .values()
        .all(|(_, count)| *count >= CALLS_PER_VARIANT);
    let mut results = variants.values().map(|(result, _)| result);
    let first = results.next();
    let one_result = results.all(|result| Some(result) == first);
    let is_variant = variants.contains_key(&call.call);
    match variants.len() > 1 && all_stable && one_result && is_variant {
        true => variants.values().map(|(_, count)| count).sum(),
        false => 0,
    }
}

/// Two calls in turn, this one included.
struct Alternation {
    count: u32,
    other: EightByteDigest,
    /// Each of the two came back with one result all the time.
    is_stable: bool,
}

fn alternation<'a>(
    newest_first: &(impl Iterator<Item = &'a OpenClawCallRecord> + Clone),
    call: EightByteDigest,
) -> Option<Alternation> {
    let mut calls = newest_first.clone().map(|record| record.call.call);
    let last = calls.next()?;
    let other = calls.find(|earlier| *earlier != last)?;
    if call != other {
        return None;
    }
    let tail = newest_first
        .clone()
        .enumerate()
        .take_while(|(at, record)| record.call.call == if at % 2 == 0 { last } else { other })
        .count();
    if tail < 2 {
        return None;
    }
    let mut results = [None, None];
    let is_stable = newest_first
        .clone()
        .take(tail)
        .enumerate()
        .all(|(at, record)| {
            let side = if at % 2 == 0 {
                &mut results[0]
            } else {
                &mut results[1]
            };
            record.result.is_some() && *side.get_or_insert(record.result) == record.result
        });
    Some(Alternation {
        count: tail as u32 + 1,
        other: last,
        is_stable,
    })
}
