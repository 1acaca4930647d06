//! The level of protection that can be had here: L1 hooks, L2 `run --confine`, L3 CI.

use std::path::{Path, PathBuf};

use checkrein_runtime::whole;

use super::finding::Finding;
use super::places::Near;
use crate::confine;

/// Where pipelines are described.
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

pub(super) fn look(near: &Near, hooked: bool, required: bool, scratch: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let pipeline = pipeline(&near.root);
    let level = match (&pipeline, hooked) {
        (Some(_), _) => "L3: CI checks what merges",
        (None, true) => "L1: hooks, with the agent under your own account",
        (None, false) => "none: no hook that holds, no pipeline",
    };
    let level = Finding::ok("repo", "level", format!("level in force: {level}"));
    findings.push(match &pipeline {
        Some(file) => level.at(near.short(file)),
        None => level
            .so("an agent that means to can get past hooks; what merges is safe only in CI")
            .mend(match required {
                true => "run `checkrein check` in a CI workflow",
                false => "run `checkrein check` in a CI workflow; nothing is required yet, so make a check required first",
            }),
    });
    findings.push(match confine::possible(scratch, &near.top) {
        Ok(how) => Finding::ok(
            "repo",
            "confine",
            format!("L2, run --confine, can be had here: {how}"),
        ),
        Err(error) => Finding::ok("repo", "confine", "L2, run --confine, cannot be had here")
            .so(error.what)
            .mend(error.hint.unwrap_or_default()),
    });
    findings
}

/// The pipeline that runs our checks.
fn pipeline(root: &Path) -> Option<PathBuf> {
    PIPELINES.iter().find_map(|name| {
        let path = root.join(name);
        let files: Vec<PathBuf> = if path.is_dir() {
            let entries = std::fs::read_dir(&path).ok()?.flatten();
            entries.map(|entry| entry.path()).collect()
        } else {
            vec![path]
        };
        files.into_iter().find(|file| {
            let text = whole::read_limited_text_file(file, whole::MAX_CONFIG_BYTES);
            matches!(text, Ok(Some(text)) if text.contains("checkrein check"))
        })
    })
}
