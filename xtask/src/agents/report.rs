//! Prints the table of one scenario of `xtask agents`: each condition, whether it holds, and what
//! was seen.

/// Longest observation that is printed for a check that holds, in characters.
const MAX_SHOWN: usize = 110;

/// Counts the checks of one scenario, and those that failed.
#[derive(Debug, Default)]
pub(super) struct ProbeCaseCheckCounts {
    failed: usize,
    checked: usize,
}

impl ProbeCaseCheckCounts {
    pub(super) fn print_case_title(&self, agent: &str, case: &str, about: &str) {
        println!("\n== {agent} · {case}: {about}");
    }

    /// Prints one row. The observation of a failed check is printed in full.
    pub(super) fn report_probe_check_result(&mut self, what: &str, holds: bool, seen: &str) {
        self.checked += 1;
        let seen = seen.trim();
        if holds {
            let line = seen.replace('\n', " ");
            let mut shown: String = line.chars().take(MAX_SHOWN).collect();
            // Lengths in bytes: they differ exactly if `take` has left characters out.
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
        self.report_probe_check_result(what, seen == wanted, &text);
    }

    /// Prints something worth knowing that is neither right nor wrong.
    pub(super) fn print_probe_case_note(&self, what: &str) {
        println!("        {what}");
    }

    pub(super) fn failed_case_check_count(&self) -> usize {
        self.failed
    }

    pub(super) fn case_check_count(&self) -> usize {
        self.checked
    }
}
