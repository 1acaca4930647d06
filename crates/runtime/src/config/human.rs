//! `kind = "human"`: a verifier that asks a person. None of `verifiers`: who answers is no process.

use std::path::Path;

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Stance, SubjectKind, Tier, VerifierSpec};

use super::file::{Span, VerifierTable};
use super::{ConfigError, span, stance, value};
use crate::approvals::Human;

/// The kind's name.
pub(super) const KIND: &str = "human";

/// An answer that holds for longer is a rule; those are written into rules files.
const LONGEST_MS: u64 = 30 * 24 * 3_600_000;

pub(super) fn verifier(name: &Path, table: &VerifierTable) -> Result<VerifierSpec, ConfigError> {
    super::judge::none_of_its_keys(name, table)?;
    let wrong = |key: &str, what: String| {
        Err(value(
            name,
            &format!("verifier '{}': {key}", table.name),
            what,
        ))
    };
    for (key, there) in [
        ("run", table.run.is_some()),
        ("timeout", table.timeout.is_some()),
        ("retries", table.retries.is_some()),
        ("env", !table.env.is_empty()),
        ("schema", table.schema.is_some()),
        ("outputs", !table.outputs.is_empty()),
    ] {
        if there {
            let what = format!("says nothing to a person; with kind = \"{KIND}\" leave it out");
            return wrong(key, what);
        }
    }
    let subject = match table.target.as_deref() {
        None => SubjectKind::Tree,
        Some("message") if table.inputs.is_empty() => SubjectKind::Message,
        Some("message") => {
            let what = "are files; with target = \"message\" a person is asked about the message";
            return wrong("inputs", what.to_owned());
        }
        Some(_) => {
            let what =
                "of a person can only be \"message\"; name files by inputs = [\"report.md\"]";
            return wrong("target", what.to_owned());
        }
    };
    let ask = table.ask.as_deref().unwrap_or_default().trim();
    if ask.is_empty() {
        let what = "is missing; write what a person is to look at, ask = \"Is the report right?\"";
        return wrong("ask", what.to_owned());
    }
    for pattern in &table.inputs {
        if let Err(error) = globset::Glob::new(pattern) {
            return wrong("inputs", error.to_string());
        }
    }
    let definition = Human {
        ask: ask.to_owned(),
        expires_ms: expires(
            name,
            &format!("verifier '{}': expires", table.name),
            table.expires,
        )?,
    };
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: KIND.to_owned(),
        tier: Tier::Person,
        subject,
        definition: serde_json::to_string(&definition).unwrap_or_default(),
        inputs: table.inputs.clone(),
        outputs: Vec::new(),
        // Nothing runs, and nobody waits.
        timeout_ms: 0,
        retries: 0,
        advisory: table.advisory,
        stance: table.stance.map_or(Stance::Block, stance),
        judge: None,
    })
}

/// Other kinds have none of these keys.
pub(super) fn none_of_its_keys(name: &Path, table: &VerifierTable) -> Result<(), ConfigError> {
    for (key, there) in [
        ("ask", table.ask.is_some()),
        ("expires", table.expires.is_some()),
    ] {
        if there {
            let key = format!("verifier '{}': {key}", table.name);
            let what = format!("is for kind = \"{KIND}\", which asks a person");
            return Err(value(name, &key, what));
        }
    }
    Ok(())
}

/// How long a person has to answer, and how long the answer holds, in milliseconds.
pub(super) fn expires(
    name: &Path,
    key: &str,
    given: Option<Span>,
) -> Result<Option<u64>, ConfigError> {
    match span(name, key, given)? {
        Some(ms) if ms > LONGEST_MS => {
            let what = "is 30d at most; what holds for longer is a rule".to_owned();
            Err(value(name, key, what))
        }
        expires => Ok(expires),
    }
}
