//! Says which level of protection is in force here, and which can be had: L1 hooks, L2 `run
//! --confine`, L3 CI.

use std::path::{Path, PathBuf};

use checkrein_runtime::durable_file;

use super::agents::PathShortener;
use super::finding::DoctorFinding;
use crate::confine;

/// Files and folders that describe pipelines.
const PIPELINES: &[&str] = &[
    ".github/workflows",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".buildkite",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".woodpecker.yml",
    ".forgejo/workflows",
    ".gitea/workflows",
    "Jenkinsfile",
    ".ci",
];

pub(super) fn protection_level_findings(
    near: &PathShortener,
    hooked: bool,
    required: bool,
    scratch: &Path,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let pipeline = find_ci_pipeline_with_checkrein(&near.root);
    // A pipeline counts without hooks too: it checks what merges, whatever the agent did.
    let level = match (&pipeline, hooked) {
        (Some(_), _) => "L3: CI checks what merges",
        (None, true) => "L1: hooks, with the agent under your own account",
        (None, false) => "none: no hook that holds, no pipeline",
    };
    let level = DoctorFinding::ok_finding("repo", "level", format!("level in force: {level}"));
    findings.push(match &pipeline {
        Some(file) => level.with_finding_place(near.short_path(file)),
        None => level
            .with_finding_consequence("an agent that means to can get past hooks; what merges is safe only in CI")
            .with_fix(match required {
                true => "run `checkrein check` in a CI workflow",
                false => "run `checkrein check` in a CI workflow; nothing is required yet, so make a check required first",
            }),
    });
    findings.push(
        match confine::detect_confinement_method(scratch, &near.top) {
            Ok(how) => DoctorFinding::ok_finding(
                "repo",
                "confine",
                format!("L2, run --confine, can be had here: {how}"),
            ),
            Err(error) => DoctorFinding::ok_finding(
                "repo",
                "confine",
                "L2, run --confine, cannot be had here",
            )
            .with_finding_consequence(error.what)
            .with_fix(error.hint.unwrap_or_default()),
        },
    );
    findings
}

/// Returns the pipeline that runs our checks.
fn find_ci_pipeline_with_checkrein(root: &Path) -> Option<PathBuf> {
    PIPELINES.iter().find_map(|name| {
        let path = root.join(name);
        let files: Vec<PathBuf> = if path.is_dir() {
            let entries = std::fs::read_dir(&path).ok()?.flatten();
            entries.map(|entry| entry.path()).collect()
        } else {
            vec![path]
        };
        files.into_iter().find(|file| {
            // Only a pipeline that names our command is known to run it; any other may check
            // nothing.
            let text = durable_file::read_limited_text_file(file, durable_file::MAX_CONFIG_BYTES);
            matches!(text, Ok(Some(text)) if text.contains("checkrein check"))
        })
    })
}
