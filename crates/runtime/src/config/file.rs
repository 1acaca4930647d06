//! The shape of `checkrein.toml`, and the keys of the contract that this build does not act on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// `checkrein.toml`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ConfigFile {
    /// What the task is for; shown in listings.
    pub goal: Option<String>,
    /// What is required: `tests and (lint or typecheck)`, `2 of (a, b, c)`; by default all
    /// verifiers that are not advisory.
    pub accept: Option<String>,
    /// Which stops are verified.
    pub verify_on: Option<VerifyOnText>,
    /// Bounds of one task; whatever is used up first ends it.
    pub caps: CapsTable,
    /// The same over the whole session; a new prompt does not reset them.
    pub session_caps: SessionCapsTable,
    /// Sub-agents.
    pub subagents: SubagentsTable,
    /// Whether going on is still worth its tokens; asked at stops.
    pub token_budget: TokenBudgetTable,
    /// Loop detectors.
    pub loops: LoopsTable,
    /// What to answer when Checkrein itself cannot judge.
    pub stance: StanceTable,
    /// Exec policy.
    pub policy: PolicyTable,
    /// What waits for a person.
    pub approvals: ApprovalsTable,
    /// What a person is told in the agent's screen.
    pub ui: UiTable,
    /// What is kept of the past.
    pub store: StoreTable,
    /// A second model, asked about calls before they run.
    pub veto: VetoTable,
    /// A second model, asked whether the agent gets anywhere.
    pub progress: ProgressCheckTable,
    /// Programs that are asked on the way.
    pub middleware: Vec<MiddlewareTable>,
    /// Verifiers.
    pub verifier: Vec<VerifierTable>,
    /// Other values for other occasions: `--profile`, `CHECKREIN_PROFILE`, or `CI=true`.
    pub profile: BTreeMap<String, ProfileTable>,
}

/// `[profile.NAME]`: overrides any table.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ProfileTable {
    /// What the task is for; shown in listings.
    pub goal: Option<String>,
    /// What is required.
    pub accept: Option<String>,
    /// Which stops are verified.
    pub verify_on: Option<VerifyOnText>,
    /// Bounds of one task; whatever is used up first ends it.
    pub caps: CapsTable,
    /// The same over the whole session; a new prompt does not reset them.
    pub session_caps: SessionCapsTable,
    /// Sub-agents.
    pub subagents: SubagentsTable,
    /// Whether going on is still worth its tokens; asked at stops.
    pub token_budget: TokenBudgetTable,
    /// Loop detectors.
    pub loops: LoopsTable,
    /// What to answer when Checkrein itself cannot judge.
    pub stance: StanceTable,
    /// Exec policy.
    pub policy: PolicyTable,
    /// What waits for a person.
    pub approvals: ApprovalsTable,
    /// What a person is told in the agent's screen.
    pub ui: UiTable,
    /// What is kept of the past.
    pub store: StoreTable,
    /// A second model, asked about calls before they run.
    pub veto: VetoTable,
    /// A second model, asked whether the agent gets anywhere.
    pub progress: ProgressCheckTable,
    /// Programs that are asked on the way: those of a known name are changed, others added.
    pub middleware: Vec<MiddlewareTable>,
    /// Verifiers: those of a known name are changed, others added.
    pub verifier: Vec<VerifierTable>,
}

/// `verify_on`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyOnText {
    /// A first stop that changed nothing runs nothing.
    Change,
    /// Every stop is verified.
    Always,
}

/// `[caps]`
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct CapsTable {
    /// Output tokens, thinking included, sub-agents too.
    pub token_budget: Option<i64>,
    /// The agent's time from prompt to stop, without our own checks.
    pub wall_clock: Option<Span>,
    /// Tool requests, denied ones included.
    pub tool_calls: Option<i64>,
    /// Rounds: one response of the model and its tool calls.
    pub max_iterations: Option<i64>,
    /// Stops at which the same failures may be met.
    pub attempts: Option<i64>,
    /// Times the agent is sent back in all.
    pub continues: Option<i64>,
    /// Dollars, of the agent and of models that judge it; where it is known what the agent costs:
    /// `run --model` and the library.
    pub cost_usd: Option<f64>,
}

/// `[session_caps]`: off unless set; a new prompt does not reset them.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct SessionCapsTable {
    /// Output tokens, thinking included, sub-agents too.
    pub token_budget: Option<i64>,
    /// The agent's time from prompt to stop, without our own checks.
    pub wall_clock: Option<Span>,
    /// Tool requests, denied ones included.
    pub tool_calls: Option<i64>,
    /// Rounds: one response of the model and its tool calls.
    pub max_iterations: Option<i64>,
    /// Times the agent is sent back in all.
    pub continues: Option<i64>,
    /// Dollars, of the agent and of models that judge it; where it is known what the agent costs:
    /// `run --model` and the library.
    pub cost_usd: Option<f64>,
}

/// `[subagents]`
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct SubagentsTable {
    /// Rounds of one sub-agent.
    pub max_iterations: Option<i64>,
    /// Whether the stop of a sub-agent is verified.
    pub verify: Option<SubagentVerifyText>,
}

/// `[subagents] verify`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentVerifyText {
    /// Only the main stop is.
    Never,
    /// That of one that wrote something is.
    Writers,
}

/// `[token_budget]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct TokenBudgetTable {
    /// Share of `caps.token_budget`, 0 to 1.
    pub threshold: Option<f64>,
    /// Output tokens between two stops that count as little.
    pub diminishing_tokens: Option<i64>,
    /// Continuations to have given before it does.
    pub diminishing_rounds: Option<i64>,
    /// `limit`: going on is not worth it past the line. `target`, under `run` and in the
    /// library: passing work goes on until the line; hooks take it for `limit`.
    pub mode: Option<String>,
}

/// `[loops]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LoopsTable {
    /// `default`: `generic_repeat` and `global_circuit_breaker`. `seed`: all four detectors.
    /// `off`: none.
    pub preset: Option<String>,
}

/// `[stance]`
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct StanceTable {
    /// At a tool request.
    pub tool: Option<StanceText>,
    /// At a stop.
    pub stop: Option<StanceText>,
}

/// A stance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StanceText {
    /// As if it had failed.
    Block,
    /// As if it had passed.
    Allow,
    /// Leave it to a person.
    Ask,
}

/// `[policy]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct PolicyTable {
    /// Globs of `.rules` files, relative to the config file. One that matches nothing is an error.
    /// `"builtin:default"` is the policy that is shipped.
    pub rules: Vec<String>,
    /// What holds for a command that no rule names; default: `allow`, and with
    /// `builtin:default` among the rules `by-effect`.
    pub unmatched: Option<UnmatchedText>,
    /// Code that is not read before it runs, where effects decide: `make`, `npm test`, a script;
    /// default: `allow`.
    pub opaque: Option<OpaqueText>,
    /// Globs of paths, from the top of the project, that no tool writes.
    pub protect: Vec<String>,
    /// When a person is asked about a tool call; see `docs/approvals.md`.
    pub approval: Option<ApprovalText>,
}

/// `policy.unmatched`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmatchedText {
    /// Left to the agent's own rules.
    Allow,
    /// A person is asked.
    Prompt,
    /// Ordinary work goes on; what destroys, reaches beyond the project or is not known is asked
    /// about.
    ByEffect,
}

/// `policy.opaque`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpaqueText {
    /// It goes on.
    Allow,
    /// A person is asked.
    Prompt,
}

/// `[policy] approval`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalText {
    /// About what the rules say `prompt` to.
    OnRequest,
    /// About nothing: `prompt` is a refusal.
    Never,
    /// About everything that is not known to only look.
    Always,
}

/// `[approvals]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ApprovalsTable {
    /// How long a question waits for a person, and how long an answer holds; 30 days at most.
    pub expires: Option<Span>,
    /// A command that tells a person that something waits: `CHECKREIN_APPROVAL` is its id, the
    /// rest comes on stdin. Nobody waits for it. It runs in the person's home folder, with a
    /// clean environment; one in the person's own config takes the place of the repo's.
    pub notify: Option<String>,
}

/// `[ui]`
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct UiTable {
    /// What the agent's screen shows when a task ends verified.
    pub verified: Option<VerifiedText>,
}

/// `[ui] verified`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedText {
    /// Nothing.
    Silent,
    /// One line that names the checks.
    Line,
}

/// `[store]`
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct StoreTable {
    /// How long sessions are kept after the last thing that happened in them.
    pub keep: Option<Span>,
    /// How much may be kept: over it the oldest sessions go.
    pub max_size: Option<Size>,
}

/// `[veto]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct VetoTable {
    /// Whether it is asked at all.
    pub enabled: Option<bool>,
    /// The model, `provider/model`.
    pub model: Option<String>,
    /// Which calls it is asked about.
    pub scope: Option<VetoScope>,
    /// The least confidence with which it can stop or change a call, from 0 to 1.
    pub min_confidence: Option<f64>,
    /// Calls of one task that it is asked about.
    pub max_calls: Option<i64>,
}

/// `[veto] scope`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VetoScope {
    /// Calls that could do harm: whatever is not known for ordinary work on the project's files.
    Risky,
    /// Every call.
    All,
}

/// `[progress]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ProgressCheckTable {
    /// Whether it is asked at all.
    pub enabled: Option<bool>,
    /// The model, `provider/model`.
    pub model: Option<String>,
    /// A score below this, from 0 to 1, is no progress.
    pub threshold: Option<f64>,
    /// So many of them in a row, and the agent is told.
    pub window: Option<i64>,
    /// Times that it is asked in one task.
    pub max_calls: Option<i64>,
}

/// `[[middleware]]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MiddlewareTable {
    /// Its name, as it is told by.
    pub name: String,
    /// The command; handed to a shell only if it uses the shell's grammar. It gets one JSON
    /// document on stdin and answers with one on stdout: `docs/middleware.md`.
    pub run: String,
    /// Where it is asked.
    pub on: Vec<StageText>,
    /// Lower numbers are asked first; of equal ones the first of the file.
    pub order: Option<i64>,
    /// How long it may take for one answer; 10 minutes at most.
    pub timeout: Option<Span>,
    /// What follows where it cannot judge; by default `block`.
    pub stance: Option<MiddlewareStance>,
}

/// One of the stages of `on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageText {
    /// A session began. It can only look.
    SessionStart,
    /// The agent wants to use a tool.
    BeforeTool,
    /// A tool came back; the result can be rewritten.
    AfterTool,
    /// What later rounds of the conversation have of the result.
    PersistResult,
    /// A round is over. It can only look.
    RoundEnd,
    /// The agent says that it is done.
    BeforeStop,
    /// The session is over. It can only look.
    SessionEnd,
}

/// `stance` of a layer of middleware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MiddlewareStance {
    /// What it cannot judge is refused, a result withheld.
    Block,
    /// It passes, and the ending is then at best `unverified`.
    Allow,
}

/// `[[verifier]]`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifierTable {
    /// Its name, used in `accept`.
    pub name: String,
    /// The kind: `command`, `schema`, `human`, which asks a person, or `judge`, which asks a model.
    pub kind: Option<String>,
    /// The command; handed to a shell only if it uses the shell's grammar.
    pub run: Option<String>,
    /// Of kind `schema`: the file of a JSON Schema, relative to the config file.
    pub schema: Option<String>,
    /// Of kind `schema`: the file that is judged by it, or `"message"` for the final message;
    /// of kind `human` only that.
    pub target: Option<String>,
    /// Of kind `human`: what a person is asked.
    pub ask: Option<String>,
    /// Of kind `human`: how long a person has to answer; by default `approvals.expires`.
    pub expires: Option<Span>,
    /// Of kind `judge`: the model, `provider/model`; by default one of another family than the
    /// agent's.
    pub model: Option<String>,
    /// Of kind `judge`: which answers it reads if `accept` does not name it.
    pub trigger: Option<TriggerText>,
    /// Of kind `judge`: words and phrases that call for it.
    pub keywords: Option<Vec<String>>,
    /// Of kind `judge`: whether it reads answers to heartbeats, all of them.
    pub heartbeat: Option<bool>,
    /// Of kind `judge`: whose answers it reads; by default all.
    pub surfaces: Option<Vec<SurfaceText>>,
    /// Of kind `judge`: answers to one request that it may see, the first included.
    pub max_attempts: Option<i64>,
    /// Of kind `judge`: whether its word counts.
    pub mode: Option<JudgeMode>,
    /// Of kind `judge`: the least score that passes, from 0 to 1.
    pub min_score: Option<f64>,
    /// Of kind `judge`: a file that says what to look at besides, relative to the config file.
    pub rubric: Option<String>,
    /// Globs of what it depends on; an edit elsewhere does not void its verdict. By default
    /// the whole tree.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Globs of what it writes; left out of the tree.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// How long it may run; longer is inconclusive.
    pub timeout: Option<Span>,
    /// How often an inconclusive verdict is tried again, within one stop.
    pub retries: Option<i64>,
    /// Variables it may see although they hold provider keys or an agent's marks.
    #[serde(default)]
    pub env: Vec<String>,
    /// Reported, never required.
    #[serde(default)]
    pub advisory: bool,
    /// What its inconclusive verdict counts as.
    pub stance: Option<StanceText>,
}

/// `trigger` of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerText {
    /// Answers that hold one of its keywords.
    Keywords,
    /// Every answer.
    Always,
}

/// One of the `surfaces` of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SurfaceText {
    /// The conversation with the person.
    Main,
    /// Those of sub-agents.
    Subagent,
}

/// `mode` of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeMode {
    /// What it says counts.
    Enforce,
    /// What would have followed is recorded, and nothing follows.
    Shadow,
}

/// A span of time: `"90s"`, `"10m"`, `"4h"`, `"1h 30m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// In milliseconds.
    pub ms: u64,
}

impl Span {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut ms: u64 = 0;
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, tail) = rest.split_at_checked(digits)?;
            let number: u64 = number.parse().ok()?;
            let word = tail
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(tail.len());
            let (unit, tail) = tail.split_at_checked(word)?;
            let unit_ms = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            ms = ms.checked_add(number.checked_mul(unit_ms)?)?;
            rest = tail.trim_start();
        }
        Some(Self { ms })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Written {
            parse: Span::parse,
            expected: "a span of time; write it as \"90s\", \"10m\" or \"4h\"",
        })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^([0-9]+(ms|s|m|min|h|d) ?)+$",
            "description": "A span of time: 90s, 10m, 4h, 1h 30m."
        })
    }
}

/// Reads a text form, and says what it is where there is something else.
struct Written<T> {
    parse: fn(&str) -> Option<T>,
    expected: &'static str,
}

impl<T> serde::de::Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format!("'{text}' is not {}", self.expected)))
    }
}

/// A size: `"500MB"`, `"2GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// In bytes.
    pub bytes: u64,
}

impl Size {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at_checked(digits)?;
        let unit: u64 = match unit.trim_start() {
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
        Some(Self { bytes })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Written {
            parse: Size::parse,
            expected: "a size; write it as \"500MB\" or \"2GB\"",
        })
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[0-9]+ ?(kB|KB|MB|GB)$",
            "description": "A size: 500MB, 2GB."
        })
    }
}

/// What the contract names and this build does not act on. Naming one is an error:
/// a key that is silently ignored is a check that silently does not run.
pub(super) const NOT_YET: &[&str] = &["policy.rewrite", "verifier.report", "verifier.baseline"];

/// Every key this build acts on, as `table.key`.
pub(super) const KNOWN: &[&str] = &[
    "goal",
    "accept",
    "verify_on",
    "caps",
    "caps.token_budget",
    "caps.wall_clock",
    "caps.tool_calls",
    "caps.max_iterations",
    "caps.attempts",
    "caps.continues",
    "caps.cost_usd",
    "session_caps",
    "session_caps.token_budget",
    "session_caps.wall_clock",
    "session_caps.tool_calls",
    "session_caps.max_iterations",
    "session_caps.continues",
    "session_caps.cost_usd",
    "subagents",
    "subagents.max_iterations",
    "subagents.verify",
    "token_budget",
    "token_budget.threshold",
    "token_budget.diminishing_tokens",
    "token_budget.diminishing_rounds",
    "token_budget.mode",
    "loops",
    "loops.preset",
    "stance",
    "stance.tool",
    "stance.stop",
    "policy",
    "policy.rules",
    "policy.unmatched",
    "policy.opaque",
    "policy.protect",
    "policy.approval",
    "approvals",
    "approvals.expires",
    "approvals.notify",
    "ui",
    "ui.verified",
    "store",
    "store.keep",
    "store.max_size",
    "veto",
    "veto.enabled",
    "veto.model",
    "veto.scope",
    "veto.min_confidence",
    "veto.max_calls",
    "progress",
    "progress.enabled",
    "progress.model",
    "progress.threshold",
    "progress.window",
    "progress.max_calls",
    "middleware",
    "middleware.name",
    "middleware.run",
    "middleware.on",
    "middleware.order",
    "middleware.timeout",
    "middleware.stance",
    "verifier",
    "verifier.name",
    "verifier.kind",
    "verifier.run",
    "verifier.schema",
    "verifier.target",
    "verifier.ask",
    "verifier.expires",
    "verifier.model",
    "verifier.trigger",
    "verifier.keywords",
    "verifier.heartbeat",
    "verifier.surfaces",
    "verifier.max_attempts",
    "verifier.mode",
    "verifier.min_score",
    "verifier.rubric",
    "verifier.inputs",
    "verifier.outputs",
    "verifier.timeout",
    "verifier.retries",
    "verifier.env",
    "verifier.advisory",
    "verifier.stance",
];
