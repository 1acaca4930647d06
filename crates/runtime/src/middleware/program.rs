//! Asks a program: the question is one JSON document on its stdin, the answer one on its stdout.
//! Nothing is cut: what is too large is neither asked nor accepted.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_verifiers::plugin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::question::{
    AnyMiddlewareAnswer, BeforeStopAnswer, MiddlewareQuestion, MiddlewareToolCallAnswer,
    MiddlewareToolResultAnswer, RoundEndAnswer,
};
use crate::workspace::TreeAndStateFolder;

/// The largest question in bytes.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The largest answer in bytes.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;

#[derive(Serialize)]
struct MiddlewareRequest<'a> {
    schema: &'static str,
    layer: &'a str,
    #[serde(flatten)]
    question: &'a MiddlewareQuestion,
}

/// The fields of an answer.
#[derive(Deserialize)]
struct MiddlewareProgramAnswer {
    answer: MiddlewareResponseKind,
    reason: Option<String>,
    args: Option<Value>,
    text: Option<String>,
    result: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MiddlewareResponseKind {
    Pass,
    Nudge,
    Rewrite,
    Ask,
    Deny,
    Halt,
    CannotTell,
}

pub(super) fn ask_middleware_program(
    place: &TreeAndStateFolder,
    name: &str,
    run: &str,
    question: &MiddlewareQuestion,
    limit: Duration,
    cancelled: &AtomicBool,
) -> Result<AnyMiddlewareAnswer, String> {
    let document = MiddlewareRequest {
        schema: "checkrein/middleware/1",
        layer: name,
        question,
    };
    let mut input = serde_json::to_vec(&document).map_err(|error| error.to_string())?;
    // For programs that read by lines.
    input.push(b'\n');
    if input.len() > MAX_REQUEST_BYTES {
        return Err(format!(
            "it was not asked: what it would be shown is larger than {MAX_REQUEST_BYTES} bytes"
        ));
    }
    let said = plugin::run_plugin(&plugin::PluginInvocation {
        run,
        root: &place.root,
        env: &place.env,
        input: &input,
        timeout: limit,
        max_output_bytes: MAX_RESPONSE_BYTES,
        cancelled,
    });
    parse_middleware_response(question, &said.map_err(|why| why.to_string())?)
}

/// Parses an answer, as far as it fits the question.
fn parse_middleware_response(
    question: &MiddlewareQuestion,
    said: &[u8],
) -> Result<AnyMiddlewareAnswer, String> {
    let looks_only = matches!(
        question,
        MiddlewareQuestion::SessionStart(_)
            | MiddlewareQuestion::RoundEnd(_)
            | MiddlewareQuestion::SessionEnd(_)
    );
    if said.trim_ascii().is_empty() {
        // At a stage that can only look, no answer is needed.
        return match looks_only {
            true => Ok(AnyMiddlewareAnswer::Acknowledged),
            false => Err("it said nothing; the least is {\"answer\": \"pass\"}".to_owned()),
        };
    }
    let answer: MiddlewareProgramAnswer = serde_json::from_slice(said)
        .map_err(|error| format!("what it said is no answer: {error}"))?;
    let why = |none: &str| answer.reason.clone().unwrap_or_else(|| none.to_owned());
    // A wrong answer must not pass for a `pass`: the stance decides.
    let nowhere = || Err("it gave an answer that means nothing at this stage".to_owned());
    let cannot = || why("it does not say why");
    Ok(match (question, answer.answer) {
        (MiddlewareQuestion::BeforeTool(_), word) => AnyMiddlewareAnswer::Call(match word {
            MiddlewareResponseKind::Pass => MiddlewareToolCallAnswer::Pass,
            MiddlewareResponseKind::Nudge => {
                MiddlewareToolCallAnswer::Nudge(answer.reason.ok_or("its nudge has no reason")?)
            }
            MiddlewareResponseKind::Rewrite => MiddlewareToolCallAnswer::Rewrite {
                reason: why("it would have other arguments"),
                args: answer.args.ok_or("its rewrite has no args")?,
            },
            MiddlewareResponseKind::Ask => {
                MiddlewareToolCallAnswer::Ask(why("it does not say why"))
            }
            MiddlewareResponseKind::Deny => {
                MiddlewareToolCallAnswer::Deny(why("it does not say why"))
            }
            MiddlewareResponseKind::Halt => {
                MiddlewareToolCallAnswer::Halt(why("it does not say why"))
            }
            MiddlewareResponseKind::CannotTell => MiddlewareToolCallAnswer::CannotTell(cannot()),
        }),
        (MiddlewareQuestion::AfterTool(_) | MiddlewareQuestion::PersistResult(_), word) => {
            AnyMiddlewareAnswer::Result(match word {
                MiddlewareResponseKind::Pass => MiddlewareToolResultAnswer::Keep,
                // With both or neither it is unclear what the result should be.
                MiddlewareResponseKind::Rewrite => match (answer.text, answer.result) {
                    (Some(text), None) => MiddlewareToolResultAnswer::Text(text),
                    (None, Some(result)) => MiddlewareToolResultAnswer::Replacement(result),
                    (None, None) => {
                        return Err("its rewrite has neither text nor result".to_owned());
                    }
                    (Some(_), Some(_)) => {
                        return Err("its rewrite has both text and result".to_owned());
                    }
                },
                MiddlewareResponseKind::CannotTell => {
                    MiddlewareToolResultAnswer::CannotTell(cannot())
                }
                MiddlewareResponseKind::Nudge
                | MiddlewareResponseKind::Ask
                | MiddlewareResponseKind::Deny
                | MiddlewareResponseKind::Halt => return nowhere(),
            })
        }
        (MiddlewareQuestion::BeforeStop(_), word) => AnyMiddlewareAnswer::Stop(match word {
            MiddlewareResponseKind::Pass => BeforeStopAnswer::Pass,
            MiddlewareResponseKind::Deny => BeforeStopAnswer::Deny(why("it does not say why")),
            MiddlewareResponseKind::CannotTell => BeforeStopAnswer::CannotTell(cannot()),
            MiddlewareResponseKind::Nudge
            | MiddlewareResponseKind::Ask
            | MiddlewareResponseKind::Rewrite
            | MiddlewareResponseKind::Halt => return nowhere(),
        }),
        (MiddlewareQuestion::RoundEnd(_), word) => AnyMiddlewareAnswer::Round(match word {
            MiddlewareResponseKind::Pass => RoundEndAnswer::Pass,
            MiddlewareResponseKind::Nudge => {
                RoundEndAnswer::Nudge(answer.reason.ok_or("its nudge has no reason")?)
            }
            MiddlewareResponseKind::Halt => RoundEndAnswer::Halt(why("it does not say why")),
            MiddlewareResponseKind::CannotTell => RoundEndAnswer::CannotTell(cannot()),
            MiddlewareResponseKind::Rewrite
            | MiddlewareResponseKind::Ask
            | MiddlewareResponseKind::Deny => return nowhere(),
        }),
        (MiddlewareQuestion::SessionStart(_) | MiddlewareQuestion::SessionEnd(_), word) => {
            match word {
                MiddlewareResponseKind::Pass => AnyMiddlewareAnswer::Acknowledged,
                MiddlewareResponseKind::CannotTell => return Err(cannot()),
                MiddlewareResponseKind::Nudge
                | MiddlewareResponseKind::Rewrite
                | MiddlewareResponseKind::Ask
                | MiddlewareResponseKind::Deny
                | MiddlewareResponseKind::Halt => return nowhere(),
            }
        }
    })
}
