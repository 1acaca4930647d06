//! Renders the text that a refused stop sends back: which checks fail, their findings, how to
//! reproduce each, and what changed since the last attempt. Findings are sent once. The same
//! failures on the same subjects get one line (law 7).

mod check_section;

use std::fmt::Write as _;

use self::check_section::CheckFeedbackSection;
use crate::decision::{FailedCheckFeedback, StopFeedback};
use crate::digest::{Digest, EightByteDigest};
use crate::evidence::{
    Evidence, Finding, FindingStatusAgainstBaseline, InconclusiveCause, Verdict,
};
use crate::explain::ChangeKindHoldingUpStop;

/// Longest text in bytes, about 1,500 tokens. Findings that must be named are named even beyond it.
const MAX_BYTES: usize = 6_000;
/// Longest message of one finding, and longest command, in characters.
const MAX_MESSAGE: usize = 240;
/// Lines of output shown of a check without findings.
const TAIL_LINES: usize = 20;
/// Bytes of paths named for a tree that moved. At least one path is named.
const MAX_PATHS: usize = 300;
/// Stripped variables named per check.
const MAX_STRIPPED: usize = 3;

/// Returns how many findings one text can name as new. Findings that are not named must not count
/// as told. Each check takes space of its own.
pub(crate) fn max_new_findings_in_feedback(checks: usize) -> usize {
    400usize.saturating_sub(20 * checks).min(250)
}

/// Renders the text. `held_up_by` says what kept the stop from being judged, which the log holds
/// and the decision does not. `evidence` looks up a blob by its content key.
pub fn render_feedback(
    feedback: &StopFeedback,
    held_up_by: Option<ChangeKindHoldingUpStop>,
    evidence: &dyn Fn(&Digest) -> Option<Evidence>,
) -> String {
    let mut text = String::new();
    let ends = StopsUntilTaskEnds::stops_left_from_feedback(feedback);
    // Nothing fails here, so there are no sections.
    if let Some(target) = feedback.target {
        let _ = write!(
            text,
            "checkrein: the checks pass, and {} of {} output tokens meant for this task are used. Go on: look for what is missing, weak or untested, and fix it. If nothing is left, say so and stop again.",
            target.used, target.threshold,
        );
        return text;
    }
    // One line is enough: the agent has the full text from the last stop (law 7).
    if feedback.repeat {
        let checks = feedback.checks.iter().map(|check| check.verifier.as_str());
        let layers = feedback.layers.iter().map(|layer| layer.layer.as_str());
        let names: Vec<&str> = checks.chain(layers).collect();
        let _ = write!(
            text,
            "checkrein: nothing changed since the last check; still failing: {} (asked {} times, {} left). Fix it, or say plainly that you cannot.",
            names.join(", "),
            feedback.met,
            ends.stops,
        );
        text.push_str(&guarded_edits_notice(feedback));
        return text;
    }
    if !feedback.layers.is_empty() {
        return render_middleware_refusals(feedback);
    }
    // Choose the head line. It must not say "failing" where nothing is known against the work, or
    // the agent would try to mend what is not broken.
    let testimony = feedback.judges > 0 && feedback.judges as usize == feedback.checks.len();
    let causes = feedback.checks.iter().map(|check| check.cause);
    let is_all = |is: fn(Option<InconclusiveCause>) -> bool| {
        !feedback.checks.is_empty() && causes.clone().all(is)
    };
    let moving = is_all(|cause| cause == Some(InconclusiveCause::TreeMoving));
    let only_acts = held_up_by == Some(ChangeKindHoldingUpStop::Acts);
    let unfinished = !moving
        && is_all(|cause| {
            let cause = cause.unwrap_or(InconclusiveCause::Internal);
            cause == InconclusiveCause::TreeMoving || cause.is_cut_off_or_claimed_elsewhere()
        });
    let head = match feedback.stop {
        _ if moving && only_acts => {
            "checkrein: not judged yet. Tool calls came while these checks ran, which may have changed what they find, so what they say does not count, for or against you:\n".to_owned()
        }
        _ if moving => {
            "checkrein: not judged yet. Files changed while these checks ran, so what they say does not count, for or against you:\n".to_owned()
        }
        _ if unfinished => "checkrein: not judged yet. These checks have no result, for or against you:\n".to_owned(),
        _ if testimony => format!(
            "checkrein: not done yet. A reviewer read your answer and finds it wanting (answer {} of {}):\n",
            feedback.met,
            feedback.attempts.min(feedback.met + ends.stops),
        ),
        0 => "checkrein: not done yet. These checks do not pass:\n".to_owned(),
        stop => format!(
            "checkrein: not done yet. These checks do not pass (stop {stop}; {}):\n",
            ends.failures_until_task_end_text()
        ),
    };
    // The foot tells what to do next, to match the head.
    let mut foot = String::new();
    let _ = match feedback.background {
        0 => Ok(()),
        1 => writeln!(foot, "\n1 background task was still running."),
        count => writeln!(foot, "\n{count} background tasks were still running."),
    };
    foot.push_str(&guarded_edits_notice(feedback));
    foot.push_str(if moving && only_acts {
        "\nThis is no failed attempt. If a sub-agent that you started is still at work, wait for it. Then stop again."
    } else if moving {
        "\nThis is no failed attempt. If something that you started still writes here, wait for it or end it. Then stop again."
    } else if unfinished {
        "\nThis is no failed attempt. Stop again when you have nothing else to do."
    } else if testimony {
        "\nFix this, then answer the request again, in full."
    } else {
        "\nFix only these, then stop again."
    });

    // Sections, one per check, in the space that head and foot leave.
    let found: Vec<Option<Evidence>> = feedback
        .checks
        .iter()
        .map(|check| evidence(&check.key))
        .collect();
    let mut sections: Vec<CheckFeedbackSection<'_>> = feedback
        .checks
        .iter()
        .zip(&found)
        .map(|(check, found)| build_check_feedback_section(check, only_acts, found.as_ref()))
        .collect();
    let room = MAX_BYTES.saturating_sub(head.len() + foot.len());
    // If the fixed parts alone take more than half of the space, the notes are dropped, so that
    // findings can still be named.
    if sections
        .iter()
        .map(CheckFeedbackSection::fixed_feedback_byte_count)
        .sum::<usize>()
        > room / 2
    {
        sections
            .iter_mut()
            .for_each(CheckFeedbackSection::clear_section_notes);
    }
    text.push_str(&head);
    for (section, share) in sections
        .iter()
        .zip(allocate_feedback_bytes(&sections, room))
    {
        section.write_feedback_section_within(&mut text, share);
    }
    text.push_str(&foot);
    text
}

/// When the task ends if nothing changes.
struct StopsUntilTaskEnds {
    /// How many stops after this one.
    stops: u32,
    /// Any failure then ends it, not only the present ones.
    whatever_fails: bool,
}

impl StopsUntilTaskEnds {
    /// Returns the smaller of two bounds: stops with the same failures, and all continuations.
    fn stops_left_from_feedback(feedback: &StopFeedback) -> Self {
        let same_failures = feedback.attempts.saturating_sub(feedback.met);
        // There is one stop more than there are continuations: the last one is not continued.
        let continues = feedback.continues_left.saturating_add(1);
        Self {
            stops: same_failures.min(continues),
            whatever_fails: continues < same_failures,
        }
    }

    fn failures_until_task_end_text(&self) -> String {
        match self.whatever_fails {
            false => format!("the same failures end the task after {} more", self.stops),
            true => format!("any failure ends the task after {} more", self.stops),
        }
    }
}

/// Renders the objections of middleware layers. No check has run.
fn render_middleware_refusals(feedback: &StopFeedback) -> String {
    let mut text =
        "checkrein: not done yet. No check has run, because this stop was refused first:\n"
            .to_owned();
    let share = MAX_BYTES / feedback.layers.len().max(1);
    for layer in &feedback.layers {
        let end = layer
            .reason
            // Each layer gets an equal share, so that a long reason cannot push out another
            // layer's.
            .floor_char_boundary(share.min(layer.reason.len()));
        let reason = layer.reason.get(..end).unwrap_or_default();
        let _ = match layer.by_stance {
            false => writeln!(text, "\n{}: {reason}", layer.layer),
            true => writeln!(
                text,
                "\n{}: could not judge this stop ({reason}), and nothing goes past it unjudged",
                layer.layer
            ),
        };
    }
    text.push_str(&guarded_edits_notice(feedback));
    text.push_str("\nFix this, then stop again.");
    text
}

/// Returns the notice about edits to guarded files, which is given once.
fn guarded_edits_notice(feedback: &StopFeedback) -> String {
    if feedback.edited.is_empty() {
        return String::new();
    }
    format!(
        "\nEdited during this task: {}. This is recorded, a person is told, and the task is judged as before.\n",
        feedback.edited.join(", ")
    )
}

/// Returns the bytes that each section may take: all it wants if that is less than an equal share.
/// What it leaves goes to the others.
fn allocate_feedback_bytes(sections: &[CheckFeedbackSection<'_>], room: usize) -> Vec<usize> {
    let mut wants: Vec<(usize, usize)> = sections
        .iter()
        .map(CheckFeedbackSection::full_feedback_section_len)
        .zip(0..)
        .collect();
    // The smallest sections are served first, so that what they leave is known when the larger ones
    // get their share.
    wants.sort_unstable();
    let mut left = room;
    let mut granted: Vec<(usize, usize)> = Vec::new();
    for (done, (want, at)) in wants.iter().enumerate() {
        let share = left / (wants.len() - done);
        let grant = share.min(*want);
        left -= grant;
        granted.push((*at, grant));
    }
    granted.sort_unstable();
    granted.into_iter().map(|(_, grant)| grant).collect()
}

fn build_check_feedback_section<'a>(
    check: &'a FailedCheckFeedback,
    only_acts: bool,
    found: Option<&'a Evidence>,
) -> CheckFeedbackSection<'a> {
    let words = match check.cause {
        Some(InconclusiveCause::TreeMoving) if only_acts => {
            "a tool call came while it was judged".to_owned()
        }
        _ => verdict_feedback_text(check, found),
    };
    let mut section = CheckFeedbackSection {
        head: format!("\n{}: {words}", check.verifier),
        ..CheckFeedbackSection::default()
    };
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
        let changes = changes.join(", ");
        let _ = write!(section.head, " ({changes} since the last attempt)");
    }
    section.head.push('\n');
    let Some(found) = found else { return section };

    let named = |keys| findings_matching_keys(found, keys);
    section.new = named(&check.new)
        .map(|finding| (finding.id.as_str(), describe_check_finding(finding)))
        .collect();
    section.still = named(&check.still)
        .map(|finding| finding.id.as_str())
        .collect();
    // Findings that count but are in neither list did not fit. They are only counted here and named
    // at a later stop.
    let unnamed = found.findings.iter().filter(|finding| {
        let key = finding.failure_key();
        let counts = finding.state == FindingStatusAgainstBaseline::New;
        counts && !check.new.contains(&key) && !check.still.contains(&key)
    });
    let kept = found.findings.len() as u32;
    let more = (found.findings_total.saturating_sub(kept)).saturating_add(unnamed.count() as u32);
    if more > 0 {
        let _ = writeln!(section.foot, "  and {more} more");
    }
    let moves = matches!(
        check.cause,
        Some(InconclusiveCause::TreeMoving | InconclusiveCause::CheckRestores)
    );
    if moves && !found.moved.is_empty() {
        let moved = first_fitting_paths(&found.moved);
        // Only a person may say which of these paths the check itself writes: an agent that may
        // name `outputs` could have anything left out.
        let _ = writeln!(section.notes, "  changed meanwhile: {}", moved.join(", "));
    }
    if found.findings.is_empty() && check.verdict != Verdict::Pass {
        // The head already says the note, so it is not repeated.
        let said = found
            .note
            .as_ref()
            .map(|note| format!("[checkrein: {note}]"));
        let output =
            last_excerpt_lines(&found.excerpt).filter(|line| said.as_deref() != Some(*line));
        section.output = output.map(truncate_message).collect();
    }
    for name in found.stripped.iter().take(MAX_STRIPPED) {
        let _ = writeln!(
            section.notes,
            "  {name} is kept from checks; if this one needs it, add env = [\"{name}\"] to [[verifier]] {}",
            check.verifier
        );
    }
    if let Some(command) = &found.command {
        let _ = writeln!(section.foot, "  reproduce: {}", truncate_message(command));
    }
    if let Some(log) = &found.log
        // The log is named only where it holds more than the text shows.
        && (found.output_bytes > found.excerpt.len() as u64 || more > 0)
    {
        let _ = writeln!(section.foot, "  full output: {log}");
    }
    section
}

/// Returns the first paths, as many as fit.
fn first_fitting_paths(paths: &[String]) -> Vec<&str> {
    let mut left = MAX_PATHS;
    let fits = |(at, path): &(usize, &String)| {
        let fits = *at == 0 || path.len() <= left;
        left = left.saturating_sub(path.len());
        fits
    };
    let paths = paths.iter().enumerate().take_while(fits);
    paths.map(|(_, path)| path.as_str()).collect()
}

fn verdict_feedback_text(check: &FailedCheckFeedback, found: Option<&Evidence>) -> String {
    let exit = found.and_then(|found| found.exit_code);
    let note = found.and_then(|found| found.note.as_deref());
    match (check.verdict, check.cause) {
        (
            Verdict::Inconclusive,
            Some(InconclusiveCause::MissingProgram | InconclusiveCause::TreeUnreadable | InconclusiveCause::ClaimedElsewhere),
        // For these causes the note names what is missing, which says more than the general
        // sentence.
        ) if let Some(note) = note =>
        {
            note.to_owned()
        }
        (Verdict::Inconclusive, Some(InconclusiveCause::Masked)) if let Some(note) = note => {
            format!("ended with status 0, which says nothing: {note}")
        }
        (Verdict::Pass, _) => "passed".to_owned(),
        (Verdict::Fail, _) => match exit {
            Some(code) => format!("failed, exit code {code}"),
            None => "failed".to_owned(),
        },
        (Verdict::Inconclusive, cause) => match cause {
            Some(InconclusiveCause::Timeout) => "ran out of time; make it faster or raise its `timeout`",
            Some(InconclusiveCause::Crash) => "crashed before it had a result",
            Some(InconclusiveCause::MissingProgram) => "its program is not installed here",
            Some(InconclusiveCause::MissingFile) => "a file that it judges by is not there",
            Some(InconclusiveCause::VacuousPass) => "passed without checking anything: nothing ran, or its exit code was masked",
            Some(InconclusiveCause::TreeMoving) => "files kept changing while it ran",
            Some(InconclusiveCause::CheckRestores) => "takes files away while it runs and brings them back, so what it saw is not this tree",
            Some(InconclusiveCause::ReplyDeadline) => "cut: the answer was due; raise the hook's timeout together with its --deadline",
            Some(InconclusiveCause::ClaimedElsewhere) => "is still being run by another process",
            Some(InconclusiveCause::TreeUnreadable) => "the tree could not be read",
            Some(InconclusiveCause::Internal) | None => "could not be run",
            Some(InconclusiveCause::Unanswered) => "no person has answered yet",
            Some(InconclusiveCause::Expired) => "no person answered in time",
            Some(InconclusiveCause::NotAsked) => "was not asked: there was nothing to judge",
            Some(InconclusiveCause::ModelUnavailable) => "its model did not answer",
            Some(InconclusiveCause::Unreadable) => "its model's answer is not a verdict",
            Some(InconclusiveCause::InconsistentJudge) => "asked twice, it said yes once and no once",
            Some(InconclusiveCause::Masked) => "ended with status 0, which says nothing: its command hides the status of what it runs",
        }
        .to_owned(),
    }
}

fn findings_matching_keys<'a>(
    found: &'a Evidence,
    keys: &'a [EightByteDigest],
) -> impl Iterator<Item = &'a Finding> {
    found
        .findings
        .iter()
        .filter(|finding| keys.contains(&finding.failure_key()))
}

fn describe_check_finding(finding: &Finding) -> String {
    let mut words = String::new();
    if let Some(file) = &finding.file {
        words.push_str(file);
        if let Some(line) = finding.line {
            let _ = write!(words, ":{line}");
        }
        words.push_str(": ");
    }
    // Many tools repeat the rule in their message. It is not written twice.
    if let Some(rule) = &finding.rule
        && !finding.message.contains(rule.as_str())
    {
        let _ = write!(words, "{rule}: ");
    }
    words.push_str(&truncate_message(&finding.message));
    words
}

fn last_excerpt_lines(excerpt: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = excerpt
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    // The end of the output says how the check failed.
    let skip = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(skip)
}

fn truncate_message(message: &str) -> String {
    let mut chars = message.chars();
    let short: String = chars.by_ref().take(MAX_MESSAGE).collect();
    if chars.next().is_some() {
        format!("{short}…")
    } else {
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{CheckRetryability, FindingStatusAgainstBaseline, GateOrManualOrigin};

    fn finding(id: &str) -> Finding {
        Finding {
            id: id.to_owned(),
            file: Some("src/a.rs".to_owned()),
            line: Some(7),
            rule: None,
            message: format!("{id} is broken"),
            state: FindingStatusAgainstBaseline::New,
        }
    }

    fn evidence(ids: &[&str]) -> Evidence {
        let digest = Digest::hash_bytes(b"tree");
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
            alone: false,
            command: Some("cargo test".to_owned()),
            exit_code: Some(101),
            duration_ms: 5,
            retryable: CheckRetryability::Yes,
            origin: GateOrManualOrigin::Gate,
            counts: None,
            note: None,
            excerpt: String::new(),
            log: None,
            output_bytes: 0,
            tries: 1,
            stripped: Vec::new(),
            tools: Vec::new(),
            judge_usage: None,
        }
    }

    fn check(evidence: &Evidence, new: &[&str], still: &[&str], fixed: u32, expected: &str) {
        let keys = |ids: &[&str]| ids.iter().map(|id| finding(id).failure_key()).collect();
        let feedback = StopFeedback {
            stop: 2,
            met: 1,
            attempts: 3,
            continues_left: 5,
            repeat: false,
            checks: vec![FailedCheckFeedback {
                verifier: "tests".into(),
                key: Digest::hash_bytes(b"key"),
                verdict: evidence.verdict,
                cause: evidence.cause,
                new: keys(new),
                still: keys(still),
                fixed,
            }],
            background: 0,
            target: None,
            layers: Vec::new(),
            judges: 0,
            edited: Vec::new(),
        };
        let text = render_feedback(&feedback, None, &|_| Some(evidence.clone()));
        let head = "checkrein: not done yet. These checks do not pass (stop 2; the same failures end the task after 2 more):\n\n";
        let tail = "\nFix only these, then stop again.";
        let (head, tail) = match evidence.cause {
            Some(InconclusiveCause::TreeMoving) => (
                "checkrein: not judged yet. Files changed while these checks ran, so what they say does not count, for or against you:\n\n",
                "\nThis is no failed attempt. If something that you started still writes here, wait for it or end it. Then stop again.",
            ),
            _ => (head, tail),
        };
        assert_eq!(text, format!("{head}{expected}{tail}"));
        let repeated = StopFeedback {
            repeat: true,
            met: 2,
            ..feedback
        };
        assert_eq!(
            render_feedback(&repeated, None, &|_| Some(evidence.clone())),
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
    fn a_tree_that_moved_names_the_paths_only() {
        let mut moving = evidence(&[]);
        moving.verdict = Verdict::Inconclusive;
        moving.cause = Some(InconclusiveCause::TreeMoving);
        moving.moved = vec!["gen/a.rs".to_owned(), "gen/b.rs".to_owned()];
        check(
            &moving,
            &[],
            &[],
            0,
            "tests: files kept changing while it ran\n  changed meanwhile: gen/a.rs, gen/b.rs\n  reproduce: cargo test\n",
        );
    }

    /// `checks` failing checks of fifty findings each, ids of this form.
    fn many(checks: usize, id: impl Fn(usize, usize) -> String) -> (StopFeedback, Vec<Evidence>) {
        let found: Vec<Evidence> = (0..checks)
            .map(|check| {
                let ids: Vec<String> = (0..50).map(|at| id(check, at)).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let mut found = evidence(&ids);
                found.verifier = crate::ids::VerifierName::new(format!("check{check}"));
                found.command = Some(format!("cargo test -p part{check}"));
                found.findings_total = 61;
                found.log = Some(format!("/home/dev/.local/state/checkrein/logs/{check}.log"));
                found
            })
            .collect();
        let feedback = StopFeedback {
            stop: 1,
            met: 1,
            attempts: 3,
            continues_left: 6,
            repeat: false,
            checks: found
                .iter()
                .enumerate()
                .map(|(at, found)| FailedCheckFeedback {
                    verifier: found.verifier.clone(),
                    key: Digest::hash_bytes(&[at as u8]),
                    verdict: Verdict::Fail,
                    cause: None,
                    new: found.findings.iter().map(Finding::failure_key).collect(),
                    still: Vec::new(),
                    fixed: 0,
                })
                .collect(),
            background: 0,
            layers: Vec::new(),
            judges: 0,
            target: None,
            edited: Vec::new(),
        };
        (feedback, found)
    }

    fn text_of(feedback: &StopFeedback, found: &[Evidence]) -> String {
        let key = |at: usize| Digest::hash_bytes(&[at as u8]);
        render_feedback(feedback, None, &|wanted| {
            let at = (0..found.len()).find(|at| key(*at) == *wanted)?;
            found.get(at).cloned()
        })
    }

    #[test]
    fn every_check_keeps_its_command_its_log_and_all_ids() {
        for checks in 1..=5 {
            for tail in [0, 10, 60] {
                // Alike but for their ends, as tests of one file are.
                let id = |check: usize, at: usize| {
                    format!("tests/{}test_{check}.py::t{at}.", "x".repeat(tail))
                };
                let (feedback, found) = many(checks, id);
                let text = text_of(&feedback, &found);
                assert!(text.len() <= MAX_BYTES, "{checks} {tail}: {}", text.len());
                assert!(text.ends_with("Fix only these, then stop again."));
                for (check, found) in found.iter().enumerate() {
                    let head = format!("check{check}: failed");
                    let part = text.split("\n\n").find(|part| part.starts_with(&head));
                    let part = part.unwrap();
                    for line in [
                        found.command.clone().map(|it| format!("  reproduce: {it}")),
                        found.log.clone().map(|it| format!("  full output: {it}")),
                        Some("  and 11 more".to_owned()),
                    ] {
                        let line = line.unwrap();
                        assert!(part.lines().any(|it| it == line), "{line}: {text}");
                    }
                    for at in 0..50 {
                        assert!(part.contains(&format!("::t{at}.")), "{check} {at}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_one_check_leaves_the_others_take() {
        let (mut feedback, mut found) = many(2, |check, at| format!("t{check}.{at}"));
        found[0].findings.truncate(1);
        feedback.checks[0].new.truncate(1);
        found[1].findings.truncate(45);
        feedback.checks[1].new.truncate(45);
        for finding in &mut found[1].findings {
            finding.message = "m".repeat(90);
        }
        let text = text_of(&feedback, &found);
        assert_eq!(text.matches(&"m".repeat(90)).count(), 45, "{text}");
    }

    #[test]
    fn output_is_cut_at_its_beginning() {
        let (mut feedback, mut found) = many(3, |check, at| format!("t{check}.{at}"));
        for (check, found) in feedback.checks.iter_mut().zip(&mut found) {
            check.new.clear();
            found.findings.clear();
            let lines: Vec<String> = (0..20)
                .map(|at| format!("{at} {}", "o".repeat(220)))
                .collect();
            found.excerpt = lines.join("\n");
        }
        let text = text_of(&feedback, &found);
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        assert_eq!(text.matches("  | 19 o").count(), 3, "{text}");
        assert!(!text.contains("  | 0 o"));
    }

    #[test]
    fn a_sub_agent_is_not_told_of_stops_and_attempts() {
        let (feedback, found) = many(1, |_, at| format!("t{at}"));
        let text = text_of(
            &StopFeedback {
                stop: 0,
                met: 0,
                ..feedback
            },
            &found,
        );
        let head = "checkrein: not done yet. These checks do not pass:\n\ncheck0: failed";
        assert!(text.starts_with(head), "{text}");
    }
}
