//! A forbidden command, plain and hidden in a subshell: it must not run, and the model must
//! be told why.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, JUSTIFICATION, RULES, ended_well, holds, one_task, replays, verifier};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "deny",
    about: "a rule forbids a command",
    agents: BOTH,
    run,
};

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            verifier("test -f allowed.txt")
        ),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo FORBIDDEN_MARKER > denied.txt"),
            ScriptedModelAction::scripted_shell_response(
                "true && (cd . ; 'echo' FORBIDDEN_MARKER > hidden.txt)",
            ),
            ScriptedModelAction::scripted_shell_response("echo fine > allowed.txt"),
            ScriptedModelAction::scripted_text_response("Finished."),
        ]),
    })?;
    let ran = world.headless("Do the marker task.")?;
    ended_well(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.equal(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &4,
        );
        for (at, what) in [(1, "plain"), (2, "in a subshell, quoted")] {
            let fresh = seen
                .requests
                .get(at)
                .map(|asked| asked.new_text.clone())
                .unwrap_or_default();
            holds(
                report,
                &format!("the justification reaches the model: {what}"),
                &fresh,
                JUSTIFICATION,
            );
        }
    }
    report.equal(
        "the plain one was not executed",
        &world.has("denied.txt"),
        &false,
    );
    report.equal(
        "the hidden one was not executed",
        &world.has("hidden.txt"),
        &false,
    );
    report.equal("an allowed one was", &world.has("allowed.txt"), &true);
    let task = one_task(report, &world, "task_complete")?;
    replays(report, &world, &task)
}
