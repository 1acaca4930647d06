//! `kind = "schema"`: a file of the tree, or the final message, against a JSON Schema that was
//! sealed with the policy. Markdown is read as its sections first. What does not fit is a
//! finding that says where, what is there, and what is wanted.

mod bounded;
mod budget;
mod definition;
mod document;
pub(crate) mod fitting;
mod json;
mod markdown;
mod problems;
mod sense;
mod target;
mod validator;
mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_core::evidence::{
    Finding, FindingBaselineState, InconclusiveCause, MAX_FINDINGS, Retryability, Verdict,
};

use crate::{DefinitionError, Job, Report, Verifier, logs};
use bounded::Ended;
use budget::Budget;
use definition::Definition;
use document::Unfit;
use problems::Problem;
use target::Target;

/// Larger than this no schema is.
pub const MAX_SCHEMA: usize = 256 * 1024;
/// Larger than this no document is judged.
pub(crate) const MAX_DOCUMENT: usize = 1024 * 1024;

/// The `schema` kind.
#[derive(Debug, Clone, Copy)]
pub struct Schema;

impl Schema {
    /// What a schema of this text most likely does not say as it was meant, for who wrote it.
    pub fn slips(name: &str, text: &str) -> Vec<String> {
        let schema: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let slips = sense::slips(&schema).into_iter();
        slips
            .map(|(word, known)| {
                format!("{name}: unknown keyword '{word}' is ignored; did you mean '{known}'?")
            })
            .collect()
    }
}

impl Verifier for Schema {
    fn kind(&self) -> &'static str {
        "schema"
    }

    fn check_definition(&self, definition: &str) -> Result<(), DefinitionError> {
        let definition = Definition::parse(definition)?;
        let Some(text) = definition.text else {
            return Ok(());
        };
        let name = definition.schema;
        let wrong = |what| DefinitionError::Schema { what };
        match bounded::on_a_deep_stack(move || {
            validator::compile(&name, &text, Arc::default()).map(drop)
        }) {
            Ok(compiled) => compiled.map_err(wrong),
            Err(what) => Err(wrong(what.to_owned())),
        }
    }

    fn named_files(&self, definition: &str) -> Vec<String> {
        match Definition::parse(definition).map(|definition| definition.target) {
            Ok(Target::File(name)) => vec![name],
            Ok(Target::Message) | Err(_) => Vec::new(),
        }
    }

    fn verify(&self, job: &Job<'_>) -> Report {
        let started = Instant::now();
        let mut report = match Definition::parse(&job.spec.definition) {
            Ok(definition) => judge(definition, job),
            Err(error) => Report::inconclusive(
                InconclusiveCause::Internal,
                Retryability::No,
                error.to_string(),
            ),
        };
        report.duration_ms = milliseconds(started.elapsed());
        report
    }
}

fn judge(definition: Definition, job: &Job<'_>) -> Report {
    let Definition {
        schema,
        text,
        target,
    } = definition;
    let Some(text) = text else {
        let why = format!(
            "{schema} was not there when the session began; only a person can mend that, by putting it there and sealing anew: checkrein seal"
        );
        return Report::inconclusive(InconclusiveCause::MissingFile, Retryability::No, why);
    };
    let message = job.message.map(str::to_owned);
    if target == Target::Message && message.is_none() {
        let why = "it judges the final message, which is there at a stop only";
        return Report::inconclusive(InconclusiveCause::Internal, Retryability::Yes, why);
    }
    let form = target.clone();
    let name = schema.clone();
    let budget = Arc::<Budget>::default();
    let ours = budget.clone();
    let root = job.root.to_owned();
    // A file is opened there as well: a file system that does not answer takes only its time.
    let ended = bounded::within(job, &budget, move || {
        let source = match &form {
            Target::File(name) => target::read(&root, name),
            Target::Message => target::message(&message.unwrap_or_default()),
        };
        let source = match source {
            Ok(source) => source,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let compiled = validator::compile(&name, &text, ours)?;
        let document = document::read(&form, source);
        Ok::<_, String>(document.map(|document| problems::problems(&compiled, &document)))
    });
    match ended {
        Ended::Done(Ok(Ok(Ok(problems)))) if problems.is_empty() => Report {
            excerpt: format!("{target} fits {schema}"),
            ..plain(Verdict::Pass)
        },
        Ended::Done(Ok(Ok(Ok(problems)))) => failed(&target, &schema, problems, job),
        Ended::Done(Ok(Ok(Err(_)))) => Report::inconclusive(
            InconclusiveCause::Timeout,
            Retryability::Yes,
            format!("{schema} asks more of {target} than can be answered: make it simpler"),
        ),
        Ended::Done(Ok(Err(unfit))) => refused(&target, unfit, &schema),
        Ended::Done(Err(what)) => {
            Report::inconclusive(InconclusiveCause::Internal, Retryability::No, what)
        }
        Ended::Timeout => Report::inconclusive(
            InconclusiveCause::Timeout,
            Retryability::Yes,
            format!("not judged after {} ms", job.spec.timeout_ms),
        ),
        Ended::ReplyDeadline => Report::inconclusive(
            InconclusiveCause::ReplyDeadline,
            Retryability::Yes,
            "cut: the agent had to be answered",
        ),
        Ended::Cancelled => Report::inconclusive(
            InconclusiveCause::ReplyDeadline,
            Retryability::Yes,
            "cut: Checkrein was told to stop",
        ),
        Ended::Lost(what) => {
            Report::inconclusive(InconclusiveCause::Crash, Retryability::Yes, what)
        }
    }
}

/// It is not there, or is nothing that a schema could be about.
fn refused(target: &Target, unfit: Unfit, schema: &str) -> Report {
    let message = format!("{}; what is wanted is described in {schema}", unfit.what);
    Report {
        findings: vec![Finding {
            id: format!("{} {}", target.name(), unfit.id),
            file: target.file(),
            line: unfit.line,
            rule: None,
            message,
            state: FindingBaselineState::New,
        }],
        findings_total: 1,
        excerpt: unfit.what,
        ..plain(Verdict::Fail)
    }
}

fn failed(target: &Target, schema: &str, problems: Vec<Problem>, job: &Job<'_>) -> Report {
    let total = problems.len();
    let excerpt = format!("{target} does not fit {schema} (findings: {total})");
    let findings: Vec<Finding> = problems
        .into_iter()
        .map(|problem| Finding {
            id: problem.id,
            file: target.file(),
            line: problem.line,
            rule: Some(problem.keyword),
            message: problem.message,
            state: FindingBaselineState::New,
        })
        .collect();
    let mut report = Report {
        findings_total: u32::try_from(total).unwrap_or(u32::MAX),
        excerpt,
        ..plain(Verdict::Fail)
    };
    if total > MAX_FINDINGS {
        let lines: String = findings.iter().map(line).collect();
        let bytes = (job.redact)(lines.as_bytes()).unwrap_or_else(|| lines.into_bytes());
        match logs::keep(job, &bytes) {
            Ok(log) => {
                report.log = Some(log);
                report.output_bytes = bytes.len() as u64;
            }
            Err(why) => report.excerpt.push_str(&format!(
                "\nthe full list of findings could not be kept: {why}"
            )),
        }
    }
    report.findings = findings.into_iter().take(MAX_FINDINGS).collect();
    report
}

fn line(finding: &Finding) -> String {
    let file = finding.file.as_deref().unwrap_or("message");
    let rule = finding.rule.as_deref().unwrap_or_default();
    match finding.line {
        Some(line) => format!("{file}:{line}: {rule}: {}\n", finding.message),
        None => format!("{file}: {rule}: {}\n", finding.message),
    }
}

fn plain(verdict: Verdict) -> Report {
    Report {
        verdict,
        cause: None,
        ..Report::inconclusive(
            InconclusiveCause::Internal,
            Retryability::Yes,
            String::new(),
        )
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
