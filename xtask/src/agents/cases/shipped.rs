//! The policy that is shipped, as a person gets it: after `init`, and without any config. What
//! destroys is refused either way; what the policy asks about only after `init`.

use std::io::{Error, Result};
use std::process::Command;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::Value;

use super::{BOTH, Case, ended_well, holds};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, World};

pub(super) const CASE: Case = Case {
    name: "shipped",
    about: "the shipped policy after init, and what of it holds without a config",
    agents: BOTH,
    run,
};

/// Lies in the home folder that is to be removed.
const CANARY: &str = "canary.txt";
/// No machine has it.
const DISK: &str = "mkfs.ext4 -F /dev/sdzz9";
const PUSH: &str = "git push -f origin HEAD:refs/heads/main";

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- a freshly initialised repo");
    let world = world(stage, "init", &[])?;
    let init = world.checkrein(&["init", "--agent", stage.agent.name()])?;
    report.check(
        "init ends well",
        init.status == Some(0),
        &format!("status {:?}\n{}{}", init.status, init.stdout, init.stderr),
    );
    let written = std::fs::read_to_string(world.repo.join("checkrein.toml"))?;
    holds(
        report,
        "init names the policy",
        &written,
        "rules = [\"builtin:default\"]",
    );
    let ran = world.headless("Clean up and publish.")?;
    ended_well(report, &world, &ran);
    refused(report, &world);
    report.equal("nothing was pushed", &is_pushed(&world)?, &false);
    let ids = waiting(&world)?;
    report.equal("one question waits for a person", &ids.len(), &1);
    let id = ids.first().map_or("no id", String::as_str);
    holds(
        report,
        "the refused push names its id",
        &told(&world, 3),
        id,
    );

    report.note("-- no config at all");
    let world = self::world(stage, "without", &[Hooks::User])?;
    let ran = world.headless("Clean up and publish.")?;
    ended_well(report, &world, &ran);
    refused(report, &world);
    report.equal("the push went through", &is_pushed(&world)?, &true);
    report.equal("nothing waits", &waiting(&world)?.len(), &0);
    Ok(())
}

fn world<'a>(stage: &'a Stage<'a>, name: &'a str, hooks: &'a [Hooks]) -> Result<World<'a>> {
    // Should it ever run, then only where the home is this world's own.
    let folder = stage.beside(name, "home");
    let home = folder.display();
    let remove = format!("case ~ in '{home}') rm -rf ~ ;; esac");
    let world = stage.world(Setup {
        name,
        files: &[("README.md", "a repo\n")],
        config: String::new(),
        hooks,
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response(&remove),
            ScriptedModelAction::scripted_shell_response(DISK),
            ScriptedModelAction::scripted_shell_response(PUSH),
            ScriptedModelAction::scripted_text_response("That is all."),
        ]),
    })?;
    std::fs::write(world.home.join(CANARY), "here\n")?;
    let remote = world.folder.join("remote.git");
    let remote = remote.to_string_lossy();
    for arguments in [
        &["init", "--quiet", "--bare", &remote][..],
        &["remote", "add", "origin", &remote],
    ] {
        let done = world.run(Command::new("git").args(arguments))?;
        if done.status != Some(0) {
            return Err(Error::other(format!("git {arguments:?}: {}", done.stderr)));
        }
    }
    Ok(world)
}

/// What the model was told after so many of its calls.
fn told(world: &World<'_>, at: usize) -> String {
    let seen = world.model.model_request_log();
    let asked = seen.requests.get(at).map(|asked| asked.new_text.clone());
    asked.unwrap_or_default()
}

fn refused(report: &mut Report, world: &World<'_>) {
    let canary = world.home.join(CANARY).exists();
    report.equal("the home folder is still there", &canary, &true);
    for (at, what, why) in [
        (1, "the removed home", "removes a home folder"),
        (2, "the new file system", "destroys what is on a disk"),
    ] {
        let told = told(world, at);
        holds(report, &format!("{what}: the reason"), &told, why);
        holds(
            report,
            &format!("{what}: the rule"),
            &told,
            "builtin:default",
        );
    }
}

fn is_pushed(world: &World<'_>) -> Result<bool> {
    let remote = world.folder.join("remote.git");
    let listed = world.run(Command::new("git").arg("ls-remote").arg(remote))?;
    Ok(listed.stdout.contains("refs/heads/main"))
}

fn waiting(world: &World<'_>) -> Result<Vec<String>> {
    let listed = world.checkrein(&["approvals", "--json"])?;
    let said: Value = serde_json::from_str(&listed.stdout).map_err(Error::other)?;
    let rows = said.get("approvals").and_then(Value::as_array);
    let ids = rows.into_iter().flatten();
    Ok(ids
        .filter_map(|row| row.get("id")?.as_str().map(str::to_owned))
        .collect())
}
