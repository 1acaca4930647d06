//! What the supervisor's questions cost: a run of a hundred steps, scripted, with its defaults, and every body
//! that went to the model over HTTP counted by a real tokenizer. `cargo xtask tokens` prints it.

#![expect(clippy::print_stdout, reason = "the numbers are there to be read")]

use std::sync::Arc;

use checkrein::models::{BoxFuture, ChatMessage, LanguageModel, RequestedToolCall};
use checkrein::{
    Tool, ToolInvocation, ToolOutcome, ToolOutput, VerifierConfig, VerifierNetwork, VerifierStats,
};
use serde_json::{Value, json};
use tiktoken_rs::o200k_base_singleton;

use crate::scripted::{Scripted, now};

const GOAL: &str = "Audit security of merged PRs from this week.";
/// What the seed's own sum comes to is 25,500.
const MOST: usize = 26_000;
const STEPS: usize = 100;

/// Questions of one kind, and their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kind {
    questions: usize,
    input: usize,
    output: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tokens {
    veto: Kind,
    progress: Kind,
}

impl Tokens {
    fn of(model: &Scripted) -> Self {
        let mut tokens = Self::default();
        for exchange in model.exchanges() {
            let kind = match shape(&exchange.body) {
                "veto" => &mut tokens.veto,
                "progress" => &mut tokens.progress,
                other => panic!("a question of another kind: '{other}'"),
            };
            kind.questions += 1;
            kind.input += count(std::str::from_utf8(&exchange.bytes).unwrap());
            kind.output += count(&exchange.reply_text);
        }
        tokens
    }

    fn sum(self) -> usize {
        let Self { veto, progress } = self;
        veto.input + veto.output + progress.input + progress.output
    }

    fn print(self, heading: &str) {
        println!("{heading}");
        println!(
            "  {:<10}{:>10}{:>10}{:>10}{:>10}",
            "", "questions", "input", "output", "sum"
        );
        for (name, kind) in [("veto", self.veto), ("progress", self.progress)] {
            let Kind {
                questions,
                input,
                output,
            } = kind;
            let sum = input + output;
            println!("  {name:<10}{questions:>10}{input:>10}{output:>10}{sum:>10}");
        }
        let questions = self.veto.questions + self.progress.questions;
        println!("  {:<10}{questions:>10}{:>30}\n", "all", self.sum());
    }
}

fn count(text: &str) -> usize {
    o200k_base_singleton().encode_ordinary(text).len()
}

fn shape(body: &Value) -> &str {
    let name = body.pointer("/response_format/json_schema/name");
    name.and_then(Value::as_str).unwrap_or_default()
}

/// What a tool of the audited agent takes.
struct Kit {
    name: &'static str,
    looks: bool,
    schema: Value,
}

impl Tool for Kit {
    fn name(&self) -> &str {
        self.name
    }

    fn tool_description(&self) -> &str {
        "A tool of the audit."
    }

    fn input_schema(&self) -> Arc<Value> {
        Arc::new(self.schema.clone())
    }

    fn is_read_only_tool(&self) -> bool {
        self.looks
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { ToolOutput::from_success(outcome(self.name, call.arguments)) })
    }
}

fn kit() -> Vec<Kit> {
    let tool = |name, looks, properties: Value, required: Value| Kit {
        name,
        looks,
        schema: json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        }),
    };
    let text = || json!({ "type": "string", "description": "See the handbook of the audit." });
    vec![
        tool(
            "github",
            false,
            json!({
                "action": { "type": "string", "enum": ["diff", "comment"] },
                "number": { "type": "integer" },
                "body": text(),
            }),
            json!(["action", "number"]),
        ),
        tool(
            "grep_search",
            true,
            json!({ "pattern": text(), "path": text() }),
            json!(["pattern"]),
        ),
        tool(
            "file_read",
            true,
            json!({ "path": text(), "from": { "type": "integer" } }),
            json!(["path"]),
        ),
        tool(
            "file_write",
            false,
            json!({ "path": text(), "content": text() }),
            json!(["path", "content"]),
        ),
    ]
}

const AREAS: [&str; 7] = [
    "billing", "sessions", "uploads", "webhooks", "search", "admin", "exports",
];
const PATTERNS: [&str; 5] = [
    "execute(f",
    "AKIA",
    "allow_unauthenticated",
    "shell=True",
    "verify=False",
];

/// What the agent says and calls in its nth step; no two calls are the same.
fn step(nth: usize) -> (String, &'static str, Value) {
    let number = 4_100 + nth / 5;
    let area = AREAS.into_iter().cycle().nth(nth).unwrap();
    let pattern = PATTERNS.into_iter().cycle().nth(nth).unwrap();
    match nth % 10 {
        0 | 5 => (
            format!("Next is #{number}, which touches {area}. I will read its diff first."),
            "github",
            json!({ "action": "diff", "number": number }),
        ),
        1 | 4 | 6 => (
            format!(
                "The diff adds a query in {area}; let me see whether the same pattern is used elsewhere."
            ),
            "grep_search",
            json!({ "pattern": pattern, "path": format!("src/{area}/v{nth}") }),
        ),
        2 | 3 | 7 | 8 => (
            String::new(),
            "file_read",
            json!({ "path": format!("src/{area}/handlers.py"), "from": 40 * nth }),
        ),
        _ if nth % 30 == 29 => (
            format!("I will leave a note on #{number} so that its author sees it."),
            "github",
            json!({ "action": "comment", "number": number, "body": format!("Please check who may call `{area}.export`: there is no @requires_role on it.") }),
        ),
        _ => (
            format!("That is a finding. I write down what I have for #{number}."),
            "file_write",
            json!({ "path": "AUDIT.md", "content": finding(nth, number, area) }),
        ),
    }
}

fn finding(nth: usize, number: usize, area: &str) -> String {
    format!(
        "## {nth}. #{number}: `sort` goes into ORDER BY unquoted\n\n- src/{area}/handlers.py:{line}, severity high\n- take the column from a list of allowed ones\n",
        line = 40 + nth
    )
}

fn outcome(tool: &str, arguments: &Value) -> String {
    match tool {
        "github" => format!(
            "diff --git a/src/app/handlers.py b/src/app/handlers.py\n@@ -40,6 +40,14 @@ def listing(request):\n     page = int(request.args.get(\"page\", 1))\n+    sort = request.args.get(\"sort\", \"created\")\n+    rows = db.execute(f\"SELECT * FROM items ORDER BY {{sort}} LIMIT 50 OFFSET %s\", page * 50)\n+    log.info(\"listing %s by %s\", page, sort)\n     return render(\"listing.html\", rows=rows)\n({arguments})"
        ),
        "grep_search" => format!(
            "src/app/handlers.py:44:    rows = db.execute(\"SELECT * FROM items WHERE owner = %s\" % owner)\nsrc/app/jobs.py:112:    db.execute(\"DELETE FROM exports WHERE id = %s\" % export.id)\n2 hits for {arguments}"
        ),
        "file_read" => "def export(request, item_id):\n    \"\"\"Streams one item as CSV.\"\"\"\n    item = db.get(Item, item_id)\n    if item is None:\n        raise NotFound(item_id)\n    return stream_csv([item.as_row()])\n".repeat(4),
        _ => "written".to_owned(),
    }
}

/// A cheap model: against what posts, content with the rest, and each step rated with a few words.
fn cheap() -> Arc<Scripted> {
    Scripted::by(|body| {
        let call = crate::scripted::last_message_text(body).to_owned();
        Ok(match shape(body) {
            "progress" => r#"{"ref":REF,"score":0.7,"summary":"narrowed it down to one query","suggested_action":""}"#,
            _ if call.contains("@requires_role") => r#"{"ref":REF,"verdict":"veto","confidence":0.93,"reason":"Nobody asked for a comment on the pull request.","new_args":""}"#,
            _ => r#"{"ref":REF,"verdict":"allow","confidence":0.95,"reason":"","new_args":""}"#,
        }
        .to_owned())
    })
}

/// A run of a hundred steps, as a host has it: wrapped tools, and each step rated.
fn run() -> (Tokens, VerifierStats) {
    let model = cheap();
    let config = VerifierConfig::default();
    let network =
        VerifierNetwork::new(model.clone() as Arc<dyn LanguageModel>, config, GOAL).unwrap();
    let tools = network.wrap_tools(kit());
    let mut conversation = vec![ChatMessage::User(GOAL.to_owned())];
    for nth in 0..STEPS {
        let (said, tool, arguments) = step(nth);
        let wrapped = tools.iter().find(|one| one.name() == tool).unwrap();
        let output = now(wrapped.run(ToolInvocation {
            arguments: &arguments,
            history: &conversation,
        }));
        let summary = match output.outcome {
            ToolOutcome::Vetoed => format!("{tool} was refused: {}", output.text),
            _ => format!("{tool} {arguments}"),
        };
        let call = RequestedToolCall {
            id: format!("call_{nth}"),
            tool: tool.to_owned(),
            arguments: Ok(arguments),
            provider_state: None,
        };
        conversation.push(ChatMessage::Assistant {
            text: said,
            calls: vec![call],
        });
        conversation.push(ChatMessage::ToolResult {
            call: format!("call_{nth}"),
            tool: tool.to_owned(),
            failed: output.outcome != ToolOutcome::Ran,
            text: output.text,
        });
        let check = now(network.evaluate_step(&summary, &conversation));
        conversation.extend(network.maybe_nudge(&check));
    }
    (Tokens::of(&model), network.veto_and_progress_stats())
}

/// Every byte of every request body is counted, the wire's own words included.
#[test]
fn a_run_of_a_hundred_steps_costs_at_most_26_000_tokens() {
    let (tokens, stats) = run();
    tokens.print("a run of 100 steps with the supervisor's defaults, whole request bodies:");
    assert_eq!((tokens.veto.questions, tokens.progress.questions), (50, 30));
    assert!(stats.pretool_veto > 0, "{stats:?}");
    assert!(tokens.sum() <= MOST, "{} of {MOST}", tokens.sum());
}
