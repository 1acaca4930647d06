//! `everyday FOLDER`: measures how often the policy of a freshly initialised repo interrupts
//! everyday work. The command lines are drawn by a fixed seed from CI files and READMEs of public
//! repositories. `everyday.tsv` names these; they are no part of this repository. FOLDER holds each
//! as `OWNER+NAME`, a checkout of the commit that is named. (An archive leaves files out.)

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{EffectPolicy, RuleSet, evaluate_script};

/// Repository, commit, licence.
const REPOSITORIES: &str = include_str!("../everyday.tsv");
/// Seed of the draw.
const SEED: u64 = 20_261_123;
/// Number of lines that are drawn.
const SAMPLE_SIZE: usize = 400;
/// Most lines that may be interrupted, in thousandths.
const MAX_PER_MILLE: usize = 10;

pub(crate) fn measure_everyday_command_prompts(arguments: &[String]) -> Result<ExitCode, String> {
    let [folder] = arguments else {
        return Err("needs the folder of the repositories".to_owned());
    };
    let rows = REPOSITORIES.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = rows.filter_map(|row| row.split('\t').next()).collect();
    let mut all = BTreeSet::new();
    for name in &names {
        let root = Path::new(folder).join(name.replace('/', "+"));
        let lines = shell_commands_in_ci_and_readmes(&root)?;
        if lines.is_empty() {
            println!("{name}: no command line");
        }
        all.extend(lines);
    }
    let all: Vec<String> = all.into_iter().collect();
    let drawn = sample_random_lines(all.clone());
    let interrupted = commands_denied_or_prompted(&drawn);
    println!(
        "{} of {} everyday lines of {} repositories are interrupted (seed {SEED})",
        interrupted.len(),
        drawn.len(),
        names.len()
    );
    for (line, why) in &interrupted {
        println!("  {line}\n    {why}");
    }
    // The draw decides; the rate over all lines is printed beside it.
    let of_all = self::commands_denied_or_prompted(&all);
    let rate = of_all.len() * 10_000 / all.len().max(1);
    println!(
        "of all their {} lines {} are, {}.{:02} %:",
        all.len(),
        of_all.len(),
        rate / 100,
        rate % 100
    );
    for (line, why) in &of_all {
        println!("  {line}\n    {why}");
    }
    // A draw of fewer lines is no success: repositories are missing.
    let good =
        drawn.len() == SAMPLE_SIZE && interrupted.len() * 1000 <= MAX_PER_MILLE * drawn.len();
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Draws `SAMPLE_SIZE` lines, each with the same chance and none twice.
fn sample_random_lines(mut lines: Vec<String>) -> Vec<String> {
    let mut seed = SEED;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Only the high bits, since the low ones of this generator have short periods.
        usize::try_from(seed >> 33).unwrap_or(0) % below.max(1)
    };
    let mut drawn = Vec::new();
    while drawn.len() < SAMPLE_SIZE && !lines.is_empty() {
        let at = next(lines.len());
        drawn.push(lines.swap_remove(at));
    }
    drawn
}

/// Returns the lines that are refused or asked about, each with the reason.
fn commands_denied_or_prompted(lines: &[String]) -> Vec<(String, String)> {
    // The policy as `init` configures it.
    let rules = RuleSet::default().with_effect_policy(EffectPolicy {
        roots: vec!["/workspace/project".to_owned()],
        ..EffectPolicy::builtin_default_policy()
    });
    let judged = lines
        .iter()
        .map(|line| (line, evaluate_script(&rules, line)));
    judged
        .filter(|(_, facts)| facts.rule > Some(RuleDecision::Allow))
        .map(|(line, facts)| (line.clone(), facts.reason.unwrap_or_default()))
        .collect()
}

/// Returns the command lines of a repository's CI files and READMEs that a shell can read one by
/// one.
fn shell_commands_in_ci_and_readmes(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut lines = BTreeSet::new();
    for file in files_directly_in_folder(&root.join(".github/workflows"))? {
        let workflow = read_text_file(&file)?;
        if workflow_runs_on_changes(&workflow) {
            lines.extend(workflow_commands(&workflow));
        }
    }
    for file in files_directly_in_folder(root)? {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        // One language is enough: translated READMEs repeat the commands.
        let readme = matches!(
            name.to_ascii_lowercase().as_str(),
            "readme.md" | "readme.markdown" | "readme.rst" | "contributing.md"
        );
        if readme {
            lines.extend(fenced_commands(&read_text_file(&file)?));
        }
    }
    let mut kept = BTreeSet::new();
    for line in lines {
        if is_valid_bash_command(&line)? {
            kept.insert(line);
        }
    }
    Ok(kept)
}

fn files_directly_in_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    // A repository may have no workflows.
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_text_file(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether a workflow runs for changes, and not only for a tag, for a release, on a
/// schedule or by hand: nobody asks an agent for a release every day.
fn workflow_runs_on_changes(workflow: &str) -> bool {
    // A line of the top level ends the block of `on:`; list items may stand there unindented.
    let is_at_top = |line: &&str| !line.starts_with([' ', '#', '-']) && !line.trim().is_empty();
    let mut lines = workflow.lines();
    let on = lines.find(|line| {
        ["on:", "'on':", "\"on\":"]
            .iter()
            .any(|on| line.starts_with(on))
    });
    // Without triggers that could be read, the lines are kept rather than lost.
    let Some(on) = on else { return true };
    let rest = on.split_once(':').map_or("", |(_, rest)| rest);
    if rest.contains("push") || rest.contains("pull_request") {
        return true;
    }
    let block: Vec<&str> = lines.take_while(|line| !is_at_top(line)).collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let says = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    // The least indented lines of the block are triggers; deeper ones are their settings.
    let triggers = block.iter().filter(says).map(|line| depth(line)).min();
    let mut keys = block.iter().filter(says).peekable();
    while let Some(key) = keys.next() {
        if Some(depth(key)) != triggers {
            continue;
        }
        let key = key.trim().trim_start_matches("- ").trim_end_matches(':');
        let mut below = Vec::new();
        while let Some(line) = keys.next_if(|line| Some(depth(line)) > triggers) {
            below.push(line.trim());
        }
        let is_for_tags = below.iter().any(|line| line.starts_with("tags:"))
            && !below.iter().any(|line| line.starts_with("branches"));
        match key {
            "pull_request" | "pull_request_target" | "merge_group" => return true,
            "push" if !is_for_tags => return true,
            _ => {}
        }
    }
    false
}

/// Returns the commands behind `run:`, on its line or in the block below it.
fn workflow_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // How deep the key stands, and whether its block folds lines into one (`>`).
    let mut block: Option<(usize, bool)> = None;
    let mut folded = String::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if let Some((above, folds)) = block {
            if depth > above || line.trim().is_empty() {
                match folds {
                    true => folded = format!("{folded} {}", line.trim()).trim().to_owned(),
                    false => found.push(line.trim().to_owned()),
                }
                continue;
            }
            found.push(std::mem::take(&mut folded));
            block = None;
        }
        let step = line.trim_start();
        let key = step.trim_start_matches("- ");
        if let Some(command) = key.strip_prefix("run:") {
            // In `- run:` the key stands deeper than its line, and the block deeper than the key.
            let depth = depth + step.len() - key.len();
            match command.trim() {
                "|" | "|-" | "|+" => block = Some((depth, false)),
                ">" | ">-" | ">+" => block = Some((depth, true)),
                command => found.push(command.trim_matches(['"', '\'']).to_owned()),
            }
        }
    }
    found.push(folded);
    join_continued_lines(found)
}

/// Returns the commands of fenced shell blocks; if the text shows `$` prompts, only those behind
/// one.
fn fenced_commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut shell: Option<bool> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            shell = match shell {
                Some(_) => None,
                None => Some(matches!(
                    language.trim(),
                    "sh" | "bash" | "shell" | "console" | "shell-session" | "zsh"
                )),
            };
        } else if shell == Some(true) {
            match line.strip_prefix("$ ") {
                Some(command) => found.push(command.to_owned()),
                // In a text that shows prompts, a line without one is output.
                None if text.contains("\n$ ") => {}
                None => found.push(line.to_owned()),
            }
        }
    }
    join_continued_lines(found)
}

/// Joins each line that ends in a backslash with the next one.
fn join_continued_lines(lines: Vec<String>) -> Vec<String> {
    let mut joined = Vec::new();
    let mut open = String::new();
    for line in lines {
        match line.strip_suffix('\\') {
            Some(begun) => open.push_str(begun),
            None => joined.push(std::mem::take(&mut open) + &line),
        }
    }
    joined
}

/// Returns whether bash parses the line as it stands.
fn is_valid_bash_command(line: &str) -> Result<bool, String> {
    // What a CI service replaces before a shell sees it is no command yet.
    if line.is_empty() || line.starts_with('#') || line.contains("${{") {
        return Ok(false);
    }
    // Keywords and brackets that close what another line opens do not parse alone. `-n` runs
    // nothing: these lines are strangers'.
    let status = Command::new("bash")
        .args(["-n", "-c", "--", line])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("bash: {error}"))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_for_changes_runs_every_day() {
        let check = |on: &str, expected| {
            let workflow = format!("name: x\n{on}\njobs:\n  pull_request:\n");
            assert_eq!(workflow_runs_on_changes(&workflow), expected, "{on}");
        };
        check("on: push", true);
        check("on: [workflow_dispatch, pull_request]", true);
        check("on:\n  push:\n    branches: [main]\n    tags: ['v*']", true);
        check("on:\n  pull_request:\n  push:\n    tags: ['v*']", true);
        check("on:\n- push", true);
        check(
            "on:\n  push:\n    tags:\n    - 'v*'\n  workflow_dispatch:",
            false,
        );
        check("on:\n  release:\n    types: [created]\n  # push:", false);
        check("on:\n  schedule:\n    - cron: '1 2 3 4 5'", false);
    }
}
