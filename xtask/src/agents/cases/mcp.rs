//! Tests an MCP server of the agent's own behind `mcp-proxy`, without hooks. A forbidden tool is
//! refused, and a call that is repeated over and over ends the task.

use std::fs;
use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::{Value, json};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, report_whether_text_contains,
};
use crate::agents::agent::McpServerEntry;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, write_file};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "mcp",
    about: "a server of the agent's behind mcp-proxy, without hooks",
    agents: BOTH,
    run: probe_mcp_proxy,
};

const RULES: &str = "prefix_rule(\n    pattern = [\"mcp\", \"files\", \"delete\"],\n    decision = \"forbidden\",\n    justification = \"JUSTIFIED: nothing is deleted here\",\n)\n";
/// The server of our own tests.
const SERVER: &str = include_str!("../../../../crates/cli/tests/it/mcp_server.py");
/// Calls of the looping tool: more than the twenty equal ones that are critical.
const LOOPS: usize = 24;

fn probe_mcp_proxy(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
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
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("rules/mcp.rules", RULES)],
        config: "[policy]\nrules = [\"rules/*.rules\"]\n".to_owned(),
        hooks: &[],
        script: model_script_from_rounds(script),
    })?;
    let server = world.folder.join("server.py");
    write_file(&server, SERVER)?;
    let log = world.folder.join("server");
    stage.agent.add_mcp_server_to_tested_agent(
        &world,
        &McpServerEntry {
            name: "files",
            command: stage.programs.checkrein.clone(),
            arguments: ["mcp-proxy", "--", "python3"]
                .map(str::to_owned)
                .into_iter()
                .chain([server.display().to_string()])
                .collect(),
            // The server's own log shows which calls reached it.
            env: vec![("MCP_LOG", log.display().to_string())],
        },
    )?;
    let ran = world.run_agent_headless("Use the files server.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let fresh: Vec<String> = {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
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
    report_whether_text_contains(report, "an allowed tool answers", told(1), "hello");
    report_whether_text_contains(
        report,
        "the reason of the forbidden one reaches the model",
        told(2),
        "JUSTIFIED: nothing is deleted here",
    );
    let whole = fresh.join("\n");
    report_whether_text_contains(
        report,
        "the loop is spoken of",
        &whole,
        "you have made this very call 10 times of late",
    );
    report_whether_text_contains(
        report,
        "and ended",
        &whole,
        "this task is over and no further tool of this server will run",
    );
    let log = fs::read_to_string(log).unwrap_or_default();
    let count = |line: &str| log.lines().filter(|logged| *logged == line).count();
    report.report_whether_as_expected(
        "the server never hears of the forbidden one",
        &count("call delete"),
        &0,
    );
    // One `echo` came before the loop, so 25 calls were made and at most 24 may arrive.
    let echoes = count("call echo");
    report.report_probe_check_result(
        "and of the looping one no more after its end",
        (10..=LOOPS).contains(&echoes),
        &echoes.to_string(),
    );
    let task = check_single_task_ended_as(report, &world, "loop_detected generic_repeat")?;
    check_recorded_session_replay(report, &world, &task)
}
