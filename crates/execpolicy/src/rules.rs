//! The compiled rule set: plain data that a hook process loads without Starlark.
//!
//! Matching is Codex's: exact tokens from the first, every matching rule counts, the
//! strictest wins. Stricter in one point: a restrictive rule on a bare name also
//! holds for a path with that basename, while an allow rule is not lent to a path.

use std::collections::BTreeMap;

use checkrein_core::input::RuleDecision;
use serde::{Deserialize, Serialize};

/// Version of the text form; a higher one is refused, never guessed at.
const FORMAT: u32 = 1;

/// One prefix rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// First token, always one: alternatives there make several rules.
    pub(crate) head: String,
    /// The alternatives of every later position.
    pub(crate) tail: Vec<Vec<String>>,
    /// What it says.
    pub(crate) decision: RuleDecision,
    /// Why, for the agent and the person.
    pub(crate) justification: Option<String>,
}

/// A rule that holds for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The tokens of the command that matched; the bare name where a path stood.
    pub matched_prefix: Vec<String>,
    /// What the rule says.
    pub decision: RuleDecision,
    /// Why.
    pub justification: Option<String>,
}

/// Every rule of a policy, in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Positions in `rules` by first token.
    by_head: BTreeMap<String, Vec<usize>>,
    /// Paths that no command and no tool writes; see `own`.
    protected: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct RuleSetWire {
    v: u32,
    rules: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<String>,
}

/// Why a stored rule set cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RuleSetError {
    /// The text is not one.
    #[error("compiled rules cannot be read")]
    Syntax(#[from] serde_json::Error),
    /// It was written by a later version.
    #[error("compiled rules have format {0}, this build reads {FORMAT}: upgrade it")]
    Format(u32),
}

impl RuleSet {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let mut by_head: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, rule) in rules.iter().enumerate() {
            by_head.entry(rule.head.clone()).or_default().push(at);
        }
        Self {
            rules,
            by_head,
            protected: Vec::new(),
        }
    }

    /// The same, with files and folders that no command and no tool may write.
    #[must_use]
    pub fn protecting(self, protected: Vec<String>) -> Self {
        Self { protected, ..self }
    }

    pub(crate) fn protected(&self) -> &[String] {
        &self.protected
    }

    pub(crate) fn into_rules(self) -> Vec<Rule> {
        self.rules
    }

    /// Compact JSON, for `Policy::rules`.
    pub fn to_text(&self) -> String {
        if self.rules.is_empty() && self.protected.is_empty() {
            return String::new();
        }
        // Strings and integers always serialise.
        serde_json::to_string(&RuleSetWire {
            v: FORMAT,
            rules: self.rules.clone(),
            protected: self.protected.clone(),
        })
        .unwrap_or_default()
    }

    /// Reads what [`RuleSet::to_text`] wrote. The empty text is the empty set.
    ///
    /// # Errors
    /// If the text is none, or of a later format.
    pub fn from_text(text: &str) -> Result<Self, RuleSetError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let wire: RuleSetWire = serde_json::from_str(text)?;
        if wire.v != FORMAT {
            return Err(RuleSetError::Format(wire.v));
        }
        Ok(Self::new(wire.rules).protecting(wire.protected))
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any rule prompts or forbids. Only then is an unreadable command worth a question.
    pub fn has_restrictions(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.decision > RuleDecision::Allow)
    }

    /// Whether any rule leaves a command to a person.
    pub fn asks(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.decision == RuleDecision::Prompt)
    }

    /// Every rule that holds for these words, in file order.
    pub fn matches<S: AsRef<str>>(&self, argv: &[S]) -> Vec<Match> {
        let Some((program, arguments)) = argv.split_first() else {
            return Vec::new();
        };
        let program = program.as_ref();
        let name = basename(program);
        let mut at: Vec<usize> = self.with_head(program).collect();
        if name != program {
            at.extend(self.with_head(name).filter(|at| {
                self.rules
                    .get(*at)
                    .is_some_and(|rule| rule.decision > RuleDecision::Allow)
            }));
            at.sort_unstable();
        }
        at.into_iter()
            .filter_map(|at| self.rules.get(at))
            .filter_map(|rule| rule.hit(arguments))
            .collect()
    }

    /// As [`RuleSet::matches`], the way Codex checks the examples of a rule: the basename
    /// of an absolute path stands in, for any decision, if the path itself has no rule.
    pub(crate) fn matches_example(&self, argv: &[String]) -> bool {
        let Some((program, arguments)) = argv.split_first() else {
            return false;
        };
        let hit = |head: &str| {
            self.with_head(head)
                .filter_map(|at| self.rules.get(at))
                .any(|rule| rule.hit(arguments).is_some())
        };
        hit(program) || (program.starts_with('/') && hit(basename(program)))
    }

    /// Whether a restrictive rule could hold once the words after these fixed ones are
    /// known. `lead` is how the first of them begins.
    pub(crate) fn could_restrict<S: AsRef<str>>(&self, fixed: &[S], lead: &str) -> bool {
        let Some((program, arguments)) = fixed.split_first() else {
            return false;
        };
        let program = program.as_ref();
        let name = basename(program);
        let other = (name != program)
            .then(|| self.with_head(name))
            .into_iter()
            .flatten();
        self.with_head(program)
            .chain(other)
            .filter_map(|at| self.rules.get(at))
            .filter(|rule| rule.decision > RuleDecision::Allow)
            .any(|rule| {
                let known = arguments.iter().zip(&rule.tail);
                known.clone().count() == arguments.len()
                    && known
                        .into_iter()
                        .all(|(word, options)| has(options, word.as_ref()))
                    && rule.tail.get(arguments.len()).is_some_and(|options| {
                        lead.is_empty() || options.iter().any(|option| option.starts_with(lead))
                    })
            })
    }

    /// The longest pattern, in tokens.
    pub(crate) fn longest_pattern(&self) -> usize {
        self.rules
            .iter()
            .map(|rule| rule.tail.len() + 1)
            .max()
            .unwrap_or(0)
    }

    fn with_head(&self, head: &str) -> impl Iterator<Item = usize> + '_ {
        self.by_head.get(head).into_iter().flatten().copied()
    }
}

impl Rule {
    fn hit<S: AsRef<str>>(&self, arguments: &[S]) -> Option<Match> {
        let taken = arguments.get(..self.tail.len())?;
        if !taken
            .iter()
            .zip(&self.tail)
            .all(|(word, options)| has(options, word.as_ref()))
        {
            return None;
        }
        let mut matched_prefix = vec![self.head.clone()];
        matched_prefix.extend(taken.iter().map(|word| word.as_ref().to_owned()));
        Some(Match {
            matched_prefix,
            decision: self.decision,
            justification: self.justification.clone(),
        })
    }
}

fn has(options: &[String], word: &str) -> bool {
    options.iter().any(|option| option == word)
}

/// What follows the last slash; the whole name if nothing does.
pub(crate) fn basename(program: &str) -> &str {
    match program.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        _ => program,
    }
}

#[cfg(test)]
mod tests {
    use RuleDecision::{Allow, Forbidden, Prompt};

    use super::*;
    use crate::compile;

    fn rules() -> RuleSet {
        let one = "prefix_rule(['git'], 'prompt')\nprefix_rule(['git', 'status'])\n\
                   prefix_rule(['rm'], 'forbidden', justification='use trash')\n\
                   prefix_rule([['npm', 'yarn'], ['i', 'install']], 'prompt')";
        let two =
            "prefix_rule(['git'], 'prompt')\nprefix_rule(['/opt/rm'], 'allow')\nprefix_rule([''])";
        compile(&[("one.rules", one), ("two.rules", two)]).unwrap()
    }

    #[test]
    fn every_rule_counts_in_file_order() {
        let rules = rules();
        let check = |argv: &[&str], expected: &[(&str, RuleDecision)]| {
            let hits = rules.matches(argv);
            let seen: Vec<(String, RuleDecision)> = hits
                .into_iter()
                .map(|hit| (hit.matched_prefix.join(" "), hit.decision))
                .collect();
            let expected: Vec<(String, RuleDecision)> = expected
                .iter()
                .map(|(words, decision)| ((*words).to_owned(), *decision))
                .collect();
            assert_eq!(seen, expected, "{argv:?}");
        };
        check(
            &["git", "status", "-s"],
            &[("git", Prompt), ("git status", Allow), ("git", Prompt)],
        );
        check(&["git"], &[("git", Prompt), ("git", Prompt)]);
        check(&["git status"], &[]);
        check(&["Git"], &[]);
        check(&["yarn", "install", "x"], &[("yarn install", Prompt)]);
        check(&["yarn", "add"], &[]);
        check(&["npm"], &[]);
        check(&["rm"], &[("rm", Forbidden)]);
        check(&["/bin/rm", "x"], &[("rm", Forbidden)]);
        check(&["./rm"], &[("rm", Forbidden)]);
        // A path with a rule of its own is still that program.
        check(&["/opt/rm"], &[("rm", Forbidden), ("/opt/rm", Allow)]);
        // The allow rule is not lent to the path, the prompt rules are.
        check(
            &["/usr/bin/git", "status"],
            &[("git", Prompt), ("git", Prompt)],
        );
        check(&["rm/"], &[]);
        check(&[""], &[("", Allow)]);
        check(&[], &[]);
        assert_eq!(
            rules.matches(&["rm", "x"]),
            [Match {
                matched_prefix: vec!["rm".to_owned()],
                decision: Forbidden,
                justification: Some("use trash".to_owned()),
            }]
        );
    }

    #[test]
    fn what_unknown_words_could_still_become() {
        let rules = compile(&[(
            "t.rules",
            "prefix_rule(['a', ['b', 'c'], '-f'], 'forbidden')\nprefix_rule(['z', 'y'])",
        )])
        .unwrap();
        for (fixed, lead, expected) in [
            (&["a"][..], "", true),
            (&["a"], "b", true),
            (&["a"], "d", false),
            (&["a", "c"], "-", true),
            (&["/bin/a", "c"], "", true),
            (&["a", "x"], "", false),
            (&["a", "b", "-f"], "", false),
            (&["z"], "", false),
        ] {
            assert_eq!(
                rules.could_restrict(fixed, lead),
                expected,
                "{fixed:?} {lead:?}"
            );
        }
    }

    #[test]
    fn text_form_keeps_everything() {
        let rules = rules();
        assert_eq!(RuleSet::from_text(&rules.to_text()).unwrap(), rules);
        assert_eq!(RuleSet::default().to_text(), "");
        assert_eq!(RuleSet::from_text("").unwrap(), RuleSet::default());
        assert!(rules.has_restrictions() && !RuleSet::default().has_restrictions());
        let golden = r#"{"v":1,"rules":[{"head":"rm","tail":[["-r","-f"]],"decision":"forbidden","justification":null}]}"#;
        let made =
            compile(&[("t.rules", "prefix_rule(['rm', ['-r', '-f']], 'forbidden')")]).unwrap();
        assert_eq!(
            (made.to_text().as_str(), RuleSet::from_text(golden).unwrap()),
            (golden, made)
        );
        assert!(RuleSet::from_text("{").is_err());
        let later = RuleSet::from_text(r#"{"v":2,"rules":[]}"#).unwrap_err();
        assert_eq!(
            later.to_string(),
            "compiled rules have format 2, this build reads 1: upgrade it"
        );
    }
}
