//! Compiles `kind = "human"`: a verifier that asks a person. It is not in the `verifiers` crate,
//! because no process answers.

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};

use super::ConfigError;
use super::config_document::ParsedConfigDocument;
use super::config_file::VerifierConfigTable;
use crate::approvals::HumanVerifierDefinition;

/// The kind's name.
pub(super) const KIND: &str = "human";

pub(super) fn compile_human_verifier(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
) -> Result<VerifierSpec, ConfigError> {
    super::judge_verifier::reject_judge_keys(at, table)?;
    let wrong = |key: &str, what: String| {
        Err(at.config_value_mistake(&format!("verifier '{}': {key}", table.name), what))
    };
    // Keys without an effect are refused: their author would rely on them.
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
        None => VerdictSubjectKind::Tree,
        Some("message") if table.inputs.is_empty() => VerdictSubjectKind::Message,
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
    // A person cannot answer a question that was not asked.
    let ask = table.ask.as_deref().unwrap_or_default().trim();
    if ask.is_empty() {
        let what = "is missing; write what a person is to look at, ask = \"Is the report right?\"";
        return wrong("ask", what.to_owned());
    }
    // Compiled only to report a bad pattern with its key.
    for pattern in &table.inputs {
        if let Err(error) = globset::Glob::new(pattern) {
            return wrong("inputs", error.to_string());
        }
    }
    let definition = HumanVerifierDefinition {
        ask: ask.to_owned(),
        expires_ms: table.expires.map(|span| span.ms),
    };
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: KIND.to_owned(),
        tier: VerifierTier::Person,
        subject,
        definition: serde_json::to_string(&definition).unwrap_or_default(),
        inputs: table.inputs.clone(),
        outputs: Vec::new(),
        // Nothing runs, so there is no time to limit.
        timeout_ms: 0,
        retries: 0,
        advisory: table.advisory,
        stance: table.stance.unwrap_or(Stance::Block),
        judge: None,
    })
}

/// Refuses keys of a human verifier on other kinds.
pub(super) fn reject_human_keys_on_other_kinds(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
) -> Result<(), ConfigError> {
    for (key, there) in [
        ("ask", table.ask.is_some()),
        ("expires", table.expires.is_some()),
    ] {
        if there {
            let key = format!("verifier '{}': {key}", table.name);
            let what = format!("is for kind = \"{KIND}\", which asks a person");
            return Err(at.config_value_mistake(&key, what));
        }
    }
    Ok(())
}
