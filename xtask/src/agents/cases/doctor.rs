//! Tests `checkrein doctor` with the real agent. Where all is well the canary is caught. Where
//! doctor names a mistake that the agent accepts in silence, the canary really gets away.
#![expect(
    clippy::indexing_slicing,
    reason = "the settings are our own, a few lines further up"
)]

use std::io::{Error, Result};
use std::path::Path;

use checkrein_adapters::{self as adapters, codex_trust};
use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};
use serde_json::{Value, json};

use super::{AgentProbeCase, BOTH, tests_verifier_config_text};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, write_file};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "doctor",
    about: "the canary is caught, or doctor says why not",
    agents: BOTH,
    run: run_doctor_case,
};

/// The number of `ok` findings about a canary that is caught.
const EXPECTED_SIGHTS: usize = 6;

/// A mistake in the settings: doctor's name for it, and the change that makes it.
type PlantedSettingsMistake = (&'static str, fn(&mut Value));

/// Mistakes that Claude Code says nothing about.
const CLAUDE_CODE: &[PlantedSettingsMistake] = &[
    ("bad_timeout", |settings| {
        settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!("60");
    }),
    ("flat_handler", |settings| {
        let group = &mut settings["hooks"]["PreToolUse"][0];
        *group = group["hooks"][0].take();
    }),
    ("matcher_never_matches", |settings| {
        // The tool is called `Bash`, and case counts.
        settings["hooks"]["PreToolUse"][0]["matcher"] = json!("bash");
    }),
    ("hooks_disabled", |settings| {
        settings["disableAllHooks"] = json!(true);
    }),
    ("hook_binary_missing", |settings| {
        settings["hooks"]["Stop"][0]["hooks"][0]["command"] = json!("/nowhere/checkrein");
    }),
    ("event_missing", |settings| {
        settings["hooks"]["Stop"] = json!([]);
    }),
];

/// Mistakes that Codex says nothing about.
const CODEX: &[PlantedSettingsMistake] = &[
    ("flat_handler", |settings| {
        let group = &mut settings["hooks"]["PreToolUse"][0];
        *group = group["hooks"][0].take();
    }),
    ("matcher_never_matches", |settings| {
        settings["hooks"]["PreToolUse"][0]["matcher"] = json!("bash");
    }),
    ("hook_untrusted", |settings| {
        // The timeout is part of what a person reviews, so the stored review no longer holds.
        let handler = &mut settings["hooks"]["Stop"][0]["hooks"][0];
        handler["timeout"] = json!(61);
    }),
];

fn run_doctor_case(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: tests_verifier_config_text("test -f README.md"),
        hooks: &[ProbeHookInstallKind::User],
        // Doctor starts a model of its own, so this one is never asked.
        script: model_script_from_rounds(vec![ScriptedModelAction::scripted_text_response(
            "Nobody asks me.",
        )]),
    })?;
    put_agent_on_path(stage)?;
    let codex = stage.agent.agent_name() == "codex";
    let file = world.home.join(stage.agent.hooks_file_relative_path());
    // Codex runs no hook that a person has not reviewed.
    if codex {
        write_codex_hook_trust(&world, &file)?;
    }
    let settings = std::fs::read_to_string(&file)?;

    let (status, findings) = run_doctor_and_parse_findings(&world)?;
    let wrong: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["status"] == "fault")
        .collect();
    report.report_probe_check_result(
        "all is well: no fault, status 0",
        status == Some(0) && wrong.is_empty(),
        &format!("status {status:?}, {wrong:?}"),
    );
    let seen = |finding: &&Value| finding["check"] == "firing" && finding["status"] == "ok";
    report.report_whether_as_expected(
        "the canary: everything is seen",
        &findings.iter().filter(seen).count(),
        &EXPECTED_SIGHTS,
    );
    report.report_whether_as_expected(
        "the settings are as they were",
        &std::fs::read_to_string(&file)?,
        &settings,
    );
    report.report_whether_as_expected(
        "the person's own records are as they were",
        &world.tasks_listed_by_sessions_command()?.len(),
        &0,
    );
    report.report_whether_as_expected(
        "the agent asked nobody but doctor's model",
        &world.model.model_request_log().requests.len(),
        &0,
    );
    let left = std::fs::read_dir(world.home.join(".cache/checkrein"))?.count();
    report.report_whether_as_expected("the throw-away folder is gone", &left, &0);

    // Each mistake is made in the good settings. Doctor has to name it with a remedy, and the
    // canary has to get away: otherwise the finding would be false.
    for (check, make) in if codex { CODEX } else { CLAUDE_CODE } {
        let mut mistaken: Value = serde_json::from_str(&settings)?;
        make(&mut mistaken);
        write_file(&file, &serde_json::to_string_pretty(&mistaken)?)?;
        let (status, findings) = run_doctor_and_parse_findings(&world)?;
        let fault = |name: &str| {
            findings
                .iter()
                .find(|finding| finding["check"] == name && finding["status"] == "fault")
        };
        let named = fault(check).is_some_and(|fault| !fault["mend"].is_null());
        let escaped = fault("firing").and_then(|fault| fault["so"].as_str());
        report.report_probe_check_result(
            &format!("{check}: named with its mend, and really so"),
            status == Some(1) && named && escaped.is_some(),
            &match escaped {
                Some(escaped) if named => escaped.to_owned(),
                _ => format!("status {status:?}, {findings:?}"),
            },
        );
    }
    // The entries that `init` writes have to pass, too. The others are removed first, because they
    // would catch the canary as well.
    std::fs::remove_file(&file)?;
    let initiated = world.run_checkrein(&["init", "--agent", stage.agent.agent_name()])?;
    report.report_probe_check_result(
        "init writes its hooks",
        initiated.status == Some(0),
        &initiated.stderr,
    );
    if codex {
        write_codex_hook_trust(
            &world,
            &world.repo.join(stage.agent.hooks_file_relative_path()),
        )?;
    }
    let (status, findings) = run_doctor_and_parse_findings(&world)?;
    report.report_probe_check_result(
        "and the canary is caught by them",
        status == Some(0) && findings.iter().filter(seen).count() == EXPECTED_SIGHTS,
        &format!("status {status:?}, {findings:?}"),
    );
    Ok(())
}

/// Links the agent into the first folder of the PATH, where doctor finds it by its own name.
fn put_agent_on_path(stage: &ProbeCaseEnvironment<'_>) -> Result<()> {
    let name = match stage.agent.agent_name() {
        "codex" => "codex",
        _ => "claude",
    };
    let folder = stage.programs.checkrein.parent();
    let link = folder.ok_or_else(|| Error::other("no folder"))?.join(name);
    if link.exists() {
        return Ok(());
    }
    create_symlink(&stage.program, &link)
}

#[cfg(unix)]
fn create_symlink(from: &Path, to: &Path) -> Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn create_symlink(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(|_| ())
}

/// Records a person's review of the hooks as they are, as Codex's terminal UI does.
fn write_codex_hook_trust(world: &ProbeCaseFixture<'_>, file: &Path) -> Result<()> {
    // The absolute path of the file is part of the key under which Codex keeps a review.
    let file = file.canonicalize()?;
    let bytes = std::fs::read(&file)?;
    let reading =
        adapters::find_adapter("codex").and_then(|codex| codex.parse_hook_settings(&bytes));
    let config = world.home.join(".codex/config.toml");
    let mut text = std::fs::read_to_string(&config)?;
    for hook in reading.iter().flat_map(|reading| &reading.hooks) {
        let key = codex_trust::codex_hook_trust_key(&file.display().to_string(), hook);
        if let (Some(key), Some(hash)) = (key, codex_trust::codex_hook_trust_hash(hook)) {
            text.push_str(&format!(
                "[hooks.state.{}]\ntrusted_hash = \"{hash}\"\n",
                Value::from(key)
            ));
        }
    }
    write_file(&config, &text)
}

fn run_doctor_and_parse_findings(
    world: &ProbeCaseFixture<'_>,
) -> Result<(Option<i32>, Vec<Value>)> {
    let said = world.run_checkrein(&[
        "doctor",
        "--agent",
        world.stage.agent.agent_name(),
        "--json",
    ])?;
    let document: Value = serde_json::from_str(&said.stdout)
        .map_err(|error| Error::other(format!("{error}: {}{}", said.stdout, said.stderr)))?;
    let findings = document["findings"].as_array().cloned();
    Ok((said.status, findings.unwrap_or_default()))
}
