//! Tests the first hour on ten small projects that do not know checkrein. After `checkrein init`
//! the agent breaks something, claims to be done, is sent back by the project's own tests, and
//! fixes it. Nobody edits a file. One project has a failing test from the start.

mod projects;

use std::io::Result;
use std::process::Command;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use self::projects::{PROJECTS, SampleProject};
use super::{AgentProbeCase, BOTH, check_agent_ended_cleanly, report_whether_text_contains};
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, ending_text_from_task_json};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "first-hour",
    about: "ten projects: init, then the agent; at least seven end task_complete",
    agents: BOTH,
    run: run_first_hour_case,
};

fn run_first_hour_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let (mut complete, mut played) = (0, 0);
    for project in PROJECTS {
        if let Some(missing) = project
            .needs
            .iter()
            .find(|program| !command_succeeds(program))
        {
            report.print_probe_case_note(&format!(
                "-- {}: left out, {missing} is not here",
                project.name
            ));
            continue;
        }
        played += 1;
        let ended = probe_first_hour_on_project(stage, report, project)?;
        complete += usize::from(ended == "task_complete");
    }
    // Nine can, as one project is red. The bound is about all ten: without Node.js only six can.
    report.report_probe_check_result(
        "at least 7 of 10 end task_complete",
        complete >= 7,
        &format!("{complete} of {played}"),
    );
    Ok(())
}

fn probe_first_hour_on_project(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
    project: &SampleProject,
) -> Result<String> {
    report.print_probe_case_note(&format!("-- {}", project.name));
    let edit = |old: &str, new: &str| {
        vec![ScriptedModelAction::Replace {
            path: project.source.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        }]
    };
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: project.name,
        files: project.files,
        // `init` has to write the config and the hooks.
        config: String::new(),
        hooks: &[],
        script: model_script_from_rounds(vec![
            vec![ScriptedModelAction::Read(project.source.to_owned())],
            edit(project.right, project.wrong),
            ScriptedModelAction::scripted_text_response(
                "Done, it is much clearer now. All tests pass.",
            ),
            edit(project.wrong, project.right),
            ScriptedModelAction::scripted_text_response("That was wrong; now it is right."),
        ]),
    })?;
    for line in project.prepare {
        // A person has installed the dependencies before, with a registry in reach. The environment
        // of the agent reaches none.
        let ran = Command::new("sh")
            .args(["-c", line])
            .current_dir(&world.repo)
            .output()?;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        report.report_probe_check_result(line, ran.status.success(), &said);
    }
    let init = world.run_checkrein(&["init", "--agent", stage.agent.agent_name()])?;
    std::fs::write(
        world.folder.join("init.txt"),
        format!("{}{}", init.stdout, init.stderr),
    )?;
    report.report_probe_check_result(
        "init ends well",
        init.status == Some(0),
        &format!("status {:?}\n{}{}", init.status, init.stdout, init.stderr),
    );
    let ran = world.run_agent_headless("Make the code clearer.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    let tasks = world.tasks_listed_by_sessions_command()?;
    let ended = tasks
        .first()
        .map_or("no task".to_owned(), ending_text_from_task_json);
    // A check that fails at the base is only advisory after `init`, so no work can be verified.
    if project.red {
        let honest = ended.starts_with("unverified");
        report.report_probe_check_result("it was red before, and ends unverified", honest, &ended);
        return Ok(ended);
    }
    report.report_probe_check_result("it ends task_complete", ended == "task_complete", &ended);
    let seen = world.model.model_request_log();
    // The requests before it were answered by a read, the wrong edit and the false claim.
    let after = seen.requests.get(3).cloned().unwrap_or_default();
    report_whether_text_contains(
        report,
        "the project's own test sent it back",
        &after.new_text,
        project.test,
    );
    Ok(ended)
}

fn command_succeeds(program: &str) -> bool {
    let words: Vec<&str> = program.split(' ').collect();
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}
