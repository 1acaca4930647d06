//! Kills the agent's process while a check that takes longer than its hook is running. No part of
//! it may go on, and the next session has to find everything in order.

use std::fs::File;
use std::io::Result;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use checkrein_scripted::{ScriptedModelAction, ScriptedModelFn};

use super::long::shorten_hook_deadlines;
use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, ending_text_from_task_json,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "killed",
    about: "the agent is killed at five moments of a long check",
    agents: BOTH,
    run: probe_killed_agent,
};

/// Milliseconds after the check has begun. The hook has 8 s and answers a fifth before: it still
/// waits (200, 3,000), its answer is due (6,500), or the owner is alone with the check.
const MOMENTS_MS: [u64; 5] = [200, 3_000, 6_500, 8_000, 9_500];
/// The longest time that a check may outlive its agent.
const MAX_AFTERLIFE: Duration = Duration::from_secs(5);
/// How often is looked: no event reports the processes of others.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A check begins within this time.
const START_LIMIT: Duration = Duration::from_secs(60);
const PROMPT: &str = "Make fixed.txt.";

fn probe_killed_agent(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    for moment in MOMENTS_MS {
        kill_agent_and_probe(stage, report, moment)?;
    }
    Ok(())
}

fn kill_agent_and_probe(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
    moment: u64,
) -> Result<()> {
    let name = format!("killed-{moment}");
    let (lock, begun) = (
        stage.path_beside_probe_repo(&name, "lock"),
        stage.path_beside_probe_repo(&name, "begun"),
    );
    let overlap = stage.path_beside_probe_repo(&name, "overlap");
    // The check takes longer than its hook may. A second run at the same time does not get the lock
    // and leaves a trace.
    let check = format!(
        "echo begun >> '{}'; flock --nonblock '{}' sleep 11 || echo two >> '{}'; test -f fixed.txt",
        begun.display(),
        lock.display(),
        overlap.display()
    );
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: &name,
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text(&check),
        hooks: &[ProbeHookInstallKind::User],
        script: patient_model_script(),
    })?;
    shorten_hook_deadlines(&world, report)?;

    let mut agent = spawn_agent(&world)?;
    let until = Instant::now() + START_LIMIT;
    while !begun.exists() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
    // The moment is what the case is about: there is no event to wait for.
    std::thread::sleep(Duration::from_millis(moment));
    report.report_probe_check_result(
        &format!("after {moment} ms the agent is at work"),
        agent.try_wait()?.is_none(),
        "its process has ended",
    );
    // This is SIGKILL: the agent cannot tell its hook, which has to notice by itself.
    agent.kill()?;
    agent.wait()?;
    let killed = Instant::now();
    let mut left = process_command_lines_with_path(&lock)?;
    while !left.is_empty() && killed.elapsed() < MAX_AFTERLIFE {
        std::thread::sleep(POLL_INTERVAL);
        left = process_command_lines_with_path(&lock)?;
    }
    report.report_probe_check_result("5 s later no check runs", left.is_empty(), &left.join("\n"));

    // If the killed session still held the claim on the check, this one would get no verdict.
    let ran = world.run_agent_headless(PROMPT)?;
    check_agent_ended_cleanly(report, &world, &ran);
    let tasks = world.tasks_listed_by_sessions_command()?;
    let task = tasks.last().cloned().unwrap_or_default();
    report.report_whether_as_expected(
        "the next session ends",
        &ending_text_from_task_json(&task),
        &"task_complete".to_owned(),
    );
    report.report_probe_check_result("never two at once", !overlap.exists(), "they overlap");
    for task in &tasks {
        check_recorded_session_replay(report, &world, task)?;
    }
    Ok(())
}

/// Returns the model's script: it does what it is asked, and waits while a check is running.
fn patient_model_script() -> ScriptedModelFn {
    Box::new(|asked| {
        if asked.new_text.contains(PROMPT) {
            // The content is a time, so that the second session changes the file as well.
            ScriptedModelAction::scripted_shell_response("date +%N > fixed.txt")
        } else if asked.new_text.contains("still running") {
            ScriptedModelAction::scripted_shell_response("sleep 2")
        } else {
            ScriptedModelAction::scripted_text_response("Done.")
        }
    })
}

// `run_agent_headless` would wait for the end of the agent.
fn spawn_agent(world: &ProbeCaseFixture<'_>) -> Result<std::process::Child> {
    let mut command = Command::new(&world.stage.program);
    command.args(world.stage.agent.headless_arguments(PROMPT));
    world.isolate_environment(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(File::create(world.folder.join("killed.stdout"))?)
        .stderr(File::create(world.folder.join("killed.stderr"))?)
        .spawn()
}

/// Returns the command lines of all processes that contain the path.
fn process_command_lines_with_path(path: &Path) -> Result<Vec<String>> {
    let path = path.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        if line.contains(&path) {
            found.push(line);
        }
    }
    Ok(found)
}
