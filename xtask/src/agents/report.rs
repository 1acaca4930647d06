//! A scenario's table: what was to be true, whether it was, and what was seen.

/// Longest thing seen that is shown of a check that holds, in characters.
const SHOWN: usize = 110;

/// The rows of one scenario.
#[derive(Debug, Default)]
pub(super) struct Report {
    failed: usize,
    checked: usize,
}

impl Report {
    pub(super) fn title(&self, agent: &str, case: &str, about: &str) {
        println!("\n== {agent} · {case}: {about}");
    }

    /// One row. What a failed check saw is shown whole.
    pub(super) fn check(&mut self, what: &str, holds: bool, seen: &str) {
        self.checked += 1;
        let seen = seen.trim();
        if holds {
            let line = seen.replace('\n', " ");
            let mut shown: String = line.chars().take(SHOWN).collect();
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

    pub(super) fn equal<T: PartialEq + std::fmt::Debug>(
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
        self.check(what, seen == wanted, &text);
    }

    /// Something worth knowing that is neither right nor wrong.
    pub(super) fn note(&self, what: &str) {
        println!("        {what}");
    }

    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    pub(super) fn checked(&self) -> usize {
        self.checked
    }
}
