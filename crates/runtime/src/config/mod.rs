//! Compiles config texts, each with the name of its source, into a policy. Nothing here looks for
//! files: a front door finds them, since it alone knows the environment, and hands over their text.
//!
//! The person's own file can only tighten what the repo's says.

mod config_bundle;
mod config_document;
mod config_file;
mod config_keys;
mod goal;
mod human_verifier;
mod judge_verifier;
mod loops;
mod middleware;
mod policy_bounds;
mod profile;
mod schema_verifier;
mod second_model;
mod tighten;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_core::accept::{AcceptExpr, AcceptExpressionError};
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{
    ApprovalSettings, Policy, SessionCaps, Stance, StancePolicy, SubagentPolicy, TaskCaps,
    TokenBudgetSettings, VerdictSubjectKind, VerifierSpec, VerifierTier,
};

use serde::{Deserialize, Serialize};

pub use config_bundle::ConfigWithNamedFiles;
use config_document::ParsedConfigDocument;
pub use config_document::{ConfigMistake, TextPosition};
pub use config_file::ConfigDuration;
use config_file::{
    CapsConfigTable, DeserializedConfigFile, SessionCapsConfigTable, TokenBudgetConfigTable,
    VerifierConfigTable,
};
pub use config_keys::{
    AllowedConfigWord, ConfigKeySpec, ConfigValueKind, KEYS, PersonalConfigKeyPermission,
};
pub use goal::Goal;
pub use loops::loop_policy_of_named_preset;
pub use profile::{ProfileRequest, RequestedConfigProfile};

/// The defaults as a commented file, written from the table of keys: also the manual.
pub const DEFAULTS: &str = include_str!("defaults.toml");

/// A config text with its name for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedConfigText {
    /// Path or other name, for messages; `rules` globs are relative to its folder.
    pub name: PathBuf,
    /// Its text.
    pub text: String,
}

/// The warning where a cost cap cannot be applied.
const NO_COST: &str = "cost_usd is not applied behind hooks: they are not told what an agent costs";

/// What drives the task: `run` and the library have tighter defaults and exactly one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskDriverKind {
    /// An agent's hook.
    Hook,
    /// `checkrein run`, or the library.
    Run,
}

/// A compiled policy and what a person should be told about its sources.
#[derive(Debug, Clone)]
pub struct CompiledPolicy {
    /// The policy.
    pub policy: Policy,
    /// What is kept of the past. Not part of the policy, since it decides nothing.
    pub retention: RetentionLimits,
    /// Warnings about the sources, for a person.
    pub warnings: Vec<String>,
    /// The texts it was compiled from.
    pub sources: PolicySourceTexts,
    /// The profile that it was compiled under.
    pub profile: RequestedConfigProfile,
}

/// The texts that a policy is compiled from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySourceTexts {
    /// The repo's config.
    pub repo: Option<ConfigWithNamedFiles>,
    /// The person's own.
    pub person: Option<ConfigWithNamedFiles>,
}

/// Why a config cannot be used: what, where, what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The mistakes of a file: at least one, in the order of their lines.
    #[error("{}", config_document::ConfigMistakesDisplay(.name, .mistakes))]
    Mistakes {
        /// Which file.
        name: PathBuf,
        /// What is wrong in it.
        mistakes: Vec<ConfigMistake>,
    },
    /// A bad value that a host gives in place of a config.
    #[error("{name}: {key} {what}", name = .name.display())]
    Value {
        /// Whose.
        name: PathBuf,
        /// The key.
        key: String,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// A config file is there and cannot be read.
    #[error("{name}: cannot be read: {source}", name = .name.display())]
    Unreadable {
        /// Which file.
        name: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The record of held configs, or of approved ones, cannot be read.
    #[error("{name}: cannot be read: {source}; a person mends it by: checkrein seal", name = .name.display())]
    StateFile {
        /// Which file of the state folder.
        name: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A rules file cannot be found or read.
    #[error("{name}: {what}", name = .name.display())]
    RulesFile {
        /// Which file or pattern.
        name: PathBuf,
        /// Why, and what to do.
        what: String,
    },
    /// A rules file cannot be compiled.
    #[error(transparent)]
    Rules(#[from] checkrein_execpolicy::RulesCompileError),
}

impl ConfigError {
    /// Whether a person wrote the mistake, in contrast to a file that Checkrein keeps.
    pub fn is_mistake_in_config(&self) -> bool {
        match self {
            Self::Mistakes { .. }
            | Self::Value { .. }
            | Self::Unreadable { .. }
            | Self::RulesFile { .. }
            | Self::Rules(_) => true,
            Self::StateFile { .. } => false,
        }
    }

    /// Adds what is suspect in the files that the config names, since it may be the cause.
    fn config_error_with_warnings(self, suspect: &[String]) -> Self {
        match self {
            Self::Mistakes { name, mut mistakes } => {
                mistakes.extend(suspect.iter().map(|what| ConfigMistake {
                    at: None,
                    key: String::new(),
                    what: what.clone(),
                }));
                Self::Mistakes { name, mistakes }
            }
            other => other,
        }
    }
}

/// Compiles the repo's config and the person's own, reading the rules files they name.
///
/// # Errors
/// Returns the mistakes of the first file that has any; a config with a mistake is never half used.
pub fn compile_repo_and_personal_config(
    repo: Option<&NamedConfigText>,
    person: Option<&NamedConfigText>,
    driver: TaskDriverKind,
) -> Result<CompiledPolicy, ConfigError> {
    let repo = repo
        .cloned()
        .map(ConfigWithNamedFiles::gather_files_named_by_config)
        .transpose()?;
    let person = person
        .cloned()
        .map(ConfigWithNamedFiles::gather_files_of_personal_config)
        .transpose()?;
    compile_gathered_configs(
        repo.as_ref(),
        person.as_ref(),
        driver,
        ProfileRequest::Plain,
    )
}

/// Compiles texts that were read before, under a profile. No file is read.
///
/// # Errors
/// Returns the mistakes of the first file that has any.
pub fn compile_gathered_configs(
    repo: Option<&ConfigWithNamedFiles>,
    person: Option<&ConfigWithNamedFiles>,
    driver: TaskDriverKind,
    profile: ProfileRequest<'_>,
) -> Result<CompiledPolicy, ConfigError> {
    // Both files are parsed first: a mistake in either is reported before anything is compiled.
    let document = match repo {
        Some(gathered) => gathered.parse_config_document()?,
        None => ParsedConfigDocument::empty_config_document(),
    };
    let own = person
        .map(ConfigWithNamedFiles::parse_personal_config)
        .transpose()?;
    // Without a config of the repo there is no profile that could be misnamed.
    if let (ProfileRequest::Named(wanted), Some(_)) = (profile, repo) {
        profile::require_existing_config_profile(wanted, &document, own.as_ref())?;
    }
    // The repo's values: the built-in defaults of this driver, the file, then the profile.
    let document = document.with_config_profile(profile);
    let values = document.merge_over_base_config(config_keys::default_config_values(driver));
    let file = document.deserialize_config_table(values.clone())?;
    let mut rules = Vec::new();
    if let Some(gathered) = repo {
        rules.extend(gathered.rules_files_matching_patterns(&document, &file)?);
    }
    let mut warnings = Vec::new();
    // JSON Schema allows unknown keywords, so they are a warning and no mistake.
    for schema in repo.map_or(&[][..], |repo| &repo.schemas) {
        let name = schema.name.display().to_string();
        warnings.extend(
            checkrein_verifiers::SchemaVerifier::unknown_schema_keyword_warnings(
                &name,
                &schema.text,
            ),
        );
    }
    let policy = build_policy_from_config(&document, &file, repo, driver);
    let mut policy = policy.map_err(|error| error.config_error_with_warnings(&warnings))?;
    let mut bounds = checkrein_execpolicy::EffectPolicy {
        // A person's own file only tightens: what the repo's does not switch off stays.
        forbids_destruction: file.policy.rules.is_none(),
        ..checkrein_execpolicy::EffectPolicy::default()
    };
    policy_bounds::tighten_effect_policy_by_config(&mut bounds, &document, &file)?;
    let mut retention = RetentionLimits::retention_from_config_file(&file);
    // The person's file is read over the repo's values: what it does not set changes nothing.
    if let (Some(gathered), Some(own)) = (person, own) {
        let own = own.with_config_profile(profile);
        let file = own.deserialize_config_table(
            own.merge_over_base_config(tighten::repo_values_without_additive_keys(values)),
        )?;
        rules.extend(gathered.rules_files_matching_patterns(&own, &file)?);
        tighten::tighten_policy_by_person_config(&mut policy, &own, &file)?;
        policy_bounds::tighten_effect_policy_by_config(&mut bounds, &own, &file)?;
        // How much of the disk is used is up to the person.
        retention = RetentionLimits::retention_from_config_file(&file);
    }
    let files: Vec<(&str, &str)> = rules
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    policy.rules = checkrein_execpolicy::compile_execpolicy_rules_files(&files)?
        .with_effect_policy(bounds)
        .rules_to_json();
    if driver == TaskDriverKind::Hook
        && (policy.caps.cost.is_some() || policy.session_caps.cost.is_some())
    {
        warnings.push(NO_COST.to_owned());
    }
    Ok(CompiledPolicy {
        policy,
        retention,
        warnings,
        sources: PolicySourceTexts {
            repo: repo.cloned(),
            person: person.cloned(),
        },
        profile: profile.into(),
    })
}

/// Returns name and text of the rules files that these configs name, in the order in which they
/// count.
///
/// # Errors
/// If a config cannot be used, or names no file.
pub fn rules_file_texts(
    repo: Option<&ConfigWithNamedFiles>,
    person: Option<&ConfigWithNamedFiles>,
    profile: ProfileRequest<'_>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut rules = Vec::new();
    let documents = [
        repo.map(|gathered| (gathered, gathered.parse_config_document())),
        person.map(|gathered| (gathered, gathered.parse_personal_config())),
    ];
    // The repo's rules before the person's, in the order in which they are compiled.
    for (gathered, document) in documents.into_iter().flatten() {
        let document = document?.with_config_profile(profile);
        let file = document
            .deserialize_config_table(document.merge_over_base_config(
                config_keys::default_config_values(TaskDriverKind::Hook),
            ))?;
        rules.extend(gathered.rules_files_matching_patterns(&document, &file)?);
    }
    Ok(rules)
}

/// Adds files and folders that no command and no tool of a session with this policy may write.
pub fn protect_paths_in_policy(policy: &mut Policy, paths: Vec<String>) {
    // Rules that were just compiled can always be read.
    if let Ok(rules) = checkrein_execpolicy::RuleSet::deserialize_rule_set(&policy.rules) {
        policy.rules = rules.with_protected_paths(paths).rules_to_json();
    }
}

/// Sets where the tree of a session with this policy lies, since rules judge paths by their text.
/// If no rule depends on it, it makes no difference and is not stored.
pub fn set_policy_root(policy: &mut Policy, root: &Path) {
    let Ok(rules) = checkrein_execpolicy::RuleSet::deserialize_rule_set(&policy.rules) else {
        return;
    };
    if let Some(root) = root.to_str()
        && rules.rules_depend_on_project_location()
    {
        policy.rules = rules
            .with_project_roots(vec![root.to_owned()])
            .rules_to_json();
    }
}

/// What is kept of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// A session may be removed if nothing has happened in it for this long.
    pub keep_ms: u64,
    /// Above this size the oldest sessions are removed.
    pub max_bytes: u64,
}

impl Default for RetentionLimits {
    fn default() -> Self {
        let file = ParsedConfigDocument::empty_config_document()
            .deserialize_config_table(config_keys::default_config_values(TaskDriverKind::Hook));
        // If the built-in defaults could not be read, nothing would be removed.
        file.map_or(
            Self {
                keep_ms: u64::MAX,
                max_bytes: u64::MAX,
            },
            |file| Self::retention_from_config_file(&file),
        )
    }
}

impl RetentionLimits {
    fn retention_from_config_file(file: &DeserializedConfigFile) -> Self {
        Self {
            keep_ms: file.store.keep.ms,
            max_bytes: file.store.max_size.bytes,
        }
    }
}

fn build_policy_from_config(
    at: &ParsedConfigDocument,
    file: &DeserializedConfigFile,
    gathered: Option<&ConfigWithNamedFiles>,
    driver: TaskDriverKind,
) -> Result<Policy, ConfigError> {
    let verifiers = compile_verifiers(at, &file.verifier, gathered)?;
    let known: BTreeSet<VerifierName> = verifiers.iter().map(|spec| spec.name.clone()).collect();
    let accept = match &file.accept {
        Some(text) => AcceptExpr::parse(text, &known).map_err(|error| {
            let known = match error {
                AcceptExpressionError::Unknown(_) => known_verifiers_hint(&known),
                _ => String::new(),
            };
            at.config_value_mistake("accept", format!("= \"{text}\": {error}{known}"))
        })?,
        // Without `accept` everything is required that is not advisory, except judges, whose word
        // is only a model's testimony.
        None => AcceptExpr::All(
            verifiers
                .iter()
                .filter(|spec| !spec.advisory && spec.tier != VerifierTier::Judge)
                .map(|spec| AcceptExpr::Verifier(spec.name.clone()))
                .collect(),
        ),
    };
    // Three kinds of verifier cannot be required: advisory ones, judges that never read the main
    // conversation, and judges whose verdict must have no effect.
    if let Some(spec) = verifiers
        .iter()
        .find(|spec| spec.advisory && accept.verifiers_in_accept_expression().contains(&spec.name))
    {
        let what = format!(
            "names '{}', which is advisory and can never be required",
            spec.name
        );
        return Err(at.config_value_mistake("accept", what));
    }
    let aside = |spec: &&VerifierSpec| {
        spec.tier == VerifierTier::Judge
            && !judge_verifier::does_judge_cover_main_conversation(spec)
    };
    let meant = |spec: &&VerifierSpec| accept.verifiers_in_accept_expression().contains(&spec.name);
    if let Some(spec) = verifiers.iter().filter(aside).find(meant) {
        let what = format!(
            "names '{}', which does not read the main conversation: add \"main\" to its surfaces",
            spec.name
        );
        return Err(at.config_value_mistake("accept", what));
    }
    let shadow = |spec: &&VerifierSpec| spec.judge.is_some_and(|terms| terms.shadow);
    let named = |spec: &&VerifierSpec| accept.verifiers_in_accept_expression().contains(&spec.name);
    if let Some(spec) = verifiers.iter().filter(shadow).find(named) {
        let what = format!(
            "names '{}', whose mode is \"shadow\": nothing may depend on it",
            spec.name
        );
        return Err(at.config_value_mistake("accept", what));
    }
    Ok(Policy {
        goal: file.goal.clone(),
        accept,
        verify_on: file.verify_on,
        caps: task_caps_from_config(&file.caps),
        session_caps: session_caps_from_config(&file.session_caps),
        subagents: SubagentPolicy {
            max_iterations: Some(file.subagents.max_iterations),
            verify: file.subagents.verify,
        },
        token_budget: token_budget_from_table(&file.token_budget),
        loops: loops::loop_policy_from_config(at, &file.loops)?,
        stance: StancePolicy {
            tool: file.stance.tool,
            stop: file.stance.stop,
        },
        // Compiled by the caller, together with the person's rules.
        rules: String::new(),
        approval: file.policy.approval,
        approvals: compile_approval_policy(at, file)?,
        ask_person_without_change: verifiers
            .iter()
            .any(|spec| spec.tier == VerifierTier::Person),
        veto: second_model::compile_veto_policy(at, &file.veto)?,
        progress: second_model::compile_progress_policy(at, &file.progress)?,
        middleware: middleware::compile_middleware_layers(at, &file.middleware, &file.detector)?,
        verifiers,
        single_task: driver == TaskDriverKind::Run,
        verified_notice: file.ui.verified,
        config_error: None,
    })
}

fn compile_approval_policy(
    at: &ParsedConfigDocument,
    file: &DeserializedConfigFile,
) -> Result<ApprovalSettings, ConfigError> {
    let notify = file.approvals.notify.as_deref();
    if notify.is_some_and(|command| command.trim().is_empty()) {
        let what = "is empty; write the command, or leave it out";
        return Err(at.config_value_mistake("approvals.notify", what));
    }
    Ok(ApprovalSettings {
        expires_ms: file.approvals.expires.ms,
        notify: notify.map(str::to_owned),
    })
}

fn known_verifiers_hint(known: &BTreeSet<VerifierName>) -> String {
    let known: Vec<&str> = known.iter().map(VerifierName::as_str).collect();
    match known.as_slice() {
        [] => "; there is no [[verifier]]".to_owned(),
        known => format!("; known: {}", known.join(", ")),
    }
}

fn task_caps_from_config(table: &CapsConfigTable) -> TaskCaps {
    TaskCaps {
        token_budget: Some(table.token_budget),
        wall_clock_ms: Some(table.wall_clock.ms),
        tool_calls: Some(table.tool_calls),
        max_iterations: Some(table.max_iterations),
        attempts: saturate_u32(table.attempts),
        continues: saturate_u32(table.continues),
        cost: table.cost_usd.map(dollars_to_millionths),
    }
}

fn session_caps_from_config(table: &SessionCapsConfigTable) -> SessionCaps {
    SessionCaps {
        token_budget: table.token_budget,
        wall_clock_ms: table.wall_clock.map(|span| span.ms),
        tool_calls: table.tool_calls,
        max_iterations: table.max_iterations,
        continues: table.continues.map(saturate_u32),
        cost: table.cost_usd.map(dollars_to_millionths),
    }
}

fn token_budget_from_table(table: &TokenBudgetConfigTable) -> TokenBudgetSettings {
    TokenBudgetSettings {
        threshold_permille: to_permille(table.threshold),
        diminishing_tokens: table.diminishing_tokens,
        diminishing_rounds: saturate_u32(table.diminishing_rounds),
        mode: table.mode,
    }
}

/// A count that is kept in 32 bits.
fn saturate_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A share in thousandths. The table of keys has checked its range.
fn to_permille(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

/// A sum in millionths of a dollar. The table of keys has checked its range.
fn dollars_to_millionths(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

/// Compiles all verifiers, or reports what is wrong with each that cannot be used.
fn compile_verifiers(
    at: &ParsedConfigDocument,
    tables: &[VerifierConfigTable],
    gathered: Option<&ConfigWithNamedFiles>,
) -> Result<Vec<VerifierSpec>, ConfigError> {
    let mut specs = Vec::new();
    let mut all = Vec::new();
    // Every verifier is tried, so that one attempt shows the mistakes of all.
    for table in tables {
        match compile_verifier(at, table, gathered) {
            Ok(spec) => specs.push(spec),
            Err(ConfigError::Mistakes { mistakes, .. }) => all.extend(mistakes),
            Err(other) => return Err(other),
        }
    }
    if all.is_empty() {
        return Ok(specs);
    }
    Err(ConfigError::Mistakes {
        name: at.name.clone(),
        mistakes: all,
    })
}

fn compile_verifier(
    at: &ParsedConfigDocument,
    table: &VerifierConfigTable,
    gathered: Option<&ConfigWithNamedFiles>,
) -> Result<VerifierSpec, ConfigError> {
    let key = |key: &str| format!("verifier '{}': {key}", table.name);
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    // These words are operators of `accept`.
    let reserved = ["and", "or", "of", "not"].contains(&table.name.as_str());
    if table.name.is_empty() || !table.name.chars().all(word) || reserved {
        let what = "must be letters, digits, '_', '-' or '.', and none of the words of accept";
        return Err(at.config_value_mistake(&key("name"), what));
    }
    let kind = table.kind.as_deref().unwrap_or("command");
    // Each kind refuses the keys of the others, so the kind is settled before any key is read.
    if kind == human_verifier::KIND {
        return human_verifier::compile_human_verifier(at, table);
    }
    if kind == judge_verifier::KIND {
        return judge_verifier::compile_judge_verifier(at, table, gathered);
    }
    human_verifier::reject_human_keys_on_other_kinds(at, table)?;
    judge_verifier::reject_judge_keys(at, table)?;
    let Some(implementation) = checkrein_verifiers::find_verifier_kind(kind) else {
        // Not reached: the table of keys names the same kinds.
        return Err(at.config_value_mistake(&key("kind"), format!("cannot be \"{kind}\"")));
    };
    if kind == "schema" {
        return schema_verifier::schema_verifier_spec_from_config(at, table, gathered);
    }
    schema_verifier::forbid_schema_keys_on_other_verifiers(at, table)?;
    let run = table.run.as_deref().unwrap_or_default();
    if run.trim().is_empty() {
        let what = "is missing; write the command to run, run = \"cargo test\"";
        return Err(at.config_value_mistake(&key("run"), what));
    }
    let definition = serde_json::json!({ "run": run, "env": table.env }).to_string();
    implementation
        .validate_verifier_definition(&definition)
        .map_err(|error| at.config_value_mistake(&key("run"), error.to_string()))?;
    // Compiled only to report a bad pattern with its key.
    for (name, patterns) in [("inputs", &table.inputs), ("outputs", &table.outputs)] {
        for pattern in patterns {
            globset::Glob::new(pattern).map_err(|error| {
                at.config_value_mistake(&key(name), format!("cannot be used: {error}"))
            })?;
        }
    }
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: kind.to_owned(),
        tier: VerifierTier::Hard,
        subject: VerdictSubjectKind::Tree,
        definition,
        inputs: table.inputs.clone(),
        outputs: table.outputs.clone(),
        timeout_ms: table.timeout.map_or(10 * 60_000, |span| span.ms),
        retries: table.retries.map_or(0, saturate_u32),
        advisory: table.advisory,
        stance: table.stance.unwrap_or(Stance::Block),
        judge: None,
    })
}

#[cfg(test)]
mod tests;
