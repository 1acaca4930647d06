//! The list of rows: lines of `rows.tsv`. A row is one thing that a document promises, in words of our own.

use std::collections::BTreeSet;

use super::names::Test;

pub(super) const TEXT: &str = include_str!("../../rows.tsv");

/// One thing that a document promises.
#[derive(Debug)]
pub(super) struct Row {
    /// Document, part, name.
    pub(super) id: String,
    /// What it says.
    pub(super) says: String,
    /// What it is here, where that is another name or another thing on purpose.
    pub(super) here: String,
    /// Where it is observed.
    pub(super) test: Test,
    /// What is seen there.
    pub(super) sees: String,
}

/// The rows of a list, and what is wrong with it.
pub(super) fn read(text: &str) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut wrong) = (Vec::<Row>::new(), Vec::new());
    let mut ids = BTreeSet::new();
    let lines = text.lines().enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
        match row(line) {
            Err(what) => wrong.push(format!("line {}: {what}", at + 1)),
            Ok(row) if !ids.insert(row.id.clone()) => {
                wrong.push(format!("line {}: {} is there twice", at + 1, row.id));
            }
            Ok(row) => rows.push(row),
        }
    }
    (rows, wrong)
}

fn row(line: &str) -> Result<Row, String> {
    let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
    let [id, says, here, test, sees] = columns.as_slice() else {
        return Err(format!("has {} columns of 5: {line}", columns.len()));
    };
    let empty = [
        ("id", id),
        ("row", says),
        ("test", test),
        ("observation", sees),
    ];
    if let Some((column, _)) = empty.iter().find(|(_, text)| text.is_empty()) {
        return Err(format!("{id} has no {column}"));
    }
    Ok(Row {
        id: (*id).to_owned(),
        says: (*says).to_owned(),
        here: (*here).to_owned(),
        test: test.parse().map_err(|what| format!("{id}: {what}"))?,
        sees: (*sees).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "000.a\tsays\t\tcheckrein-cli::it judge::x\tone request";

    #[test]
    fn a_row_has_a_test_and_says_what_is_seen() {
        let (rows, wrong) = read(&format!("# a comment\n\n{GOOD}\n"));
        assert_eq!((rows.len(), wrong.len()), (1, 0));
        let row = rows.first().unwrap();
        assert_eq!(row.test.to_string(), "checkrein-cli::it judge::x");
        for (bad, said) in [
            (GOOD.replace("checkrein-cli::it judge::x", ""), "no test"),
            (GOOD.replace("one request", " "), "no observation"),
            (GOOD.replace("says", ""), "no row"),
            (GOOD.replace("\tone request", ""), "4 columns of 5"),
            (GOOD.replace("checkrein-cli::it ", ""), "PACKAGE::SUITE"),
            (GOOD.replace("::it", ""), "PACKAGE::SUITE"),
            (format!("{GOOD}\n{GOOD}"), "twice"),
        ] {
            let (_, wrong) = read(&bad);
            assert_eq!(wrong.len(), 1, "{bad}: {wrong:?}");
            assert!(wrong.iter().all(|what| what.contains(said)), "{wrong:?}");
        }
    }
}
