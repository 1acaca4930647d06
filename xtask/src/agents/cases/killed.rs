//! The agent's own process is killed while a check that is longer than its hook is running: nothing of it goes on,
//! and the next session finds everything in order.

use std::fs::File;
use std::io::Result;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use checkrein_scripted::{ModelScript, ScriptedModelAction};

use super::long::short_hooks;
use super::{BOTH, Case, ended_well, replays, verifier};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, World, ending};

pub(super) const CASE: Case = Case {
    name: "killed",
    about: "the agent is killed at five moments of a long check",
    agents: BOTH,
    run,
};

/// After the check has begun: while the hook waits, as its answer is due, and while the owner is alone.
const MOMENTS_MS: [u64; 5] = [200, 3_000, 6_500, 8_000, 9_500];
/// After so long nothing of it runs any more.
const AFTERLIFE: Duration = Duration::from_secs(5);
/// No event tells of another's processes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// A check begins within this time.
const PATIENCE: Duration = Duration::from_secs(60);
const PROMPT: &str = "Make fixed.txt.";

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    for moment in MOMENTS_MS {
        killed_after(stage, report, moment)?;
    }
    Ok(())
}

fn killed_after(stage: &Stage<'_>, report: &mut Report, moment: u64) -> Result<()> {
    let name = format!("killed-{moment}");
    let (lock, begun) = (stage.beside(&name, "lock"), stage.beside(&name, "begun"));
    let overlap = stage.beside(&name, "overlap");
    let check = format!(
        "echo begun >> '{}'; flock --nonblock '{}' sleep 11 || echo two >> '{}'; test -f fixed.txt",
        begun.display(),
        lock.display(),
        overlap.display()
    );
    let world = stage.world(Setup {
        name: &name,
        files: &[("README.md", "a repo\n")],
        config: verifier(&check),
        hooks: &[Hooks::User],
        script: script(),
    })?;
    short_hooks(&world, report)?;

    let mut agent = start(&world)?;
    let until = Instant::now() + PATIENCE;
    while !begun.exists() && Instant::now() < until {
        std::thread::sleep(BETWEEN_LOOKS);
    }
    // The moment is what the case is about: there is no event to wait for.
    std::thread::sleep(Duration::from_millis(moment));
    report.check(
        &format!("after {moment} ms the agent is at work"),
        agent.try_wait()?.is_none(),
        "its process has ended",
    );
    agent.kill()?;
    agent.wait()?;
    let killed = Instant::now();
    let mut left = processes_that_name(&lock)?;
    while !left.is_empty() && killed.elapsed() < AFTERLIFE {
        std::thread::sleep(BETWEEN_LOOKS);
        left = processes_that_name(&lock)?;
    }
    report.check("5 s later no check runs", left.is_empty(), &left.join("\n"));

    let ran = world.headless(PROMPT)?;
    ended_well(report, &world, &ran);
    let tasks = world.tasks()?;
    let task = tasks.last().cloned().unwrap_or_default();
    report.equal(
        "the next session ends",
        &ending(&task),
        &"task_complete".to_owned(),
    );
    report.check("never two at once", !overlap.exists(), "they overlap");
    for task in &tasks {
        replays(report, &world, task)?;
    }
    Ok(())
}

/// Does what it is asked, and waits a little where something still runs.
fn script() -> ModelScript {
    Box::new(|asked| {
        if asked.new_text.contains(PROMPT) {
            ScriptedModelAction::scripted_shell_response("date +%N > fixed.txt")
        } else if asked.new_text.contains("still running") {
            ScriptedModelAction::scripted_shell_response("sleep 2")
        } else {
            ScriptedModelAction::scripted_text_response("Done.")
        }
    })
}

fn start(world: &World<'_>) -> Result<std::process::Child> {
    let mut command = Command::new(&world.stage.program);
    command.args(world.stage.agent.headless(PROMPT));
    world.clean(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(File::create(world.folder.join("killed.stdout"))?)
        .stderr(File::create(world.folder.join("killed.stderr"))?)
        .spawn()
}

/// The command lines of processes that have this path in theirs.
fn processes_that_name(path: &Path) -> Result<Vec<String>> {
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
