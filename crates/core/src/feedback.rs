//! The text that a refused stop sends back: which checks fail, their findings, how to
//! reproduce each, what changed since the last attempt. Findings are sent once; the
//! same failures on the same subjects get one line (law 7).

use std::fmt::Write as _;

use crate::decision::{CheckFeedback, Feedback};
use crate::digest::{Digest, Short};
use crate::evidence::{Cause, Evidence, Finding, Verdict};

/// Longest text, in bytes: about 1,500 tokens.
const MAX_BYTES: usize = 6_000;
/// Longest message of one finding, in characters.
const MAX_MESSAGE: usize = 240;
/// Lines of output shown of a check without findings.
const TAIL_LINES: usize = 20;

/// Writes the text. `evidence` looks a blob up by its content key.
pub fn render(feedback: &Feedback, evidence: &dyn Fn(&Digest) -> Option<Evidence>) -> String {
    let mut text = String::new();
    let left = feedback.attempts.saturating_sub(feedback.met);
    if feedback.repeat {
        let names: Vec<&str> = feedback
            .checks
            .iter()
            .map(|check| check.verifier.as_str())
            .collect();
        let _ = write!(
            text,
            "checkrein: nothing changed since the last check; still failing: {} (asked {} times, {} left). Fix it, or say plainly that you cannot.",
            names.join(", "),
            feedback.met,
            left,
        );
        return text;
    }
    let _ = writeln!(
        text,
        "checkrein: not done yet. These checks do not pass (stop {}; the same failures end the task after {} more):",
        feedback.stop, left,
    );
    for check in &feedback.checks {
        let found = evidence(&check.key);
        describe(&mut text, check, found.as_ref());
    }
    if feedback.background > 0 {
        let _ = writeln!(
            text,
            "\n{} background tasks were still running.",
            feedback.background
        );
    }
    text.push_str("\nFix only these, then stop again.");
    cut(text)
}

fn describe(text: &mut String, check: &CheckFeedback, found: Option<&Evidence>) {
    let _ = write!(
        text,
        "\n{}: {}",
        check.verifier,
        verdict_words(check, found)
    );
    let changes = [
        (check.fixed, "fixed"),
        (check.still.len() as u32, "still failing"),
        (check.new.len() as u32, "new"),
    ];
    if check.fixed > 0 || !check.still.is_empty() {
        let changes: Vec<String> = changes
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let _ = write!(text, " ({} since the last attempt)", changes.join(", "));
    }
    text.push('\n');
    let Some(found) = found else { return };
    for finding in findings(found, &check.new) {
        let _ = writeln!(text, "  - {}", finding_words(finding));
    }
    let still: Vec<&str> = findings(found, &check.still)
        .map(|finding| finding.id.as_str())
        .collect();
    if !still.is_empty() {
        let _ = writeln!(text, "  as before: {}", still.join(", "));
    }
    let named = found.findings.len() as u32;
    if found.findings_total > named {
        let _ = writeln!(text, "  and {} more", found.findings_total - named);
    }
    if check.cause == Some(Cause::TreeMoving) && !found.moved.is_empty() {
        let _ = writeln!(text, "  changed meanwhile: {}", found.moved.join(", "));
        let quoted: Vec<String> = found.moved.iter().map(|path| format!("{path:?}")).collect();
        let _ = writeln!(
            text,
            "  if the check writes them, add to [[verifier]] {}: outputs = [{}]",
            check.verifier,
            quoted.join(", ")
        );
    }
    if found.findings.is_empty() && check.verdict != Verdict::Pass {
        for line in tail(&found.excerpt) {
            let _ = writeln!(text, "  | {}", shorten(line));
        }
    }
    for name in &found.stripped {
        let _ = writeln!(
            text,
            "  {name} is kept from checks; if this one needs it, add env = [\"{name}\"] to [[verifier]] {}",
            check.verifier
        );
    }
    if let Some(command) = &found.command {
        let _ = writeln!(text, "  reproduce: {command}");
    }
    if let Some(log) = &found.log
        && (found.output_bytes > found.excerpt.len() as u64 || found.findings_total > named)
    {
        let _ = writeln!(text, "  full output: {log}");
    }
}

fn verdict_words(check: &CheckFeedback, found: Option<&Evidence>) -> String {
    let exit = found.and_then(|found| found.exit_code);
    match (check.verdict, check.cause) {
        (Verdict::Pass, _) => "passed".to_owned(),
        (Verdict::Fail, _) => match exit {
            Some(code) => format!("failed, exit code {code}"),
            None => "failed".to_owned(),
        },
        (Verdict::Inconclusive, cause) => match cause {
            Some(Cause::Timeout) => "ran out of time; make it faster or raise its `timeout`",
            Some(Cause::Crash) => "crashed before it could tell",
            Some(Cause::MissingProgram) => "its program is not installed here",
            Some(Cause::VacuousPass) => "said yes without checking anything: nothing ran, or its exit code was masked",
            Some(Cause::TreeMoving) => "files kept changing while it ran; if the check writes them, name them in its `outputs`",
            Some(Cause::ReplyDeadline) => "cut: the answer was due; raise the hook's timeout together with its --deadline",
            Some(Cause::ClaimedElsewhere) => "is still being run by another process",
            Some(Cause::TreeUnreadable) => "the tree could not be read",
            Some(Cause::Internal) | None => "could not be run",
        }
        .to_owned(),
    }
}

fn findings<'a>(found: &'a Evidence, keys: &'a [Short]) -> impl Iterator<Item = &'a Finding> {
    found
        .findings
        .iter()
        .filter(|finding| keys.contains(&finding.key()))
}

fn finding_words(finding: &Finding) -> String {
    let mut words = String::new();
    if let Some(file) = &finding.file {
        words.push_str(file);
        if let Some(line) = finding.line {
            let _ = write!(words, ":{line}");
        }
        words.push_str(": ");
    }
    if let Some(rule) = &finding.rule
        && !finding.message.contains(rule.as_str())
    {
        let _ = write!(words, "{rule}: ");
    }
    words.push_str(&shorten(&finding.message));
    words
}

fn tail(excerpt: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = excerpt
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let skip = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(skip)
}

fn shorten(message: &str) -> String {
    let mut chars = message.chars();
    let short: String = chars.by_ref().take(MAX_MESSAGE).collect();
    if chars.next().is_some() {
        format!("{short}…")
    } else {
        short
    }
}

fn cut(text: String) -> String {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let mut kept = String::with_capacity(MAX_BYTES + 64);
    for line in text.lines() {
        if kept.len() + line.len() > MAX_BYTES {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept.push_str("… (cut; run the commands above for the rest)\nFix only these, then stop again.");
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{FindingState, Origin, Retryable};

    fn finding(id: &str) -> Finding {
        Finding {
            id: id.to_owned(),
            file: Some("src/a.rs".to_owned()),
            line: Some(7),
            rule: None,
            message: format!("{id} is broken"),
            state: FindingState::New,
        }
    }

    fn evidence(ids: &[&str]) -> Evidence {
        let digest = Digest::of(b"tree");
        Evidence {
            verifier: "tests".into(),
            verdict: Verdict::Fail,
            cause: None,
            findings: ids.iter().map(|id| finding(id)).collect(),
            findings_total: ids.len() as u32,
            subject: digest,
            subject_after: digest,
            tree: digest,
            tree_after: digest,
            moved: Vec::new(),
            check_writes: false,
            command: Some("cargo test".to_owned()),
            exit_code: Some(101),
            duration_ms: 5,
            retryable: Retryable::Yes,
            origin: Origin::Gate,
            excerpt: String::new(),
            log: None,
            output_bytes: 0,
            tries: 1,
            stripped: Vec::new(),
        }
    }

    fn check(evidence: &Evidence, new: &[&str], still: &[&str], fixed: u32, expected: &str) {
        let keys = |ids: &[&str]| ids.iter().map(|id| finding(id).key()).collect();
        let feedback = Feedback {
            stop: 2,
            met: 1,
            attempts: 3,
            continues_left: 5,
            repeat: false,
            checks: vec![CheckFeedback {
                verifier: "tests".into(),
                key: Digest::of(b"key"),
                verdict: evidence.verdict,
                cause: evidence.cause,
                new: keys(new),
                still: keys(still),
                fixed,
            }],
            background: 0,
        };
        let text = render(&feedback, &|_| Some(evidence.clone()));
        let head = "checkrein: not done yet. These checks do not pass (stop 2; the same failures end the task after 2 more):\n\n";
        let tail = "\nFix only these, then stop again.";
        assert_eq!(text, format!("{head}{expected}{tail}"));
        let repeated = Feedback {
            repeat: true,
            met: 2,
            ..feedback
        };
        assert_eq!(
            render(&repeated, &|_| Some(evidence.clone())),
            "checkrein: nothing changed since the last check; still failing: tests (asked 2 times, 1 left). Fix it, or say plainly that you cannot."
        );
    }

    #[test]
    fn findings_are_described_once_and_only_named_again() {
        check(
            &evidence(&["t::a", "t::b"]),
            &["t::a"],
            &["t::b"],
            3,
            "tests: failed, exit code 101 (3 fixed, 1 still failing, 1 new since the last attempt)\n  - src/a.rs:7: t::a is broken\n  as before: t::b\n  reproduce: cargo test\n",
        );
    }

    #[test]
    fn a_tree_that_moved_names_the_paths_and_the_line_to_paste() {
        let mut moving = evidence(&[]);
        moving.verdict = Verdict::Inconclusive;
        moving.cause = Some(Cause::TreeMoving);
        moving.moved = vec!["gen/a.rs".to_owned(), "gen/b.rs".to_owned()];
        check(
            &moving,
            &[],
            &[],
            0,
            "tests: files kept changing while it ran; if the check writes them, name them in its `outputs`\n  changed meanwhile: gen/a.rs, gen/b.rs\n  if the check writes them, add to [[verifier]] tests: outputs = [\"gen/a.rs\", \"gen/b.rs\"]\n  reproduce: cargo test\n",
        );
    }

    #[test]
    fn never_longer_than_its_bound() {
        let ids: Vec<String> = (0..50)
            .map(|at| format!("{}{at}", "x".repeat(200)))
            .collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let many = evidence(&ids);
        let feedback = Feedback {
            stop: 1,
            met: 1,
            attempts: 3,
            continues_left: 6,
            repeat: false,
            checks: vec![CheckFeedback {
                verifier: "tests".into(),
                key: Digest::of(b"key"),
                verdict: Verdict::Fail,
                cause: None,
                new: many.findings.iter().map(Finding::key).collect(),
                still: Vec::new(),
                fixed: 0,
            }],
            background: 0,
        };
        let text = render(&feedback, &|_| Some(many.clone()));
        assert!(text.len() <= MAX_BYTES + 120, "{}", text.len());
        assert!(text.ends_with("Fix only these, then stop again."));
    }
}
