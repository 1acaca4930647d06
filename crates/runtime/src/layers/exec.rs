//! Asks a program: the question as one JSON document on its stdin, one JSON document on its
//! stdout. Nothing of it is cut: what is too large is no question, and no answer.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_verifiers::plugin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::question::{CallSays, Question, ResultSays, Says, StopSays};
use crate::workspace::Place;

/// Bytes of a question.
const LARGEST: usize = 1 << 20;
/// Bytes of an answer.
const MOST: u64 = 1 << 20;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    layer: &'a str,
    #[serde(flatten)]
    question: &'a Question,
}

/// What is read of an answer.
#[derive(Deserialize)]
struct Answer {
    answer: Word,
    reason: Option<String>,
    args: Option<Value>,
    text: Option<String>,
    result: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Pass,
    Nudge,
    Rewrite,
    Ask,
    Deny,
    CannotTell,
}

pub(super) fn ask(
    place: &Place,
    name: &str,
    run: &str,
    question: &Question,
    limit: Duration,
    cancelled: &AtomicBool,
) -> Result<Says, String> {
    let document = Document {
        schema: "checkrein/middleware/1",
        layer: name,
        question,
    };
    let mut input = serde_json::to_vec(&document).map_err(|error| error.to_string())?;
    input.push(b'\n');
    if input.len() > LARGEST {
        return Err(format!(
            "it was not asked: what it would be shown is larger than {LARGEST} bytes"
        ));
    }
    let said = plugin::run_plugin(&plugin::PluginRequest {
        run,
        root: &place.root,
        env: &place.env,
        input: &input,
        timeout: limit,
        max_output_bytes: MOST,
        cancelled,
    });
    read(question, &said.map_err(|why| why.to_string())?)
}

/// What was said, as far as it can be an answer to this question.
fn read(question: &Question, said: &[u8]) -> Result<Says, String> {
    let looks_only = matches!(
        question,
        Question::SessionStart(_) | Question::RoundEnd(_) | Question::SessionEnd(_)
    );
    if said.trim_ascii().is_empty() {
        // Where nothing can follow, nothing has to be said.
        return match looks_only {
            true => Ok(Says::Seen),
            false => Err("it said nothing; the least is {\"answer\": \"pass\"}".to_owned()),
        };
    }
    let answer: Answer = serde_json::from_slice(said)
        .map_err(|error| format!("what it said is no answer: {error}"))?;
    let why = |none: &str| answer.reason.clone().unwrap_or_else(|| none.to_owned());
    let nowhere = || Err("it gave an answer that means nothing at this stage".to_owned());
    let cannot = || why("it does not say why");
    Ok(match (question, answer.answer) {
        (Question::BeforeTool(_), word) => Says::Call(match word {
            Word::Pass => CallSays::Pass,
            Word::Nudge => CallSays::Nudge(answer.reason.ok_or("its nudge has no reason")?),
            Word::Rewrite => CallSays::Rewrite {
                reason: why("it would have other arguments"),
                args: answer.args.ok_or("its rewrite has no args")?,
            },
            Word::Ask => CallSays::Ask(why("it does not say why")),
            Word::Deny => CallSays::Deny(why("it does not say why")),
            Word::CannotTell => CallSays::CannotTell(cannot()),
        }),
        (Question::AfterTool(_) | Question::PersistResult(_), word) => Says::Result(match word {
            Word::Pass => ResultSays::Keep,
            Word::Rewrite => match (answer.text, answer.result) {
                (Some(text), None) => ResultSays::Text(text),
                (None, Some(result)) => ResultSays::Whole(result),
                (None, None) => return Err("its rewrite has neither text nor result".to_owned()),
                (Some(_), Some(_)) => {
                    return Err("its rewrite has both text and result".to_owned());
                }
            },
            Word::CannotTell => ResultSays::CannotTell(cannot()),
            Word::Nudge | Word::Ask | Word::Deny => return nowhere(),
        }),
        (Question::BeforeStop(_), word) => Says::Stop(match word {
            Word::Pass => StopSays::Pass,
            Word::Deny => StopSays::Deny(why("it does not say why")),
            Word::CannotTell => StopSays::CannotTell(cannot()),
            Word::Nudge | Word::Ask | Word::Rewrite => return nowhere(),
        }),
        (Question::SessionStart(_) | Question::RoundEnd(_) | Question::SessionEnd(_), word) => {
            match word {
                Word::Pass => Says::Seen,
                Word::CannotTell => return Err(cannot()),
                Word::Nudge | Word::Rewrite | Word::Ask | Word::Deny => return nowhere(),
            }
        }
    })
}
