//! The table of all keys of `checkrein.toml`. The loader, the defaults, the JSON Schema and the
//! tables in docs/configuration.md are all made from it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use toml::Table;

use super::TaskDriverKind;

/// A key, as `table.key`. Lists of tables are written as one: `verifier.run`.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKeySpec {
    /// Where it stands.
    pub path: &'static str,
    /// What its value can be.
    pub value: ConfigValueKind,
    /// What it is for, in one line of Markdown.
    pub doc: &'static str,
    /// What holds where no file sets it, as TOML.
    pub default: Option<&'static str>,
    /// The same under `run` and in the library, where that differs.
    pub run_default: Option<&'static str>,
    /// A value to show where there is no default, as TOML.
    pub example: Option<&'static str>,
    /// What a person's own file may do with it.
    pub own_file: PersonalConfigKeyPermission,
    /// Its table cannot do without it.
    pub required: bool,
    /// Since which version a build acts on it. `None`: this one does not.
    pub since: Option<&'static str>,
}

/// What the value of a key can be.
#[derive(Debug, Clone, Copy)]
pub enum ConfigValueKind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number from this one on.
    Count(i64),
    /// A whole number that may be negative.
    Order,
    /// A number from 0 to 1.
    Share,
    /// A number above 0, up to 1.
    ShareAboveZero,
    /// A sum of money.
    Dollars,
    /// A span of time, no shorter and no longer than this.
    Span {
        /// As text.
        least: &'static str,
        /// As text.
        most: &'static str,
    },
    /// A size of this many bytes or more, as text.
    Size(&'static str),
    /// One of these words.
    OneOf(&'static [AllowedConfigWord]),
    /// A list of these words.
    AnyOf(&'static [AllowedConfigWord]),
    /// A list of text.
    Texts,
    /// A table: its keys are rows of their own.
    Table,
    /// A list of tables, each with a name.
    Tables,
    /// Tables by a name, each with all keys of the file.
    Profiles,
}

/// A word that a key can have for its value.
#[derive(Debug, Clone, Copy)]
pub struct AllowedConfigWord {
    /// As it is written.
    pub text: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether this build acts on it.
    pub acts: bool,
}

/// What a person's own file may do with a key. It can only tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonalConfigKeyPermission {
    /// Nothing: the key belongs into the repo's file.
    Refused,
    /// The stricter value of both files holds.
    Stricter,
    /// What it says comes on top of what the repo says.
    Adds,
    /// What it says holds.
    Wins,
}

const fn new_config_key_spec(
    path: &'static str,
    value: ConfigValueKind,
    doc: &'static str,
) -> ConfigKeySpec {
    ConfigKeySpec {
        path,
        value,
        doc,
        default: None,
        run_default: None,
        example: None,
        own_file: PersonalConfigKeyPermission::Refused,
        required: false,
        since: Some("0.1.0"),
    }
}

/// A key that only later builds act on.
const fn later_build_key_spec(path: &'static str) -> ConfigKeySpec {
    ConfigKeySpec {
        since: None,
        ..new_config_key_spec(path, ConfigValueKind::Text, "")
    }
}

const fn new_allowed_config_word(text: &'static str, meaning: &'static str) -> AllowedConfigWord {
    AllowedConfigWord {
        text,
        meaning,
        acts: true,
    }
}

const fn new_not_yet_supported_config_word(text: &'static str) -> AllowedConfigWord {
    AllowedConfigWord {
        text,
        meaning: "",
        acts: false,
    }
}

impl ConfigKeySpec {
    const fn with_config_key_default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    const fn with_default_under_checkrein_run(self, default: &'static str) -> Self {
        Self {
            run_default: Some(default),
            ..self
        }
    }

    const fn with_example_value(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    const fn with_personal_config_permission(self, own_file: PersonalConfigKeyPermission) -> Self {
        Self { own_file, ..self }
    }

    const fn as_required_config_key(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// The table that it stands in; empty for the top of the file.
    pub fn table_of_config_key(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// Whether the key stands directly in this table. Asked for every key of a file and every row.
    fn is_key_in_config_table(&self, table: &str) -> bool {
        let name = match table {
            "" => Some(self.path),
            table => self
                .path
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.')),
        };
        // A further dot means a table below this one.
        name.is_some_and(|name| !name.contains('.'))
    }

    /// Its name in that table.
    pub fn key_name_without_table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// Whether it is a table of its own or a list of them.
    pub fn config_key_holds_table(&self) -> bool {
        matches!(
            self.value,
            ConfigValueKind::Table | ConfigValueKind::Tables | ConfigValueKind::Profiles
        )
    }
}

const ANY_SPAN: ConfigValueKind = Span {
    least: "1ms",
    most: "36500d",
};
const ANSWER_SPAN: ConfigValueKind = Span {
    least: "1ms",
    most: "30d",
};

const STANCES: ConfigValueKind = OneOf(&[
    new_allowed_config_word("block", "as if it had failed"),
    new_allowed_config_word("allow", "as if it had passed"),
    new_allowed_config_word("ask", "leave it to a person"),
]);

use ConfigValueKind::{
    AnyOf, Count, Dollars, Flag, OneOf, Order, Profiles, Share, ShareAboveZero, Size, Span,
    Table as OneTable, Tables, Text, Texts,
};
use PersonalConfigKeyPermission::{Adds, Stricter, Wins};

/// Every key of `checkrein.toml`, in the order of the manual.
#[rustfmt::skip] // One row is one key; broken over many lines the table cannot be read.
pub const KEYS: &[ConfigKeySpec] = &[
    new_config_key_spec("goal", Text, "What the task is for; shown in listings.").with_example_value("\"make the build green\""),
    new_config_key_spec("accept", Text, "What is required: `tests and (lint or typecheck)`, `2 of (a, b, c)`; by default all verifiers that are not advisory.")
        .with_example_value("\"tests and (lint or typecheck)\""),
    new_config_key_spec("verify_on", OneOf(&[
        new_allowed_config_word("change", "a first stop that changed nothing runs nothing"),
        new_allowed_config_word("always", "every stop is verified"),
    ]), "Which stops are verified.").with_config_key_default("\"change\"").with_personal_config_permission(Stricter),

    new_config_key_spec("caps", OneTable, "Bounds of one task; whatever is used up first ends it.").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.token_budget", Count(1), "Output tokens, thinking included, sub-agents too.").with_config_key_default("1_000_000").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.wall_clock", ANY_SPAN, "The agent's time from prompt to stop, without our own checks.")
        .with_config_key_default("\"4h\"").with_default_under_checkrein_run("\"1h\"").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.tool_calls", Count(1), "Tool requests, denied ones included.").with_config_key_default("1500").with_default_under_checkrein_run("500").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.max_iterations", Count(1), "Rounds: one response of the model and its tool calls.")
        .with_config_key_default("300").with_default_under_checkrein_run("90").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.attempts", Count(1), "Stops at which the same failures may be met.").with_config_key_default("3").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.continues", Count(1), "Times the agent is sent back in all.").with_config_key_default("7").with_personal_config_permission(Stricter),
    new_config_key_spec("caps.cost_usd", Dollars, "Dollars, of the agent and of models that judge it; where it is known what the agent costs: `run --model` and the library.")
        .with_example_value("5.0").with_personal_config_permission(Stricter),
    later_build_key_spec("caps.preset"),

    new_config_key_spec("session_caps", OneTable, "The same over the whole session, off unless set; a new prompt does not reset them.").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.token_budget", Count(1), "Output tokens, thinking included, sub-agents too.").with_example_value("5_000_000").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.wall_clock", ANY_SPAN, "The agent's time from prompt to stop, without our own checks.").with_example_value("\"12h\"").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.tool_calls", Count(1), "Tool requests, denied ones included.").with_example_value("5000").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.max_iterations", Count(1), "Rounds: one response of the model and its tool calls.").with_example_value("1000").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.continues", Count(1), "Times the agent is sent back in all.").with_example_value("20").with_personal_config_permission(Stricter),
    new_config_key_spec("session_caps.cost_usd", Dollars, "Dollars, of the agent and of models that judge it; where it is known what the agent costs: `run --model` and the library.")
        .with_example_value("20.0").with_personal_config_permission(Stricter),

    new_config_key_spec("subagents", OneTable, "Sub-agents.").with_personal_config_permission(Stricter),
    new_config_key_spec("subagents.max_iterations", Count(1), "Rounds of one sub-agent.").with_config_key_default("150").with_personal_config_permission(Stricter),
    new_config_key_spec("subagents.verify", OneOf(&[
        new_allowed_config_word("never", "only the main stop is"),
        new_allowed_config_word("writers", "that of one that wrote something is"),
    ]), "Whether the stop of a sub-agent is verified.").with_config_key_default("\"never\"").with_personal_config_permission(Stricter),

    new_config_key_spec("token_budget", OneTable, "Whether going on is still worth its tokens; asked at stops."),
    new_config_key_spec("token_budget.threshold", ShareAboveZero, "Share of `caps.token_budget`.").with_config_key_default("0.9"),
    new_config_key_spec("token_budget.diminishing_tokens", Count(1), "Output tokens between two stops that count as little, twice in a row.").with_config_key_default("500"),
    new_config_key_spec("token_budget.diminishing_rounds", Count(1), "Continuations to have given before it does.").with_config_key_default("3"),
    new_config_key_spec("token_budget.mode", OneOf(&[
        new_allowed_config_word("limit", "going on is not worth it past the line"),
        new_allowed_config_word("target", "under `run` and in the library, passing work goes on until the line; hooks take it for `limit`"),
    ]), "What the budget is.").with_config_key_default("\"limit\""),

    new_config_key_spec("loops", OneTable, "Loop detectors.").with_personal_config_permission(Adds),
    new_config_key_spec("loops.preset", OneOf(&[
        new_allowed_config_word("default", "`generic_repeat` and `global_circuit_breaker`, with 10, 20 and 30"),
        new_allowed_config_word("balanced", "eight detectors that count unchanged results, with a ladder for each pattern"),
        new_allowed_config_word("seed", "the four detectors of the seed document, with 10, 20 and 30"),
        new_allowed_config_word("openclaw", "the rules of OpenClaw 2026.9.6, as they are there"),
        new_allowed_config_word("off", "none"),
        new_not_yet_supported_config_word("hermes"),
        new_not_yet_supported_config_word("gemini"),
        new_not_yet_supported_config_word("openhands"),
    ]), "Which detectors are asked, with which thresholds, and what follows.").with_config_key_default("\"default\"").with_personal_config_permission(Adds),
    new_config_key_spec("loops.detectors", AnyOf(&[
        new_allowed_config_word("global_circuit_breaker", "calls in a row, of any tools, that brought nothing new"),
        new_allowed_config_word("generic_repeat", "the same call with an unchanged result"),
        new_allowed_config_word("known_poll_no_progress", "a poll, or a command that waits, with an unchanged answer"),
        new_allowed_config_word("ping_pong", "two calls in turn"),
        new_allowed_config_word("cycle", "two to six calls that go round; counted in laps"),
        new_allowed_config_word("same_failure", "a tool that fails in the same way, whatever its arguments"),
        new_allowed_config_word("no_progress_tool", "a tool that answers the same, whatever its arguments"),
        new_allowed_config_word("unknown_tool", "a tool that does not exist, asked for in a row"),
        new_allowed_config_word("in_flight", "identical calls that have not come back"),
    ]), "The detectors that are asked, in place of the preset's.").with_example_value("[\"generic_repeat\", \"cycle\"]"),
    new_config_key_spec("loops.history", Count(2), "Calls that detectors look back at, at most 30.").with_example_value("30"),
    new_config_key_spec("loops.warning", Count(1), "Calls that are worth a word, for `generic_repeat`, `known_poll_no_progress` and `ping_pong`.").with_example_value("10"),
    new_config_key_spec("loops.critical", Count(1), "Calls at which the next one is denied, for the same three.").with_example_value("20"),
    new_config_key_spec("loops.breaker", Count(1), "Calls without progress at which `global_circuit_breaker` denies the next.").with_example_value("30"),
    new_config_key_spec("loops.breaker_counts", OneOf(&[
        new_allowed_config_word("no_progress", "calls in a row that brought nothing new"),
        new_allowed_config_word("all", "all calls of a task"),
    ]), "What the breaker counts.").with_example_value("\"no_progress\""),
    new_config_key_spec("loops.generic_repeat", OneTable, "The same call with an unchanged result."),
    new_config_key_spec("loops.generic_repeat.warning", Count(1), "Calls that are worth a word.").with_example_value("2"),
    new_config_key_spec("loops.generic_repeat.critical", Count(1), "Calls at which the next call is denied.").with_example_value("3"),
    new_config_key_spec("loops.known_poll_no_progress", OneTable, "A poll, or a command that waits, with an unchanged answer."),
    new_config_key_spec("loops.known_poll_no_progress.warning", Count(1), "Calls that are worth a word.").with_example_value("10"),
    new_config_key_spec("loops.known_poll_no_progress.critical", Count(1), "Calls at which the next call is denied.").with_example_value("20"),
    new_config_key_spec("loops.ping_pong", OneTable, "Two calls in turn."),
    new_config_key_spec("loops.ping_pong.warning", Count(1), "Calls that are worth a word.").with_example_value("10"),
    new_config_key_spec("loops.ping_pong.critical", Count(1), "Calls at which the next call is denied.").with_example_value("20"),
    new_config_key_spec("loops.cycle", OneTable, "Two to six calls that go round; counted in laps."),
    new_config_key_spec("loops.cycle.warning", Count(1), "Laps that are worth a word.").with_example_value("2"),
    new_config_key_spec("loops.cycle.critical", Count(1), "Laps at which the next call is denied.").with_example_value("3"),
    new_config_key_spec("loops.same_failure", OneTable, "A tool that fails in the same way, whatever its arguments."),
    new_config_key_spec("loops.same_failure.warning", Count(1), "Calls that are worth a word.").with_example_value("4"),
    new_config_key_spec("loops.same_failure.critical", Count(1), "Calls at which the next call is denied.").with_example_value("6"),
    new_config_key_spec("loops.no_progress_tool", OneTable, "A tool that answers the same, whatever its arguments."),
    new_config_key_spec("loops.no_progress_tool.warning", Count(1), "Calls that are worth a word.").with_example_value("5"),
    new_config_key_spec("loops.no_progress_tool.critical", Count(1), "Calls at which the next call is denied.").with_example_value("10"),
    new_config_key_spec("loops.unknown_tool", OneTable, "A tool that does not exist, asked for in a row."),
    new_config_key_spec("loops.unknown_tool.warning", Count(1), "Calls that are worth a word.").with_example_value("2"),
    new_config_key_spec("loops.unknown_tool.critical", Count(1), "Calls at which the next call is denied.").with_example_value("4"),
    new_config_key_spec("loops.in_flight", OneTable, "Identical calls that have not come back."),
    new_config_key_spec("loops.in_flight.warning", Count(1), "Calls that are worth a word.").with_example_value("10"),
    new_config_key_spec("loops.in_flight.critical", Count(1), "Calls at which the next call is denied.").with_example_value("20"),

    new_config_key_spec("stance", OneTable, "What to answer when Checkrein itself cannot judge.").with_personal_config_permission(Stricter),
    new_config_key_spec("stance.tool", STANCES, "At a tool request.").with_config_key_default("\"block\"").with_personal_config_permission(Stricter),
    new_config_key_spec("stance.stop", STANCES, "At a stop.").with_config_key_default("\"allow\"").with_personal_config_permission(Stricter),

    new_config_key_spec("policy", OneTable, "Exec policy.").with_personal_config_permission(Adds),
    new_config_key_spec("policy.rules", Texts, "Globs of `.rules` files, relative to the config file. One that matches nothing is an error. `\"builtin:default\"` is the policy that is shipped: it asks before releases, forced pushes and code from the network that nobody has read. What it forbids, because it destroys a home, a disk or the system, is refused without this key, too, and not with `[]`.")
        .with_example_value("[\"builtin:default\", \"rules/*.rules\"]").with_personal_config_permission(Adds),
    new_config_key_spec("policy.unmatched", OneOf(&[
        new_allowed_config_word("allow", "left to the agent's own rules"),
        new_allowed_config_word("prompt", "a person is asked"),
        new_allowed_config_word("by-effect", "ordinary work goes on; what destroys, reaches beyond the project or is not known is asked about"),
    ]), "What holds for a command that no rule names; default: `allow`.")
        .with_example_value("\"allow\"").with_personal_config_permission(Adds),
    new_config_key_spec("policy.opaque", OneOf(&[new_allowed_config_word("allow", "it goes on"), new_allowed_config_word("prompt", "a person is asked")]),
        "Code that is not read before it runs, where effects decide: `make`, `npm test`, a script; default: `allow`.")
        .with_example_value("\"allow\"").with_personal_config_permission(Adds),
    new_config_key_spec("policy.protect", Texts, "Globs of paths, from the top of the project, that no tool writes.").with_example_value("[\"tests/**\"]").with_personal_config_permission(Adds),
    new_config_key_spec("policy.approval", OneOf(&[
        new_allowed_config_word("on-request", "about what the rules say `prompt` to"),
        new_allowed_config_word("never", "about nothing: `prompt` is a refusal"),
        new_allowed_config_word("always", "about everything that is not known to only look"),
    ]), "When a person is asked about a tool call; see `docs/approvals.md`.").with_config_key_default("\"on-request\"").with_personal_config_permission(Stricter),
    later_build_key_spec("policy.rewrite"),

    new_config_key_spec("approvals", OneTable, "What waits for a person.").with_personal_config_permission(Stricter),
    new_config_key_spec("approvals.expires", ANSWER_SPAN, "How long a question waits for a person, and how long an answer holds; 30 days at most.")
        .with_config_key_default("\"24h\"").with_personal_config_permission(Stricter),
    new_config_key_spec("approvals.notify", Text, "A command that tells a person that something waits: `CHECKREIN_APPROVAL` is its id, the rest comes on stdin. Nobody waits for it. It runs in the person's home folder, with a clean environment; one in the person's own config takes the place of the repo's.")
        .with_example_value("\"notify-send checkrein\"").with_personal_config_permission(Wins),

    new_config_key_spec("ui", OneTable, "What a person is told in the agent's screen.").with_personal_config_permission(Wins),
    new_config_key_spec("ui.verified", OneOf(&[
        new_allowed_config_word("silent", "nothing"),
        new_allowed_config_word("line", "one line that names the checks"),
    ]), "What the agent's screen shows when a task ends verified.").with_config_key_default("\"silent\"").with_personal_config_permission(Wins),

    new_config_key_spec("store", OneTable, "What `checkrein gc` keeps of the past.").with_personal_config_permission(Wins),
    new_config_key_spec("store.keep", Span { least: "1d", most: "36500d" }, "How long sessions are kept after the last thing that happened in them.")
        .with_config_key_default("\"30d\"").with_personal_config_permission(Wins),
    new_config_key_spec("store.max_size", Size("1MB"), "How much may be kept: over it the oldest sessions go.").with_config_key_default("\"500MB\"").with_personal_config_permission(Wins),

    new_config_key_spec("verifier", Tables, "Verifiers."),
    new_config_key_spec("verifier.name", Text, "Its name, used in `accept`.").with_example_value("\"tests\"").as_required_config_key(),
    new_config_key_spec("verifier.kind", OneOf(&[
        new_allowed_config_word("command", "runs one"),
        new_allowed_config_word("schema", "holds a document against a JSON Schema"),
        new_allowed_config_word("human", "asks a person"),
        new_allowed_config_word("judge", "asks a model"),
        new_not_yet_supported_config_word("http"),
    ]), "What it is; by default `command`.").with_example_value("\"command\""),
    new_config_key_spec("verifier.run", Text, "The command; handed to a shell only if it uses the shell's grammar.").with_example_value("\"cargo test\""),
    new_config_key_spec("verifier.inputs", Texts, "Globs of what it depends on; an edit elsewhere does not void its verdict. By default the whole tree. What git ignores counts where a glob names it before its first wildcard: `.env`, `node_modules/**`.")
        .with_example_value("[\"src/**\", \"Cargo.*\"]"),
    new_config_key_spec("verifier.outputs", Texts, "Globs of what it writes; left out of the tree.").with_example_value("[\"coverage/**\"]"),
    new_config_key_spec("verifier.timeout", ANY_SPAN, "How long it may run; longer is inconclusive. By default `10m`; a judge has `30s`.").with_example_value("\"10m\""),
    new_config_key_spec("verifier.retries", Count(0), "How often an inconclusive verdict is tried again, within one stop.").with_example_value("0"),
    new_config_key_spec("verifier.env", Texts, "Variables it may see although they hold provider keys or an agent's marks.").with_example_value("[\"OPENAI_API_KEY\"]"),
    new_config_key_spec("verifier.advisory", Flag, "Reported, never required.").with_example_value("false"),
    new_config_key_spec("verifier.stance", STANCES, "What its inconclusive verdict counts as; by default `block`, of a judge `allow`.").with_example_value("\"block\""),
    new_config_key_spec("verifier.schema", Text, "Of kind `schema`: the file of a JSON Schema, relative to the config file.").with_example_value("\"weekly.schema.json\""),
    new_config_key_spec("verifier.target", Text, "Of kind `schema`: the file that is judged by it, or `\"message\"` for the final message; of kind `human` only that.")
        .with_example_value("\"out/report.json\""),
    new_config_key_spec("verifier.ask", Text, "Of kind `human`: what a person is asked.").with_example_value("\"Is the report fit to be sent?\""),
    new_config_key_spec("verifier.expires", ANSWER_SPAN, "Of kind `human`: how long a person has to answer; by default `approvals.expires`.").with_example_value("\"24h\""),
    new_config_key_spec("verifier.model", Text, "Of kind `judge`: the model, `provider/model`; by default one of another family than the agent's.")
        .with_example_value("\"openai/gpt-4.1\""),
    new_config_key_spec("verifier.trigger", OneOf(&[
        new_allowed_config_word("keywords", "answers that hold one of its keywords"),
        new_allowed_config_word("always", "every answer"),
    ]), "Of kind `judge`: which answers it reads if `accept` does not name it.").with_example_value("\"keywords\""),
    new_config_key_spec("verifier.keywords", Texts, "Of kind `judge`: words and phrases that call for it.")
        .with_example_value("[\"done\", \"completed\", \"finished\", \"ready\", \"here you go\"]"),
    new_config_key_spec("verifier.heartbeat", Flag, "Of kind `judge`: whether it reads answers to heartbeats, all of them.").with_example_value("false"),
    new_config_key_spec("verifier.surfaces", AnyOf(&[
        new_allowed_config_word("main", "the conversation with the person"),
        new_allowed_config_word("subagent", "those of sub-agents"),
    ]), "Of kind `judge`: whose answers it reads; by default all.").with_example_value("[\"main\", \"subagent\"]"),
    new_config_key_spec("verifier.max_attempts", Count(1), "Of kind `judge`: answers to one request that it may see, the first included.").with_example_value("3"),
    new_config_key_spec("verifier.mode", OneOf(&[
        new_allowed_config_word("enforce", "what it says counts"),
        new_allowed_config_word("shadow", "what would have followed is recorded, and nothing follows"),
    ]), "Of kind `judge`: whether its word counts.").with_example_value("\"enforce\""),
    new_config_key_spec("verifier.min_score", Share, "Of kind `judge`: the least score that passes, from 0 to 1.").with_example_value("0.7"),
    new_config_key_spec("verifier.rubric", Text, "Of kind `judge`: a file that says what to look at besides, relative to the config file.").with_example_value("\"rubric.md\""),
    later_build_key_spec("verifier.report"),
    later_build_key_spec("verifier.baseline"),
    later_build_key_spec("verifier.parallel"),
    later_build_key_spec("verifier.on"),

    new_config_key_spec("veto", OneTable, "A second model, asked about calls before they run: `docs/second-model.md`."),
    new_config_key_spec("veto.enabled", Flag, "Whether it is asked at all.").with_config_key_default("false"),
    new_config_key_spec("veto.model", Text, "The model, `provider/model`.").with_example_value("\"anthropic/claude-haiku-4-5\""),
    new_config_key_spec("veto.scope", OneOf(&[
        new_allowed_config_word("risky", "calls that could do harm: whatever is not known for ordinary work on the project's files"),
        new_allowed_config_word("all", "every call"),
    ]), "Which calls it is asked about.").with_config_key_default("\"risky\""),
    new_config_key_spec("veto.min_confidence", Share, "The least confidence with which it can stop or change a call, from 0 to 1.").with_config_key_default("0.6"),
    new_config_key_spec("veto.max_calls", Count(1), "Calls of one task that it is asked about.").with_config_key_default("50"),

    new_config_key_spec("progress", OneTable, "A second model, asked whether the agent gets anywhere."),
    new_config_key_spec("progress.enabled", Flag, "Whether it is asked at all.").with_config_key_default("false"),
    new_config_key_spec("progress.model", Text, "The model, `provider/model`.").with_example_value("\"anthropic/claude-haiku-4-5\""),
    new_config_key_spec("progress.threshold", Share, "A score below this, from 0 to 1, is no progress.").with_config_key_default("0.4"),
    new_config_key_spec("progress.window", Count(1), "So many of them in a row, and the agent is told.").with_config_key_default("3"),
    new_config_key_spec("progress.max_calls", Count(1), "Times that it is asked in one task.").with_config_key_default("30"),

    new_config_key_spec("middleware", Tables, "Programs that are asked on the way: `docs/middleware.md`."),
    new_config_key_spec("middleware.name", Text, "Its name, as it is told by.").with_example_value("\"cut-secrets\"").as_required_config_key(),
    new_config_key_spec("middleware.run", Text, "The command; handed to a shell only if it uses the shell's grammar. It gets one JSON document on stdin and answers with one on stdout: `docs/middleware.md`.")
        .with_example_value("\"python3 tools/cut_secrets.py\""),
    new_config_key_spec("middleware.on", AnyOf(&[
        new_allowed_config_word("session_start", "a session began; it can only look"),
        new_allowed_config_word("before_tool", "the agent wants to use a tool"),
        new_allowed_config_word("after_tool", "a tool came back; the result can be rewritten"),
        new_allowed_config_word("persist_result", "what later rounds of the conversation have of the result"),
        new_allowed_config_word("round_end", "a round is over; a word for the next, or the end"),
        new_allowed_config_word("before_stop", "the agent says that it is done"),
        new_allowed_config_word("session_end", "the session is over; it can only look"),
    ]), "Where it is asked.").with_example_value("[\"after_tool\"]"),
    new_config_key_spec("middleware.order", Order, "Lower numbers are asked first; of equal ones the first of the file.").with_example_value("0"),
    new_config_key_spec("middleware.timeout", Span { least: "1ms", most: "10m" }, "How long it may take for one answer; 10 minutes at most.").with_example_value("\"5s\""),
    new_config_key_spec("middleware.stance", OneOf(&[
        new_allowed_config_word("block", "what it cannot judge is refused, a result withheld"),
        new_allowed_config_word("allow", "it passes, and the ending is then at best `unverified`"),
    ]), "What follows where it cannot judge; by default `block`.").with_example_value("\"block\""),

    new_config_key_spec("detector", Tables, "Detectors of loops of one's own, asked at the end of each round: `docs/loops.md`."),
    new_config_key_spec("detector.name", Text, "Its name, as it is told by and as tasks end by.").with_example_value("\"same-error\"").as_required_config_key(),
    new_config_key_spec("detector.run", Text, "The command, as of `[[middleware]]`. It has one second for an answer; if it gives none, the agent goes on.")
        .with_example_value("\"python3 tools/same_error.py\""),
    new_config_key_spec("detector.on", AnyOf(&[
        new_allowed_config_word("round_end", "a round is over"),
    ]), "Where it is asked; by default `round_end`.").with_example_value("[\"round_end\"]"),

    new_config_key_spec("profile", Profiles, "Other values for other occasions: `--profile`, `CHECKREIN_PROFILE`, or `CI=true`.").with_personal_config_permission(Adds),

    // `goal` as a table.
    later_build_key_spec("goal.objective"),
    later_build_key_spec("goal.criteria"),
    later_build_key_spec("goal.max_turns"),
    later_build_key_spec("goal.budget"),
    later_build_key_spec("prices"),
    later_build_key_spec("done"),
    later_build_key_spec("memory"),
    later_build_key_spec("otel"),
    later_build_key_spec("server"),
];

/// Every key of a `GOAL.toml`; a criterion has the keys of a verifier.
#[rustfmt::skip]
const GOAL_KEYS: &[ConfigKeySpec] = &[
    new_config_key_spec("goal", Text, "What is to be reached.").as_required_config_key(),
    new_config_key_spec("model", Text, "With which model, `provider/model`."),
    new_config_key_spec("budget", OneTable, "What it may cost; whatever is used up first ends it."),
    new_config_key_spec("budget.dollars", Dollars, "Dollars, of the agent and of models that judge it."),
    new_config_key_spec("budget.seconds", Count(1), "The agent's time."),
    new_config_key_spec("budget.tokens", Count(1), "Output tokens."),
    new_config_key_spec("budget.iterations", Count(1), "Rounds."),
    new_config_key_spec("budget.tool_calls", Count(1), "Tool requests."),
    new_config_key_spec("criterion", Tables, "What has to hold."),
];

/// Which file the keys are those of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigFileKind {
    /// `checkrein.toml` of a repo.
    Config,
    /// The person's own.
    OwnConfig,
    /// `GOAL.toml`.
    Goal,
}

impl ConfigFileKind {
    /// The row of this key in this table.
    pub(super) fn find_key_spec(self, table: &str, key: &str) -> Option<&'static ConfigKeySpec> {
        self.config_table_keys(table)
            .find(|spec| spec.key_name_without_table() == key)
    }

    /// The rows of this table.
    pub(super) fn config_table_keys(
        self,
        table: &str,
    ) -> impl Iterator<Item = &'static ConfigKeySpec> + use<'_> {
        let (keys, table) = match (self, table) {
            (Self::Goal, "criterion") => (KEYS, "verifier"),
            (Self::Goal, table) => (GOAL_KEYS, table),
            (Self::Config | Self::OwnConfig, table) => (KEYS, table),
        };
        keys.iter()
            .filter(move |spec| spec.is_key_in_config_table(table))
    }

    /// The tables of the file and its lists of tables, those of later builds left out.
    pub(super) fn specs_of_keys_holding_tables(
        self,
    ) -> impl Iterator<Item = &'static ConfigKeySpec> {
        let top = self.config_table_keys("");
        top.filter(|spec| spec.config_key_holds_table() && spec.since.is_some())
    }
}

/// Returns the values that hold without a file. Parsed once, since each document and each profile
/// is laid over them.
pub(super) fn default_config_values(driver: TaskDriverKind) -> Table {
    static HOOK: LazyLock<Table> = LazyLock::new(|| {
        default_values_as_toml(TaskDriverKind::Hook)
            .parse()
            .unwrap_or_default()
    });
    static RUN: LazyLock<Table> = LazyLock::new(|| {
        default_values_as_toml(TaskDriverKind::Run)
            .parse()
            .unwrap_or_default()
    });
    match driver {
        TaskDriverKind::Hook => HOOK.clone(),
        TaskDriverKind::Run => RUN.clone(),
    }
}

/// Writes the defaults as one TOML text: parsing it once costs less than a parser for each value.
fn default_values_as_toml(driver: TaskDriverKind) -> String {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for spec in KEYS {
        let run = spec.run_default.filter(|_| driver == TaskDriverKind::Run);
        if let Some(value) = run.or(spec.default) {
            let lines = tables.entry(spec.table_of_config_key()).or_default();
            let _ = writeln!(lines, "{} = {value}", spec.key_name_without_table());
        }
    }
    // Keys of the top come first. Behind a header they would belong to that table.
    let mut text = tables.remove("").unwrap_or_default();
    for (table, lines) in tables {
        let _ = write!(text, "[{table}]\n{lines}");
    }
    text
}

/// What a value can be, after "must be".
impl fmt::Display for ConfigValueKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |words: &[AllowedConfigWord]| {
            let acts = words.iter().filter(|word| word.acts);
            let quoted: Vec<String> = acts.map(|word| format!("\"{}\"", word.text)).collect();
            match quoted.split_last() {
                Some((last, rest @ [_, ..])) => format!("{} or {last}", rest.join(", ")),
                _ => quoted.concat(),
            }
        };
        match self {
            Text => formatter.write_str("text in quotes"),
            Flag => formatter.write_str("true or false"),
            Count(least) => write!(formatter, "{least} or more"),
            Order => formatter.write_str("a whole number"),
            Share => formatter.write_str("from 0 to 1"),
            ShareAboveZero => formatter.write_str("above 0 and at most 1"),
            Dollars => formatter.write_str("more than 0 and at most a thousand million dollars"),
            Span { .. } => formatter.write_str("a span of time such as \"90s\", \"10m\" or \"4h\""),
            Size(_) => formatter.write_str("a size such as \"500MB\" or \"2GB\""),
            OneOf(words) => formatter.write_str(&listed(words)),
            AnyOf(words) => write!(formatter, "a list of these: {}", listed(words)),
            Texts => formatter.write_str("a list of text: [\"a\", \"b\"]"),
            OneTable => formatter.write_str("a table"),
            Tables => formatter.write_str("a list of tables"),
            Profiles => formatter.write_str("tables, each with a name"),
        }
    }
}
