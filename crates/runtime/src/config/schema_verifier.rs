//! Compiles `[[verifier]] kind = "schema"`: the schema's text is part of the policy, so that it is
//! sealed with it; the verdict depends on the target alone.

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_verifiers::{SchemaVerifier, VerifierKind as _};

use super::config_document::ParsedConfigDocument;
use super::config_file::VerifierConfigTable;
use super::{ConfigError, ConfigWithNamedFiles, saturate_u32};

/// The default timeout, longer than any schema takes.
const TIMEOUT_MS: u64 = 30_000;

pub(super) fn schema_verifier_spec_from_config(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
    gathered: Option<&ConfigWithNamedFiles>,
) -> Result<VerifierSpec, ConfigError> {
    let wrong = |key: &str, what: &str| {
        let key = format!("verifier '{}': {key}", table.name);
        Err(at.config_value_mistake(&key, what))
    };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let Some(schema) = given(&table.schema) else {
        let what = "is missing; name the file of a JSON Schema, schema = \"report.schema.json\"";
        return wrong("schema", what);
    };
    let Some(target) = given(&table.target) else {
        let what = "is missing; name the file that is judged, target = \"out/report.json\", or the final message, target = \"message\"";
        return wrong("target", what);
    };
    for (key, there) in [
        ("run", table.run.is_some()),
        ("env", !table.env.is_empty()),
        ("inputs", !table.inputs.is_empty()),
        ("outputs", !table.outputs.is_empty()),
    ] {
        if there {
            let what = "is for kind = \"command\"; a schema's verdict depends on its target alone";
            return wrong(key, what);
        }
    }
    // A schema file that is missing gives no text, and the verifier can then never pass.
    let definition = serde_json::json!({
        "schema": schema,
        "text": gathered.and_then(|gathered| gathered.schema_text(&schema)),
        "target": target,
    })
    .to_string();
    if let Err(error) = SchemaVerifier.validate_verifier_definition(&definition) {
        return wrong("schema", &format!("cannot be used: {error}"));
    }
    // The target is the only input, so an edit elsewhere does not void the verdict.
    let inputs = SchemaVerifier.files_named_in_definition(&definition);
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: SchemaVerifier.verifier_kind_name().to_owned(),
        tier: VerifierTier::Hard,
        // A target that is no file is the final message.
        subject: match inputs.is_empty() {
            true => VerdictSubjectKind::Message,
            false => VerdictSubjectKind::Tree,
        },
        definition,
        inputs,
        outputs: Vec::new(),
        timeout_ms: table.timeout.map_or(TIMEOUT_MS, |span| span.ms),
        retries: table.retries.map_or(0, saturate_u32),
        advisory: table.advisory,
        stance: table.stance.unwrap_or(Stance::Block),
        judge: None,
    })
}

/// Refuses keys of a schema on other kinds, where they would have no effect.
pub(super) fn forbid_schema_keys_on_other_verifiers(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
) -> Result<(), ConfigError> {
    for (key, there) in [
        ("schema", table.schema.is_some()),
        ("target", table.target.is_some()),
    ] {
        if there {
            let key = format!("verifier '{}': {key}", table.name);
            let what = "is for kind = \"schema\"; add that line".to_owned();
            return Err(at.config_value_mistake(&key, what));
        }
    }
    Ok(())
}
