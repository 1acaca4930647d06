//! `kind = "judge"`: a model reads the answer before the person does. Its verdict is testimony: it
//! is read carefully, and what cannot be read or asked is inconclusive.

pub mod calibration;
mod case;
mod context;
mod definition;
mod trigger;
mod verdict;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{InconclusiveCause, JudgeUsage, Retryability, Verdict};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    LanguageModel, ModelError, ModelReply, ModelRequestLimits, RemoteModel,
    block_on_unless_cancelled,
};

pub use case::{Case, StandingTasks, Turn};
use context::Order;
pub use definition::{Definition, KEYWORDS, RULES, Rules, Surface, Trigger};
pub use trigger::calling;
pub use verdict::{Category, Said, Unread, read};

use crate::{DefinitionError, Job, Report, Verifier};

/// So near the least score that passes, in thousandths, a judge is asked a second time, with what
/// it is shown in the other order: a verdict that depends on the order is none.
const NEAR: u32 = 100;

/// Who judges if the config names nobody: one of another family than the agent's.
const OF_ANTHROPIC: &str = "anthropic/claude-sonnet-4-5";
const OF_OPENAI: &str = "openai/gpt-4.1";

/// The `judge` kind.
#[derive(Debug, Clone, Copy)]
pub struct Judge;

impl Verifier for Judge {
    fn kind(&self) -> &'static str {
        "judge"
    }

    fn check_definition(&self, definition: &str) -> Result<(), DefinitionError> {
        parse(definition).map(drop)
    }

    fn verify(&self, job: &Job<'_>) -> Report {
        let started = Instant::now();
        let mut report = match (parse(&job.spec.definition), job.case) {
            (Ok(judge), Some(case)) => ask(&hidden(judge, job), case, job, started),
            (Ok(_), None) => {
                let why = "a judge reads the answer of an agent: it is asked at a stop only";
                Report::inconclusive(InconclusiveCause::NotAsked, Retryability::Yes, why)
            }
            (Err(error), _) => Report::inconclusive(
                InconclusiveCause::Internal,
                Retryability::No,
                error.to_string(),
            ),
        };
        report.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        report
    }
}

/// Without secrets in what the project tells its agents, nor in the rubric.
fn hidden(mut judge: Definition, job: &Job<'_>) -> Definition {
    let rules = judge.rules.iter_mut().map(|rules| &mut rules.text);
    for text in rules.chain(&mut judge.rubric) {
        if let Some(hidden) = (job.redact)(text.as_bytes()) {
            *text = String::from_utf8_lossy(&hidden).into_owned();
        }
    }
    judge
}

fn parse(definition: &str) -> Result<Definition, DefinitionError> {
    let shape = |source| DefinitionError::Shape {
        kind: "judge",
        source,
    };
    let judge: Definition = serde_json::from_str(definition).map_err(shape)?;
    let wrong = |error: ModelError| DefinitionError::Judge {
        what: error.to_string(),
    };
    if let Some(model) = &judge.model {
        checkrein_models::validate_model_name(model).map_err(wrong)?;
    }
    Ok(judge)
}

/// Whether a model of this name can be asked at all.
///
/// # Errors
/// What is wrong with the name, and what would be right.
pub fn check_model(name: &str) -> Result<(), String> {
    checkrein_models::validate_model_name(name).map_err(|error| error.to_string())
}

/// The model that judges an agent of this name, and whether it is of the agent's own family.
pub fn model_for(judge: &Definition, agent: &str) -> (String, bool) {
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
    let same = words.iter().any(|word| model.to_lowercase().contains(word));
    (model, same)
}

impl Definition {
    /// Whether a verdict is asked for a second time.
    fn is_near(&self, said: &Said) -> bool {
        let score = said.score.unwrap_or(if said.passes { 1000 } else { 0 });
        score.abs_diff(self.min_score) <= NEAR
    }
}

/// What came of asking.
enum Heard {
    Said(Said),
    Unreadable(Unread),
    Failed(ModelError),
    Cancelled,
}

fn ask(judge: &Definition, case: &Case, job: &Job<'_>, started: Instant) -> Report {
    let (name, same) = model_for(judge, &case.agent);
    let own = Duration::from_millis(job.spec.timeout_ms);
    let until = started + own;
    // What the agent waits for may be less.
    let cut = job.deadline.is_some_and(|deadline| deadline < until);
    let until = job.deadline.map_or(until, |deadline| deadline.min(until));
    let mut testimony = JudgeUsage {
        model: name.clone(),
        ..JudgeUsage::default()
    };
    let mut heard = |order| hear(judge, case, (&name, until), order, job, &mut testimony);
    let first = heard(Order::Forth);
    let second = match &first {
        Heard::Said(said) if judge.is_near(said) => Some(heard(Order::Back)),
        _ => None,
    };
    let passes = |said: &Said| said.passes_at(judge.min_score);
    let said = match (first, second) {
        (Heard::Said(one), None) => one,
        (Heard::Said(one), Some(Heard::Said(other))) => {
            if passes(&one) != passes(&other) {
                let why = "asked twice, what it was shown in the other order, it said yes and no";
                let report = Report::inconclusive(
                    InconclusiveCause::InconsistentJudge,
                    Retryability::Yes,
                    why,
                );
                return with(report, testimony);
            }
            one
        }
        (Heard::Unreadable(why), _) | (_, Some(Heard::Unreadable(why))) => {
            let why = format!("{name}: {why}");
            let report =
                Report::inconclusive(InconclusiveCause::Unreadable, Retryability::Yes, why);
            return with(report, testimony);
        }
        (Heard::Failed(error), _) | (_, Some(Heard::Failed(error))) => {
            return failed(&error, cut, testimony);
        }
        (Heard::Cancelled, _) | (_, Some(Heard::Cancelled)) => {
            let why = "it was called off";
            let report =
                Report::inconclusive(InconclusiveCause::ReplyDeadline, Retryability::Yes, why);
            return with(report, testimony);
        }
    };
    testimony.score = said.score;
    let verdict = match passes(&said) {
        true => Verdict::Pass,
        false => Verdict::Fail,
    };
    let findings = match verdict {
        Verdict::Pass => Vec::new(),
        Verdict::Fail | Verdict::Inconclusive => said.findings(),
    };
    let mut excerpt = said.feedback.join("\n");
    if same {
        excerpt.push_str("\nThe judge is of the same family as the agent, which it may favour.");
    }
    let report = Report {
        verdict,
        cause: None,
        findings_total: u32::try_from(findings.len()).unwrap_or(u32::MAX),
        findings,
        ..Report::inconclusive(InconclusiveCause::Internal, Retryability::Yes, excerpt)
    };
    with(report, testimony)
}

fn hear(
    judge: &Definition,
    case: &Case,
    (name, until): (&str, Instant),
    order: Order,
    job: &Job<'_>,
    testimony: &mut JudgeUsage,
) -> Heard {
    let limits = ModelRequestLimits {
        total_timeout: until.saturating_duration_since(Instant::now()),
        ..ModelRequestLimits::default()
    };
    let model = match RemoteModel::new(name, job.models, limits) {
        Ok(model) => model,
        Err(error) => return Heard::Failed(error),
    };
    let quotes = QuotedPromptBlocks::with_random_quote_number();
    let request = context::request(judge, case, quotes, order);
    testimony.asked += 1;
    match block_on_unless_cancelled(job.cancelled, model.ask_model(&request)) {
        None => Heard::Cancelled,
        Some(Err(error)) => Heard::Failed(error),
        Some(Ok(reply)) => {
            count(testimony, &reply);
            match verdict::read(&reply.text, quotes.number_answer_must_repeat()) {
                Ok(said) => Heard::Said(said),
                Err(why) => Heard::Unreadable(why),
            }
        }
    }
}

fn count(testimony: &mut JudgeUsage, reply: &ModelReply) {
    let usage = &reply.usage;
    let add = |total: &mut Option<u64>, more: Option<u64>| {
        *total = more.map(|more| total.unwrap_or(0).saturating_add(more));
    };
    let read = [usage.input, usage.cache_read, usage.cache_write];
    let known = read.iter().any(Option::is_some);
    add(
        &mut testimony.input,
        // A provider may say any number.
        known.then(|| read.into_iter().flatten().fold(0, u64::saturating_add)),
    );
    add(&mut testimony.output, usage.output);
    let cost = checkrein_models::PriceList::default().usage_cost(&testimony.model, usage);
    add(&mut testimony.cost, cost);
}

fn failed(error: &ModelError, cut: bool, testimony: JudgeUsage) -> Report {
    let (cause, retryable) = match error {
        ModelError::Timeout { .. } if cut => (InconclusiveCause::ReplyDeadline, Retryability::Yes),
        ModelError::Timeout { .. } => (InconclusiveCause::Timeout, Retryability::Yes),
        // No agent can bring one.
        ModelError::NoKey { .. } => (InconclusiveCause::ModelUnavailable, Retryability::No),
        _ => (InconclusiveCause::ModelUnavailable, Retryability::Yes),
    };
    with(
        Report::inconclusive(cause, retryable, error.to_string()),
        testimony,
    )
}

fn with(report: Report, testimony: JudgeUsage) -> Report {
    Report {
        testimony: Some(testimony),
        ..report
    }
}
