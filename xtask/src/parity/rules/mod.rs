//! `parity rules [--pairs N] [--seed N]`: puts the same question to `checkrein policy check
//! --codex-exit` and to the real `codex execpolicy check` (`CODEX_BIN`, or on `PATH`). Document,
//! status and complaint must be the same, for each known case and for generated ones.

mod cases;
mod generate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::build::{self, BuildProfile};

/// One question to both programs.
#[derive(Debug)]
pub(super) struct RulesParityQuestion {
    /// Rules files as bytes, since what is no text is a question too. `None` is a file that does
    /// not exist.
    pub(super) files: Vec<Option<Vec<u8>>>,
    pub(super) argv: Vec<String>,
    pub(super) resolve: bool,
}

/// The answer of one program.
#[derive(Debug, PartialEq, Eq)]
struct ParityAnswer {
    status: Option<i32>,
    document: String,
    complaint: String,
}

/// Runs the comparison.
pub(crate) fn run_rules_parity(arguments: &[String]) -> Result<ExitCode, String> {
    let usage = "usage: cargo xtask parity rules [--pairs N] [--seed N]";
    let Some(("rules", rest)) = arguments
        .split_first()
        .map(|(what, rest)| (what.as_str(), rest))
    else {
        return Err(usage.to_owned());
    };
    let (mut pairs, mut seed) = (2_000, 1);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let number = words.next().and_then(|text| text.parse::<u64>().ok());
        match (word.as_str(), number) {
            ("--pairs", Some(number)) => pairs = number,
            ("--seed", Some(number)) => seed = number,
            _ => return Err(usage.to_owned()),
        }
    }
    let codex = find_codex()?;
    let ours = build::build_checkrein_binary(BuildProfile::Dev)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let contest = RulesParityPrograms {
        codex,
        ours,
        folder: folder.path().to_owned(),
    };
    let mut tally = RulesParityTotals::default();
    for question in cases::parity_rule_questions() {
        tally.compare_and_tally_parity_answers("known", &question, &contest)?;
    }
    for number in 0..pairs {
        let question = generate::generate_rules_parity_question(seed, number);
        tally.compare_and_tally_parity_answers("generated", &question, &contest)?;
        if (number + 1) % 250 == 0 {
            eprintln!("{} of {pairs}", number + 1);
        }
    }
    // The counts hold for this version of Codex.
    println!("{}", contest.codex_version()?);
    for (what, count) in &tally.kinds {
        println!("{count:>6}  {what}");
    }
    println!(
        "parity rules: {} questions (seed {seed}), {} differences",
        tally.asked, tally.different
    );
    Ok(match tally.different {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

fn find_codex() -> Result<PathBuf, String> {
    let named = std::env::var_os("CODEX_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut there = std::env::split_paths(&path).map(|folder| folder.join("codex"));
    named
        .or_else(|| there.find(|file| file.is_file()))
        .ok_or_else(|| "codex is not on PATH; set CODEX_BIN".to_owned())
}

/// Counts of questions and answers.
#[derive(Default)]
struct RulesParityTotals {
    asked: usize,
    different: usize,
    /// Answers by kind. They show that the questions cover many.
    kinds: BTreeMap<String, usize>,
}

impl RulesParityTotals {
    fn compare_and_tally_parity_answers(
        &mut self,
        from: &str,
        question: &RulesParityQuestion,
        contest: &RulesParityPrograms,
    ) -> Result<(), String> {
        let (codex, ours) = contest.answers_of_codex_and_checkrein(question)?;
        self.asked += 1;
        let kind = format!("{from}: {}", codex.parity_answer_kind(question));
        *self.kinds.entry(kind).or_default() += 1;
        if codex == ours {
            return Ok(());
        }
        self.different += 1;
        println!(
            "DIFFERENT: {:?} resolve {}",
            question.argv, question.resolve
        );
        for file in question.files.iter().flatten() {
            println!("--- rules\n{}", String::from_utf8_lossy(file));
        }
        println!("--- codex\n{codex:#?}\n--- checkrein\n{ours:#?}\n");
        Ok(())
    }
}

impl ParityAnswer {
    fn parity_answer_kind(&self, question: &RulesParityQuestion) -> String {
        if self.status != Some(0) {
            // The first words of a complaint tell the kind of mistake; the rest is about this one
            // file.
            let complaint = self.complaint.lines().map(str::trim).find_map(|line| {
                let line = line.strip_prefix("starlark error: ").unwrap_or(line);
                let said = line.strip_prefix("error: ");
                said.or_else(|| line.starts_with("expected ").then_some(line))
            });
            let complaint = complaint.unwrap_or(self.complaint.as_str());
            let words: Vec<&str> = complaint.split_whitespace().take(3).collect();
            return format!("status {}: {}", self.status.unwrap_or(-1), words.join(" "));
        }
        // The document ends with the decision that counts; those of single rules come before it.
        let decision = ["forbidden", "prompt", "allow"].into_iter().find(|word| {
            self.document
                .ends_with(&format!("\"decision\":\"{word}\"}}\n"))
        });
        let how = match (self.document.contains("resolvedProgram"), question.resolve) {
            (true, _) => ", through a path",
            (false, true) => ", paths may stand for names",
            (false, false) => "",
        };
        format!("{}{how}", decision.unwrap_or("no rule"))
    }
}

struct RulesParityPrograms {
    codex: PathBuf,
    ours: PathBuf,
    folder: PathBuf,
}

impl RulesParityPrograms {
    /// Returns Codex's answer and ours.
    fn answers_of_codex_and_checkrein(
        &self,
        question: &RulesParityQuestion,
    ) -> Result<(ParityAnswer, ParityAnswer), String> {
        let mut rules = Vec::new();
        for (number, file) in question.files.iter().enumerate() {
            let name = format!("r{number}.rules");
            let path = self.folder.join(&name);
            // A file of the question before may be there, and one that is `None` must not.
            let _ = std::fs::remove_file(&path);
            if let Some(bytes) = file {
                std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
            }
            rules.extend(["--rules".to_owned(), name]);
        }
        let start = |program: &Path, words: &[&str]| {
            let mut command = self.command_with_cleared_environment(program);
            command.args(words).args(&rules);
            if question.resolve {
                command.arg("--resolve-host-executables");
            }
            command.arg("--").args(&question.argv);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| format!("{}: {error}", program.display()))
        };
        // Both run at the same time. Neither needs the other, so one whose pipe is full only waits.
        let codex = start(&self.codex, &["execpolicy", "check"])?;
        let ours = start(&self.ours, &["policy", "check", "--codex-exit"])?;
        let end = |child: std::process::Child| {
            let output = child
                .wait_with_output()
                .map_err(|error| error.to_string())?;
            let status = output.status.code();
            let complaint = match status {
                // Each program words its usage errors in its own way.
                Some(2) => String::new(),
                _ => error_text_without_codex_debug(&String::from_utf8_lossy(&output.stderr)),
            };
            Ok::<ParityAnswer, String>(ParityAnswer {
                status,
                document: String::from_utf8_lossy(&output.stdout).into_owned(),
                complaint,
            })
        };
        Ok((end(codex)?, end(ours)?))
    }

    fn command_with_cleared_environment(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env_clear()
            // A fixed home: rules and commands name paths with `~`, and no config of the person
            // counts.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/home/dev");
        command
    }

    fn codex_version(&self) -> Result<String, String> {
        let output = self
            .command_with_cleared_environment(&self.codex)
            .arg("--version")
            .output()
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Returns the part of a complaint that can be compared: all but the `Debug` texts of Codex's
/// rules.
fn error_text_without_codex_debug(stderr: &str) -> String {
    let mut text = stderr.to_owned();
    if let Some((before, rest)) = text.split_once(". rules: [")
        && let Some((_, after)) = rest.rsplit_once("; unmatched examples: ")
    {
        text = format!("{before}; unmatched examples: {after}");
    }
    if let Some((before, rest)) = text.split_once(" rule `PrefixRuleMatch {")
        && let Some((_, after)) = rest.split_once(" }`: ")
    {
        text = format!("{before} rule: {after}");
    }
    text
}
