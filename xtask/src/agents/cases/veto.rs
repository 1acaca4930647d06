//! Tests a second model that vetoes one call and rewrites another: the agent obeys. Without that
//! model every call runs, and its failure is recorded.

use std::io::{Error, Result};

use checkrein_scripted::reviewer::{ScriptedReviewer, last_message_text, request_number_in_prompt};
use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::json;

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    report_whether_text_contains,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "veto",
    about: "a second model vetoes a call and rewrites another",
    agents: BOTH,
    run: probe_model_veto,
};

const REASON: &str = "the goal says draft only";

fn probe_model_veto(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let setup = |name| ProbeCaseSetup {
        name,
        files: &[("README.md", "a fox\n")],
        // The default scope, `risky`, would not ask about a `touch` in the project.
        config: "[veto]\nenabled = true\nmodel = \"ollama/second\"\nscope = \"all\"\n".to_owned(),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("touch vetoed.txt"),
            ScriptedModelAction::scripted_shell_response("touch wrong.txt"),
            ScriptedModelAction::scripted_shell_response("touch right.txt"),
            ScriptedModelAction::scripted_text_response("The draft is there."),
        ]),
    };
    let second = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        // The call comes last in the prompt; what precedes it may name the other files.
        let call = last_message_text(body).rsplit("\ntool: ").next().unwrap_or_default();
        let (verdict, arguments) = if call.contains("vetoed.txt") {
            ("veto", None)
        } else if call.contains("wrong.txt") {
            ("rewrite", Some("{\"command\": \"touch right.txt\"}"))
        } else {
            ("allow", None)
        };
        Ok(json!({
            "ref": request_number_in_prompt(body), "verdict": verdict, "confidence": 0.92, "reason": REASON,
            "new_args": arguments,
        })
        .to_string())
    })
    .map_err(Error::other)?;
    let mut world = stage.create_probe_fixture(setup("main"))?;
    world.env.push(("OLLAMA_HOST", second.base_url()));
    let ran = world.run_agent_headless("Draft the note.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_whether_as_expected(
        "the second model was asked about each call",
        &second.received_request_bodies().len(),
        &3,
    );
    report.report_probe_check_result(
        "the vetoed call did not run",
        !world.has_repo_file("vetoed.txt"),
        "no vetoed.txt",
    );
    report.report_probe_check_result(
        "the rewritten one did not run as it was",
        !world.has_repo_file("wrong.txt"),
        "no wrong.txt",
    );
    report.report_probe_check_result(
        "the one it would have instead did",
        world.has_repo_file("right.txt"),
        "right.txt",
    );
    let heard = world
        .model
        .model_request_log()
        .requests
        .last()
        .map(|asked| asked.full_text.clone());
    let heard = heard.unwrap_or_default();
    report_whether_text_contains(report, "the agent was told why", &heard, "[verifier-veto]");
    report_whether_text_contains(report, "and what instead", &heard, "touch right.txt");
    for task in world.tasks_listed_by_sessions_command()? {
        check_recorded_session_replay(report, &world, &task)?;
    }

    drop(second);
    let mut world = stage.create_probe_fixture(setup("gone"))?;
    world
        .env
        // No server listens on this port.
        .push(("OLLAMA_HOST", "http://127.0.0.1:9".to_owned()));
    let ran = world.run_agent_headless("Draft the note.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    report.report_probe_check_result(
        "without it every call runs",
        world.has_repo_file("vetoed.txt"),
        "vetoed.txt",
    );
    let shown = world.run_checkrein(&["show"])?.stdout;
    report_whether_text_contains(
        report,
        "what happened is recorded",
        &shown,
        "said nothing that counts",
    );
    for task in world.tasks_listed_by_sessions_command()? {
        check_recorded_session_replay(report, &world, &task)?;
    }
    Ok(())
}
