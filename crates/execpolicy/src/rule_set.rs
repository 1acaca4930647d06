//! The compiled rule set: plain data that a hook process loads without Starlark.
//!
//! Matching is that of Codex: exact tokens from the first, every matching rule counts, the
//! strictest wins. It is stricter in one point: a restrictive rule on a bare name also holds for a
//! path with that basename, while an allow rule is not lent to a path.

use std::collections::BTreeMap;

use checkrein_core::input::RuleDecision;
use serde::{Deserialize, Serialize};

use crate::canonical_form::{equals_unicode_caseless, unicode_caseless_form};
use crate::codex_check::{HostExecutables, normalize_path};
use crate::effect_policy::{EffectPolicy, UnmatchedDecision};
use crate::network_rules::NetworkRule;

/// Version of the text form; a higher one is refused, never guessed at.
const FORMAT: u32 = 5;
/// With bounds that forbid destruction and do not ask about hazards. Builds before `FORMAT` ignore
/// fields that they do not know, and would ask about less.
const FLOORED: u32 = 4;
/// With bounds, none of which forbids destruction.
const BOUNDED: u32 = 3;
/// With canonical rules, but nothing on commands that no rule names.
const CANONICAL: u32 = 2;
/// Without canonical rules. Builds that know no canonical rules would take one for an exact one,
/// which forbids less; a text without any keeps this number.
const EXACT_ONLY: u32 = 1;

/// One prefix rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PrefixRule {
    /// First token, always one: alternatives there make several rules.
    pub(crate) head: String,
    /// The alternatives of every later position.
    pub(crate) tail: Vec<Vec<String>>,
    /// What it says.
    pub(crate) decision: RuleDecision,
    /// Why, for the agent and the person.
    pub(crate) justification: Option<String>,
    /// Letter case and composed characters do not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) canonical: bool,
}

/// A rule that holds for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedRule {
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
    rules: Vec<PrefixRule>,
    /// Positions in `rules` by first token.
    by_head: BTreeMap<String, Vec<usize>>,
    /// Positions of the canonical ones by the canonical form of their first token.
    by_canonical: BTreeMap<String, Vec<usize>>,
    host_executables: HostExecutables,
    network: Vec<NetworkRule>,
    /// Paths that no command and no tool writes; see `self_protection`.
    protected: Vec<String>,
    effect_policy: EffectPolicy,
}

#[derive(Serialize, Deserialize)]
struct CompiledRuleSetJson {
    v: u32,
    rules: Vec<PrefixRule>,
    #[serde(default, skip_serializing_if = "HostExecutables::is_empty")]
    hosts: HostExecutables,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    network: Vec<NetworkRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<String>,
    #[serde(
        default,
        skip_serializing_if = "EffectPolicy::is_effect_policy_unrestricted"
    )]
    bounds: EffectPolicy,
}

/// Why a stored rule set cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredRuleSetReadError {
    /// The text is not one.
    #[error("compiled rules cannot be read")]
    Syntax(#[from] serde_json::Error),
    /// It was written by a later version.
    #[error("compiled rules have format {0}, this build reads {FORMAT}: upgrade it")]
    Format(u32),
}

impl RuleSet {
    pub(crate) fn new(rules: Vec<PrefixRule>) -> Self {
        let mut by_head: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut by_canonical: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, rule) in rules.iter().enumerate() {
            by_head.entry(rule.head.clone()).or_default().push(at);
            // Canonical rules are in both indexes.
            if rule.canonical {
                let head = unicode_caseless_form(&rule.head);
                by_canonical.entry(head).or_default().push(at);
            }
        }
        Self {
            rules,
            by_head,
            by_canonical,
            ..Self::default()
        }
    }

    /// Returns the same rules, with what the other two functions of the language declare.
    pub(crate) fn with_executables_and_network_rules(
        self,
        hosts: HostExecutables,
        network: Vec<NetworkRule>,
    ) -> Self {
        Self {
            host_executables: hosts,
            network,
            ..self
        }
    }

    pub(crate) fn all_host_executables(&self) -> &HostExecutables {
        &self.host_executables
    }

    /// Returns what the files say about hosts. Commands are not judged by it.
    pub fn network_rules(&self) -> &[NetworkRule] {
        &self.network
    }

    /// Returns the same rules, with files and folders that no command and no tool may write.
    #[must_use]
    pub fn with_protected_paths(self, protected: Vec<String>) -> Self {
        Self { protected, ..self }
    }

    /// Returns the same rules, with what holds for commands that no rule names, and for paths.
    #[must_use]
    pub fn with_effect_policy(self, bounds: EffectPolicy) -> Self {
        Self {
            effect_policy: bounds,
            ..self
        }
    }

    /// Returns the same rules, in these folders.
    #[must_use]
    pub fn with_project_roots(mut self, roots: Vec<String>) -> Self {
        self.effect_policy.roots = roots;
        self
    }

    /// Returns whether it matters where the project lies.
    pub fn rules_depend_on_project_location(&self) -> bool {
        crate::effects::evaluation::policy_needs_command_effects(&self.effect_policy)
    }

    /// Returns whether there are paths that nobody writes.
    pub fn protects_paths(&self) -> bool {
        !self.effect_policy.protect.is_empty()
    }

    pub(crate) fn effect_policy(&self) -> &EffectPolicy {
        &self.effect_policy
    }

    pub(crate) fn protected_paths(&self) -> &[String] {
        &self.protected
    }

    pub(crate) fn into_prefix_rules(self) -> Vec<PrefixRule> {
        self.rules
    }

    /// Compact JSON, for `Policy::rules`.
    pub fn rules_to_json(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        // The lowest format that says everything is written, so older builds can read all that
        // they know.
        let canonical = self.rules.iter().any(|rule| rule.canonical);
        // Strings and integers always serialise.
        serde_json::to_string(&CompiledRuleSetJson {
            v: match canonical {
                _ if self.effect_policy.hazard_asks => FORMAT,
                _ if self.effect_policy.forbids_destruction => FLOORED,
                _ if !self.effect_policy.is_effect_policy_unrestricted() => BOUNDED,
                true => CANONICAL,
                false => EXACT_ONLY,
            },
            rules: self.rules.clone(),
            hosts: self.host_executables.clone(),
            network: self.network.clone(),
            protected: self.protected.clone(),
            bounds: self.effect_policy.clone(),
        })
        .unwrap_or_default()
    }

    /// Reads what [`RuleSet::rules_to_json`] wrote. The empty text is the empty set.
    ///
    /// # Errors
    /// Fails if the text is no rule set, or of a later format.
    pub fn deserialize_rule_set(text: &str) -> Result<Self, StoredRuleSetReadError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let wire: CompiledRuleSetJson = serde_json::from_str(text)?;
        // A later format may hold restrictions that this build would miss.
        if !(EXACT_ONLY..=FORMAT).contains(&wire.v) {
            return Err(StoredRuleSetReadError::Format(wire.v));
        }
        Ok(Self::new(wire.rules)
            .with_executables_and_network_rules(wire.hosts, wire.network)
            .with_protected_paths(wire.protected)
            .with_effect_policy(wire.bounds))
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any rule prompts or forbids. Only then is an unreadable command worth a question.
    pub fn has_restricting_rules(&self) -> bool {
        self.effect_policy.unmatched != UnmatchedDecision::Allow
            || self
                .rules
                .iter()
                .any(|rule| rule.decision > RuleDecision::Allow)
    }

    /// Whether what destroys a home, a disk or the system is refused whatever the rules say.
    pub fn forbids_destruction(&self) -> bool {
        self.effect_policy.forbids_destruction
    }

    /// Whether a person is asked about what others feel for good, and about unread code from the
    /// network, whatever the rules say.
    pub fn asks_person_on_hazardous_commands(&self) -> bool {
        self.effect_policy.hazard_asks
    }

    /// Whether any rule leaves a command to a person.
    pub fn has_prompting_rule(&self) -> bool {
        self.effect_policy.policy_may_ask_person()
            || self
                .rules
                .iter()
                .any(|rule| rule.decision == RuleDecision::Prompt)
    }

    /// Returns every rule that holds for these words, in file order, for our own judging.
    pub fn matching_rules<S: AsRef<str>>(&self, argv: &[S]) -> Vec<MatchedRule> {
        let Some((program, arguments)) = argv.split_first() else {
            return Vec::new();
        };
        let program = program.as_ref();
        let name = basename(program);
        let mut at: Vec<(usize, &str)> = self
            .rule_indices_for_head(program)
            .map(|at| (at, program))
            .collect();
        // For a path the rules of its basename count too: those that restrict, and allow rules
        // where a `host_executable` lends the name to this path.
        if name != program {
            let lent = |rule: &PrefixRule| {
                self.is_listed_host_executable(name, program) == Some(true)
                    && self
                        .is_listed_host_executable(&rule.head, program)
                        .unwrap_or(true)
            };
            let like = self.rule_indices_for_head(name).filter(|at| {
                let rule = self.rules.get(*at);
                rule.is_some_and(|rule| rule.decision > RuleDecision::Allow || lent(rule))
            });
            at.extend(like.map(|at| (at, name)));
        }
        // The rules of both names are brought into file order.
        at.sort_unstable();
        at.into_iter()
            .filter_map(|(at, program)| {
                self.rules
                    .get(at)?
                    .match_command_to_rule(program, arguments)
            })
            .collect()
    }

    /// Returns whether the files lend this name to this path; `None` if they say nothing about it.
    fn is_listed_host_executable(&self, name: &str, program: &str) -> Option<bool> {
        let paths = self.host_executables.get(name)?;
        Some(program.starts_with('/') && paths.contains(&normalize_path(program)))
    }

    /// Returns every rule that holds for a program of exactly this name, in the order of Codex:
    /// first those whose first token is spelled like it, then the canonical ones by the spelling
    /// of theirs, if that is `lent`.
    pub(crate) fn matching_rules_by_name<S: AsRef<str>>(
        &self,
        program: &str,
        arguments: &[S],
        lent: impl Fn(&str) -> bool,
    ) -> Vec<MatchedRule> {
        let mut rules: Vec<&PrefixRule> = self
            .rule_indices_for_head(program)
            .filter_map(|at| self.rules.get(at))
            .filter(|rule| rule.head == program || lent(&rule.head))
            .collect();
        // The key of an exact name is `None`, which sorts first.
        rules.sort_by_cached_key(|rule| (rule.head != program).then(|| rule.head.clone()));
        rules
            .into_iter()
            .filter_map(|rule| rule.match_command_to_rule(program, arguments))
            .collect()
    }

    /// Returns whether a restrictive rule could hold once the words after these fixed ones are
    /// known. `lead` is how the first of those begins.
    pub(crate) fn could_match_restrictive_rule<S: AsRef<str>>(
        &self,
        fixed: &[S],
        lead: &str,
    ) -> bool {
        let Some((program, arguments)) = fixed.split_first() else {
            return false;
        };
        let program = program.as_ref();
        let name = basename(program);
        // Restrictive rules on a bare name also hold for paths.
        let other = (name != program)
            .then(|| self.rule_indices_for_head(name))
            .into_iter()
            .flatten();
        self.rule_indices_for_head(program)
            .chain(other)
            .filter_map(|at| self.rules.get(at))
            .filter(|rule| rule.decision > RuleDecision::Allow)
            .any(|rule| {
                let known = arguments.iter().zip(&rule.tail);
                known.clone().count() == arguments.len()
                    && known.into_iter().all(|(word, options)| {
                        rule.word_matches_alternatives(options, word.as_ref())
                    })
                    && rule.tail.get(arguments.len()).is_some_and(|options| {
                        // The beginning of a word does not determine the beginning of its
                        // canonical form.
                        lead.is_empty()
                            || rule.canonical
                            || options.iter().any(|option| option.starts_with(lead))
                    })
            })
    }

    /// Returns the length of the longest pattern, in tokens.
    pub(crate) fn longest_rule_pattern_len(&self) -> usize {
        self.rules
            .iter()
            .map(|rule| rule.tail.len() + 1)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn rule_by_index(&self, at: usize) -> Option<&PrefixRule> {
        self.rules.get(at)
    }

    /// Positions, in order of the files, of what may hold for a program of this name.
    pub(crate) fn rule_indices_for_head(&self, head: &str) -> impl Iterator<Item = usize> + '_ {
        let exact = self.by_head.get(head).into_iter().flatten().copied();
        // The canonical form is only worked out if some rule is compared by it.
        let folded = (!self.by_canonical.is_empty()).then(|| unicode_caseless_form(head));
        let like = folded.and_then(|folded| self.by_canonical.get(&folded));
        let head = head.to_owned();
        let like = like.into_iter().flatten().copied();
        // Rules with exactly this name were found by the first index.
        let spelt_otherwise =
            move |at: &usize| self.rules.get(*at).is_some_and(|rule| rule.head != head);
        exact.chain(like.filter(spelt_otherwise))
    }
}

impl PrefixRule {
    fn word_matches_alternatives(&self, options: &[String], word: &str) -> bool {
        options.iter().any(|option| {
            option == word || (self.canonical && equals_unicode_caseless(option, word))
        })
    }

    /// Returns the bytes that a command of so many words can be compared with.
    pub(crate) fn rule_comparison_cost(&self, words: usize) -> usize {
        let options = self.tail.iter().take(words).flatten();
        options.map(|word| word.len() + 32).sum()
    }

    /// `program` is how the command spells the first token.
    fn match_command_to_rule<S: AsRef<str>>(
        &self,
        program: &str,
        arguments: &[S],
    ) -> Option<MatchedRule> {
        // A command with fewer words than the pattern does not match.
        let taken = arguments.get(..self.tail.len())?;
        let mut known = taken.iter().zip(&self.tail);
        if !known.all(|(word, options)| self.word_matches_alternatives(options, word.as_ref())) {
            return None;
        }
        let mut matched_prefix = vec![program.to_owned()];
        matched_prefix.extend(taken.iter().map(|word| word.as_ref().to_owned()));
        Some(MatchedRule {
            matched_prefix,
            decision: self.decision,
            justification: self.justification.clone(),
        })
    }
}

/// Returns what follows the last slash, or the whole name if nothing does.
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
    use crate::compile_execpolicy_rules_files;

    fn rules() -> RuleSet {
        let one = "prefix_rule(['git'], 'prompt')\nprefix_rule(['git', 'status'])\n\
                   prefix_rule(['rm'], 'forbidden', justification='use trash')\n\
                   prefix_rule([['npm', 'yarn'], ['i', 'install']], 'prompt')";
        let two =
            "prefix_rule(['git'], 'prompt')\nprefix_rule(['/opt/rm'], 'allow')\nprefix_rule([''])";
        compile_execpolicy_rules_files(&[("one.rules", one), ("two.rules", two)]).unwrap()
    }

    #[test]
    fn every_rule_counts_in_file_order() {
        let rules = rules();
        let check = |argv: &[&str], expected: &[(&str, RuleDecision)]| {
            let hits = rules.matching_rules(argv);
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
            rules.matching_rules(&["rm", "x"]),
            [MatchedRule {
                matched_prefix: vec!["rm".to_owned()],
                decision: Forbidden,
                justification: Some("use trash".to_owned()),
            }]
        );
    }

    #[test]
    fn paths_that_a_file_names_are_allowed_as_the_name_is() {
        let text = "prefix_rule(['git', 'status'])\nprefix_rule(['git', 'push'], 'prompt')\n\
                    host_executable('git', ['/usr/bin/git'])";
        let rules = compile_execpolicy_rules_files(&[("t.rules", text)]).unwrap();
        let says = |argv: &[&str]| rules.matching_rules(argv).first().map(|hit| hit.decision);
        assert_eq!(says(&["/usr/bin/git", "status"]), Some(Allow));
        assert_eq!(says(&["/usr/./bin/git", "status"]), Some(Allow));
        assert_eq!(says(&["/opt/git", "status"]), None);
        assert_eq!(says(&["usr/bin/git", "status"]), None);
        // What restricts a name restricts every path.
        assert_eq!(says(&["/opt/git", "push"]), Some(Prompt));
    }

    #[test]
    fn canonical_rules_hold_in_any_letter_case() {
        let text = "prefix_rule(['Rm', '-RF'], 'forbidden', canonical_matching=True)";
        let rules = compile_execpolicy_rules_files(&[("t.rules", text)]).unwrap();
        for argv in [["rm", "-rf"], ["RM", "-Rf"], ["/bin/rM", "-rf"]] {
            assert_eq!(rules.matching_rules(&argv).len(), 1, "{argv:?}");
        }
        assert_eq!(rules.matching_rules(&["rm", "-r"]), []);
        assert!(rules.could_match_restrictive_rule(&["rm"], "-r"));
        assert!(!rules.could_match_restrictive_rule(&["r"], ""));
    }

    #[test]
    fn what_unknown_words_could_still_become() {
        let rules = compile_execpolicy_rules_files(&[(
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
                rules.could_match_restrictive_rule(fixed, lead),
                expected,
                "{fixed:?} {lead:?}"
            );
        }
    }

    #[test]
    fn text_form_keeps_everything() {
        let rules = rules();
        assert_eq!(
            RuleSet::deserialize_rule_set(&rules.rules_to_json()).unwrap(),
            rules
        );
        assert_eq!(RuleSet::default().rules_to_json(), "");
        assert_eq!(
            RuleSet::deserialize_rule_set("").unwrap(),
            RuleSet::default()
        );
        let text = "prefix_rule(['A'], canonical_matching=True)\nhost_executable('a', ['/a'])\n\
                    network_rule('x', 'http', 'deny', 'why')";
        let more = compile_execpolicy_rules_files(&[("t.rules", text)]).unwrap();
        assert_eq!(
            RuleSet::deserialize_rule_set(&more.rules_to_json()).unwrap(),
            more
        );
        // A build that knows no canonical rules must not read them as exact ones.
        assert!(more.rules_to_json().starts_with(r#"{"v":2,"#));
        assert!(rules.rules_to_json().starts_with(r#"{"v":1,"#));
        assert!(rules.has_restricting_rules() && !RuleSet::default().has_restricting_rules());
        let golden = r#"{"v":1,"rules":[{"head":"rm","tail":[["-r","-f"]],"decision":"forbidden","justification":null}]}"#;
        let made = compile_execpolicy_rules_files(&[(
            "t.rules",
            "prefix_rule(['rm', ['-r', '-f']], 'forbidden')",
        )])
        .unwrap();
        assert_eq!(
            (
                made.rules_to_json().as_str(),
                RuleSet::deserialize_rule_set(golden).unwrap()
            ),
            (golden, made)
        );
        assert!(RuleSet::deserialize_rule_set("{").is_err());
        let later = RuleSet::deserialize_rule_set(r#"{"v":6,"rules":[]}"#).unwrap_err();
        assert_eq!(
            later.to_string(),
            "compiled rules have format 6, this build reads 5: upgrade it"
        );
    }
}
