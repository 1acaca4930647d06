//! Counts the rows of each document that hold, and those that each issue is to build.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::table::{DocumentedPromise, IssueNumberWithPart, RequirementRowStatus};

#[derive(Default)]
struct DocumentPromiseCounts<'r> {
    held: usize,
    later: BTreeMap<&'r IssueNumberWithPart, usize>,
}

/// Returns a line for each document.
pub(super) fn promise_count_lines_by_document(rows: &[DocumentedPromise]) -> String {
    let mut documents = BTreeMap::<&str, DocumentPromiseCounts<'_>>::new();
    for row in rows {
        let counts = documents
            .entry(row.document_that_made_promise())
            .or_default();
        match &row.status {
            RequirementRowStatus::Held(_) => counts.held += 1,
            RequirementRowStatus::Later(issue) => *counts.later.entry(issue).or_default() += 1,
        }
    }
    let mut text = String::new();
    for (document, DocumentPromiseCounts { held, later }) in documents {
        // Writing into a `String` cannot fail.
        let _ = write!(
            text,
            "{document}: {held} held, {} later",
            later.values().sum::<usize>()
        );
        let issues: Vec<String> = later
            .iter()
            .map(|(issue, count)| format!("#{issue}: {count}"))
            .collect();
        if !issues.is_empty() {
            let _ = write!(text, " ({})", issues.join(", "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn held_rows_and_later_rows_are_counted_apart() {
        let test = "checkrein-cli::it judge::x\tone request";
        let (rows, wrong) = table::parse_promise_rows(&format!(
            "001.a\tsays\t\t{test}\n000.a\tsays\t\t{test}\n000.b\tsays\t\t{test}\n\
             000.c\tsays\t\t\t\tlater: 12\n000.d\tsays\t\t\t\tlater: 7b\n000.e\tsays\t\t\t\tlater: 7b\n"
        ));
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(
            promise_count_lines_by_document(&rows),
            "000: 2 held, 3 later (#7b: 2, #12: 1)\n001: 1 held, 0 later\n"
        );
    }
}
