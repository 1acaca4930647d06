//! Parses the list of rows, `rows.tsv`. A row is one thing that a document promises, in words of
//! our own.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::names::TestName;

pub(super) const TEXT: &str = include_str!("../../rows.tsv");

/// One thing that a document promises.
#[derive(Debug)]
pub(super) struct DocumentedPromise {
    /// Document, part and name, joined by dots.
    pub(super) id: String,
    /// What the document says.
    pub(super) promise: String,
    /// What it is here, where that is deliberately another name or another thing.
    pub(super) deviation: String,
    /// Whether it holds.
    pub(super) status: RequirementRowStatus,
}

/// Whether a row holds in this build.
#[derive(Debug)]
pub(super) enum RequirementRowStatus {
    /// It holds, and this test observes it.
    Held(PromiseObservingTest),
    /// It is not built yet; this issue builds it.
    Later(IssueNumberWithPart),
}

/// The test that observes a row, and what is seen there.
#[derive(Debug)]
pub(super) struct PromiseObservingTest {
    pub(super) test: TestName,
    pub(super) observed: String,
}

/// The name of an issue: a number, and a letter where an issue has parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IssueNumberWithPart {
    // The derived order is by number and then by part; a name without a part comes first.
    number: u32,
    part: Option<char>,
}

impl FromStr for IssueNumberWithPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, part) = match text.char_indices().next_back() {
            Some((at, letter)) if letter.is_ascii_lowercase() => {
                (text.get(..at).unwrap_or_default(), Some(letter))
            }
            _ => (text, None),
        };
        let number = digits.parse().ok().filter(|number| *number > 0);
        match number {
            Some(number) => Ok(Self { number, part }),
            None => Err(format!("'{text}' is not the name of an issue, as 7a")),
        }
    }
}

impl fmt::Display for IssueNumberWithPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.number)?;
        self.part.map_or(Ok(()), |part| write!(out, "{part}"))
    }
}

impl DocumentedPromise {
    /// Returns the document that promises it, which is the first part of the id.
    pub(super) fn document_that_made_promise(&self) -> &str {
        self.id
            .split_once('.')
            .map_or(self.id.as_str(), |(document, _)| document)
    }

    /// Returns the test that observes it, if it holds.
    pub(super) fn promise_backing_test(&self) -> Option<&PromiseObservingTest> {
        match &self.status {
            RequirementRowStatus::Held(observation) => Some(observation),
            RequirementRowStatus::Later(_) => None,
        }
    }
}

/// Parses the list. Returns the rows, and what is wrong with it.
pub(super) fn parse_promise_rows(text: &str) -> (Vec<DocumentedPromise>, Vec<String>) {
    let (mut rows, mut wrong) = (Vec::<DocumentedPromise>::new(), Vec::new());
    let mut ids = BTreeSet::new();
    let lines = text.lines().enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
        // Every mistake is collected, so that one run shows them all.
        match parse_documented_promise_row(line) {
            Err(what) => wrong.push(format!("line {}: {what}", at + 1)),
            Ok(row) if !ids.insert(row.id.clone()) => {
                wrong.push(format!("line {}: {} is there twice", at + 1, row.id));
            }
            Ok(row) => rows.push(row),
        }
    }
    (rows, wrong)
}

fn parse_documented_promise_row(line: &str) -> Result<DocumentedPromise, String> {
    let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
    // Rows that are not built yet have a sixth column.
    let (id, says, here, test, sees, mark) = match columns.as_slice() {
        [id, says, here, test, sees] => (*id, *says, *here, *test, *sees, ""),
        [id, says, here, test, sees, mark] => (*id, *says, *here, *test, *sees, *mark),
        _ => return Err(format!("has {} columns of 5 or 6: {line}", columns.len())),
    };
    if let Some((column, _)) = [("id", id), ("row", says)]
        .iter()
        .find(|(_, text)| text.is_empty())
    {
        return Err(format!("{id} has no {column}"));
    }
    Ok(DocumentedPromise {
        id: id.to_owned(),
        promise: says.to_owned(),
        deviation: here.to_owned(),
        status: parse_promise_row_status(test, sees, mark)
            .map_err(|what| format!("{id}: {what}"))?,
    })
}

/// Reads the status: a row has a test, or the name of the issue that builds it; never both, never
/// neither.
fn parse_promise_row_status(
    test: &str,
    sees: &str,
    mark: &str,
) -> Result<RequirementRowStatus, String> {
    if mark.is_empty() {
        if test.is_empty() {
            return Err("has no test, and no issue builds it later".to_owned());
        }
        if sees.is_empty() {
            return Err("has no observation".to_owned());
        }
        return Ok(RequirementRowStatus::Held(PromiseObservingTest {
            test: test.parse()?,
            observed: sees.to_owned(),
        }));
    }
    let Some(issue) = mark.strip_prefix("later:") else {
        return Err(format!("'{mark}' is not `later: ISSUE`"));
    };
    let issue = issue.trim().parse()?;
    match test.is_empty() && sees.is_empty() {
        true => Ok(RequirementRowStatus::Later(issue)),
        false => Err(format!(
            "has a test, and is marked as built later by {issue}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "000.a\tsays\t\tcheckrein-cli::it judge::x\tone request";
    const LATER: &str = "000.b\tsays\tin part\t\t\tlater: 7a";

    #[track_caller]
    fn refused(text: &str, said: &str) {
        let (_, wrong) = parse_promise_rows(text);
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert!(wrong.iter().all(|what| what.contains(said)), "{wrong:?}");
    }

    #[test]
    fn a_row_has_a_test_and_says_what_is_seen() {
        let (rows, wrong) = parse_promise_rows(&format!("# a comment\n\n{GOOD}\n"));
        assert_eq!((rows.len(), wrong.len()), (1, 0));
        let observation = rows.first().unwrap().promise_backing_test().unwrap();
        assert_eq!(observation.test.to_string(), "checkrein-cli::it judge::x");
        for (bad, said) in [
            (GOOD.replace("checkrein-cli::it judge::x", ""), "no test"),
            (GOOD.replace("one request", " "), "no observation"),
            (GOOD.replace("says", ""), "no row"),
            (GOOD.replace("\tone request", ""), "4 columns of 5"),
            (GOOD.replace("checkrein-cli::it ", ""), "PACKAGE::SUITE"),
            (GOOD.replace("::it", ""), "PACKAGE::SUITE"),
            (format!("{GOOD}\n{GOOD}"), "twice"),
        ] {
            refused(&bad, said);
        }
    }

    #[test]
    fn a_row_that_is_not_built_yet_names_the_issue_that_builds_it() {
        let (rows, wrong) = parse_promise_rows(&format!("{GOOD}\n{LATER}\n"));
        assert_eq!((rows.len(), wrong), (2, Vec::new()));
        let row = rows.last().unwrap();
        assert_eq!(row.document_that_made_promise(), "000");
        assert!(
            matches!(&row.status, RequirementRowStatus::Later(issue) if issue.to_string() == "7a"),
            "{row:?}"
        );
        for (bad, said) in [
            (LATER.replace("later: 7a", ""), "no issue builds it later"),
            (LATER.replace("7a", ""), "not the name of an issue"),
            (LATER.replace("7a", "soon"), "not the name of an issue"),
            (LATER.replace("7a", "0"), "not the name of an issue"),
            (LATER.replace("later: ", ""), "not `later: ISSUE`"),
            (format!("{GOOD}\tlater: 7a"), "has a test, and is marked"),
            (
                LATER.replace("\t\t\t", "\t\tone request\t"),
                "has a test, and is marked",
            ),
            (format!("{LATER}\t"), "7 columns"),
        ] {
            refused(&bad, said);
        }
    }

    #[test]
    fn issues_are_sorted_by_number_and_then_by_part() {
        let mut names =
            ["12", "7b", "7", "8", "7a"].map(|name| name.parse::<IssueNumberWithPart>().unwrap());
        names.sort();
        assert_eq!(
            names.map(|name| name.to_string()),
            ["7", "7a", "7b", "8", "12"]
        );
    }
}
