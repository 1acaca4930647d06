//! Answers exactly as Codex does: one command as words, without splitting it and without being
//! stricter. Our own judging is in `shell`; the two are kept apart.

use std::collections::BTreeMap;

use checkrein_core::input::RuleDecision;
use serde::Serialize;

use crate::rule_set::{MatchedRule, RuleSet, basename};

/// The paths that may stand for a bare name, by that name.
pub(crate) type HostExecutables = BTreeMap<String, Vec<String>>;

/// The folders from which relative names of programs are resolved. The default is the root, for
/// policies that are sealed once and used anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPathBaseFolders {
    /// The working directory.
    pub folder: String,
    /// The person's home.
    pub home: String,
}

impl Default for ProgramPathBaseFolders {
    fn default() -> Self {
        Self {
            folder: "/".to_owned(),
            home: "/".to_owned(),
        }
    }
}

impl ProgramPathBaseFolders {
    /// Returns a program's absolute path, worked out from its text alone.
    fn resolve_program_path_lexically(&self, program: &str) -> String {
        let below_home = match program.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        match below_home {
            Some(rest) => normalize_path(&format!("{}/{rest}", self.home)),
            None if program.starts_with('/') => normalize_path(program),
            None => normalize_path(&format!("{}/{program}", self.folder)),
        }
    }
}

/// An absolute path without `.`, `..` and surplus slashes.
pub(crate) fn normalize_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                // At the root `..` stays there, as in a real path.
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What the rules say about one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecPolicyCheckResult {
    /// Every rule that holds, in the order of the files.
    pub matches: Vec<MatchedRule>,
    /// The path of the program, if a rule on its last part was lent to it.
    pub resolved_program: Option<String>,
}

impl ExecPolicyCheckResult {
    /// Returns the strictest decision; none if no rule holds.
    pub fn strictest_rule_decision(&self) -> Option<RuleDecision> {
        self.matches.iter().map(|hit| hit.decision).max()
    }

    /// Returns the document that `codex execpolicy check` prints, byte for byte.
    pub fn to_codex_check_json(&self) -> String {
        let wire = ExecPolicyCheckJson {
            matched_rules: self
                .matches
                .iter()
                .map(|hit| {
                    CodexFormatRuleMatch::rule_match_report_from_matched_rule(
                        hit,
                        self.resolved_program.as_deref(),
                    )
                })
                .collect(),
            decision: self.strictest_rule_decision(),
        };
        // Strings always serialise.
        serde_json::to_string(&wire).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecPolicyCheckJson<'a> {
    matched_rules: Vec<CodexFormatRuleMatch<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<RuleDecision>,
}

/// A match in the shape of Codex.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CodexFormatRuleMatch<'a> {
    /// A `prefix_rule` holds.
    #[serde(rename_all = "camelCase")]
    PrefixRuleMatch {
        /// The words of the command that matched.
        matched_prefix: &'a [String],
        /// What the rule says.
        decision: RuleDecision,
        /// The path that the rule was lent to.
        #[serde(skip_serializing_if = "Option::is_none")]
        resolved_program: Option<&'a str>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        justification: Option<&'a str>,
    },
}

impl<'a> CodexFormatRuleMatch<'a> {
    /// This match, of a rule that was lent to a path or not.
    pub fn rule_match_report_from_matched_rule(
        hit: &'a MatchedRule,
        resolved_program: Option<&'a str>,
    ) -> Self {
        Self::PrefixRuleMatch {
            matched_prefix: &hit.matched_prefix,
            decision: hit.decision,
            resolved_program,
            justification: hit.justification.as_deref(),
        }
    }
}

impl RuleSet {
    /// What `codex execpolicy check` says about these words; with surroundings, what it says
    /// under `--resolve-host-executables`.
    pub fn codex_execpolicy_check_result<S: AsRef<str>>(
        &self,
        argv: &[S],
        resolve: Option<&ProgramPathBaseFolders>,
    ) -> ExecPolicyCheckResult {
        self.match_rules_with_executables(argv, resolve, self.all_host_executables())
    }

    /// About how many bytes [`RuleSet::match_rules_with_executables`] compares for these words at most.
    pub(crate) fn estimate_execpolicy_check_cost(
        &self,
        argv: &[String],
        from: &ProgramPathBaseFolders,
        hosts: &HostExecutables,
    ) -> usize {
        let words: usize = argv.iter().map(|word| word.len() + 32).sum();
        let Some(program) = argv.first() else {
            return words;
        };
        let path = from.resolve_program_path_lexically(program);
        let lent = |name: &str| hosts.get(name).map_or(0, |paths| paths.len() * 64);
        let name = basename(&path);
        let rules: usize = [program.as_str(), name]
            .into_iter()
            .flat_map(|head| self.rule_indices_for_head(head))
            .filter_map(|at| self.rule_by_index(at))
            .map(|rule| 64 + lent(&rule.head) + rule.rule_comparison_cost(argv.len()))
            .sum();
        words + lent(name) + rules
    }

    /// The same by another table of paths.
    pub(crate) fn match_rules_with_executables<S: AsRef<str>>(
        &self,
        argv: &[S],
        resolve: Option<&ProgramPathBaseFolders>,
        hosts: &HostExecutables,
    ) -> ExecPolicyCheckResult {
        let Some((program, arguments)) = argv.split_first() else {
            return ExecPolicyCheckResult::default();
        };
        let matches = self.matching_rules_by_name(program.as_ref(), arguments, |_| true);
        // A rule on the program as it is spelled takes precedence; only without one is its path
        // resolved.
        let resolve = resolve.filter(|_| matches.is_empty());
        let Some(path) = resolve
            .map(|surroundings| surroundings.resolve_program_path_lexically(program.as_ref()))
        else {
            return ExecPolicyCheckResult {
                matches,
                resolved_program: None,
            };
        };
        let name = basename(&path);
        // A name may be lent to no path, or not to this one. The same holds for the name in a
        // canonical rule.
        let lent = |name: &str| hosts.get(name).is_none_or(|paths| paths.contains(&path));
        // The root has no name that a rule could stand for.
        if path == "/" || !lent(name) {
            return ExecPolicyCheckResult::default();
        }
        let matches = self.matching_rules_by_name(name, arguments, lent);
        ExecPolicyCheckResult {
            resolved_program: (!matches.is_empty()).then_some(path),
            matches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile_execpolicy_rules_files;

    #[test]
    fn the_document_of_codex() {
        let text = "prefix_rule(['a', ['b', '\u{e9}']], 'prompt', justification='why \"so\"')\n\
                    prefix_rule(['a'])\nprefix_rule(['c'], 'forbidden')";
        let rules = compile_execpolicy_rules_files(&[("t.rules", text)]).unwrap();
        let check = |argv: &[&str], expected: &str| {
            let answer =
                rules.codex_execpolicy_check_result(argv, Some(&ProgramPathBaseFolders::default()));
            assert_eq!(answer.to_codex_check_json(), expected, "{argv:?}");
        };
        check(
            &["a", "\u{e9}", "c"],
            "{\"matchedRules\":[{\"prefixRuleMatch\":{\"matchedPrefix\":[\"a\",\"\u{e9}\"],\"decision\":\"prompt\",\
             \"justification\":\"why \\\"so\\\"\"}},{\"prefixRuleMatch\":{\"matchedPrefix\":[\"a\"],\
             \"decision\":\"allow\"}}],\"decision\":\"prompt\"}",
        );
        check(
            &["/bin/c"],
            "{\"matchedRules\":[{\"prefixRuleMatch\":{\"matchedPrefix\":[\"c\"],\"decision\":\"forbidden\",\
             \"resolvedProgram\":\"/bin/c\"}}],\"decision\":\"forbidden\"}",
        );
        check(&["b"], "{\"matchedRules\":[]}");
        check(&[], "{\"matchedRules\":[]}");
        assert_eq!(
            rules.codex_execpolicy_check_result(&["/bin/a"], None),
            ExecPolicyCheckResult::default()
        );
    }

    /// `expected`: the path that a rule was lent to, `-` for a match without one, nothing for none.
    #[track_caller]
    fn resolves(rules: &str, argv: &[&str], expected: &str) {
        let rules = compile_execpolicy_rules_files(&[("t.rules", rules)]).unwrap();
        let here = ProgramPathBaseFolders {
            folder: "/home/dev/repo".to_owned(),
            home: "/home/dev".to_owned(),
        };
        let answer = rules.codex_execpolicy_check_result(argv, Some(&here));
        let said = match (&answer.resolved_program, answer.strictest_rule_decision()) {
            (Some(path), Some(_)) => path.as_str(),
            (None, Some(_)) => "-",
            (None, None) => "",
            (Some(_), None) => "a path and no rule",
        };
        assert_eq!(said, expected, "{argv:?}");
    }

    #[test]
    fn paths_stand_for_names() {
        for (program, expected) in [
            ("git", "-"),
            ("/usr/bin/git", "/usr/bin/git"),
            ("//usr/./x/..//bin/git/", "/usr/bin/git"),
            ("/../git", "/git"),
            ("./git", "/home/dev/repo/git"),
            ("../../../../git", "/git"),
            ("~/git", "/home/dev/git"),
            ("~//../user/git", "/home/user/git"),
            ("~root/git", "/home/dev/repo/~root/git"),
            ("/", ""),
            ("/usr/..", ""),
            ("~", ""),
            (".", ""),
            ("", ""),
            ("/usr/bin/git.exe", ""),
            ("/bin/GIT", ""),
        ] {
            resolves("prefix_rule(['git'])", &[program, "x"], expected);
        }
        resolves("prefix_rule(['repo'])", &["."], "/home/dev/repo");
        resolves("prefix_rule([''])", &["/"], "");
    }

    #[test]
    fn the_rules_say_to_which_paths_a_name_is_lent() {
        let lent = "host_executable('git', ['/opt/git'])\nprefix_rule(['git'])\n\
                    host_executable('git', ['/usr/bin/../bin/git', '/usr/bin/git'])";
        resolves(lent, &["/usr/bin/git"], "/usr/bin/git");
        // A later call replaces the earlier one.
        resolves(lent, &["/opt/git"], "");
        let none = "prefix_rule(['git'])\nhost_executable('git', [])";
        resolves(none, &["/usr/bin/git"], "");
        // A rule on the path itself counts first, if it holds.
        let own = "prefix_rule(['git'], 'prompt')\nprefix_rule(['/bin/git', 'x'])";
        resolves(own, &["/bin/git", "x"], "-");
        resolves(own, &["/bin/git", "y"], "/bin/git");
    }

    #[test]
    fn a_canonical_rule_asks_for_both_names() {
        let rules = |host: &str| {
            format!(
                "prefix_rule(['git'], canonical_matching=True)\nhost_executable('{host}', ['/opt/{host}'])"
            )
        };
        resolves(&rules("git"), &["/opt/git"], "/opt/git");
        resolves(&rules("git"), &["/opt/GIT"], "");
        resolves(&rules("GIT"), &["/opt/GIT"], "/opt/GIT");
        resolves(&rules("GIT"), &["/bin/GIT"], "");
        resolves(&rules("GIT"), &["/bin/git"], "/bin/git");
    }

    #[test]
    fn canonical_rules_come_after_those_of_the_very_name() {
        let one = |head: &str, canonical: &str, label: u8| {
            format!("prefix_rule(['{head}'], justification='{label}'{canonical})\n")
        };
        let (exact, canonical) = ("", ", canonical_matching=True");
        let text = [
            one("git", canonical, 1),
            one("GIT", exact, 2),
            one("GIT", canonical, 3),
            one("git", exact, 4),
            one("GIT", exact, 5),
        ]
        .concat();
        let rules = compile_execpolicy_rules_files(&[("t.rules", text.as_str())]).unwrap();
        let check = |program: &str, expected: &str| {
            let answer = rules.codex_execpolicy_check_result(
                &[program, "x"],
                Some(&ProgramPathBaseFolders::default()),
            );
            let labels = answer.matches.iter().flat_map(|hit| &hit.justification);
            let labels: Vec<&str> = labels.map(String::as_str).collect();
            assert_eq!(labels.join(" "), expected, "{program}");
            let name = basename(program);
            assert!(
                answer
                    .matches
                    .iter()
                    .all(|hit| hit.matched_prefix == [name])
            );
        };
        check("git", "1 4 3");
        check("GIT", "2 3 5 1");
        check("/bin/git", "1 4 3");
        check("Git", "3 1");
        let rules = compile_execpolicy_rules_files(&[(
            "t.rules",
            "prefix_rule(['a', ['B', 'c']], canonical_matching=True)",
        )])
        .unwrap();
        let hit = &rules
            .codex_execpolicy_check_result(&["A", "b"], None)
            .matches[0];
        assert_eq!(hit.matched_prefix, ["A", "b"]);
    }
}
