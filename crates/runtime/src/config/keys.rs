//! The one table of keys: what `checkrein.toml` can hold. The loader, the defaults, the JSON
//! Schema and the page of docs/configuration.md are all made from it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use toml::Table;

use super::Driver;

/// A key, as `table.key`. Lists of tables are written as one: `verifier.run`.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// Where it stands.
    pub path: &'static str,
    /// What its value can be.
    pub value: ValueKind,
    /// What it is for, in one line of Markdown.
    pub doc: &'static str,
    /// What holds where no file sets it, as TOML.
    pub default: Option<&'static str>,
    /// The same under `run` and in the library, where that differs.
    pub run_default: Option<&'static str>,
    /// A value to show where there is no default, as TOML.
    pub example: Option<&'static str>,
    /// What a person's own file may do with it.
    pub own_file: OwnFile,
    /// Its table cannot do without it.
    pub required: bool,
    /// Since which version a build acts on it. `None`: this one does not.
    pub since: Option<&'static str>,
}

/// What the value of a key can be.
#[derive(Debug, Clone, Copy)]
pub enum ValueKind {
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
    OneOf(&'static [WordChoice]),
    /// A list of these words.
    AnyOf(&'static [WordChoice]),
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
pub struct WordChoice {
    /// As it is written.
    pub text: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether this build acts on it.
    pub acts: bool,
}

/// What a person's own file may do with a key. It can only tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFile {
    /// Nothing: the key belongs into the repo's file.
    Refused,
    /// The stricter value of both files holds.
    Stricter,
    /// What it says comes on top of what the repo says.
    Adds,
    /// What it says holds.
    Wins,
}

const fn key(path: &'static str, value: ValueKind, doc: &'static str) -> KeySpec {
    KeySpec {
        path,
        value,
        doc,
        default: None,
        run_default: None,
        example: None,
        own_file: OwnFile::Refused,
        required: false,
        since: Some("0.1.0"),
    }
}

/// A key that only later builds act on.
const fn later(path: &'static str) -> KeySpec {
    KeySpec {
        since: None,
        ..key(path, ValueKind::Text, "")
    }
}

const fn word(text: &'static str, meaning: &'static str) -> WordChoice {
    WordChoice {
        text,
        meaning,
        acts: true,
    }
}

const fn later_word(text: &'static str) -> WordChoice {
    WordChoice {
        text,
        meaning: "",
        acts: false,
    }
}

impl KeySpec {
    const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    const fn under_run(self, default: &'static str) -> Self {
        Self {
            run_default: Some(default),
            ..self
        }
    }

    const fn like(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    const fn own(self, own_file: OwnFile) -> Self {
        Self { own_file, ..self }
    }

    const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// The table that it stands in; empty for the top of the file.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// Whether it stands there. Each key of a file asks it of each row.
    fn is_in(&self, table: &str) -> bool {
        let name = match table {
            "" => Some(self.path),
            table => self
                .path
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.')),
        };
        name.is_some_and(|name| !name.contains('.'))
    }

    /// Its name in that table.
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// Whether it is a table of its own or a list of them.
    pub fn is_table(&self) -> bool {
        matches!(
            self.value,
            ValueKind::Table | ValueKind::Tables | ValueKind::Profiles
        )
    }
}

const ANY_SPAN: ValueKind = Span {
    least: "1ms",
    most: "36500d",
};
const ANSWER_SPAN: ValueKind = Span {
    least: "1ms",
    most: "30d",
};

const STANCES: ValueKind = OneOf(&[
    word("block", "as if it had failed"),
    word("allow", "as if it had passed"),
    word("ask", "leave it to a person"),
]);

use OwnFile::{Adds, Stricter, Wins};
use ValueKind::{
    AnyOf, Count, Dollars, Flag, OneOf, Order, Profiles, Share, ShareAboveZero, Size, Span,
    Table as OneTable, Tables, Text, Texts,
};

/// Every key of `checkrein.toml`, in the order of the manual.
#[rustfmt::skip] // One row is one key; broken over many lines the table cannot be read.
pub const KEYS: &[KeySpec] = &[
    key("goal", Text, "What the task is for; shown in listings.").like("\"make the build green\""),
    key("accept", Text, "What is required: `tests and (lint or typecheck)`, `2 of (a, b, c)`; by default all verifiers that are not advisory.")
        .like("\"tests and (lint or typecheck)\""),
    key("verify_on", OneOf(&[
        word("change", "a first stop that changed nothing runs nothing"),
        word("always", "every stop is verified"),
    ]), "Which stops are verified.").or("\"change\"").own(Stricter),

    key("caps", OneTable, "Bounds of one task; whatever is used up first ends it.").own(Stricter),
    key("caps.token_budget", Count(1), "Output tokens, thinking included, sub-agents too.").or("1_000_000").own(Stricter),
    key("caps.wall_clock", ANY_SPAN, "The agent's time from prompt to stop, without our own checks.")
        .or("\"4h\"").under_run("\"1h\"").own(Stricter),
    key("caps.tool_calls", Count(1), "Tool requests, denied ones included.").or("1500").under_run("500").own(Stricter),
    key("caps.max_iterations", Count(1), "Rounds: one response of the model and its tool calls.")
        .or("300").under_run("90").own(Stricter),
    key("caps.attempts", Count(1), "Stops at which the same failures may be met.").or("3").own(Stricter),
    key("caps.continues", Count(1), "Times the agent is sent back in all.").or("7").own(Stricter),
    key("caps.cost_usd", Dollars, "Dollars, of the agent and of models that judge it; where it is known what the agent costs: `run --model` and the library.")
        .like("5.0").own(Stricter),
    later("caps.preset"),

    key("session_caps", OneTable, "The same over the whole session, off unless set; a new prompt does not reset them.").own(Stricter),
    key("session_caps.token_budget", Count(1), "Output tokens, thinking included, sub-agents too.").like("5_000_000").own(Stricter),
    key("session_caps.wall_clock", ANY_SPAN, "The agent's time from prompt to stop, without our own checks.").like("\"12h\"").own(Stricter),
    key("session_caps.tool_calls", Count(1), "Tool requests, denied ones included.").like("5000").own(Stricter),
    key("session_caps.max_iterations", Count(1), "Rounds: one response of the model and its tool calls.").like("1000").own(Stricter),
    key("session_caps.continues", Count(1), "Times the agent is sent back in all.").like("20").own(Stricter),
    key("session_caps.cost_usd", Dollars, "Dollars, of the agent and of models that judge it; where it is known what the agent costs: `run --model` and the library.")
        .like("20.0").own(Stricter),

    key("subagents", OneTable, "Sub-agents.").own(Stricter),
    key("subagents.max_iterations", Count(1), "Rounds of one sub-agent.").or("150").own(Stricter),
    key("subagents.verify", OneOf(&[
        word("never", "only the main stop is"),
        word("writers", "that of one that wrote something is"),
    ]), "Whether the stop of a sub-agent is verified.").or("\"never\"").own(Stricter),

    key("token_budget", OneTable, "Whether going on is still worth its tokens; asked at stops."),
    key("token_budget.threshold", ShareAboveZero, "Share of `caps.token_budget`.").or("0.9"),
    key("token_budget.diminishing_tokens", Count(1), "Output tokens between two stops that count as little, twice in a row.").or("500"),
    key("token_budget.diminishing_rounds", Count(1), "Continuations to have given before it does.").or("3"),
    key("token_budget.mode", OneOf(&[
        word("limit", "going on is not worth it past the line"),
        word("target", "under `run` and in the library, passing work goes on until the line; hooks take it for `limit`"),
    ]), "What the budget is.").or("\"limit\""),

    key("loops", OneTable, "Loop detectors.").own(Adds),
    key("loops.preset", OneOf(&[
        word("default", "`generic_repeat` and `global_circuit_breaker`"),
        word("seed", "all four detectors"),
        word("off", "none"),
        later_word("balanced"),
        later_word("openclaw"),
        later_word("hermes"),
        later_word("gemini"),
        later_word("openhands"),
    ]), "Which detectors are asked.").or("\"default\"").own(Adds),
    later("loops.detectors"),
    later("loops.history"),
    later("loops.warning"),
    later("loops.critical"),
    later("loops.breaker"),
    later("loops.breaker_counts"),

    key("stance", OneTable, "What to answer when Checkrein itself cannot judge.").own(Stricter),
    key("stance.tool", STANCES, "At a tool request.").or("\"block\"").own(Stricter),
    key("stance.stop", STANCES, "At a stop.").or("\"allow\"").own(Stricter),

    key("policy", OneTable, "Exec policy.").own(Adds),
    key("policy.rules", Texts, "Globs of `.rules` files, relative to the config file. One that matches nothing is an error. `\"builtin:default\"` is the policy that is shipped: it asks before releases, forced pushes and code from the network that nobody has read. What it forbids, because it destroys a home, a disk or the system, is refused without this key, too, and not with `[]`.")
        .like("[\"builtin:default\", \"rules/*.rules\"]").own(Adds),
    key("policy.unmatched", OneOf(&[
        word("allow", "left to the agent's own rules"),
        word("prompt", "a person is asked"),
        word("by-effect", "ordinary work goes on; what destroys, reaches beyond the project or is not known is asked about"),
    ]), "What holds for a command that no rule names; default: `allow`.")
        .like("\"allow\"").own(Adds),
    key("policy.opaque", OneOf(&[word("allow", "it goes on"), word("prompt", "a person is asked")]),
        "Code that is not read before it runs, where effects decide: `make`, `npm test`, a script; default: `allow`.")
        .like("\"allow\"").own(Adds),
    key("policy.protect", Texts, "Globs of paths, from the top of the project, that no tool writes.").like("[\"tests/**\"]").own(Adds),
    key("policy.approval", OneOf(&[
        word("on-request", "about what the rules say `prompt` to"),
        word("never", "about nothing: `prompt` is a refusal"),
        word("always", "about everything that is not known to only look"),
    ]), "When a person is asked about a tool call; see `docs/approvals.md`.").or("\"on-request\"").own(Stricter),
    later("policy.rewrite"),

    key("approvals", OneTable, "What waits for a person.").own(Stricter),
    key("approvals.expires", ANSWER_SPAN, "How long a question waits for a person, and how long an answer holds; 30 days at most.")
        .or("\"24h\"").own(Stricter),
    key("approvals.notify", Text, "A command that tells a person that something waits: `CHECKREIN_APPROVAL` is its id, the rest comes on stdin. Nobody waits for it. It runs in the person's home folder, with a clean environment; one in the person's own config takes the place of the repo's.")
        .like("\"notify-send checkrein\"").own(Wins),

    key("ui", OneTable, "What a person is told in the agent's screen.").own(Wins),
    key("ui.verified", OneOf(&[
        word("silent", "nothing"),
        word("line", "one line that names the checks"),
    ]), "What the agent's screen shows when a task ends verified.").or("\"silent\"").own(Wins),

    key("store", OneTable, "What `checkrein gc` keeps of the past.").own(Wins),
    key("store.keep", Span { least: "1d", most: "36500d" }, "How long sessions are kept after the last thing that happened in them.")
        .or("\"30d\"").own(Wins),
    key("store.max_size", Size("1MB"), "How much may be kept: over it the oldest sessions go.").or("\"500MB\"").own(Wins),

    key("verifier", Tables, "Verifiers."),
    key("verifier.name", Text, "Its name, used in `accept`.").like("\"tests\"").required(),
    key("verifier.kind", OneOf(&[
        word("command", "runs one"),
        word("schema", "holds a document against a JSON Schema"),
        word("human", "asks a person"),
        word("judge", "asks a model"),
        later_word("http"),
    ]), "What it is; by default `command`.").like("\"command\""),
    key("verifier.run", Text, "The command; handed to a shell only if it uses the shell's grammar.").like("\"cargo test\""),
    key("verifier.inputs", Texts, "Globs of what it depends on; an edit elsewhere does not void its verdict. By default the whole tree. What git ignores counts where a glob names it before its first wildcard: `.env`, `node_modules/**`.")
        .like("[\"src/**\", \"Cargo.*\"]"),
    key("verifier.outputs", Texts, "Globs of what it writes; left out of the tree.").like("[\"coverage/**\"]"),
    key("verifier.timeout", ANY_SPAN, "How long it may run; longer is inconclusive. By default `10m`; a judge has `30s`.").like("\"10m\""),
    key("verifier.retries", Count(0), "How often an inconclusive verdict is tried again, within one stop.").like("0"),
    key("verifier.env", Texts, "Variables it may see although they hold provider keys or an agent's marks.").like("[\"OPENAI_API_KEY\"]"),
    key("verifier.advisory", Flag, "Reported, never required.").like("false"),
    key("verifier.stance", STANCES, "What its inconclusive verdict counts as; by default `block`, of a judge `allow`.").like("\"block\""),
    key("verifier.schema", Text, "Of kind `schema`: the file of a JSON Schema, relative to the config file.").like("\"weekly.schema.json\""),
    key("verifier.target", Text, "Of kind `schema`: the file that is judged by it, or `\"message\"` for the final message; of kind `human` only that.")
        .like("\"out/report.json\""),
    key("verifier.ask", Text, "Of kind `human`: what a person is asked.").like("\"Is the report fit to be sent?\""),
    key("verifier.expires", ANSWER_SPAN, "Of kind `human`: how long a person has to answer; by default `approvals.expires`.").like("\"24h\""),
    key("verifier.model", Text, "Of kind `judge`: the model, `provider/model`; by default one of another family than the agent's.")
        .like("\"openai/gpt-4.1\""),
    key("verifier.trigger", OneOf(&[
        word("keywords", "answers that hold one of its keywords"),
        word("always", "every answer"),
    ]), "Of kind `judge`: which answers it reads if `accept` does not name it.").like("\"keywords\""),
    key("verifier.keywords", Texts, "Of kind `judge`: words and phrases that call for it.")
        .like("[\"done\", \"completed\", \"finished\", \"ready\", \"here you go\"]"),
    key("verifier.heartbeat", Flag, "Of kind `judge`: whether it reads answers to heartbeats, all of them.").like("false"),
    key("verifier.surfaces", AnyOf(&[
        word("main", "the conversation with the person"),
        word("subagent", "those of sub-agents"),
    ]), "Of kind `judge`: whose answers it reads; by default all.").like("[\"main\", \"subagent\"]"),
    key("verifier.max_attempts", Count(1), "Of kind `judge`: answers to one request that it may see, the first included.").like("3"),
    key("verifier.mode", OneOf(&[
        word("enforce", "what it says counts"),
        word("shadow", "what would have followed is recorded, and nothing follows"),
    ]), "Of kind `judge`: whether its word counts.").like("\"enforce\""),
    key("verifier.min_score", Share, "Of kind `judge`: the least score that passes, from 0 to 1.").like("0.7"),
    key("verifier.rubric", Text, "Of kind `judge`: a file that says what to look at besides, relative to the config file.").like("\"rubric.md\""),
    later("verifier.report"),
    later("verifier.baseline"),
    later("verifier.parallel"),
    later("verifier.on"),

    key("veto", OneTable, "A second model, asked about calls before they run: `docs/second-model.md`."),
    key("veto.enabled", Flag, "Whether it is asked at all.").or("false"),
    key("veto.model", Text, "The model, `provider/model`.").like("\"anthropic/claude-haiku-4-5\""),
    key("veto.scope", OneOf(&[
        word("risky", "calls that could do harm: whatever is not known for ordinary work on the project's files"),
        word("all", "every call"),
    ]), "Which calls it is asked about.").or("\"risky\""),
    key("veto.min_confidence", Share, "The least confidence with which it can stop or change a call, from 0 to 1.").or("0.6"),
    key("veto.max_calls", Count(1), "Calls of one task that it is asked about.").or("50"),

    key("progress", OneTable, "A second model, asked whether the agent gets anywhere."),
    key("progress.enabled", Flag, "Whether it is asked at all.").or("false"),
    key("progress.model", Text, "The model, `provider/model`.").like("\"anthropic/claude-haiku-4-5\""),
    key("progress.threshold", Share, "A score below this, from 0 to 1, is no progress.").or("0.4"),
    key("progress.window", Count(1), "So many of them in a row, and the agent is told.").or("3"),
    key("progress.max_calls", Count(1), "Times that it is asked in one task.").or("30"),

    key("middleware", Tables, "Programs that are asked on the way: `docs/middleware.md`."),
    key("middleware.name", Text, "Its name, as it is told by.").like("\"cut-secrets\"").required(),
    key("middleware.run", Text, "The command; handed to a shell only if it uses the shell's grammar. It gets one JSON document on stdin and answers with one on stdout: `docs/middleware.md`.")
        .like("\"python3 tools/cut_secrets.py\""),
    key("middleware.on", AnyOf(&[
        word("session_start", "a session began; it can only look"),
        word("before_tool", "the agent wants to use a tool"),
        word("after_tool", "a tool came back; the result can be rewritten"),
        word("persist_result", "what later rounds of the conversation have of the result"),
        word("round_end", "a round is over; it can only look"),
        word("before_stop", "the agent says that it is done"),
        word("session_end", "the session is over; it can only look"),
    ]), "Where it is asked.").like("[\"after_tool\"]"),
    key("middleware.order", Order, "Lower numbers are asked first; of equal ones the first of the file.").like("0"),
    key("middleware.timeout", Span { least: "1ms", most: "10m" }, "How long it may take for one answer; 10 minutes at most.").like("\"5s\""),
    key("middleware.stance", OneOf(&[
        word("block", "what it cannot judge is refused, a result withheld"),
        word("allow", "it passes, and the ending is then at best `unverified`"),
    ]), "What follows where it cannot judge; by default `block`.").like("\"block\""),

    key("profile", Profiles, "Other values for other occasions: `--profile`, `CHECKREIN_PROFILE`, or `CI=true`.").own(Adds),

    // `goal` as a table.
    later("goal.objective"),
    later("goal.criteria"),
    later("goal.max_turns"),
    later("goal.budget"),
    later("detector"),
    later("prices"),
    later("done"),
    later("memory"),
    later("otel"),
    later("server"),
];

/// Every key of a `GOAL.toml`; a criterion has the keys of a verifier.
#[rustfmt::skip]
const GOAL_KEYS: &[KeySpec] = &[
    key("goal", Text, "What is to be reached.").required(),
    key("model", Text, "With which model, `provider/model`."),
    key("budget", OneTable, "What it may cost; whatever is used up first ends it."),
    key("budget.dollars", Dollars, "Dollars, of the agent and of models that judge it."),
    key("budget.seconds", Count(1), "The agent's time."),
    key("budget.tokens", Count(1), "Output tokens."),
    key("budget.iterations", Count(1), "Rounds."),
    key("budget.tool_calls", Count(1), "Tool requests."),
    key("criterion", Tables, "What has to hold."),
];

/// Which file the keys are those of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySet {
    /// `checkrein.toml` of a repo.
    Config,
    /// The person's own.
    OwnConfig,
    /// `GOAL.toml`.
    Goal,
}

impl KeySet {
    /// The row of this key in this table.
    pub(super) fn find(self, table: &str, key: &str) -> Option<&'static KeySpec> {
        self.rows(table).find(|spec| spec.name() == key)
    }

    /// The rows of this table.
    pub(super) fn rows(self, table: &str) -> impl Iterator<Item = &'static KeySpec> + use<'_> {
        let (keys, table) = match (self, table) {
            (Self::Goal, "criterion") => (KEYS, "verifier"),
            (Self::Goal, table) => (GOAL_KEYS, table),
            (Self::Config | Self::OwnConfig, table) => (KEYS, table),
        };
        keys.iter().filter(move |spec| spec.is_in(table))
    }

    /// The tables of the file and its lists of tables, those of later builds left out.
    pub(super) fn tables(self) -> impl Iterator<Item = &'static KeySpec> {
        let top = self.rows("");
        top.filter(|spec| spec.is_table() && spec.since.is_some())
    }
}

/// What holds without a file. Worked out once: each document and each profile is laid over it.
pub(super) fn defaults(driver: Driver) -> Table {
    static HOOK: LazyLock<Table> =
        LazyLock::new(|| defaults_text(Driver::Hook).parse().unwrap_or_default());
    static RUN: LazyLock<Table> =
        LazyLock::new(|| defaults_text(Driver::Run).parse().unwrap_or_default());
    match driver {
        Driver::Hook => HOOK.clone(),
        Driver::Run => RUN.clone(),
    }
}

/// The defaults as one file, since a parser for each value costs more than the values.
fn defaults_text(driver: Driver) -> String {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for spec in KEYS {
        let run = spec.run_default.filter(|_| driver == Driver::Run);
        if let Some(value) = run.or(spec.default) {
            let lines = tables.entry(spec.table()).or_default();
            let _ = writeln!(lines, "{} = {value}", spec.name());
        }
    }
    let mut text = tables.remove("").unwrap_or_default();
    for (table, lines) in tables {
        let _ = write!(text, "[{table}]\n{lines}");
    }
    text
}

/// What a value can be, after "must be".
impl fmt::Display for ValueKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |words: &[WordChoice]| {
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
