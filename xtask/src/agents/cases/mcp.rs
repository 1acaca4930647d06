//! A server of the agent's own, behind `mcp-proxy`: a forbidden tool is refused, and a call that is
//! made over and over is ended. No hooks: the proxy alone stands between.

use std::fs;
use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::{Value, json};

use super::{BOTH, Case, ended_well, holds, one_task, replays};
use crate::agents::agent::Server;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, put};

pub(super) const CASE: Case = Case {
    name: "mcp",
    about: "a server of the agent's behind mcp-proxy, without hooks",
    agents: BOTH,
    run,
};

const RULES: &str = "prefix_rule(\n    pattern = [\"mcp\", \"files\", \"delete\"],\n    decision = \"forbidden\",\n    justification = \"JUSTIFIED: nothing is deleted here\",\n)\n";
/// The server of our own tests.
const SERVER: &str = include_str!("../../../../crates/cli/tests/it/mcp_server.py");
/// Calls of the looping tool.
const LOOPS: usize = 24;

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let call = |tool: &str, input: Value| {
        vec![ScriptedModelAction::Call {
            tool: format!("mcp__files__{tool}"),
            input,
        }]
    };
    let mut script = vec![
        call("echo", json!({ "text": "hello" })),
        call("delete", json!({ "name": "x" })),
    ];
    script.extend((0..LOOPS).map(|_| call("echo", json!({ "text": "again" }))));
    script.push(ScriptedModelAction::scripted_text_response("Finished."));
    let all = script.len();
    let world = stage.world(Setup {
        name: "main",
        files: &[("rules/mcp.rules", RULES)],
        config: "[policy]\nrules = [\"rules/*.rules\"]\n".to_owned(),
        hooks: &[],
        script: model_script_from_rounds(script),
    })?;
    let server = world.folder.join("server.py");
    put(&server, SERVER)?;
    let log = world.folder.join("server");
    stage.agent.attach(
        &world,
        &Server {
            name: "files",
            command: stage.programs.checkrein.clone(),
            arguments: ["mcp-proxy", "--", "python3"]
                .map(str::to_owned)
                .into_iter()
                .chain([server.display().to_string()])
                .collect(),
            env: vec![("MCP_LOG", log.display().to_string())],
        },
    )?;
    let ran = world.headless("Use the files server.")?;
    ended_well(report, &world, &ran);
    let fresh: Vec<String> = {
        let seen = world.model.model_request_log();
        report.equal(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &all,
        );
        seen.requests
            .iter()
            .map(|asked| asked.new_text.clone())
            .collect()
    };
    let told = |at: usize| fresh.get(at).map_or("", String::as_str);
    holds(report, "an allowed tool answers", told(1), "hello");
    holds(
        report,
        "the reason of the forbidden one reaches the model",
        told(2),
        "JUSTIFIED: nothing is deleted here",
    );
    let whole = fresh.join("\n");
    holds(
        report,
        "the loop is spoken of",
        &whole,
        "you have made this very call 10 times of late",
    );
    holds(
        report,
        "and ended",
        &whole,
        "this task is over and no further tool of this server will run",
    );
    let log = fs::read_to_string(log).unwrap_or_default();
    let count = |line: &str| log.lines().filter(|logged| *logged == line).count();
    report.equal(
        "the server never hears of the forbidden one",
        &count("call delete"),
        &0,
    );
    let echoes = count("call echo");
    report.check(
        "and of the looping one no more after its end",
        (10..=LOOPS).contains(&echoes),
        &echoes.to_string(),
    );
    let task = one_task(report, &world, "loop_detected generic_repeat")?;
    replays(report, &world, &task)
}
