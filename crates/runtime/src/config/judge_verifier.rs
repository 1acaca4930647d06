//! Compiles `[[verifier]] kind = "judge"`: a model that reads the answer. The rubric and the
//! project's rules for agents are part of the policy, so that they are sealed with it.

use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{
    JudgeAttemptsAndShadowMode, Stance, VerdictSubjectKind, VerifierSpec, VerifierTier,
};
use checkrein_verifiers::judge::{
    DEFAULT_KEYWORDS, JudgeDefinition, JudgeTriggerMode, MainOrSubagentConversation,
};
use checkrein_verifiers::{JudgeVerifier, VerifierKind as _};

use super::config_document::ParsedConfigDocument;
use super::config_file::{JudgeEnforcedOrShadow, VerifierConfigTable};
use super::{ConfigError, ConfigWithNamedFiles, saturate_u32, to_permille};

/// The kind's name.
pub(super) const KIND: &str = "judge";

/// How long its model has, unless the config says otherwise.
const TIMEOUT_MS: u64 = 30_000;
/// The least score that passes, unless the config says otherwise, in thousandths.
const MIN_SCORE: u32 = 700;

pub(super) fn compile_judge_verifier(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
    gathered: Option<&ConfigWithNamedFiles>,
) -> Result<VerifierSpec, ConfigError> {
    let key = |key: &str| format!("verifier '{}': {key}", table.name);
    let wrong = |of: &str, what: String| Err(at.config_value_mistake(&key(of), what));
    // Keys without an effect are refused: their author would rely on them.
    for (of, there) in [
        ("run", table.run.is_some()),
        ("env", !table.env.is_empty()),
        ("inputs", !table.inputs.is_empty()),
        ("outputs", !table.outputs.is_empty()),
        ("schema", table.schema.is_some()),
        ("target", table.target.is_some()),
        ("ask", table.ask.is_some()),
        ("expires", table.expires.is_some()),
    ] {
        if there {
            let what = "says nothing to a judge, which reads the answer and what was done for it";
            return wrong(of, format!("{what}; leave it out"));
        }
    }
    let trigger = table.trigger.unwrap_or_default();
    let keywords = match (&table.keywords, trigger) {
        (Some(_), JudgeTriggerMode::Always) => {
            let what = "call for nothing where trigger = \"always\"; leave them out".to_owned();
            return wrong("keywords", what);
        }
        (Some(words), JudgeTriggerMode::Keywords) => {
            let says = |word: &String| word.chars().any(char::is_alphanumeric);
            if !words.iter().all(says) {
                return wrong("keywords", "hold one without a letter or digit".to_owned());
            }
            words.clone()
        }
        (None, JudgeTriggerMode::Always) => Vec::new(),
        (None, JudgeTriggerMode::Keywords) => DEFAULT_KEYWORDS.map(str::to_owned).to_vec(),
    };
    let heartbeat = table.heartbeat.unwrap_or(false);
    // Without keywords only a heartbeat could call for this judge.
    if trigger == JudgeTriggerMode::Keywords && keywords.is_empty() && !heartbeat {
        let what = "are none, so nothing ever calls for it; name some, or trigger = \"always\"";
        return wrong("keywords", what.to_owned());
    }
    let surfaces: Vec<MainOrSubagentConversation> = match &table.surfaces {
        None => vec![
            MainOrSubagentConversation::Main,
            MainOrSubagentConversation::Subagent,
        ],
        Some(named) if named.is_empty() => {
            return wrong("surfaces", "are none; leave the key out for all".to_owned());
        }
        Some(named) => named.clone(),
    };
    let min_score = table.min_score.map_or(MIN_SCORE, to_permille);
    let rubric = match table.rubric.as_deref().map(str::trim) {
        None => None,
        Some("") => return wrong("rubric", "names no file; leave it out".to_owned()),
        // The text was read together with the config, so what is sealed is what was approved.
        Some(file) => match gathered.and_then(|gathered| gathered.schema_text(file)) {
            Some(text) => Some(text.to_owned()),
            None => return wrong("rubric", format!("names '{file}', which is not there")),
        },
    };
    let definition = JudgeDefinition {
        model: table.model.clone(),
        trigger,
        keywords,
        heartbeat,
        surfaces,
        min_score,
        rubric,
        rules: gathered
            .map(ConfigWithNamedFiles::agent_rules_file_texts)
            .unwrap_or_default(),
    };
    let definition = serde_json::to_string(&definition).unwrap_or_default();
    if let Err(error) = JudgeVerifier.validate_verifier_definition(&definition) {
        return wrong("model", error.to_string());
    }
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: KIND.to_owned(),
        tier: VerifierTier::Judge,
        subject: VerdictSubjectKind::Answer,
        definition,
        inputs: Vec::new(),
        outputs: Vec::new(),
        timeout_ms: table.timeout.map_or(TIMEOUT_MS, |span| span.ms),
        retries: table.retries.map_or(0, saturate_u32),
        advisory: table.advisory,
        // A model's word is only testimony, so nothing waits for it where there is none.
        stance: table.stance.unwrap_or(Stance::Allow),
        judge: Some(JudgeAttemptsAndShadowMode {
            max_attempts: table.max_attempts.map_or(3, saturate_u32),
            shadow: table.mode == Some(JudgeEnforcedOrShadow::Shadow),
        }),
    })
}

/// Whether this judge reads the answers that a person gets.
pub(super) fn does_judge_cover_main_conversation(spec: &VerifierSpec) -> bool {
    let judge = serde_json::from_str::<JudgeDefinition>(&spec.definition);
    judge.is_ok_and(|judge| judge.surfaces.contains(&MainOrSubagentConversation::Main))
}

/// Refuses keys of a judge on other kinds, where they would have no effect.
pub(super) fn reject_judge_keys(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
) -> Result<(), ConfigError> {
    for (key, there) in [
        ("model", table.model.is_some()),
        ("trigger", table.trigger.is_some()),
        ("keywords", table.keywords.is_some()),
        ("heartbeat", table.heartbeat.is_some()),
        ("surfaces", table.surfaces.is_some()),
        ("max_attempts", table.max_attempts.is_some()),
        ("mode", table.mode.is_some()),
        ("min_score", table.min_score.is_some()),
        ("rubric", table.rubric.is_some()),
    ] {
        if there {
            let key = format!("verifier '{}': {key}", table.name);
            let what = format!("is for kind = \"{KIND}\", which asks a model");
            return Err(at.config_value_mistake(&key, what));
        }
    }
    Ok(())
}
