//! A second model vetoes one call and would have another otherwise: the agent obeys. Then it is
//! gone, which changes nothing but what is recorded.

use std::io::{Error, Result};

use checkrein_scripted::witness::{ScriptedReviewer, request_prompt_text, verdict_request_number};
use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::json;

use super::{BOTH, Case, ended_well, holds, replays};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "veto",
    about: "a second model vetoes a call and rewrites another",
    agents: BOTH,
    run,
};

const REASON: &str = "the goal says draft only";

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let setup = |name| Setup {
        name,
        files: &[("README.md", "a fox\n")],
        config: "[veto]\nenabled = true\nmodel = \"ollama/second\"\nscope = \"all\"\n".to_owned(),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("touch vetoed.txt"),
            ScriptedModelAction::scripted_shell_response("touch wrong.txt"),
            ScriptedModelAction::scripted_shell_response("touch right.txt"),
            ScriptedModelAction::scripted_text_response("The draft is there."),
        ]),
    };
    let second = ScriptedReviewer::start_scripted_model_server(|body, _| {
        let call = request_prompt_text(body).rsplit("\ntool: ").next().unwrap_or_default();
        let (verdict, arguments) = if call.contains("vetoed.txt") {
            ("veto", None)
        } else if call.contains("wrong.txt") {
            ("rewrite", Some("{\"command\": \"touch right.txt\"}"))
        } else {
            ("allow", None)
        };
        Ok(json!({
            "ref": verdict_request_number(body), "verdict": verdict, "confidence": 0.92, "reason": REASON,
            "new_args": arguments,
        })
        .to_string())
    })
    .map_err(Error::other)?;
    let mut world = stage.world(setup("main"))?;
    world.env.push(("OLLAMA_HOST", second.base_url()));
    let ran = world.headless("Draft the note.")?;
    ended_well(report, &world, &ran);
    report.equal(
        "the second model was asked about each call",
        &second.received_request_bodies().len(),
        &3,
    );
    report.check(
        "the vetoed call did not run",
        !world.has("vetoed.txt"),
        "no vetoed.txt",
    );
    report.check(
        "the rewritten one did not run as it was",
        !world.has("wrong.txt"),
        "no wrong.txt",
    );
    report.check(
        "the one it would have instead did",
        world.has("right.txt"),
        "right.txt",
    );
    let heard = world
        .model
        .model_request_log()
        .requests
        .last()
        .map(|asked| asked.full_text.clone());
    let heard = heard.unwrap_or_default();
    holds(report, "the agent was told why", &heard, "[verifier-veto]");
    holds(report, "and what instead", &heard, "touch right.txt");
    for task in world.tasks()? {
        replays(report, &world, &task)?;
    }

    drop(second);
    let mut world = stage.world(setup("gone"))?;
    world
        .env
        .push(("OLLAMA_HOST", "http://127.0.0.1:9".to_owned()));
    let ran = world.headless("Draft the note.")?;
    ended_well(report, &world, &ran);
    report.check(
        "without it every call runs",
        world.has("vetoed.txt"),
        "vetoed.txt",
    );
    let shown = world.checkrein(&["show"])?.stdout;
    holds(
        report,
        "what happened is recorded",
        &shown,
        "said nothing that counts",
    );
    for task in world.tasks()? {
        replays(report, &world, &task)?;
    }
    Ok(())
}
