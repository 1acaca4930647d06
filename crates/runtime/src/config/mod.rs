//! Text with a source name → a compiled policy. Nothing here looks for files: a front
//! door finds them (it alone knows the environment) and hands their text in.
//!
//! The person's own file can only tighten what the repo says.

mod bounds;
mod file;
mod gathered;
mod goal;
mod human;
mod judge;
mod keys;
mod middleware;
mod profile;
mod schema;
mod second;
mod tighten;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use checkrein_core::accept::{Accept, AcceptError};
use checkrein_core::detectors;
use checkrein_core::ids::{DetectorName, VerifierName};
use checkrein_core::policy::{
    ApprovalMode, Approvals, BudgetMode, Caps, Loops, Policy, SessionCaps, Stance, Stances,
    SubagentVerify, Subagents, SubjectKind, Tier, TokenBudget, VerifiedNotice, VerifierSpec,
    VerifyOn,
};

use serde::{Deserialize, Serialize};

use file::{
    ApprovalText, CapsTable, SessionCapsTable, StanceText, SubagentVerifyText, VerifiedText,
    VerifierTable, VerifyOnText,
};
pub use file::{ConfigFile, Span};
pub use gathered::Gathered;
pub use goal::Goal;
pub use profile::{Asked, Profile};

/// The defaults as a commented file: also the manual.
pub const DEFAULTS: &str = include_str!("defaults.toml");

/// A config text and what to call it in messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path or other name, for messages; `rules` globs are relative to its folder.
    pub name: PathBuf,
    /// Its text.
    pub text: String,
}

/// Said where a cap cannot hold.
const NO_COST: &str = "cost_usd is not applied behind hooks: they are not told what an agent costs";

/// Who drives the task: `run` and the library have tighter defaults and exactly one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// An agent's hook.
    Hook,
    /// `checkrein run`, or the library.
    Run,
}

/// A compiled policy and what a person should be told about its sources.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The policy.
    pub policy: Policy,
    /// What is kept of the past: no part of the policy, since it decides nothing.
    pub retention: Retention,
    /// Unknown keys, with a near match, and what else a person should know of its sources.
    pub warnings: Vec<String>,
    /// The texts it was compiled from.
    pub sources: Sources,
    /// Under which profile.
    pub profile: Asked,
}

/// The texts that a policy is compiled from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The repo's config.
    pub repo: Option<Gathered>,
    /// The person's own.
    pub person: Option<Gathered>,
}

/// Why a config cannot be used: what, where, what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML, or a value of the wrong type.
    #[error("{name}: {message}", name = .name.display())]
    Toml {
        /// Which file.
        name: PathBuf,
        /// The reader's message, with line and column.
        message: String,
    },
    /// A key of the contract that this build does not act on.
    #[error("{name}: this build does not act on '{key}' yet; take it out, so that nothing you rely on is silently missing", name = .name.display())]
    NotYet {
        /// Which file.
        name: PathBuf,
        /// The key.
        key: String,
    },
    /// A value that cannot be meant.
    #[error("{name}: {key} {what}", name = .name.display())]
    Value {
        /// Which file.
        name: PathBuf,
        /// The key.
        key: String,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// `accept` cannot be read.
    #[error("{name}: accept = \"{text}\": {source}{known}", name = .name.display())]
    Accept {
        /// Which file.
        name: PathBuf,
        /// The text.
        text: String,
        /// Why.
        source: AcceptError,
        /// The names that it could mean, where it means none.
        known: String,
    },
    /// Any of these, beside keys that are not known: a misspelt one may be why.
    #[error("{error}\n{}", .unknown.join("\n"))]
    Misspelt {
        /// What cannot be used.
        error: Box<ConfigError>,
        /// What is said of the keys.
        unknown: Vec<String>,
    },
    /// A config file is there and cannot be read.
    #[error("{name}: cannot be read: {source}", name = .name.display())]
    Unreadable {
        /// Which file.
        name: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What goes on although it was edited, or what was approved, cannot be read.
    #[error("{name}: cannot be read: {source}; a person mends it by: checkrein seal", name = .name.display())]
    Kept {
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
    Rules(#[from] checkrein_execpolicy::RulesError),
}

/// Compiles the repo's config and the person's own, reading the rules files they name.
///
/// # Errors
/// The first thing that is wrong; a config with a mistake is never half used.
pub fn compile(
    repo: Option<&Source>,
    person: Option<&Source>,
    driver: Driver,
) -> Result<Compiled, ConfigError> {
    let gather = |source: Option<&Source>| source.cloned().map(Gathered::of).transpose();
    compile_gathered(
        gather(repo)?.as_ref(),
        gather(person)?.as_ref(),
        driver,
        Profile::Plain,
    )
}

/// The same from texts that were read before, under a profile. No file is read.
///
/// # Errors
/// The first thing that is wrong.
pub fn compile_gathered(
    repo: Option<&Gathered>,
    person: Option<&Gathered>,
    driver: Driver,
    profile: Profile<'_>,
) -> Result<Compiled, ConfigError> {
    let mut warnings = Vec::new();
    match compile_noting(repo, person, driver, profile, &mut warnings) {
        Ok(compiled) => Ok(Compiled {
            warnings,
            ..compiled
        }),
        Err(error) => Err(keys::beside(error, warnings)),
    }
}

/// The same; what is said of keys is there when something else is wrong, too.
fn compile_noting(
    repo: Option<&Gathered>,
    person: Option<&Gathered>,
    driver: Driver,
    profile: Profile<'_>,
    warnings: &mut Vec<String>,
) -> Result<Compiled, ConfigError> {
    if let (Profile::Named(wanted), Some(repo)) = (profile, repo) {
        profile::must_be_there(wanted, repo, person)?;
    }
    let nowhere = PathBuf::from("built-in defaults");
    let mut rules = Vec::new();
    let mut bounds = checkrein_execpolicy::Bounds::default();
    let (name, file) = match repo {
        Some(gathered) => {
            let file = read(&gathered.config, profile, warnings)?;
            rules.extend(gathered.rules_of(&file)?);
            (&gathered.config.name, file)
        }
        None => (&nowhere, ConfigFile::default()),
    };
    for schema in repo.map_or(&[][..], |repo| &repo.schemas) {
        let name = schema.name.display().to_string();
        warnings.extend(checkrein_verifiers::Schema::slips(&name, &schema.text));
    }
    let mut policy = policy_of(name, &file, repo, driver)?;
    bounds::add(&mut bounds, name, &file)?;
    let mut retention = Retention::default();
    retention.set(name, &file)?;
    if let Some(gathered) = person {
        let own = read(&gathered.config, profile, warnings)?;
        rules.extend(gathered.rules_of(&own)?);
        tighten::tighten(&mut policy, &gathered.config.name, &own)?;
        bounds::add(&mut bounds, &gathered.config.name, &own)?;
        // How much of a person's disk is used is theirs to say.
        retention.set(&gathered.config.name, &own)?;
    }
    let files: Vec<(&str, &str)> = rules
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    policy.rules = checkrein_execpolicy::compile(&files)?
        .bounded(bounds)
        .to_text();
    let sources = Sources {
        repo: repo.cloned(),
        person: person.cloned(),
    };
    let mut said = Vec::new();
    if driver == Driver::Hook && (policy.caps.cost.is_some() || policy.session_caps.cost.is_some())
    {
        said.push(NO_COST.to_owned());
    }
    Ok(Compiled {
        policy,
        retention,
        warnings: said,
        sources,
        profile: profile.into(),
    })
}

/// Name and text of the rules files that these texts name, in the order in which they count.
///
/// # Errors
/// If a config cannot be used, or names no file.
pub fn rules_files(
    repo: Option<&Gathered>,
    person: Option<&Gathered>,
    profile: Profile<'_>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut rules = Vec::new();
    for gathered in repo.into_iter().chain(person) {
        let file = read(&gathered.config, profile, &mut Vec::new())?;
        rules.extend(gathered.rules_of(&file)?);
    }
    Ok(rules)
}

/// Files and folders that no command and no tool of a session with this policy may write.
pub fn protect(policy: &mut Policy, paths: Vec<String>) {
    // Rules that were just compiled can be read.
    if let Ok(rules) = checkrein_execpolicy::RuleSet::from_text(&policy.rules) {
        policy.rules = rules.protecting(paths).to_text();
    }
}

/// Where the tree of a session with this policy lies: what a path means is judged by its text.
/// Where nothing is judged by effects or protected, that makes no difference and is not kept.
pub fn rooted(policy: &mut Policy, root: &Path) {
    let Ok(rules) = checkrein_execpolicy::RuleSet::from_text(&policy.rules) else {
        return;
    };
    if let Some(root) = root.to_str()
        && rules.reads_paths()
    {
        policy.rules = rules.rooted(vec![root.to_owned()]).to_text();
    }
}

/// What is kept of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Sessions in which nothing has happened for so long may go.
    pub keep_ms: u64,
    /// Over this size the oldest ones go.
    pub max_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            keep_ms: 30 * DAY_MS,
            max_bytes: 500_000_000,
        }
    }
}

impl Retention {
    fn set(&mut self, name: &Path, file: &ConfigFile) -> Result<(), ConfigError> {
        if let Some(keep) = file.store.keep {
            // A task is open for a day at most without anything happening.
            if keep.ms < DAY_MS {
                let what = "must be a day or more: younger sessions may still be open".to_owned();
                return Err(value(name, "store.keep", what));
            }
            self.keep_ms = keep.ms;
        }
        if let Some(size) = file.store.max_size {
            if size.bytes < 1_000_000 {
                return Err(value(
                    name,
                    "store.max_size",
                    "must be 1MB or more".to_owned(),
                ));
            }
            self.max_bytes = size.bytes;
        }
        Ok(())
    }
}

const DAY_MS: u64 = 86_400_000;

/// The config as it reads under this profile.
fn read(
    source: &Source,
    profile: Profile<'_>,
    warnings: &mut Vec<String>,
) -> Result<ConfigFile, ConfigError> {
    let table = table(source)?;
    keys::check(&source.name, &table, warnings)?;
    // With places in the text, where something has the wrong type.
    parse(source)?;
    let table = profile.apply(table);
    table.try_into().map_err(|error| bad_toml(source, &error))
}

fn parse(source: &Source) -> Result<ConfigFile, ConfigError> {
    let table = table(source)?;
    keys::one_bracket(&source.name, &table)?;
    toml::from_str(&source.text).map_err(|error| {
        let mut unknown = Vec::new();
        match keys::check(&source.name, &table, &mut unknown) {
            Err(not_yet) => not_yet,
            Ok(()) => keys::beside(bad_toml(source, &error), unknown),
        }
    })
}

fn table(source: &Source) -> Result<toml::Table, ConfigError> {
    source
        .text
        .parse()
        .map_err(|error| bad_toml(source, &error))
}

fn bad_toml(source: &Source, error: &toml::de::Error) -> ConfigError {
    let mut message = error.to_string().trim_end().to_owned();
    if let Some((key, word)) = error.span().and_then(|span| bare(&source.text, span.start)) {
        // What the reader took the word for would only mislead.
        let place = message.strip_suffix(error.message()).map(str::to_owned);
        message = place.unwrap_or(format!("{message}\n"));
        message.push_str(&format!("text needs quotes: {key} = \"{word}\""));
    }
    ConfigError::Toml {
        name: source.name.clone(),
        message,
    }
}

/// The line at this place, if a word without quotes is its value.
fn bare(text: &str, at: usize) -> Option<(&str, &str)> {
    let (before, after) = text.split_at_checked(at)?;
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let end = after.find('\n').map_or(text.len(), |end| at + end);
    let (key, word) = text.get(line..end)?.split_once('=')?;
    let (key, word) = (key.trim(), word.trim());
    let fits = word.starts_with(char::is_alphabetic)
        && !word.contains(['"', '\'', '#'])
        && !["true", "false", "inf", "nan"].contains(&word);
    fits.then_some((key, word))
}

fn policy_of(
    name: &Path,
    file: &ConfigFile,
    gathered: Option<&Gathered>,
    driver: Driver,
) -> Result<Policy, ConfigError> {
    let verifiers: Vec<VerifierSpec> = file
        .verifier
        .iter()
        .map(|table| verifier(name, table, gathered))
        .collect::<Result<_, _>>()?;
    let mut known = BTreeSet::new();
    for spec in &verifiers {
        if !known.insert(spec.name.clone()) {
            return Err(value(
                name,
                "verifier.name",
                format!("'{}' is used twice", spec.name),
            ));
        }
    }
    let accept = match &file.accept {
        Some(text) => Accept::parse(text, &known).map_err(|source| ConfigError::Accept {
            name: name.to_owned(),
            text: text.clone(),
            known: match source {
                AcceptError::Unknown(_) => names(&known),
                _ => String::new(),
            },
            source,
        })?,
        None => Accept::All(
            verifiers
                .iter()
                .filter(|spec| !spec.advisory && spec.tier != Tier::Judge)
                .map(|spec| Accept::Verifier(spec.name.clone()))
                .collect(),
        ),
    };
    if let Some(spec) = verifiers
        .iter()
        .find(|spec| spec.advisory && accept.names().contains(&spec.name))
    {
        let what = format!(
            "names '{}', which is advisory and can never be required",
            spec.name
        );
        return Err(value(name, "accept", what));
    }
    let aside = |spec: &&VerifierSpec| spec.tier == Tier::Judge && !judge::reads_main(spec);
    let meant = |spec: &&VerifierSpec| accept.names().contains(&spec.name);
    if let Some(spec) = verifiers.iter().filter(aside).find(meant) {
        let what = format!(
            "names '{}', which does not read the main conversation: add \"main\" to its surfaces",
            spec.name
        );
        return Err(value(name, "accept", what));
    }
    let shadow = |spec: &&VerifierSpec| spec.judge.is_some_and(|terms| terms.shadow);
    let named = |spec: &&VerifierSpec| accept.names().contains(&spec.name);
    if let Some(spec) = verifiers.iter().filter(shadow).find(named) {
        let what = format!(
            "names '{}', whose mode is \"shadow\": nothing may depend on it",
            spec.name
        );
        return Err(value(name, "accept", what));
    }
    let subagents = Subagents {
        max_iterations: positive(
            name,
            "subagents.max_iterations",
            file.subagents.max_iterations,
        )?
        .or(Some(150)),
        verify: match file.subagents.verify {
            Some(SubagentVerifyText::Writers) => SubagentVerify::Writers,
            Some(SubagentVerifyText::Never) | None => SubagentVerify::Never,
        },
    };
    Ok(Policy {
        goal: file.goal.clone(),
        accept,
        verify_on: match file.verify_on {
            Some(VerifyOnText::Always) => VerifyOn::Always,
            Some(VerifyOnText::Change) | None => VerifyOn::Change,
        },
        caps: caps(name, &file.caps, driver)?,
        session_caps: session_caps(name, &file.session_caps)?,
        subagents,
        token_budget: token_budget(name, file)?,
        loops: loops(name, file.loops.preset.as_deref().unwrap_or("default"))?,
        stance: Stances {
            tool: file.stance.tool.map_or(Stance::Block, stance),
            stop: file.stance.stop.map_or(Stance::Allow, stance),
        },
        rules: String::new(),
        approval: file
            .policy
            .approval
            .map_or_else(ApprovalMode::default, approval),
        approvals: approvals(name, file)?,
        views: verifiers.iter().any(|spec| spec.tier == Tier::Person),
        veto: second::veto(name, &file.veto)?,
        progress: second::progress(name, &file.progress)?,
        middleware: middleware::layers(name, &file.middleware)?,
        verifiers,
        single_task: driver == Driver::Run,
        verified_notice: file
            .ui
            .verified
            .map_or_else(VerifiedNotice::default, verified_notice),
    })
}

fn verified_notice(text: VerifiedText) -> VerifiedNotice {
    match text {
        VerifiedText::Silent => VerifiedNotice::Silent,
        VerifiedText::Line => VerifiedNotice::Line,
    }
}

fn approval(text: ApprovalText) -> ApprovalMode {
    match text {
        ApprovalText::OnRequest => ApprovalMode::OnRequest,
        ApprovalText::Never => ApprovalMode::Never,
        ApprovalText::Always => ApprovalMode::Always,
    }
}

fn approvals(name: &Path, file: &ConfigFile) -> Result<Approvals, ConfigError> {
    let table = &file.approvals;
    let default = Approvals::default();
    let notify = table.notify.as_deref();
    if notify.is_some_and(|command| command.trim().is_empty()) {
        let what = "is empty; write the command, or leave it out".to_owned();
        return Err(value(name, "approvals.notify", what));
    }
    Ok(Approvals {
        expires_ms: human::expires(name, "approvals.expires", table.expires)?
            .unwrap_or(default.expires_ms),
        notify: notify.map(str::to_owned),
    })
}

fn names(known: &BTreeSet<VerifierName>) -> String {
    let known: Vec<&str> = known.iter().map(VerifierName::as_str).collect();
    match known.as_slice() {
        [] => "; there is no [[verifier]]".to_owned(),
        known => format!("; known: {}", known.join(", ")),
    }
}

fn caps(name: &Path, table: &CapsTable, driver: Driver) -> Result<Caps, ConfigError> {
    let (rounds, wall_clock_ms, calls) = match driver {
        Driver::Hook => (300, 4 * 3_600_000, 1500),
        Driver::Run => (90, 3_600_000, 500),
    };
    let small = |key: &str, number: Option<i64>, default: u32| {
        positive(name, key, number).map(|number| {
            number.map_or(default, |number| u32::try_from(number).unwrap_or(u32::MAX))
        })
    };
    Ok(Caps {
        token_budget: Some(
            positive(name, "caps.token_budget", table.token_budget)?.unwrap_or(1_000_000),
        ),
        wall_clock_ms: Some(
            span(name, "caps.wall_clock", table.wall_clock)?.unwrap_or(wall_clock_ms),
        ),
        tool_calls: Some(positive(name, "caps.tool_calls", table.tool_calls)?.unwrap_or(calls)),
        max_iterations: Some(
            positive(name, "caps.max_iterations", table.max_iterations)?.unwrap_or(rounds),
        ),
        attempts: small("caps.attempts", table.attempts, 3)?,
        continues: small("caps.continues", table.continues, 7)?,
        cost: dollars(name, "caps.cost_usd", table.cost_usd)?,
    })
}

fn session_caps(name: &Path, table: &SessionCapsTable) -> Result<SessionCaps, ConfigError> {
    Ok(SessionCaps {
        token_budget: positive(name, "session_caps.token_budget", table.token_budget)?,
        wall_clock_ms: span(name, "session_caps.wall_clock", table.wall_clock)?,
        tool_calls: positive(name, "session_caps.tool_calls", table.tool_calls)?,
        max_iterations: positive(name, "session_caps.max_iterations", table.max_iterations)?,
        continues: positive(name, "session_caps.continues", table.continues)?
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        cost: dollars(name, "session_caps.cost_usd", table.cost_usd)?,
    })
}

/// Millionths of a dollar.
fn dollars(name: &Path, key: &str, number: Option<f64>) -> Result<Option<u64>, ConfigError> {
    const MOST: f64 = 1e9;
    let Some(dollars) = number else {
        return Ok(None);
    };
    let millionths = (dollars * 1e6).round();
    if !(dollars <= MOST && millionths >= 1.0) {
        let what = "must be more than 0 and at most a thousand million dollars".to_owned();
        return Err(value(name, key, what));
    }
    Ok(Some(millionths as u64))
}

fn token_budget(name: &Path, file: &ConfigFile) -> Result<TokenBudget, ConfigError> {
    let table = &file.token_budget;
    let threshold = table.threshold.unwrap_or(0.9);
    if !(threshold > 0.0 && threshold <= 1.0) {
        return Err(value(
            name,
            "token_budget.threshold",
            "must be above 0 and at most 1".to_owned(),
        ));
    }
    let mode = match table.mode.as_deref() {
        None | Some("limit") => BudgetMode::Limit,
        Some("target") => BudgetMode::Target,
        Some(other) => {
            return Err(value(
                name,
                "token_budget.mode",
                format!("cannot be '{other}'; write \"limit\" or \"target\""),
            ));
        }
    };
    let rounds = positive(
        name,
        "token_budget.diminishing_rounds",
        table.diminishing_rounds,
    )?
    .unwrap_or(3);
    Ok(TokenBudget {
        // The range was just checked, so the product lies in 0..=1000.
        threshold_permille: (threshold * 1000.0).round() as u32,
        diminishing_tokens: positive(
            name,
            "token_budget.diminishing_tokens",
            table.diminishing_tokens,
        )?
        .unwrap_or(500),
        diminishing_rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        mode,
    })
}

/// The detectors of a preset.
///
/// # Errors
/// If there is no such preset, or this build does not have it.
pub fn loops(name: &Path, preset: &str) -> Result<Loops, ConfigError> {
    let all = || {
        detectors::ALL
            .iter()
            .map(|detector| DetectorName::new(detector.name()))
            .collect()
    };
    let named = |names: &[&str]| names.iter().map(|name| DetectorName::new(*name)).collect();
    match preset {
        "default" => Ok(Loops {
            detectors: named(&["generic_repeat", "global_circuit_breaker"]),
            literal_breaker: false,
        }),
        "seed" => Ok(Loops {
            detectors: all(),
            literal_breaker: true,
        }),
        "off" => Ok(Loops {
            detectors: Vec::new(),
            literal_breaker: false,
        }),
        "balanced" | "openclaw" | "hermes" | "gemini" | "openhands" => Err(ConfigError::NotYet {
            name: name.to_owned(),
            key: format!("loops.preset = \"{preset}\""),
        }),
        _ => Err(value(
            name,
            "loops.preset",
            format!("cannot be '{preset}'; write \"default\", \"seed\" or \"off\""),
        )),
    }
}

fn verifier(
    name: &Path,
    table: &VerifierTable,
    gathered: Option<&Gathered>,
) -> Result<VerifierSpec, ConfigError> {
    let key = |key: &str| format!("verifier '{}': {key}", table.name);
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let reserved = ["and", "or", "of", "not"].contains(&table.name.as_str());
    if table.name.is_empty() || !table.name.chars().all(word) || reserved {
        return Err(value(
            name,
            &key("name"),
            "must be letters, digits, '_', '-' or '.', and none of the words of accept".to_owned(),
        ));
    }
    let kind = table.kind.as_deref().unwrap_or("command");
    if kind == "http" {
        return Err(ConfigError::NotYet {
            name: name.to_owned(),
            key: key(&format!("kind = \"{kind}\"")),
        });
    }
    if kind == human::KIND {
        return human::verifier(name, table);
    }
    if kind == judge::KIND {
        return judge::verifier(name, table, gathered);
    }
    human::none_of_its_keys(name, table)?;
    judge::none_of_its_keys(name, table)?;
    let Some(implementation) = checkrein_verifiers::find(kind) else {
        let mut known: Vec<&str> = checkrein_verifiers::ALL
            .iter()
            .map(|verifier| verifier.kind())
            .collect();
        known.push(human::KIND);
        return Err(value(
            name,
            &key("kind"),
            format!("cannot be '{kind}'; this build has: {}", known.join(", ")),
        ));
    };
    if kind == "schema" {
        return schema::verifier(name, table, gathered);
    }
    schema::none_of_its_keys(name, table)?;
    let run = table.run.as_deref().unwrap_or_default();
    if run.trim().is_empty() {
        return Err(value(
            name,
            &key("run"),
            "is missing; write the command to run, run = \"cargo test\"".to_owned(),
        ));
    }
    let definition = serde_json::json!({ "run": run, "env": table.env }).to_string();
    implementation
        .check_definition(&definition)
        .map_err(|error| value(name, &key("definition"), error.to_string()))?;
    for pattern in table.inputs.iter().chain(&table.outputs) {
        globset::Glob::new(pattern)
            .map_err(|error| value(name, &key("inputs/outputs"), error.to_string()))?;
    }
    Ok(VerifierSpec {
        name: VerifierName::new(table.name.as_str()),
        kind: kind.to_owned(),
        tier: Tier::Hard,
        subject: SubjectKind::Tree,
        definition,
        inputs: table.inputs.clone(),
        outputs: table.outputs.clone(),
        timeout_ms: span(name, &key("timeout"), table.timeout)?.unwrap_or(10 * 60_000),
        retries: retries(name, table)?,
        advisory: table.advisory,
        stance: table.stance.map_or(Stance::Block, stance),
        judge: None,
    })
}

fn retries(name: &Path, table: &VerifierTable) -> Result<u32, ConfigError> {
    let key = format!("verifier '{}': retries", table.name);
    let retries = match table.retries {
        None | Some(0) => 0,
        other => positive(name, &key, other)?.unwrap_or(0),
    };
    Ok(u32::try_from(retries).unwrap_or(u32::MAX))
}

fn stance(text: StanceText) -> Stance {
    match text {
        StanceText::Block => Stance::Block,
        StanceText::Allow => Stance::Allow,
        StanceText::Ask => Stance::Ask,
    }
}

fn positive(name: &Path, key: &str, number: Option<i64>) -> Result<Option<u64>, ConfigError> {
    match number.map(u64::try_from) {
        None => Ok(None),
        Some(Ok(number)) if number > 0 => Ok(Some(number)),
        Some(_) => Err(value(
            name,
            key,
            "must be 1 or more; leave it out for the default".to_owned(),
        )),
    }
}

fn span(name: &Path, key: &str, span: Option<Span>) -> Result<Option<u64>, ConfigError> {
    match span {
        None => Ok(None),
        Some(span) if span.ms > 0 => Ok(Some(span.ms)),
        Some(_) => Err(value(
            name,
            key,
            "must be more than no time; leave it out for the default".to_owned(),
        )),
    }
}

fn value(name: &Path, key: &str, what: String) -> ConfigError {
    ConfigError::Value {
        name: name.to_owned(),
        key: key.to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests;
