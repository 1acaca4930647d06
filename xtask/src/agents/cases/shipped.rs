//! Tests the shipped policy as a person gets it: after `init`, and without any config. Destructive
//! commands are refused either way. What the policy asks about is asked only after `init`.

use std::io::{Error, Result};
use std::process::Command;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::Value;

use super::{AgentProbeCase, BOTH, check_agent_ended_cleanly, report_whether_text_contains};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "shipped",
    about: "the shipped policy after init, and what of it holds without a config",
    agents: BOTH,
    run: probe_shipped_policy,
};

/// A file in the home folder that the model tries to remove.
const CANARY: &str = "canary.txt";
/// Makes a file system on a disk that no machine has.
const DISK: &str = "mkfs.ext4 -F /dev/sdzz9";
const PUSH: &str = "git push -f origin HEAD:refs/heads/main";

fn probe_shipped_policy(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- a freshly initialised repo");
    let world = shipped_policy_probe_fixture(stage, "init", &[])?;
    let init = world.run_checkrein(&["init", "--agent", stage.agent.agent_name()])?;
    report.report_probe_check_result(
        "init ends well",
        init.status == Some(0),
        &format!("status {:?}\n{}{}", init.status, init.stdout, init.stderr),
    );
    let written = std::fs::read_to_string(world.repo.join("checkrein.toml"))?;
    report_whether_text_contains(
        report,
        "init names the policy",
        &written,
        "rules = [\"builtin:default\"]",
    );
    let ran = world.run_agent_headless("Clean up and publish.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    check_destruction_was_refused(report, &world);
    report.report_whether_as_expected(
        "nothing was pushed",
        &is_main_pushed_to_fixture_remote(&world)?,
        &false,
    );
    let ids = listed_approval_ids(&world)?;
    report.report_whether_as_expected("one question waits for a person", &ids.len(), &1);
    let id = ids.first().map_or("no id", String::as_str);
    report_whether_text_contains(
        report,
        "the refused push names its id",
        &new_text_in_model_request(&world, 3),
        id,
    );

    report.print_probe_case_note("-- no config at all");
    let world =
        self::shipped_policy_probe_fixture(stage, "without", &[ProbeHookInstallKind::User])?;
    let ran = world.run_agent_headless("Clean up and publish.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    check_destruction_was_refused(report, &world);
    report.report_whether_as_expected(
        "the push went through",
        &is_main_pushed_to_fixture_remote(&world)?,
        &true,
    );
    report.report_whether_as_expected("nothing waits", &listed_approval_ids(&world)?.len(), &0);
    Ok(())
}

fn shipped_policy_probe_fixture<'a>(
    stage: &'a ProbeCaseEnvironment<'a>,
    name: &'a str,
    hooks: &'a [ProbeHookInstallKind],
) -> Result<ProbeCaseFixture<'a>> {
    // If the command ran after all, it would remove this world's home folder and no other.
    let folder = stage.path_beside_probe_repo(name, "home");
    let home = folder.display();
    let remove = format!("case ~ in '{home}') rm -rf ~ ;; esac");
    let world = stage.create_probe_fixture(ProbeCaseSetup {
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
    // The push has to be able to succeed where nobody is asked.
    let remote = world.folder.join("remote.git");
    let remote = remote.to_string_lossy();
    for arguments in [
        &["init", "--quiet", "--bare", &remote][..],
        &["remote", "add", "origin", &remote],
    ] {
        let done = world.run_command_in_probe_fixture(Command::new("git").args(arguments))?;
        if done.status != Some(0) {
            return Err(Error::other(format!("git {arguments:?}: {}", done.stderr)));
        }
    }
    Ok(world)
}

/// Returns what the model was told after its `at`-th call.
fn new_text_in_model_request(world: &ProbeCaseFixture<'_>, at: usize) -> String {
    let seen = world.model.model_request_log();
    let asked = seen.requests.get(at).map(|asked| asked.new_text.clone());
    asked.unwrap_or_default()
}

fn check_destruction_was_refused(report: &mut ProbeCaseCheckCounts, world: &ProbeCaseFixture<'_>) {
    let canary = world.home.join(CANARY).exists();
    report.report_whether_as_expected("the home folder is still there", &canary, &true);
    for (at, what, why) in [
        (1, "the removed home", "removes a home folder"),
        (2, "the new file system", "destroys what is on a disk"),
    ] {
        let told = new_text_in_model_request(world, at);
        report_whether_text_contains(report, &format!("{what}: the reason"), &told, why);
        report_whether_text_contains(
            report,
            &format!("{what}: the rule"),
            &told,
            "builtin:default",
        );
    }
}

fn is_main_pushed_to_fixture_remote(world: &ProbeCaseFixture<'_>) -> Result<bool> {
    let remote = world.folder.join("remote.git");
    let listed =
        world.run_command_in_probe_fixture(Command::new("git").arg("ls-remote").arg(remote))?;
    Ok(listed.stdout.contains("refs/heads/main"))
}

fn listed_approval_ids(world: &ProbeCaseFixture<'_>) -> Result<Vec<String>> {
    let listed = world.run_checkrein(&["approvals", "--json"])?;
    let said: Value = serde_json::from_str(&listed.stdout).map_err(Error::other)?;
    let rows = said.get("approvals").and_then(Value::as_array);
    let ids = rows.into_iter().flatten();
    Ok(ids
        .filter_map(|row| row.get("id")?.as_str().map(str::to_owned))
        .collect())
}
