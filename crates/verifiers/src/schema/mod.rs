//! Implements `kind = "schema"`: validates a file of the tree, or the final message, against a JSON
//! Schema that was sealed with the policy. Markdown is read as its sections first. Each violation
//! is a finding that says where it is, what is there, and what is wanted.

mod bounded_run;
mod budget;
mod definition;
mod document;
mod json;
mod lint;
mod markdown;
mod messages;
mod target;
pub(crate) mod tool_schema;
mod validator;
mod violations;

use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_core::evidence::{
    CheckRetryability, Finding, FindingStatusAgainstBaseline, InconclusiveCause, MAX_FINDINGS,
    Verdict,
};

use crate::{VerifierDefinitionError, VerifierJob, VerifierKind, VerifierReport, logs};
use bounded_run::BoundedClosureOutcome;
use budget::ValidationBudget;
use definition::SchemaVerifierDefinition;
use document::UncheckableDocumentError;
use target::FileOrMessageSchemaTarget;
use violations::SchemaViolation;

/// Largest schema in bytes.
pub const MAX_SCHEMA: usize = 256 * 1024;
/// Largest document in bytes that is judged.
pub(crate) const MAX_DOCUMENT: usize = 1024 * 1024;

/// The `schema` kind.
#[derive(Debug, Clone, Copy)]
pub struct SchemaVerifier;

impl SchemaVerifier {
    /// Returns warnings about keywords of this schema that are most likely misspelt, for its
    /// author.
    pub fn unknown_schema_keyword_warnings(name: &str, text: &str) -> Vec<String> {
        let schema: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let slips = lint::misspelled_schema_keywords(&schema).into_iter();
        slips
            .map(|(word, known)| {
                format!("{name}: unknown keyword '{word}' is ignored; did you mean '{known}'?")
            })
            .collect()
    }
}

impl VerifierKind for SchemaVerifier {
    fn verifier_kind_name(&self) -> &'static str {
        "schema"
    }

    fn validate_verifier_definition(
        &self,
        definition: &str,
    ) -> Result<(), VerifierDefinitionError> {
        let definition = SchemaVerifierDefinition::parse_definition(definition)?;
        // A missing schema file is no error of the config: the check reports it when it runs.
        let Some(text) = definition.text else {
            return Ok(());
        };
        let name = definition.schema;
        let wrong = |what| VerifierDefinitionError::Schema { what };
        match bounded_run::run_on_deep_stack(move || {
            validator::compile_schema(&name, &text, Arc::default()).map(drop)
        }) {
            Ok(compiled) => compiled.map_err(wrong),
            Err(what) => Err(wrong(what.to_owned())),
        }
    }

    fn files_named_in_definition(&self, definition: &str) -> Vec<String> {
        match SchemaVerifierDefinition::parse_definition(definition)
            .map(|definition| definition.target)
        {
            // The target counts even if it is ignored (`out/report.json`): its change must void the
            // verdict.
            Ok(FileOrMessageSchemaTarget::File(name)) => vec![name],
            Ok(FileOrMessageSchemaTarget::Message) | Err(_) => Vec::new(),
        }
    }

    fn run_verifier_job(&self, job: &VerifierJob<'_>) -> VerifierReport {
        let started = Instant::now();
        let mut report = match SchemaVerifierDefinition::parse_definition(&job.spec.definition) {
            Ok(definition) => check_target_against_schema(definition, job),
            Err(error) => VerifierReport::inconclusive_report(
                InconclusiveCause::Internal,
                CheckRetryability::No,
                error.to_string(),
            ),
        };
        report.duration_ms = duration_millis(started.elapsed());
        report
    }
}

fn check_target_against_schema(
    definition: SchemaVerifierDefinition,
    job: &VerifierJob<'_>,
) -> VerifierReport {
    let SchemaVerifierDefinition {
        schema,
        text,
        target,
    } = definition;
    let Some(text) = text else {
        let why = format!(
            "{schema} was not there when the session began; only a person can mend that, by putting it there and sealing anew: checkrein seal"
        );
        return VerifierReport::inconclusive_report(
            InconclusiveCause::MissingFile,
            CheckRetryability::No,
            why,
        );
    };
    let message = job.message.map(str::to_owned);
    if target == FileOrMessageSchemaTarget::Message && message.is_none() {
        let why = "it judges the final message, which is there at a stop only";
        return VerifierReport::inconclusive_report(
            InconclusiveCause::Internal,
            CheckRetryability::Yes,
            why,
        );
    }
    let form = target.clone();
    let name = schema.clone();
    let budget = Arc::<ValidationBudget>::default();
    let ours = budget.clone();
    let root = job.root.to_owned();
    // The file is read on that thread too: a file system that does not respond costs only the
    // check's own time.
    let ended = bounded_run::run_closure_until_deadline(job, &budget, move || {
        let source = match &form {
            FileOrMessageSchemaTarget::File(name) => target::read_document_to_validate(&root, name),
            FileOrMessageSchemaTarget::Message => {
                target::check_final_message_size(&message.unwrap_or_default())
            }
        };
        let source = match source {
            Ok(source) => source,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let compiled = validator::compile_schema(&name, &text, ours)?;
        let document = document::parse_schema_checked_document(&form, source);
        Ok::<_, String>(
            document.map(|document| violations::find_schema_violations(&compiled, &document)),
        )
    });
    match ended {
        BoundedClosureOutcome::Done(Ok(Ok(Ok(problems)))) if problems.is_empty() => {
            VerifierReport {
                excerpt: format!("{target} fits {schema}"),
                ..schema_report_with_verdict(Verdict::Pass)
            }
        }
        BoundedClosureOutcome::Done(Ok(Ok(Ok(problems)))) => {
            schema_mismatch_report(&target, &schema, problems, job)
        }
        // A budget that is spent is no failure of the document: it might fit.
        BoundedClosureOutcome::Done(Ok(Ok(Err(_)))) => VerifierReport::inconclusive_report(
            InconclusiveCause::Timeout,
            CheckRetryability::Yes,
            format!("{schema} asks more of {target} than can be answered: make it simpler"),
        ),
        BoundedClosureOutcome::Done(Ok(Err(unfit))) => {
            uncheckable_document_report(&target, unfit, &schema)
        }
        // The schema was compiled when it was sealed, so this is not the agent's to fix.
        BoundedClosureOutcome::Done(Err(what)) => VerifierReport::inconclusive_report(
            InconclusiveCause::Internal,
            CheckRetryability::No,
            what,
        ),
        BoundedClosureOutcome::Timeout => VerifierReport::inconclusive_report(
            InconclusiveCause::Timeout,
            CheckRetryability::Yes,
            format!("not judged after {} ms", job.spec.timeout_ms),
        ),
        BoundedClosureOutcome::ReplyDeadline => VerifierReport::inconclusive_report(
            InconclusiveCause::ReplyDeadline,
            CheckRetryability::Yes,
            "cut: the agent had to be answered",
        ),
        BoundedClosureOutcome::Cancelled => VerifierReport::inconclusive_report(
            InconclusiveCause::ReplyDeadline,
            CheckRetryability::Yes,
            "cut: Checkrein was told to stop",
        ),
        BoundedClosureOutcome::Lost(what) => VerifierReport::inconclusive_report(
            InconclusiveCause::Crash,
            CheckRetryability::Yes,
            what,
        ),
    }
}

/// Returns the report on a target that is missing or cannot be judged.
fn uncheckable_document_report(
    target: &FileOrMessageSchemaTarget,
    unfit: UncheckableDocumentError,
    schema: &str,
) -> VerifierReport {
    let message = format!("{}; what is wanted is described in {schema}", unfit.what);
    VerifierReport {
        findings: vec![Finding {
            id: format!("{} {}", target.target_document_name(), unfit.id),
            file: target.schema_target_file(),
            line: unfit.line,
            rule: None,
            message,
            state: FindingStatusAgainstBaseline::New,
        }],
        findings_total: 1,
        excerpt: unfit.what,
        ..schema_report_with_verdict(Verdict::Fail)
    }
}

fn schema_mismatch_report(
    target: &FileOrMessageSchemaTarget,
    schema: &str,
    problems: Vec<SchemaViolation>,
    job: &VerifierJob<'_>,
) -> VerifierReport {
    let total = problems.len();
    let excerpt = format!("{target} does not fit {schema} (findings: {total})");
    let findings: Vec<Finding> = problems
        .into_iter()
        .map(|problem| Finding {
            id: problem.id,
            file: target.schema_target_file(),
            line: problem.line,
            rule: Some(problem.keyword),
            message: problem.message,
            state: FindingStatusAgainstBaseline::New,
        })
        .collect();
    let mut report = VerifierReport {
        findings_total: u32::try_from(total).unwrap_or(u32::MAX),
        excerpt,
        ..schema_report_with_verdict(Verdict::Fail)
    };
    if total > MAX_FINDINGS {
        let lines: String = findings.iter().map(format_finding_line).collect();
        // The log goes around the runtime, which redacts the rest of the report.
        let bytes = (job.redact)(lines.as_bytes()).unwrap_or_else(|| lines.into_bytes());
        match logs::write_check_run_log(job, &bytes) {
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

fn format_finding_line(finding: &Finding) -> String {
    let file = finding.file.as_deref().unwrap_or("message");
    let rule = finding.rule.as_deref().unwrap_or_default();
    match finding.line {
        Some(line) => format!("{file}:{line}: {rule}: {}\n", finding.message),
        None => format!("{file}: {rule}: {}\n", finding.message),
    }
}

fn schema_report_with_verdict(verdict: Verdict) -> VerifierReport {
    VerifierReport {
        verdict,
        cause: None,
        ..VerifierReport::inconclusive_report(
            InconclusiveCause::Internal,
            CheckRetryability::Yes,
            String::new(),
        )
    }
}

fn duration_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
