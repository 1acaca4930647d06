//! Implements `kind = "judge"`: a model reads the answer before the person does. Its verdict is
//! testimony: it is parsed strictly, and an answer that cannot be had or parsed is inconclusive.

pub mod calibration;
mod case;
mod definition;
mod trigger;
mod verdict;
mod verdict_request;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, JudgeUsage, Verdict};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    LanguageModel, ModelError, ModelReply, ModelRequestLimits, RemoteModel,
    block_on_unless_cancelled,
};

pub use case::{JudgeInput, RequestAndAnswer, StandingTasksThenAndNow};
pub use definition::{
    AgentInstructionsFile, DEFAULT_KEYWORDS, JudgeDefinition, JudgeTriggerMode,
    MainOrSubagentConversation, RULE_FILE_NAMES,
};
pub use trigger::evaluate_judge_trigger;
pub use verdict::{JudgeFaultCategory, JudgeVerdict, JudgeVerdictParseError, parse_judge_verdict};
use verdict_request::RequestOrAnswerFirst;

use crate::{VerifierDefinitionError, VerifierJob, VerifierKind, VerifierReport};

/// If the score is within this distance of the least passing one, in thousandths, the judge is
/// asked a second time with its material in the other order: a verdict that depends on the order is
/// none.
const NEAR: u32 = 100;

/// The default judges: one of another family than the agent's.
const OF_ANTHROPIC: &str = "anthropic/claude-sonnet-4-5";
const OF_OPENAI: &str = "openai/gpt-4.1";

/// The `judge` kind.
#[derive(Debug, Clone, Copy)]
pub struct JudgeVerifier;

impl VerifierKind for JudgeVerifier {
    fn verifier_kind_name(&self) -> &'static str {
        "judge"
    }

    fn validate_verifier_definition(
        &self,
        definition: &str,
    ) -> Result<(), VerifierDefinitionError> {
        parse_judge_definition(definition).map(drop)
    }

    fn run_verifier_job(&self, job: &VerifierJob<'_>) -> VerifierReport {
        let started = Instant::now();
        let mut report = match (parse_judge_definition(&job.spec.definition), job.case) {
            (Ok(judge), Some(case)) => {
                run_judge(&redact_judge_definition(judge, job), case, job, started)
            }
            (Ok(_), None) => {
                let why = "a judge reads the answer of an agent: it is asked at a stop only";
                VerifierReport::inconclusive_report(
                    InconclusiveCause::NotAsked,
                    CheckRetryability::Yes,
                    why,
                )
            }
            (Err(error), _) => VerifierReport::inconclusive_report(
                InconclusiveCause::Internal,
                CheckRetryability::No,
                error.to_string(),
            ),
        };
        report.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        report
    }
}

/// Redacts the project's rules and the rubric.
fn redact_judge_definition(mut judge: JudgeDefinition, job: &VerifierJob<'_>) -> JudgeDefinition {
    let rules = judge.rules.iter_mut().map(|rules| &mut rules.text);
    for text in rules.chain(&mut judge.rubric) {
        if let Some(hidden) = (job.redact)(text.as_bytes()) {
            *text = String::from_utf8_lossy(&hidden).into_owned();
        }
    }
    judge
}

fn parse_judge_definition(definition: &str) -> Result<JudgeDefinition, VerifierDefinitionError> {
    let shape = |source| VerifierDefinitionError::Shape {
        kind: "judge",
        source,
    };
    let judge: JudgeDefinition = serde_json::from_str(definition).map_err(shape)?;
    let wrong = |error: ModelError| VerifierDefinitionError::Judge {
        what: error.to_string(),
    };
    // Only the name is checked: whether there is a key is a matter of the machine, not of the
    // config.
    if let Some(model) = &judge.model {
        checkrein_models::validate_model_name(model).map_err(wrong)?;
    }
    Ok(judge)
}

/// Checks that a model name can be used at all.
///
/// # Errors
/// What is wrong with the name, and what would be right.
pub fn check_model_name(name: &str) -> Result<(), String> {
    checkrein_models::validate_model_name(name).map_err(|error| error.to_string())
}

/// Returns the model that judges this agent, and whether it is of the agent's own family.
pub fn choose_judge_model(judge: &JudgeDefinition, agent: &str) -> (String, bool) {
    let family = match agent {
        "claude-code" => "anthropic",
        "codex" => "openai",
        _ => "",
    };
    let model = judge.model.clone().unwrap_or_else(|| {
        let other = match family {
            "anthropic" => OF_OPENAI,
            _ => OF_ANTHROPIC,
        };
        other.to_owned()
    });
    let words = match family {
        "anthropic" => ["anthropic/", "claude"],
        "openai" => ["openai/", "gpt-"],
        _ => return (model, false),
    };
    // By name, so that a model behind a proxy (`openrouter/anthropic/claude-...`) is recognised
    // too.
    let same = words.iter().any(|word| model.to_lowercase().contains(word));
    (model, same)
}

impl JudgeDefinition {
    /// Returns whether a verdict has to be confirmed by a second one.
    fn is_near_min_score(&self, said: &JudgeVerdict) -> bool {
        // Without a score the verdict stands for the end of the scale, which is rarely near the
        // limit.
        let score = said.score.unwrap_or(if said.passes { 1000 } else { 0 });
        score.abs_diff(self.min_score) <= NEAR
    }
}

/// The outcome of asking the judge.
enum JudgeResponse {
    Verdict(JudgeVerdict),
    Unreadable(JudgeVerdictParseError),
    Failed(ModelError),
    Cancelled,
}

fn run_judge(
    judge: &JudgeDefinition,
    case: &JudgeInput,
    job: &VerifierJob<'_>,
    started: Instant,
) -> VerifierReport {
    let (name, same) = choose_judge_model(judge, &case.agent);
    let own = Duration::from_millis(job.spec.timeout_ms);
    let until = started + own;
    // The agent may wait for less than the judge's own timeout.
    let cut = job.deadline.is_some_and(|deadline| deadline < until);
    let until = job.deadline.map_or(until, |deadline| deadline.min(until));
    let mut testimony = JudgeUsage {
        model: name.clone(),
        ..JudgeUsage::default()
    };
    let mut heard = |order| ask_judge(judge, case, (&name, until), order, job, &mut testimony);
    let first = heard(RequestOrAnswerFirst::RequestFirst);
    // Only a close call costs a second question.
    let second = match &first {
        JudgeResponse::Verdict(said) if judge.is_near_min_score(said) => {
            Some(heard(RequestOrAnswerFirst::AnswerFirst))
        }
        _ => None,
    };
    let passes = |said: &JudgeVerdict| said.passes_min_score(judge.min_score);
    let said = match (first, second) {
        (JudgeResponse::Verdict(one), None) => one,
        (JudgeResponse::Verdict(one), Some(JudgeResponse::Verdict(other))) => {
            // The scores may differ; what counts is which side of the limit they are on.
            if passes(&one) != passes(&other) {
                let why = "asked twice, what it was shown in the other order, it said yes and no";
                let report = VerifierReport::inconclusive_report(
                    InconclusiveCause::InconsistentJudge,
                    CheckRetryability::Yes,
                    why,
                );
                return with_judge_usage(report, testimony);
            }
            one
        }
        // A second answer that cannot be used voids the first: it was near the limit and is
        // unconfirmed.
        (JudgeResponse::Unreadable(why), _) | (_, Some(JudgeResponse::Unreadable(why))) => {
            let why = format!("{name}: {why}");
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::Unreadable,
                CheckRetryability::Yes,
                why,
            );
            return with_judge_usage(report, testimony);
        }
        (JudgeResponse::Failed(error), _) | (_, Some(JudgeResponse::Failed(error))) => {
            return inconclusive_report_for_model_error(&error, cut, testimony);
        }
        (JudgeResponse::Cancelled, _) | (_, Some(JudgeResponse::Cancelled)) => {
            let why = "it was called off";
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::ReplyDeadline,
                CheckRetryability::Yes,
                why,
            );
            return with_judge_usage(report, testimony);
        }
    };
    testimony.score = said.score;
    let verdict = match passes(&said) {
        true => Verdict::Pass,
        false => Verdict::Fail,
    };
    let findings = match verdict {
        Verdict::Pass => Vec::new(),
        Verdict::Fail | Verdict::Inconclusive => said.findings_from_judge_verdict(),
    };
    let mut excerpt = said.feedback.join("\n");
    if same {
        // A model may favour answers of its own family, so the reader is told.
        excerpt.push_str("\nThe judge is of the same family as the agent, which it may favour.");
    }
    let report = VerifierReport {
        verdict,
        cause: None,
        findings_total: u32::try_from(findings.len()).unwrap_or(u32::MAX),
        findings,
        ..VerifierReport::inconclusive_report(
            InconclusiveCause::Internal,
            CheckRetryability::Yes,
            excerpt,
        )
    };
    with_judge_usage(report, testimony)
}

fn ask_judge(
    judge: &JudgeDefinition,
    case: &JudgeInput,
    (name, until): (&str, Instant),
    order: RequestOrAnswerFirst,
    job: &VerifierJob<'_>,
    testimony: &mut JudgeUsage,
) -> JudgeResponse {
    let limits = ModelRequestLimits {
        total_timeout: until.saturating_duration_since(Instant::now()),
        ..ModelRequestLimits::default()
    };
    let model = match RemoteModel::new(name, job.model_env, limits) {
        Ok(model) => model,
        Err(error) => return JudgeResponse::Failed(error),
    };
    // A new number for each question: data that was written before cannot contain it.
    let quotes = QuotedPromptBlocks::new_with_random_quote_number();
    let request = verdict_request::verdict_request(judge, case, quotes, order);
    // Counted before the answer: a question that fails may cost something too.
    testimony.asked += 1;
    match block_on_unless_cancelled(job.cancelled, model.ask_model(&request)) {
        None => JudgeResponse::Cancelled,
        Some(Err(error)) => JudgeResponse::Failed(error),
        Some(Ok(reply)) => {
            add_reply_to_judge_usage(testimony, &reply);
            match verdict::parse_judge_verdict(&reply.text, quotes.number_answer_must_repeat()) {
                Ok(said) => JudgeResponse::Verdict(said),
                Err(why) => JudgeResponse::Unreadable(why),
            }
        }
    }
}

fn add_reply_to_judge_usage(testimony: &mut JudgeUsage, reply: &ModelReply) {
    let usage = &reply.usage;
    let add = |total: &mut Option<u64>, more: Option<u64>| {
        // If this reply's use is unknown so is the sum, which would otherwise read as less than was
        // used.
        *total = more.map(|more| total.unwrap_or(0).saturating_add(more));
    };
    let read = [usage.input, usage.cache_read, usage.cache_write];
    let known = read.iter().any(Option::is_some);
    add(
        &mut testimony.input,
        // A provider may report any number, so the sum saturates.
        known.then(|| read.into_iter().flatten().fold(0, u64::saturating_add)),
    );
    add(&mut testimony.output, usage.output);
    let cost = checkrein_models::PriceList::default().usage_cost(&testimony.model, usage);
    add(&mut testimony.cost, cost);
}

fn inconclusive_report_for_model_error(
    error: &ModelError,
    cut: bool,
    testimony: JudgeUsage,
) -> VerifierReport {
    let (cause, retryable) = match error {
        ModelError::Timeout { .. } if cut => {
            (InconclusiveCause::ReplyDeadline, CheckRetryability::Yes)
        }
        ModelError::Timeout { .. } => (InconclusiveCause::Timeout, CheckRetryability::Yes),
        // An agent cannot supply a key, so another attempt would not help.
        ModelError::NoKey { .. } => (InconclusiveCause::ModelUnavailable, CheckRetryability::No),
        _ => (InconclusiveCause::ModelUnavailable, CheckRetryability::Yes),
    };
    with_judge_usage(
        VerifierReport::inconclusive_report(cause, retryable, error.to_string()),
        testimony,
    )
}

fn with_judge_usage(report: VerifierReport, testimony: JudgeUsage) -> VerifierReport {
    VerifierReport {
        testimony: Some(testimony),
        ..report
    }
}
