//! The functions that a rules file can call, and what each call records.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use checkrein_core::input::RuleDecision;
use starlark::any::ProvidesStaticType;
use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::list::{ListRef, UnpackList};
use starlark::values::none::NoneType;

use super::error::RulesCompileError;
use super::examples::RuleExamples;
use super::meter::EvaluationMeter;
use crate::codex_check::normalize_path;
use crate::network_rules::{self, NetworkProtocol, NetworkRule};
use crate::rule_set::{PrefixRule, basename};

pub(super) use collected::CollectedRuleCalls;

#[expect(
    unsafe_code,
    reason = "starlark's derive; a type without lifetimes is its own static type"
)]
mod collected {
    use super::{Cell, EvaluationMeter, ProvidesStaticType, RefCell, RulesBuiltinCall};

    /// What the builtins collect while a file is evaluated.
    #[derive(Debug, ProvidesStaticType)]
    pub(in super::super) struct CollectedRuleCalls {
        pub(in super::super) calls: RefCell<Vec<RulesBuiltinCall>>,
        pub(in super::super) meter: EvaluationMeter,
        /// How many bytes of rules may still come.
        pub(in super::super) byte_budget: Cell<usize>,
    }
}

impl CollectedRuleCalls {
    pub(super) fn rule_calls_with_byte_budget(room: usize) -> Self {
        Self {
            calls: RefCell::default(),
            meter: EvaluationMeter::default(),
            byte_budget: Cell::new(room),
        }
    }

    /// Reserves room for something before it is made.
    fn reserve_rule_memory(&self, bytes: usize) -> Result<(), RulesBuiltinError> {
        let left = self.byte_budget.get().checked_sub(bytes);
        // A failed reservation uses up the rest, so that no later one succeeds.
        self.byte_budget.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(RulesBuiltinError::Room)
    }

    /// Copies a word that is kept, within the budget.
    fn copy_rule_word_within_budget(&self, word: &str) -> Result<String, RulesBuiltinError> {
        self.reserve_rule_memory(rule_word_memory_cost(word))?;
        Ok(word.to_owned())
    }
}

/// Returns the memory that a kept word takes: its text, and the place that refers to it.
pub(super) fn rule_word_memory_cost(word: &str) -> usize {
    word.len() + 32
}

/// One call.
#[derive(Debug)]
pub(super) struct RulesBuiltinCall {
    /// Where it stands, from 1.
    pub(super) line: usize,
    /// What it says.
    pub(super) rule: RuleFileStatement,
}

/// What a call says.
#[derive(Debug)]
pub(super) enum RuleFileStatement {
    /// `prefix_rule`
    Rules {
        /// One rule per head.
        rules: Vec<PrefixRule>,
        /// What its author expects of them.
        examples: RuleExamples,
    },
    /// `host_executable`
    Host {
        /// A bare name.
        name: String,
        /// The paths that may stand for it.
        paths: Vec<String>,
    },
    /// `network_rule`
    Network(NetworkRule),
}

/// What the builtins refuse.
#[derive(Debug, thiserror::Error)]
enum RulesBuiltinError {
    #[error("invalid decision: {0}")]
    Decision(String),
    #[error("invalid pattern element: {0}")]
    Pattern(String),
    #[error("invalid example: {0}")]
    Example(String),
    #[error("invalid rule: {0}")]
    Rule(String),
    #[error("the rules come to more than {} MiB: shorter lists, please", super::MAX_RULES >> 20)]
    Room,
    #[error("rules cannot be collected here")]
    NoCollector,
}

impl From<RulesBuiltinError> for starlark::Error {
    fn from(error: RulesBuiltinError) -> Self {
        starlark::Error::new_native(error)
    }
}

#[starlark_module]
pub(super) fn register_rule_builtins(builder: &mut GlobalsBuilder) {
    fn prefix_rule<'v>(
        pattern: UnpackList<Value<'v>>,
        decision: Option<&'v str>,
        r#match: Option<UnpackList<Value<'v>>>,
        not_match: Option<UnpackList<Value<'v>>>,
        justification: Option<&'v str>,
        canonical_matching: Option<bool>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let calls = rule_call_collector(eval)?;
        let decision = decision.map_or(Ok(RuleDecision::Allow), parse_rule_decision)?;
        let justification = parse_justification(justification)?;
        let mut positions = Vec::new();
        for element in &pattern.items {
            positions.push(parse_pattern_element(*element, calls)?);
        }
        let mut positions = positions.into_iter();
        let Some(heads) = positions.next() else {
            return Err(RulesBuiltinError::Pattern("pattern cannot be empty".to_owned()).into());
        };
        let tail: Vec<Vec<String>> = positions.collect();
        // Each first word makes a rule of its own, with all that follows.
        let words = tail
            .iter()
            .flatten()
            .map(|word| rule_word_memory_cost(word));
        let rest = words.sum::<usize>() + justification.as_deref().map_or(0, rule_word_memory_cost);
        calls.reserve_rule_memory(heads.len().saturating_mul(rest))?;
        let rules = heads
            .into_iter()
            .map(|head| PrefixRule {
                head,
                tail: tail.clone(),
                decision,
                justification: justification.clone(),
                canonical: canonical_matching.unwrap_or(false),
            })
            .collect();
        let examples = RuleExamples {
            matching: parse_rule_examples(r#match, calls)?,
            other: parse_rule_examples(not_match, calls)?,
        };
        collect_rule_file_call(eval, RuleFileStatement::Rules { rules, examples })
    }

    fn host_executable<'v>(
        name: &'v str,
        paths: UnpackList<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let invalid = |what: String| RulesBuiltinError::Rule(format!("host_executable {what}"));
        if name.is_empty() {
            return Err(invalid("name cannot be empty".to_owned()).into());
        }
        if name.contains('/') || matches!(name, "." | "..") {
            let what = format!("name must be a bare executable name (got {name})");
            return Err(invalid(what).into());
        }
        let calls = rule_call_collector(eval)?;
        let mut kept: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        for value in &paths.items {
            let Some(path) = value.unpack_str() else {
                let what = format!("paths must be strings (got {})", value.get_type());
                return Err(invalid(what).into());
            };
            if !path.starts_with('/') {
                return Err(invalid(format!("paths must be absolute (got {path})")).into());
            }
            let clean = normalize_path(path);
            if basename(&clean) != name {
                let what = format!("path `{path}` must have basename `{name}`");
                return Err(invalid(what).into());
            }
            // The path is taken apart and compared before it is kept, which costs more than its
            // own bytes.
            calls.reserve_rule_memory(4 * rule_word_memory_cost(path))?;
            if known.insert(clean.clone()) {
                kept.push(clean);
            }
        }
        let name = calls.copy_rule_word_within_budget(name)?;
        collect_rule_file_call(eval, RuleFileStatement::Host { name, paths: kept })
    }

    fn network_rule<'v>(
        host: &'v str,
        protocol: &'v str,
        decision: &'v str,
        justification: Option<&'v str>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let protocol = NetworkProtocol::parse_network_rule_protocol(protocol)
            .map_err(RulesBuiltinError::Rule)?;
        let decision = match decision {
            // Only network rules have this second word for `forbidden`.
            "deny" => RuleDecision::Forbidden,
            word => parse_rule_decision(word)?,
        };
        let justification = parse_justification(justification)?;
        rule_call_collector(eval)?.reserve_rule_memory(
            rule_word_memory_cost(host) + justification.as_deref().map_or(0, rule_word_memory_cost),
        )?;
        let host = network_rules::parse_network_rule_host(host).map_err(RulesBuiltinError::Rule)?;
        let rule = NetworkRule {
            host,
            protocol,
            decision,
            justification,
        };
        collect_rule_file_call(eval, RuleFileStatement::Network(rule))
    }
}

fn collect_rule_file_call(
    eval: &Evaluator<'_, '_, '_>,
    what: RuleFileStatement,
) -> starlark::Result<NoneType> {
    // The line of the call is what errors and listings name.
    let line = eval
        .call_stack_top_location()
        .map_or(1, |place| place.resolve_span().begin.line + 1);
    let calls = rule_call_collector(eval)?;
    calls
        .calls
        .borrow_mut()
        .push(RulesBuiltinCall { line, rule: what });
    Ok(NoneType)
}

fn rule_call_collector<'a>(
    eval: &Evaluator<'_, 'a, '_>,
) -> Result<&'a CollectedRuleCalls, RulesBuiltinError> {
    eval.extra
        .and_then(|extra| extra.downcast_ref::<CollectedRuleCalls>())
        .ok_or(RulesBuiltinError::NoCollector)
}

#[starlark_module]
pub(super) fn register_starlark_size_meter(builder: &mut GlobalsBuilder) {
    /// Lets a value through that is not too large for how it will be used.
    fn __meter<'v>(
        #[starlark(require = pos)] value: Value<'v>,
        #[starlark(require = pos)] usage: i32,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let heap = eval.heap().allocated_bytes();
        match rule_call_collector(eval)?
            .meter
            .is_starlark_value_small_enough(value, usage, heap)
        {
            true => Ok(value),
            false => Err(starlark::Error::new_other(RulesCompileError::LimitExceeded)),
        }
    }
}

fn parse_justification(text: Option<&str>) -> Result<Option<String>, RulesBuiltinError> {
    if text.is_some_and(|text| text.trim().is_empty()) {
        return Err(RulesBuiltinError::Rule(
            "justification cannot be empty".to_owned(),
        ));
    }
    Ok(text.map(str::to_owned))
}

fn parse_rule_decision(word: &str) -> Result<RuleDecision, RulesBuiltinError> {
    match word {
        "allow" => Ok(RuleDecision::Allow),
        "prompt" => Ok(RuleDecision::Prompt),
        "forbidden" => Ok(RuleDecision::Forbidden),
        _ => Err(RulesBuiltinError::Decision(word.to_owned())),
    }
}

/// One position of a pattern: a token, or a list of alternatives.
fn parse_pattern_element(
    element: Value<'_>,
    calls: &CollectedRuleCalls,
) -> Result<Vec<String>, RulesBuiltinError> {
    if let Some(token) = element.unpack_str() {
        return Ok(vec![calls.copy_rule_word_within_budget(token)?]);
    }
    let Some(list) = ListRef::from_value(element) else {
        return Err(RulesBuiltinError::Pattern(format!(
            "pattern element must be a string or list of strings (got {})",
            element.get_type()
        )));
    };
    if list.is_empty() {
        return Err(RulesBuiltinError::Pattern(
            "pattern alternatives cannot be empty".to_owned(),
        ));
    }
    list.iter()
        .map(|value| {
            let token = value.unpack_str().ok_or_else(|| {
                RulesBuiltinError::Pattern(format!(
                    "pattern alternative must be a string (got {})",
                    value.get_type()
                ))
            })?;
            calls.copy_rule_word_within_budget(token)
        })
        .collect()
}

fn parse_rule_examples(
    examples: Option<UnpackList<Value<'_>>>,
    calls: &CollectedRuleCalls,
) -> Result<Vec<Vec<String>>, RulesBuiltinError> {
    let examples = examples.into_iter().flatten();
    examples
        .map(|value| parse_rule_example(value, calls))
        .collect()
}

fn parse_rule_example(
    value: Value<'_>,
    calls: &CollectedRuleCalls,
) -> Result<Vec<String>, RulesBuiltinError> {
    let invalid = |what: &str| RulesBuiltinError::Example(what.to_owned());
    if let Some(text) = value.unpack_str() {
        // At most every second character of it begins a word.
        calls.reserve_rule_memory(text.len().saturating_mul(16))?;
        let words =
            shlex::split(text).ok_or_else(|| invalid("example string has invalid shell syntax"))?;
        return match words.is_empty() {
            true => Err(invalid("example cannot be an empty string")),
            false => Ok(words),
        };
    }
    let Some(list) = ListRef::from_value(value) else {
        return Err(RulesBuiltinError::Example(format!(
            "example must be a string or list of strings (got {})",
            value.get_type()
        )));
    };
    if list.is_empty() {
        return Err(invalid("example cannot be an empty list"));
    }
    list.iter()
        .map(|word| {
            let token = word.unpack_str().ok_or_else(|| {
                RulesBuiltinError::Example(format!(
                    "example tokens must be strings (got {})",
                    word.get_type()
                ))
            })?;
            calls.copy_rule_word_within_budget(token)
        })
        .collect()
}
