//! A scenario's table: what was to be true, whether it was, and what was seen.

/// Longest thing seen that is shown of a check that holds, in characters.
const MAX_SHOWN: usize = 110;

/// The rows of one scenario.
#[derive(Debug, Default)]
pub(super) struct ProbeCaseReport {
    failed: usize,
    checked: usize,
}

impl ProbeCaseReport {
    pub(super) fn print_case_title(&self, agent: &str, case: &str, about: &str) {
        println!("\n== {agent} · {case}: {about}");
    }

    /// One row. What a failed check saw is shown whole.
    pub(super) fn report_probe_condition(&mut self, what: &str, holds: bool, seen: &str) {
        self.checked += 1;
        let seen = seen.trim();
        if holds {
            let line = seen.replace('\n', " ");
            let mut shown: String = line.chars().take(MAX_SHOWN).collect();
            if shown.len() < line.len() {
                shown.push('…');
            }
            println!("  ok    {what:<58} {shown}");
        } else {
            self.failed += 1;
            println!("  FAIL  {what}");
            for line in seen.lines() {
                println!("        | {line}");
            }
        }
    }

    pub(super) fn report_whether_as_expected<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        seen: &T,
        wanted: &T,
    ) {
        let text = if seen == wanted {
            format!("{seen:?}")
        } else {
            format!("{seen:?} instead of {wanted:?}")
        };
        self.report_probe_condition(what, seen == wanted, &text);
    }

    /// Something worth knowing that is neither right nor wrong.
    pub(super) fn print_case_note(&self, what: &str) {
        println!("        {what}");
    }

    pub(super) fn failed_case_check_count(&self) -> usize {
        self.failed
    }

    pub(super) fn probe_check_count(&self) -> usize {
        self.checked
    }
}
