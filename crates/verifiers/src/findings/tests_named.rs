//! Failing tests by the ids that runners give them, with place and message where the
//! output tells them elsewhere (cargo prints them before, pytest above its summary).

use std::collections::BTreeMap;

use super::gather::{Draft, Gathered};
use super::paths::Paths;
use crate::patterns::{Gate, Pattern, group};

static CARGO: Pattern = Pattern::new(" FAILED", r"^test (.+?) \.\.\. FAILED$");
/// libtest's closing list begins, or its outputs do.
static FAILURES: Pattern = Pattern::new("failures:", r"^failures:$");
static LISTED: Pattern = Pattern::new("    ", r"^    (\S.*)$");
static PANIC: Pattern = Pattern::new(
    " panicked at ",
    r"^thread '(.+?)'(?: \(\d+\))? panicked at (.+?):(\d+):\d+:$",
);
static NEXTEST: Pattern = Pattern::new(
    " [",
    r"^\s*(?:TRY \d+ )?(?:FAIL|TIMEOUT|TMT|ABORT|SIG\w+|LEAK-FAIL)\s+\[[^\]]*\]\s+(?:\([^)]*\)\s+)?(\S+)\s+(\S+)$",
);
static PYTEST: Pattern = Pattern::new(
    ".py",
    r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - (.*))?$",
);
static PYTEST_HEADING: Pattern = Pattern::new(
    "___ ",
    r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.+?) _{3,}$",
);
static PYTEST_PLACE: Pattern = Pattern::new(".py:", r"^(\S+\.py):(\d+): (.*)$");
static PYTEST_ERROR: Pattern = Pattern::new("E ", r"^E\s{2,}(.+)$");
static UNITTEST: Pattern = Pattern::new(" (", r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)(?: .*)?$");
static GO: Pattern = Pattern::new("--- FAIL: ", r"^\s*--- FAIL: (\S+)");
static GO_PLACE: Pattern = Pattern::new(".go:", r"^\s+(\S+\.go):(\d+): (.+)$");
static TAP: Pattern = Pattern::new("not ok ", r"^(\s*)not ok \d+(?: -)?(?: (.+))?$");
/// node and tap name a test before its own tests.
static SUBTEST: Pattern = Pattern::new("# Subtest: ", r"^(\s*)# Subtest: (.+)$");
static TAP_PLACE: Pattern = Pattern::new("location: ", r"^\s*location: '(.+):(\d+):\d+'$");
static TAP_ERROR: Pattern = Pattern::new("error: ", r"^\s*error: (?:'(.*)'|\|-)$");
/// Its own tests failed: they are named already.
static TAP_PARENT: Pattern = Pattern::new("subtestsFailed", r"^\s*failureType: 'subtestsFailed'$");
/// node's list of failures, in what it prints for people.
static SPEC_PLACE: Pattern = Pattern::new("test at ", r"^test at (.+):(\d+):\d+$");
static SPEC: Pattern = Pattern::new("\u{2716} ", r"^\x{2716} (.+?)(?: \([\d.]+ms\))?$");
static TAP_EXCUSED: Pattern = Pattern::new("#", r"# (?:TODO|SKIP|todo|skip)");
static JEST: Pattern = Pattern::new("\u{25cf} ", r"^\s*\x{25CF} (.+ \x{203A} .+)$");
static JEST_PLACE: Pattern = Pattern::new(":", r"\(?([^\s()]+):(\d+):\d+\)?$");
static VITEST: Pattern = Pattern::new(" > ", r"^\s*FAIL\s+(?:\|[^|]+\| )?(\S+) > (.+)$");
/// `FAIL src/a.test.ts`, jest's heading of a file.
static FAIL_FILE: Pattern = Pattern::new("FAIL ", r"^\s*FAIL\s+(\S+)(?: \([\d.]+ m?s\))?$");

/// Those that [`NamedTests::names`] asks.
static NAMING: [&Pattern; 14] = [
    &PANIC,
    &FAILURES,
    &CARGO,
    &PYTEST,
    &PYTEST_HEADING,
    &UNITTEST,
    &GO,
    &TAP,
    &SUBTEST,
    &SPEC_PLACE,
    &JEST,
    &VITEST,
    &NEXTEST,
    &FAIL_FILE,
];

/// Blanks by which TAP sets in the tests of a test.
const TAP_INDENT: usize = 4;

/// Places that are remembered for tests whose name comes later or came before.
const DETAILS: usize = 1_000;

#[derive(Debug, Clone, Default)]
struct Detail {
    file: Option<String>,
    line: Option<u32>,
    message: String,
}

/// What the lines that follow tell about.
#[derive(Debug, Default)]
enum Within {
    #[default]
    Nothing,
    /// The line after a panic's place is its message.
    Panic(String),
    /// Under pytest's heading of a test.
    Pytest(String),
    /// Under go's or jest's name of a test.
    Place(String),
    /// In the block under a line of TAP; whether the next line is what it says.
    Tap(String, bool),
    /// Under the place of a test in node's list of failures.
    SpecPlace(Option<String>, Option<u32>),
    /// In libtest's closing list, all that its `--quiet` tells of the names.
    Failures,
}

#[derive(Debug, Default)]
pub(crate) struct NamedTests {
    named: Vec<(Draft, String)>,
    details: BTreeMap<String, Detail>,
    within: Within,
    file: Option<String>,
    /// Names of the tests that TAP is in, outermost first.
    subtests: Vec<String>,
    /// The unittest whose traceback comes next.
    owner: Option<String>,
}

impl NamedTests {
    /// Whether the line is about a test that has a name.
    pub(crate) fn line(&mut self, line: &str, paths: &mut Paths, into: &mut Gathered) -> bool {
        self.continues(line, paths, into) || self.names(line, paths, into)
    }

    /// A line that names a failing test, or begins to tell about one.
    fn names(&mut self, line: &str, paths: &mut Paths, into: &mut Gathered) -> bool {
        static GATE: Gate = Gate::new();
        if !GATE.opens(line, || NAMING.to_vec()) {
            return false;
        }
        if let Some(captures) = PANIC.captures(line) {
            let name = group(&captures, 1).to_owned();
            let file = paths.inside(group(&captures, 2));
            let number = group(&captures, 3).parse().ok();
            self.tell(&name, |detail| {
                detail.file = file;
                detail.line = number;
            });
            self.within = Within::Panic(name);
        } else if FAILURES.matches(line) {
            self.within = Within::Failures;
        } else if let Some(captures) = CARGO.captures(line) {
            self.add(group(&captures, 1), None, "", group(&captures, 1), into);
        } else if let Some(captures) = PYTEST.captures(line) {
            let id = group(&captures, 1);
            let (path, name) = id.split_once("::").unwrap_or((id, id));
            let file = paths.inside(path);
            self.add(
                id,
                file,
                group(&captures, 2),
                &name.replace("::", "."),
                into,
            );
            self.within = Within::Nothing;
        } else if let Some(captures) = PYTEST_HEADING.captures(line) {
            self.within = Within::Pytest(group(&captures, 1).to_owned());
        } else if let Some(captures) = UNITTEST.captures(line) {
            let (name, class) = (group(&captures, 1), group(&captures, 2));
            let id = if class.ends_with(&format!(".{name}")) {
                class.to_owned()
            } else {
                format!("{class}.{name}")
            };
            self.add(&id, None, "", &id, into);
            self.owner = Some(id);
        } else if let Some(captures) = GO.captures(line) {
            let name = group(&captures, 1);
            self.add(name, None, "", name, into);
            self.within = Within::Place(name.to_owned());
        } else if let Some(captures) = SUBTEST.captures(line) {
            self.subtests
                .truncate(group(&captures, 1).len() / TAP_INDENT);
            self.subtests.push(group(&captures, 2).to_owned());
        } else if let Some(captures) = TAP.captures(line) {
            let name = group(&captures, 2);
            if !TAP_EXCUSED.matches(name) {
                self.subtests
                    .truncate(group(&captures, 1).len() / TAP_INDENT);
                let outer = self.subtests.iter().map(String::as_str);
                let path: Vec<&str> = outer.chain([name]).collect();
                let path = path.join(" > ");
                self.add(&path, None, "", &path, into);
                self.within = Within::Tap(path, false);
            }
        } else if let Some(captures) = SPEC_PLACE.captures(line) {
            let file = paths.inside(group(&captures, 1));
            self.within = Within::SpecPlace(file, group(&captures, 2).parse().ok());
        } else if let Some(captures) = JEST.captures(line) {
            let name = group(&captures, 1).trim();
            self.add(name, self.file.clone(), "", name, into);
            self.within = Within::Place(name.to_owned());
        } else if let Some(captures) = VITEST.captures(line) {
            let (path, name) = (group(&captures, 1), group(&captures, 2));
            self.add(name, paths.inside(path), "", name, into);
            self.within = Within::Place(name.to_owned());
        } else if let Some(captures) = NEXTEST.captures(line) {
            self.add(group(&captures, 2), None, "", group(&captures, 2), into);
        } else if let Some(captures) = FAIL_FILE.captures(line) {
            self.file = paths.inside(group(&captures, 1));
        } else {
            return false;
        }
        true
    }

    /// A line that tells more about the test named above it.
    fn continues(&mut self, line: &str, paths: &mut Paths, into: &mut Gathered) -> bool {
        match std::mem::take(&mut self.within) {
            Within::Nothing => false,
            Within::Failures => {
                let Some(captures) = LISTED.captures(line) else {
                    return false;
                };
                let name = group(&captures, 1);
                self.add(name, None, "", name, into);
                self.within = Within::Failures;
                true
            }
            Within::Tap(name, says) => {
                let text = line.trim();
                if !line.starts_with(' ') || text == "..." {
                    return false;
                }
                if says {
                    self.tell(&name, |detail| detail.message = text.to_owned());
                } else if let Some(captures) = TAP_PLACE.captures(line) {
                    let file = paths.inside(group(&captures, 1));
                    let number = group(&captures, 2).parse().ok().filter(|_| file.is_some());
                    self.tell(&name, |detail| {
                        detail.file = file;
                        detail.line = number;
                    });
                } else if let Some(captures) = TAP_ERROR.captures(line) {
                    let message = group(&captures, 1).to_owned();
                    let follows = text.ends_with("|-");
                    self.tell(&name, |detail| detail.message = message);
                    self.within = Within::Tap(name, follows);
                    return true;
                } else if TAP_PARENT.matches(line) {
                    let own = |(_, named): &(Draft, String)| *named == name;
                    if self.named.last().is_some_and(own) {
                        self.named.pop();
                    }
                } else if TAP.matches(line) || SUBTEST.matches(line) {
                    return false;
                }
                self.within = Within::Tap(name, false);
                true
            }
            Within::SpecPlace(file, number) => {
                let Some(captures) = SPEC.captures(line) else {
                    return false;
                };
                let name = group(&captures, 1).to_owned();
                self.add(&name, file.clone(), "", &name, into);
                self.tell(&name, |detail| {
                    detail.file = file;
                    detail.line = number;
                });
                self.within = Within::Panic(name);
                true
            }
            Within::Panic(name) => {
                self.tell(&name, |detail| detail.message = line.trim().to_owned());
                true
            }
            Within::Pytest(name) => {
                if line.starts_with("====") || PYTEST_HEADING.matches(line) {
                    return false;
                }
                if let Some(captures) = PYTEST_PLACE.captures(line) {
                    let file = paths.inside(group(&captures, 1));
                    let number = group(&captures, 2).parse().ok();
                    self.tell(&name, |detail| {
                        if file.is_some() {
                            detail.file = file;
                            detail.line = number;
                        }
                    });
                } else if let Some(captures) = PYTEST_ERROR.captures(line) {
                    let message = group(&captures, 1).to_owned();
                    self.tell(&name, |detail| {
                        if detail.message.is_empty() {
                            detail.message = message;
                        }
                    });
                }
                self.within = Within::Pytest(name);
                true
            }
            Within::Place(name) => {
                // An indented line, or a blank one, still tells about it.
                if !line.is_empty() && !line.starts_with([' ', '\t'])
                    || GO.matches(line)
                    || JEST.matches(line)
                    || VITEST.matches(line)
                {
                    return false;
                }
                let go = GO_PLACE.captures(line);
                let place = go.as_ref().map(|found| (group(found, 1), group(found, 2)));
                let jest = JEST_PLACE.captures(line);
                let place = place.or_else(|| {
                    jest.as_ref()
                        .map(|found| (group(found, 1), group(found, 2)))
                });
                let file = place.and_then(|(path, _)| paths.inside(path));
                let number = place.and_then(|(_, number)| number.parse().ok());
                let said = go.as_ref().map_or(line.trim(), |found| group(found, 3));
                self.tell(&name, |detail| {
                    if detail.line.is_none() && (file.is_some() || go.is_some()) {
                        detail.file = file;
                        detail.line = number;
                    }
                    if detail.message.is_empty() {
                        detail.message = said.to_owned();
                    }
                });
                self.within = Within::Place(name);
                true
            }
        }
    }

    /// A traceback that belongs to a test named before it; given back if there is none.
    pub(crate) fn claim(&mut self, traceback: Draft) -> Option<Draft> {
        let Some(name) = self.owner.take() else {
            return Some(traceback);
        };
        self.tell(&name, |detail| {
            detail.file = traceback.file;
            detail.line = traceback.line;
            let rule = traceback.rule.unwrap_or_default();
            detail.message = format!("{rule}: {}", traceback.message);
        });
        None
    }

    fn tell(&mut self, name: &str, change: impl FnOnce(&mut Detail)) {
        if let Some(detail) = self.details.get_mut(name) {
            change(detail);
        } else if self.details.len() < DETAILS {
            let mut detail = Detail::default();
            change(&mut detail);
            self.details.insert(name.to_owned(), detail);
        }
    }

    fn add(
        &mut self,
        id: &str,
        file: Option<String>,
        message: &str,
        detail: &str,
        into: &mut Gathered,
    ) {
        let draft = Draft {
            test: Some(id.to_owned()),
            file,
            message: message.to_owned(),
            ..Draft::default()
        };
        if self.named.len() < DETAILS {
            self.named.push((draft, detail.to_owned()));
        } else {
            into.add(draft);
        }
    }

    /// Joins names with places and messages.
    pub(crate) fn finish(&mut self, into: &mut Gathered) {
        for (mut draft, name) in self.named.drain(..) {
            if let Some(detail) = self.details.get(&name) {
                // A test's own file is its identity; where it failed may be a file of its callees.
                match &draft.file {
                    Some(file) if detail.file.as_ref() == Some(file) => draft.line = detail.line,
                    Some(_) => {}
                    None => {
                        draft.file = detail.file.clone();
                        draft.line = detail.line;
                    }
                }
                if draft.message.is_empty() {
                    draft.message = detail.message.clone();
                }
            }
            if draft.message.is_empty() {
                draft.message = "failed".to_owned();
            }
            into.add(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &CARGO,
            &FAILURES,
            &LISTED,
            &PANIC,
            &NEXTEST,
            &PYTEST,
            &PYTEST_HEADING,
            &PYTEST_PLACE,
            &PYTEST_ERROR,
            &UNITTEST,
            &GO,
            &GO_PLACE,
            &TAP,
            &TAP_EXCUSED,
            &SUBTEST,
            &TAP_PLACE,
            &TAP_ERROR,
            &TAP_PARENT,
            &SPEC_PLACE,
            &SPEC,
            &JEST,
            &JEST_PLACE,
            &VITEST,
            &FAIL_FILE,
        ] {
            pattern.replace_all("", "");
        }
    }
}
